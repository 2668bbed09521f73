// Text to token ids and back, by the vocabulary of a GGUF file.
//
// Tokenizer is what all have in common: special tokens are cut out of a text, begin and end tokens are put around it,
// pieces become text again. What lies between special tokens is a fragment, which each tokenizer model encodes in a
// file of its own:
//
//   tokenizer.ggml.model   file               what
//   "llama"                spm_tokenizer.cc   SentencePiece: adjacent pieces merged by score
//   "gpt2"                 bpe_tokenizer.cc   byte-level BPE: a text is split by rules, then merged by rank
//   "bert"                 wpm_tokenizer.cc   WordPiece: words, the longest piece first
//   "t5"                   ugm_tokenizer.cc   Unigram: the pieces whose scores have the greatest sum
//   "rwkv"                 rwkv_tokenizer.cc  bytes, the longest token first
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_trie.h"
#include "text/vocabulary.h"

namespace quern::text {

struct EncodeOptions {
  bool add_special = true;    // begin and end tokens, where the vocabulary wants them
  bool parse_special = true;  // control tokens in the text ("</s>") become their id; else they are text like any other
};

struct SplitRule;

// Which fragments get a space in front. Names are those of kMetaspace.
enum class SpacePrefix : uint8_t { kNone, kEach, kUnlessSpace, kFirst };

// How a tokenizer merges what is between special tokens: what compile_vocabulary.h writes down.
struct Merging {
  const TextMap* ranks = nullptr;   // "left right" to the place in the list of merges; null: scores say what is merged
  const SplitRule* rule = nullptr;  // of words of bytes; null: characters
  SpacePrefix prefix = SpacePrefix::kNone;
};

// Immutable once made; thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Errors: those of Vocabulary::FromMetadata; kUnimplemented with what there is for another model or another rule of
  // splitting. The tokenizer keeps the file.
  static StatusOr<std::unique_ptr<const Tokenizer>> FromMetadata(std::shared_ptr<const Metadata> file);

  const Vocabulary& vocabulary() const { return vocabulary_; }

  // Ids of `text`, any bytes. User-defined tokens are always cut out, the longest first; of control tokens
  // `options.parse_special` decides.
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The bytes of one token, which may be part of a character; control tokens are empty, or with `special` as they are
  // written in the vocabulary. `id` must be in range.
  std::string Piece(int32_t id, bool special = false) const;
  // The text of `ids`; a leading space that Encode would have added is taken off again.
  std::string Decode(std::span<const int32_t> ids, bool special = false) const;
  // Error: kUnimplemented, with its name, of a tokenizer that does something else than merge: those that do say how.
  virtual StatusOr<Merging> merging() const;
  // The bytes of all tokens that stand for text, made at the first call: tenths of a second.
  std::shared_ptr<const TokenTrie> trie() const;

 protected:
  Tokenizer(std::shared_ptr<const Metadata> file, Vocabulary vocabulary)
      : file_(std::move(file)), vocabulary_(std::move(vocabulary)) {}
  // Appends the ids of `text`, which is not empty, holds no special token, and begins the text (`first`) or follows
  // one.
  virtual void EncodeFragment(std::string_view text, bool first, std::vector<int32_t>& ids) const = 0;
  // The bytes of a normal token.
  virtual std::string NormalPiece(std::string_view token) const = 0;
  // Of a user-defined one.
  virtual std::string UserDefinedPiece(std::string_view token) const { return std::string(token); }

 private:
  std::shared_ptr<const Metadata> file_;  // texts of the vocabulary lie in it
  Vocabulary vocabulary_;
  mutable std::once_flag trie_made_;
  mutable std::shared_ptr<const TokenTrie> trie_;
};

// A key that GGUF has not: which fragments get a space in front by tokenizer.json's Metaspace, "always", but for those
// that begin with one, or "first", of these the first alone.
inline constexpr std::string_view kMetaspace = "tokenizer.quern.metaspace";

// U+2581, SentencePiece's visible space, in vocabularies.
inline constexpr std::string_view kVisibleSpace = "\xe2\x96\x81";

// Bytes of the UTF-8 character that begins with `lead`; a stray continuation byte counts as one.
size_t Utf8Length(uint8_t lead);

// `text` with each `from`, which is not empty, replaced.
std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);

// One for each tokenizer model, in its own file.
StatusOr<std::unique_ptr<const Tokenizer>> MakeSpmTokenizer(std::shared_ptr<const Metadata> file);
StatusOr<std::unique_ptr<const Tokenizer>> MakeBpeTokenizer(std::shared_ptr<const Metadata> file);
StatusOr<std::unique_ptr<const Tokenizer>> MakeWpmTokenizer(std::shared_ptr<const Metadata> file);
StatusOr<std::unique_ptr<const Tokenizer>> MakeUgmTokenizer(std::shared_ptr<const Metadata> file);
StatusOr<std::unique_ptr<const Tokenizer>> MakeRwkvTokenizer(std::shared_ptr<const Metadata> file);

}  // namespace quern::text
