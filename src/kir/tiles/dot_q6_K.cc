// dot_q6_K y += w, x      w : q6_K[n, k] @blocks   x : q8_K[m, k] @planar
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_dot_q6_K() {
  static const TileOp op = DotBlocks("qk_dot_q6_K", DType::kQ6_K, DType::kQ8_K);
  return op;
}

}  // namespace quern::kir
