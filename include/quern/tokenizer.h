// Text to token ids and back, without a model that runs: the vocabulary of a GGUF file, or of a
// folder that has a tokenizer.json.
//
//   quern::Result<quern::Tokenizer> tokenizer = quern::Tokenizer::Open("model.gguf");
//   std::vector<int32_t> ids = tokenizer->Encode("Once upon a time");
//   std::string text = tokenizer->Decode(ids);
//
// SentencePiece ("llama"), byte-level BPE ("gpt2") and WordPiece ("bert") vocabularies are read (docs/text.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/result.h"

namespace quern {

namespace text {
class Tokenizer;
}

struct TokenizeOptions {
  // The model's begin-of-text token in front (and its end token behind), where the model wants them.
  bool begin = true;
  // Control tokens in the text, such as "</s>" or "<|im_end|>", become their id, so that chat formats can be written by
  // hand. Text of others, which should not be able to end a turn, is tokenised without. Tokens that a vocabulary calls
  // user-defined are cut out either way.
  bool parse_special = true;
};

// Immutable and thread-safe. Copies share what was read, and keep the file mapped.
class Tokenizer {
 public:
  // Errors: kResource (a file that cannot be read); kInvalid (a damaged file, with the place); kUnsupported (another
  // kind of vocabulary, or rule of splitting).
  static Result<Tokenizer> Open(const std::string& path);

  int32_t size() const;  // ids are from 0 up to this
  // Ids of `text`, any bytes.
  std::vector<int32_t> Encode(std::string_view text, const TokenizeOptions& options = {}) const;
  // The bytes of one token, maybe part of a character; empty for control tokens, unless `special`, and for ids out of
  // range.
  std::string Piece(int32_t id, bool special = false) const;
  // The text of `ids`, likewise; a space that Encode puts in front of a text is taken off.
  std::string Decode(std::span<const int32_t> ids, bool special = false) const;
  // Whether generation ends after this token.
  bool IsEnd(int32_t id) const;
  // The token that begins a text, or -1.
  int32_t begin() const;
  // The token that ends one, or -1.
  int32_t end() const;

 private:
  friend class Session;
  friend class Sequences;
  friend class Embedder;
  friend class Sampler;
  friend class ChatTemplate;
  explicit Tokenizer(std::shared_ptr<const text::Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

// Tokens as they come, as text that can be shown at once: a character that is not yet whole is held back, and so is
// what may become a stop string. What comes out is valid UTF-8, however the bytes fall into tokens; bytes that are no
// part of a character become U+FFFD. Not thread-safe.
class TextStream {
 public:
  // Generation ends where one of `stops` appears; it is not part of the text. Empty ones are left out. `special`:
  // control tokens are shown.
  explicit TextStream(Tokenizer tokenizer, std::vector<std::string> stops = {}, bool special = false);
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();
  // The text that is certain with one more token; empty once stopped.
  std::string Add(int32_t id);
  // At the end: what was held back.
  std::string Flush();
  // Whether a stop string appeared.
  bool stopped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern
