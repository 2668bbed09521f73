// mma_q4_0 c += x, w      x : q8_0[m, k] @planar   w : q4_0[n, k] @panel16
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_mma_q4_0() {
  static const TileOp op = MmaBlocks("qk_mma_q4_0", DType::kQ4_0, DType::kQ8_0);
  return op;
}

}  // namespace quern::kir
