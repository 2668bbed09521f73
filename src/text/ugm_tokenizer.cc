// Unigram as GGUF files of T5 and of encoders like XLM-RoBERTa carry it: of all ways to split a text into pieces, that
// whose scores have the greatest sum; a character that no piece is becomes the unknown token, at the least score less
// 10, and neighbours of these are one. Before it, characters are normalised, runs of blanks become one where the file
// says so, and blanks are written as U+2581.

#include <algorithm>
#include <limits>

#include "text/normaliser.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

constexpr double kPenalty = 10;

// Bytes of the character that `text` begins with, or 0 where these are none.
size_t CharacterAt(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t length = Utf8Length(lead);
  if (length > text.size() || lead >= 0xf8 || (lead & 0xc0) == 0x80) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

class UgmTokenizer : public Tokenizer {
 public:
  UgmTokenizer(std::shared_ptr<const Metadata> file, Vocabulary vocabulary, Normaliser normaliser, bool merges_blanks)
      : Tokenizer(std::move(file), std::move(vocabulary)), normaliser_(normaliser), merges_blanks_(merges_blanks) {
    std::vector<int32_t> pieces;
    std::vector<Token> tokens;
    float least = std::numeric_limits<float>::max();
    for (int32_t id = 0; id < this->vocabulary().size(); ++id) {
      const Token& token = this->vocabulary().token(id);
      tokens.push_back(token);
      if (token.kind == TokenKind::kNormal) least = std::min(least, token.score);
      if (token.kind == TokenKind::kNormal || token.kind == TokenKind::kUserDefined || token.kind == TokenKind::kUnused)
        pieces.push_back(id);
    }
    pieces_ = TokenFinder(tokens, pieces);
    unknown_score_ = static_cast<float>(least - kPenalty);
  }

 private:
  // The best way to split what lies before a place.
  struct Best {
    int32_t id = -1;
    size_t from = 0;
    double score = std::numeric_limits<double>::lowest();
  };

  void EncodeFragment(std::string_view fragment, bool, std::vector<int32_t>& ids) const override {
    const std::string text = Normalised(fragment);
    const int32_t unknown = vocabulary().unknown();
    std::vector<Best> best(text.size() + 1);
    best[0] = {unknown, 0, 0};
    std::vector<int32_t> found;
    for (size_t at = 0; at < text.size();) {
      const std::string_view rest = std::string_view(text).substr(at);
      const size_t character = std::min(Utf8Length(static_cast<uint8_t>(rest[0])), rest.size());
      const auto challenge = [&](int32_t id, size_t length, double score) {
        const double sum = best[at].score + score;
        if (sum > best[at + length].score) best[at + length] = {id, at, sum};
      };
      pieces_.AllAt(rest, found);
      bool whole = false;
      for (const int32_t id : found) {
        const Token& token = vocabulary().token(id);
        whole = whole || token.text.size() == character;
        challenge(id, token.text.size(), token.kind == TokenKind::kUserDefined ? 0.0 : token.score);
      }
      if (!whole) challenge(unknown, character, unknown_score_);
      at += character;
    }
    const size_t first = ids.size();
    bool after_unknown = false;
    for (size_t at = text.size(); at > 0; at = best[at].from) {
      const bool is_unknown = best[at].id == unknown;
      if (!after_unknown || !is_unknown) ids.push_back(best[at].id);
      after_unknown = is_unknown;
    }
    std::reverse(ids.begin() + static_cast<int64_t>(first), ids.end());
  }

  std::string Normalised(std::string_view text) const {
    std::string made;
    bool prefixed = false, in_word = false;
    const auto add = [&](std::string_view bytes) {
      for (const char c : bytes) {
        if (c == ' ') {
          in_word = false;
          if (!merges_blanks_) made += kVisibleSpace;
          continue;
        }
        if (!in_word && (merges_blanks_ || (vocabulary().add_space_prefix() && !prefixed))) {
          made += kVisibleSpace;
          prefixed = true;
        }
        in_word = true;
        made += c;
      }
    };
    while (!text.empty()) {
      const Normaliser::Replaced replaced = normaliser_.At(text);
      const size_t character = replaced.taken > 0 ? replaced.taken : CharacterAt(text);
      if (replaced.taken > 0)
        add(replaced.by);
      else
        add(character > 0 ? text.substr(0, character) : "\xef\xbf\xbd");  // U+FFFD for a byte that is no text
      text.remove_prefix(std::max<size_t>(character, 1));
    }
    return made;
  }

  std::string NormalPiece(std::string_view token) const override { return ReplaceAll(token, kVisibleSpace, " "); }

  const Normaliser normaliser_;
  const bool merges_blanks_;
  TokenFinder pieces_;
  double unknown_score_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<const Tokenizer>> MakeUgmTokenizer(std::shared_ptr<const Metadata> file) {
  QUERN_ASSIGN(Vocabulary vocabulary, Vocabulary::FromMetadata(*file, {.scores = true, .add_end = true}));
  if (vocabulary.unknown() < 0)
    return absl::InvalidArgumentError("a Unigram tokenizer needs a token of the type unknown, and has none");
  Normaliser normaliser;
  if (constexpr std::string_view key = "tokenizer.ggml.precompiled_charsmap"; file->Has(key)) {
    QUERN_ASSIGN(const std::span<const uint8_t> bytes, file->Bytes(key));
    QUERN_ASSIGN(normaliser, Normaliser::Of(bytes));
  }
  bool merges_blanks = false;
  if (constexpr std::string_view key = "tokenizer.ggml.remove_extra_whitespaces"; file->Has(key)) {
    QUERN_ASSIGN(merges_blanks, file->Bool(key));
  }
  return std::make_unique<const UgmTokenizer>(std::move(file), std::move(vocabulary), normaliser, merges_blanks);
}

}  // namespace quern::text
