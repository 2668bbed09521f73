// mma_q4_K c += x, w      x : q8_K[m, k] @planar   w : q4_K[n, k] @panel16
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_mma_q4_K() {
  static const TileOp op = MmaBlocks("qk_mma_q4_K", DType::kQ4_K, DType::kQ8_K);
  return op;
}

}  // namespace quern::kir
