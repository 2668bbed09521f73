// Llama models from GGUF metadata and tensors (architecture "llama": Llama 1 to 3, TinyLlama, stories).
#pragma once

#include "models/model_spec.h"

namespace quern::models {

// The graph: rows of token_embd by id, `block_count` decoder layers, the last LOGITS rows, the final norm, and the
// product with output.weight (or token_embd.weight where there is none).
StatusOr<ModelSpec> LlamaFromGguf(std::shared_ptr<const GgufFile> file, const ModelOptions& options);

}  // namespace quern::models
