// The vocabulary of a folder as Hugging Face's tokenizers writes it (tokenizer.json and what is beside it), as the
// metadata of a GGUF file has it: what Vocabulary and Tokenizer read.
//
//   model                             becomes tokenizer.ggml.model
//   BPE of bytes                      gpt2: its way of splitting, as expressions, is one of the rules there are
//   BPE with bytes as a fallback      llama: scores are the places of merges
//   WordPiece                         bert
//
// Not trusted; errors name the file and the key.
#pragma once

#include <memory>
#include <string>

#include "import/hugging_face/json.h"
#include "import/model_file.h"

namespace quern::text {

// What a folder has; empty objects and texts stand for files that are not there, but tokenizer.json must be.
struct TokenizerFiles {
  hugging_face::Json tokenizer, tokenizer_config, config, generation_config;
  std::string chat_template;
};

// Metadata of tokenizer.ggml.* and tokenizer.chat_template. Errors: InvalidArgument; Unimplemented, a model, a
// normalizer or a way of splitting that there is not, by its name or expression.
StatusOr<Metadata> ReadTokenizerFiles(const TokenizerFiles& files);

// Where the vocabulary of a model is: the file itself, or what its folder has.
StatusOr<std::shared_ptr<const Metadata>> VocabularyOf(std::shared_ptr<const ModelFile> file);
// The same of a path, without the weights: a folder of tokenizer.json alone is enough.
StatusOr<std::shared_ptr<const Metadata>> OpenVocabulary(const std::string& path);

}  // namespace quern::text
