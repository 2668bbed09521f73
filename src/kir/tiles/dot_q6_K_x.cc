// dot_q6_K_x y += w, x      w : q6_K[n, k] @blocks   x : f32[m, k]
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_dot_q6_K_x() {
  static const TileOp op = DotBlocks("qk_dot_q6_K_x", DType::kQ6_K, DType::kF32);
  return op;
}

}  // namespace quern::kir
