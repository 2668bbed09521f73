// LlamaDecoderBlock: a layer of a Llama model; decoder.h has the definition.

#include "hir/decoder.h"

namespace quern::hir {

const BlockDef& Block_llama_decoder_block() {
  static const BlockDef* const block = Make(DecoderBlock("LlamaDecoderBlock", "llama_decoder_block"));
  return *block;
}

}  // namespace quern::hir
