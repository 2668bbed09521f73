// Matrix product of f16 rows for one warp.
//
//   mma_f16 c += x, w      c : f32[m, n]   x : f16[m, k]   w : f16[n, k]
#include "kir/tiles/half_products.h"

namespace quern::kir {

const TileOp& TileOp_mma_f16() {
  static const TileOp op = MmaHalves("mma_f16", DType::kF16);
  return op;
}

}  // namespace quern::kir
