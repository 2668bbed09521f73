// Gru{hidden, layers, bidirectional}: layers of the op of that name (hir/recurrent.h), and h for the next step.

#include "hir/recurrent.h"

namespace quern::hir {

const BlockDef& Block_gru() {
  static const BlockDef* const block =
      RecurrentBlock("Gru", "layers of gated recurrent units, gates z, r, h: y and the last h", "gru", "gru_carry",
                     /*gates=*/3, /*states=*/1);
  return *block;
}

}  // namespace quern::hir
