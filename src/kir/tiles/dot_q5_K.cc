// dot_q5_K y += w, x      w : q5_K[n, k] @blocks   x : q8_K[m, k] @planar
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_dot_q5_K() {
  static const TileOp op = DotBlocks("qk_dot_q5_K", DType::kQ5_K, DType::kQ8_K);
  return op;
}

}  // namespace quern::kir
