// TransformerBlock: LlamaDecoderBlock by another name, with its own label.

#include "hir/decoder.h"

namespace quern::hir {

const BlockDef& Block_transformer_block() {
  static const BlockDef* const block = Make(DecoderBlock("TransformerBlock", "transformer_block"));
  return *block;
}

}  // namespace quern::hir
