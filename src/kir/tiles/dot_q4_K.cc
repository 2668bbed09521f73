// dot_q4_K y += w, x      w : q4_K[n, k] @blocks   x : q8_K[m, k] @planar
#include "kir/tiles/block_products.h"

namespace quern::kir {

const TileOp& TileOp_dot_q4_K() {
  static const TileOp op = DotBlocks("qk_dot_q4_K", DType::kQ4_K, DType::kQ8_K);
  return op;
}

}  // namespace quern::kir
