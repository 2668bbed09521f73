#include "text/compile_vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>

#include "kit/vocabulary.h"
#include "text/byte_characters.h"
#include "text/split_program.h"

namespace quern::text {
namespace {

static_assert(std::endian::native == std::endian::little);

// Pieces by their texts as the file has them; tokens first, each text once.
class Pieces {
 public:
  explicit Pieces(const Vocabulary& vocabulary) : tokens_(vocabulary.size()) {
    for (int32_t id = 0; id < tokens_; ++id) ids_.emplace(vocabulary.token(id).text, id);
  }
  int32_t Add(std::string_view text) {
    const auto [at, added] = ids_.emplace(text, tokens_ + static_cast<int32_t>(more_));
    more_ += added;
    return at->second;
  }
  int32_t Find(std::string_view text) const {
    const auto at = ids_.find(text);
    return at == ids_.end() ? -1 : at->second;
  }
  const std::map<std::string, int32_t, std::less<>>& ids() const { return ids_; }
  int32_t size() const { return tokens_ + static_cast<int32_t>(more_); }

 private:
  int32_t tokens_;
  int64_t more_ = 0;
  std::map<std::string, int32_t, std::less<>> ids_;
};

struct NumberedMerge {
  int32_t left;
  quern_kit_merge merge;
};

class Compiler {
 public:
  Compiler(const Tokenizer& tokenizer, const Merging& merging)
      : tokenizer_(tokenizer), vocabulary_(tokenizer.vocabulary()), merging_(merging), pieces_(vocabulary_) {}

  StatusOr<std::string> Run() {
    out_.assign(sizeof(quern_vocabulary), '\0');
    Roles();
    ShowTokens();
    CutTokens(true, head_.special, head_.special_first);
    CutTokens(false, head_.user, head_.user_first);
    MergePieces();
    Bytes();
    if (merging_.rule == nullptr && merging_.ranks == nullptr) {
      std::vector<float> scores;
      for (int32_t id = 0; id < vocabulary_.size(); ++id) scores.push_back(vocabulary_.token(id).score);
      head_.scores = Table(scores);
    }
    Texts();
    if (merging_.rule != nullptr) QUERN_RETURN_IF_ERROR(Split(*merging_.rule));
    if (out_.size() > UINT32_MAX) return absl::UnimplementedError("the tables of the vocabulary have more than 4 GB");
    std::memcpy(out_.data(), &head_, sizeof(head_));
    return std::move(out_);
  }

 private:
  template <typename T>
  quern_kit_table Table(const std::vector<T>& rows) {
    out_.resize((out_.size() + 7) / 8 * 8);
    const quern_kit_table table = {static_cast<uint32_t>(out_.size()), static_cast<uint32_t>(rows.size())};
    out_.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T));
    return table;
  }
  quern_kit_text Text(std::string_view text, int32_t id) {
    const quern_kit_text row = {static_cast<uint32_t>(out_.size()), static_cast<uint32_t>(text.size()), id};
    out_.append(text);
    return row;
  }

  void Roles() {
    head_.version = QUERN_VOCABULARY_VERSION;
    head_.tokens = vocabulary_.size();
    head_.begin = vocabulary_.begin();
    head_.end = vocabulary_.end();
    head_.closing = vocabulary_.separator() >= 0 ? vocabulary_.separator() : vocabulary_.end();
    head_.prefix = static_cast<uint32_t>(merging_.prefix);
    static_assert(static_cast<uint32_t>(SpacePrefix::kNone) == QUERN_PREFIX_NONE &&
                  static_cast<uint32_t>(SpacePrefix::kEach) == QUERN_PREFIX_EACH &&
                  static_cast<uint32_t>(SpacePrefix::kUnlessSpace) == QUERN_PREFIX_UNLESS_SPACE &&
                  static_cast<uint32_t>(SpacePrefix::kFirst) == QUERN_PREFIX_FIRST);
    const bool words = merging_.rule != nullptr;
    head_.flags = (vocabulary_.add_begin() ? QUERN_VOCABULARY_ADD_BEGIN : 0) |
                  (vocabulary_.add_end() ? QUERN_VOCABULARY_ADD_END : 0) | (words ? QUERN_VOCABULARY_BYTES : 0) |
                  (!words && merging_.ranks != nullptr ? QUERN_VOCABULARY_RANKED : 0) |
                  (words && merging_.rule->ignore_merges ? QUERN_VOCABULARY_WHOLE_WORDS : 0);
  }

  void ShowTokens() {
    std::vector<quern_kit_text> shown;
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      const TokenKind kind = vocabulary_.token(id).kind;
      const bool hidden = kind == TokenKind::kControl || kind == TokenKind::kUnused;
      shown.push_back(Text(tokenizer_.Piece(id, true), (hidden ? QUERN_TOKEN_HIDDEN : 0) |
                                                           (kind == TokenKind::kUnknown ? QUERN_TOKEN_UNKNOWN : 0) |
                                                           (vocabulary_.IsEnd(id) ? QUERN_TOKEN_ENDS : 0)));
    }
    head_.shown = Table(shown);
  }

  // Tokens that are cut out of a text; of equal texts the least id.
  void CutTokens(bool special, quern_kit_table& table, uint32_t (&first)[8]) {
    std::map<std::string_view, int32_t> sorted;
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      const Token& token = vocabulary_.token(id);
      const bool control = token.kind == TokenKind::kControl || token.kind == TokenKind::kUnknown;
      if (token.kind == TokenKind::kUserDefined || (special && control)) sorted.emplace(token.text, id);
    }
    sorted.erase("");
    std::vector<quern_kit_text> rows;
    for (const auto& [text, id] : sorted) {
      rows.push_back(Text(text, id));
      const auto byte = static_cast<uint8_t>(text[0]);
      first[byte / 32] |= 1u << byte % 32;
    }
    table = Table(rows);
  }

  // Merges whose two texts have no space in them: symbols have none.
  void MergePieces() {
    if (merging_.ranks == nullptr) return;
    std::vector<std::pair<int32_t, std::string_view>> ranked;
    for (const auto& [pair, rank] : *merging_.ranks) ranked.emplace_back(rank, pair);
    std::sort(ranked.begin(), ranked.end());
    std::vector<NumberedMerge> merges;
    for (const auto& [rank, pair] : ranked) {
      const size_t blank = pair.find(' ');
      if (blank == 0 || pair.find(' ', blank + 1) != std::string_view::npos) continue;
      const std::string_view left = pair.substr(0, blank), right = pair.substr(blank + 1);
      const int32_t l = pieces_.Add(left), r = pieces_.Add(right);
      merges.push_back({l, {r, rank, pieces_.Add(std::string(left) + std::string(right))}});
    }
    std::sort(merges.begin(), merges.end(), [](const NumberedMerge& a, const NumberedMerge& b) {
      return std::tie(a.left, a.merge.right) < std::tie(b.left, b.merge.right);
    });
    std::vector<quern_kit_merge> rows;
    for (const NumberedMerge& merge : merges) rows.push_back(merge.merge);
    lefts_.clear();
    for (const NumberedMerge& merge : merges) lefts_.push_back(merge.left);
    head_.merges = Table(rows);
  }

  // What each byte is before anything is merged, and what it becomes where it is no token.
  void Bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      head_.byte_pieces[byte] = -1;
      head_.byte_tokens[byte] = vocabulary_.ByteToken(static_cast<uint8_t>(byte));
      if (merging_.rule != nullptr) {
        std::string character;
        AppendByteCharacter(character, static_cast<uint8_t>(byte));
        head_.byte_pieces[byte] = pieces_.Find(character);
        head_.byte_tokens[byte] = vocabulary_.Find(character);
      }
      if (head_.byte_tokens[byte] < 0) head_.byte_tokens[byte] = vocabulary_.unknown();
    }
  }

  // Texts of pieces, and where the merges of each begin: all pieces are known now.
  void Texts() {
    std::map<std::string, int32_t, std::less<>> sorted;
    std::vector<int32_t> tokens(pieces_.size(), -1);
    for (const auto& [text, piece] : pieces_.ids()) {
      tokens[piece] = vocabulary_.Find(text);
      std::string key = text;
      if (merging_.rule != nullptr) {
        key = BytesOfCharacters(text);
        std::string again;
        for (const char byte : key) AppendByteCharacter(again, static_cast<uint8_t>(byte));
        if (again != text || piece >= vocabulary_.size()) continue;  // no word is spelled so, or it is no token
      }
      if (!key.empty()) sorted.emplace(std::move(key), piece);
    }
    std::vector<quern_kit_text> rows;
    for (const auto& [text, piece] : sorted) rows.push_back(Text(text, piece));
    head_.texts = Table(rows);
    head_.tokens_of = Table(tokens);
    std::vector<uint32_t> first;
    for (int32_t piece = 0; piece <= pieces_.size(); ++piece)
      first.push_back(static_cast<uint32_t>(std::lower_bound(lefts_.begin(), lefts_.end(), piece) - lefts_.begin()));
    head_.first = Table(first);
  }

  Status Split(const SplitRule& rule) {
    QUERN_ASSIGN(const SplitProgram program, CompileSplitRule(rule));
    head_.blocks = Table(program.blocks);
    head_.classes = Table(program.classes);
    head_.sets = Table(program.sets);
    head_.steps = Table(program.steps);
    head_.rules = Table(program.rules);
    return absl::OkStatus();
  }

  const Tokenizer& tokenizer_;
  const Vocabulary& vocabulary_;
  const Merging& merging_;
  Pieces pieces_;
  std::vector<int32_t> lefts_;  // of the merges, rising
  quern_vocabulary head_ = {};
  std::string out_;
};

}  // namespace

StatusOr<std::string> CompileVocabulary(const Tokenizer& tokenizer) {
  QUERN_ASSIGN(const Merging merging, tokenizer.merging());
  return Compiler(tokenizer, merging).Run();
}

}  // namespace quern::text
