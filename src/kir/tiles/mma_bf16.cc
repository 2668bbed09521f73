// Matrix product of bf16 rows for one warp.
//
//   mma_bf16 c += x, w      c : f32[m, n]   x : bf16[m, k]   w : bf16[n, k]
#include "kir/tiles/half_products.h"

namespace quern::kir {

const TileOp& TileOp_mma_bf16() {
  static const TileOp op = MmaHalves("mma_bf16", DType::kBF16);
  return op;
}

}  // namespace quern::kir
