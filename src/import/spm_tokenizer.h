// The SentencePiece (SPM) tokenizer as GGUF files of Llama models carry it: greedy merging of adjacent pieces by score,
// bytes as a fallback, spaces written as U+2581.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "import/gguf.h"

namespace quern {

// Immutable once made; thread-safe. Independent of the file it was made from.
class SpmTokenizer {
 public:
  // Errors: a missing or ill-typed tokenizer key, lists of different lengths, ids out of range, another tokenizer
  // model.
  static StatusOr<SpmTokenizer> FromGguf(const GgufFile& file);

  // Ids of `text`, preceded by BOS when the file asks for it and `add_special` is set. Any bytes are accepted.
  std::vector<int32_t> Encode(std::string_view text, bool add_special) const;
  // The bytes of one token: spaces restored, byte tokens as their byte, control tokens empty. `id` must be in range.
  std::string Piece(int32_t id) const;
  // The text of `ids`; a leading space that Encode would have added is taken off again.
  std::string Decode(const std::vector<int32_t>& ids) const;

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  int32_t bos() const { return bos_; }
  // -1 when the file names none.
  int32_t eos() const { return eos_; }
  bool add_bos() const { return add_bos_; }
  // Whether generation ends after this token.
  bool IsEnd(int32_t id) const { return id == eos_ || id == eot_; }

 private:
  enum Kind : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece_ {
    std::string text;
    float score;
    Kind kind;
  };

  // The longest user-defined token that `text` begins with, or -1.
  int32_t LongestUserDefined(std::string_view text) const;
  void EncodeFragment(std::string_view text, std::vector<int32_t>& ids) const;
  void EmitBytes(std::string_view text, std::vector<int32_t>& ids) const;

  std::vector<Piece_> pieces_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<int32_t> user_defined_;  // sorted by text, then id
  int32_t byte_ids_[256];              // -1 where the vocabulary has no such byte token
  int32_t bos_ = -1, eos_ = -1, eot_ = -1, unknown_ = -1;
  bool add_bos_ = true, add_space_prefix_ = true;
};

}  // namespace quern
