// The tokens of a GGUF file and what its metadata says of them, whatever the tokenizer is: texts, scores, kinds, the
// ids with a role (begin, end ..), the flags.
//
// The file is hostile until checked: lists have one length, every id with a role lies inside, byte tokens are bytes.
// Texts are views into the file, which outlives the vocabulary. Immutable once made; thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <bitset>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/metadata.h"

namespace quern::text {

// As in the file (tokenizer.ggml.token_type).
enum class TokenKind : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Token {
  std::string_view text;
  float score = 0;
  TokenKind kind = TokenKind::kNormal;
};

// Texts to numbers. Abseil's own hash does not know the standard library's string_view in Debian's build.
using TextMap = absl::flat_hash_map<std::string_view, int32_t, std::hash<std::string_view>>;

// The merges of a byte pair encoding, "left right", to their places in the list. Error: no list, or no such pair in it.
StatusOr<TextMap> ReadMerges(const Metadata& file);

// The byte that "<0x0A>" stands for; -1 for any other text.
int ByteOf(std::string_view text);

// Finds the tokens that are cut out of a text before it is tokenised.
class TokenFinder {
 public:
  TokenFinder() = default;
  // Of the tokens `ids`; those without a text are left out.
  TokenFinder(const std::vector<Token>& tokens, const std::vector<int32_t>& ids);
  // Of any texts, which outlive this, and their numbers.
  explicit TokenFinder(std::vector<std::pair<std::string_view, int32_t>> texts);
  // The longest of the tokens that `text` begins with (of equal texts the smallest id), or -1. Time: the length of the
  // token, times the logarithm of how many there are.
  int32_t LongestAt(std::string_view text) const;
  // All of them that `text` begins with, the shortest first (of equal texts the smallest id), in place of what `found`
  // had. Likewise.
  void AllAt(std::string_view text, std::vector<int32_t>& found) const;

 private:
  void Sort();
  template <typename Visit>
  void Walk(std::string_view text, Visit visit) const;

  std::vector<std::pair<std::string_view, int32_t>> sorted_;  // by text, then by id
  std::bitset<256> first_;                                    // bytes that one of them begins with
};

// What a tokenizer model takes for granted where the file says nothing.
struct VocabularyDefaults {
  bool scores = false;            // the list of scores must be there
  bool add_begin = false;         // texts begin with the begin token
  bool add_end = false;           // texts end with the end token
  bool add_space_prefix = false;  // a space is put before a text
};

class Vocabulary {
 public:
  // Errors: a missing or ill-typed key, lists of different lengths, ids out of range.
  static StatusOr<Vocabulary> FromMetadata(const Metadata& file, const VocabularyDefaults& defaults);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  const Token& token(int32_t id) const { return tokens_[id]; }
  // The first token with this text, or -1.
  int32_t Find(std::string_view text) const {
    const auto it = ids_.find(text);
    return it == ids_.end() ? -1 : it->second;
  }
  // The token of a byte ("<0x0A>"), or -1.
  int32_t ByteToken(uint8_t byte) const { return byte_ids_[byte]; }

  // -1 when the file names none.
  int32_t begin() const { return begin_; }
  int32_t end() const { return end_; }
  int32_t separator() const { return separator_; }
  int32_t unknown() const { return unknown_; }
  // Whether generation ends after this token: end of text or of a turn, by the file's keys or by a name that published
  // models give to such a token.
  bool IsEnd(int32_t id) const { return id >= 0 && id < size() && ends_[id]; }

  bool add_begin() const { return add_begin_; }
  bool add_end() const { return add_end_; }
  bool add_space_prefix() const { return add_space_prefix_; }

  // What is cut out of text: tokens that a user defined, always; with `special`, control tokens as well.
  const TokenFinder& finder(bool special) const { return special ? special_ : user_defined_; }

 private:
  Vocabulary() = default;
  Status ReadRoles(const Metadata& file);
  void FindEnds();

  std::vector<Token> tokens_;
  TextMap ids_;
  int32_t byte_ids_[256];
  int32_t begin_ = -1, end_ = -1, separator_ = -1, unknown_ = -1;
  bool add_begin_ = false, add_end_ = false, add_space_prefix_ = false;
  std::vector<bool> ends_;
  TokenFinder user_defined_, special_;
};

}  // namespace quern::text
