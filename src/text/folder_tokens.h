// The tokens of a tokenizer.json and how it makes them of a text: model, normalizer and pre_tokenizer.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/hugging_face/json.h"
#include "import/metadata.h"
#include "text/vocabulary.h"

namespace quern::text {

class FolderTokens {
 public:
  // Errors: those of ReadTokenizerFiles.
  static StatusOr<FolderTokens> Read(const hugging_face::Json& tokenizer);

  // tokenizer.ggml.model: "gpt2", "llama" or "bert".
  const std::string& model() const { return model_; }
  // The token of this text as the file has it, or -1.
  int32_t Find(const std::string& text) const;
  // Whether a value of JSON is a token's number.
  bool IsId(const hugging_face::Json& value) const;
  // tokenizer.ggml.model, pre, tokens, token_type, scores, merges, add_space_prefix, unknown_token_id.
  void Put(Metadata& metadata) const;

 private:
  Status ReadVocabulary(const hugging_face::Json& tokenizer, const hugging_face::Json& model);
  Status ReadMerges(const hugging_face::Json& model);
  Status ReadNormalizer(const hugging_face::Json& normalizer);
  Status ReadSplits(const hugging_face::Json& pre_tokenizer, std::vector<std::string>& patterns);
  Status ReadBytePairs(const hugging_face::Json& tokenizer, const hugging_face::Json& model);
  Status ReadPieces(const hugging_face::Json& tokenizer);
  Status ReadWordPieces(const hugging_face::Json& tokenizer, const hugging_face::Json& model);

  std::string model_, pre_, metaspace_;
  std::vector<std::string> texts_;
  std::vector<int32_t> kinds_;
  std::vector<float> scores_;
  std::vector<std::string> merges_;             // "left right"
  std::unordered_map<int32_t, size_t> places_;  // of tokens: the first merge that makes them
  std::unordered_map<std::string, int32_t> ids_;
  bool space_prefix_ = false, byte_level_ = false, visible_space_ = false;
  int32_t unknown_ = -1;
};

}  // namespace quern::text
