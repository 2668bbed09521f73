// dot_q4_0 y += w, x      w : q4_0[n, k] @blocks   x : q8_0[m, k] @planar
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_dot_q4_0() {
  static const TileOp op = DotBlocks("qk_dot_q4_0", DType::kQ4_0, DType::kQ8_0);
  return op;
}

}  // namespace quern::kir
