// dot_q8_0_x y += w, x      w : q8_0[n, k] @blocks   x : f32[m, k]
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_dot_q8_0_x() {
  static const TileOp op = DotBlocks("qk_dot_q8_0_x", DType::kQ8_0, DType::kF32);
  return op;
}

}  // namespace quern::kir
