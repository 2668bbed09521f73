// Lstm{hidden, layers, bidirectional}: layers of the op of that name (hir/recurrent.h), and h and c for the next step.

#include "hir/recurrent.h"

namespace quern::hir {

const BlockDef& Block_lstm() {
  static const BlockDef* const block =
      RecurrentBlock("Lstm", "layers of long short-term memory, gates i, o, f, c: y, the last h and c", "lstm",
                     "lstm_carry", /*gates=*/4, /*states=*/2);
  return *block;
}

}  // namespace quern::hir
