#include "text/vocabulary.h"

#include <algorithm>

namespace quern::text {
namespace {

// Tokens that end a turn or a text in published models, where they are control or user-defined tokens.
constexpr std::string_view kEndTexts[] = {
    "</s>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "<end_of_turn>",
    "<|END_OF_TURN_TOKEN|>",
    "<|eot|>",
    "<｜end▁of▁sentence｜>",
    "<|return|>",
    "<|call|>",
    "_<EOT>",
    "<|role_end|>",
    "<turn|>",
    "<|end_of_turn|>",
};

}  // namespace

// Digits alone: the library's conversions also take signs and blanks.
int ByteOf(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int byte = 0;
  for (const char c : text.substr(3, 2)) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9')
      byte = byte * 16 + (c - '0');
    else if (lower >= 'a' && lower <= 'f')
      byte = byte * 16 + (lower - 'a' + 10);
    else
      return -1;
  }
  return byte;
}

TokenFinder::TokenFinder(const std::vector<Token>& tokens, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) sorted_.emplace_back(tokens[id].text, id);
  Sort();
}

TokenFinder::TokenFinder(std::vector<std::pair<std::string_view, int32_t>> texts) : sorted_(std::move(texts)) {
  Sort();
}

void TokenFinder::Sort() {
  std::erase_if(sorted_, [](const auto& entry) { return entry.first.empty(); });
  for (const auto& [text, id] : sorted_) first_.set(static_cast<uint8_t>(text[0]));
  std::sort(sorted_.begin(), sorted_.end());
}

// Byte by byte, the tokens that begin like the text are a smaller and smaller part of the sorted list.
template <typename Visit>
void TokenFinder::Walk(std::string_view text, Visit visit) const {
  if (text.empty() || !first_[static_cast<uint8_t>(text[0])]) return;
  auto low = sorted_.begin(), high = sorted_.end();
  for (size_t at = 0;; ++at) {
    // Those that end here stand first, the least id first of all.
    if (low != high && low->first.size() == at && at > 0) visit(low->second);
    while (low != high && low->first.size() == at) ++low;
    if (low == high || at == text.size()) return;
    const auto byte = [&](const auto& entry) { return static_cast<uint8_t>(entry.first[at]); };
    const uint8_t next = static_cast<uint8_t>(text[at]);
    low = std::partition_point(low, high, [&](const auto& entry) { return byte(entry) < next; });
    high = std::partition_point(low, high, [&](const auto& entry) { return byte(entry) == next; });
  }
}

int32_t TokenFinder::LongestAt(std::string_view text) const {
  int32_t longest = -1;
  Walk(text, [&](int32_t id) { longest = id; });
  return longest;
}

void TokenFinder::AllAt(std::string_view text, std::vector<int32_t>& found) const {
  found.clear();
  Walk(text, [&](int32_t id) { found.push_back(id); });
}

StatusOr<TextMap> ReadMerges(const Metadata& file) {
  QUERN_ASSIGN(const auto merges, file.Strings("tokenizer.ggml.merges"));
  if (merges.size() > INT32_MAX) return absl::InvalidArgumentError("the tokenizer has more merges than 31 bits count");
  TextMap ranks;
  ranks.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t blank = merges[i].find(' ', 1);
    if (blank == std::string_view::npos || blank + 1 == merges[i].size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("merge %u is \"%s\", two texts with a space between expected", i, std::string(merges[i])));
    }
    ranks.emplace(merges[i], static_cast<int32_t>(i));  // of equal merges the first counts
  }
  return ranks;
}

StatusOr<Vocabulary> Vocabulary::FromMetadata(const Metadata& file, const VocabularyDefaults& defaults) {
  QUERN_ASSIGN(const auto texts, file.Strings("tokenizer.ggml.tokens"));
  std::vector<double> scores(defaults.scores ? 0 : texts.size());
  if (defaults.scores) {
    QUERN_ASSIGN(scores, file.Floats("tokenizer.ggml.scores"));
  }
  std::vector<int64_t> kinds(texts.size(), static_cast<int64_t>(TokenKind::kNormal));
  if (defaults.scores || file.Has("tokenizer.ggml.token_type")) {
    QUERN_ASSIGN(kinds, file.Ints("tokenizer.ggml.token_type"));
  }
  if (texts.empty() || texts.size() != scores.size() || texts.size() != kinds.size() || texts.size() > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the tokenizer has %u tokens, %u scores and %u types; equal counts above 0 expected",
                        texts.size(), scores.size(), kinds.size()));
  }
  Vocabulary result;
  std::fill(std::begin(result.byte_ids_), std::end(result.byte_ids_), -1);
  result.tokens_.reserve(texts.size());
  result.ids_.reserve(texts.size());
  std::vector<int32_t> user_defined, special;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (kinds[i] < 1 || kinds[i] > 6) {
      return absl::InvalidArgumentError(absl::StrFormat("token %u has unknown type %d", i, kinds[i]));
    }
    const auto kind = static_cast<TokenKind>(kinds[i]);
    const auto id = static_cast<int32_t>(i);
    result.tokens_.push_back({texts[i], static_cast<float>(scores[i]), kind});
    result.ids_.emplace(texts[i], id);  // of equal texts the first id wins
    if (kind == TokenKind::kUserDefined) user_defined.push_back(id);
    if (kind == TokenKind::kUserDefined || kind == TokenKind::kControl || kind == TokenKind::kUnknown)
      special.push_back(id);
    if (kind == TokenKind::kByte) {
      const int byte = ByteOf(texts[i]);
      if (byte < 0) {
        return absl::InvalidArgumentError(
            absl::StrFormat("byte token %u is \"%s\", <0xNN> expected", i, std::string(texts[i])));
      }
      result.byte_ids_[byte] = id;
    }
    if (kind == TokenKind::kUnknown) result.unknown_ = id;
  }
  result.ends_.resize(texts.size());
  result.add_begin_ = defaults.add_begin;
  result.add_end_ = defaults.add_end;
  result.add_space_prefix_ = defaults.add_space_prefix;
  QUERN_RETURN_IF_ERROR(result.ReadRoles(file));
  result.FindEnds();
  result.user_defined_ = TokenFinder(result.tokens_, user_defined);
  result.special_ = TokenFinder(result.tokens_, special);
  return result;
}

Status Vocabulary::ReadRoles(const Metadata& file) {
  int32_t turn = -1, message = -1, classifier = -1;
  const struct {
    const char* key;
    int32_t& id;
  } roles[] = {
      {"tokenizer.ggml.bos_token_id", begin_},       {"tokenizer.ggml.eos_token_id", end_},
      {"tokenizer.ggml.eot_token_id", turn},         {"tokenizer.ggml.eom_token_id", message},
      {"tokenizer.ggml.cls_token_id", classifier},   {"tokenizer.ggml.seperator_token_id", separator_},
      {"tokenizer.ggml.unknown_token_id", unknown_},
  };
  for (const auto& role : roles) {
    if (!file.Has(role.key)) continue;
    QUERN_ASSIGN(const int64_t value, file.Int(role.key));
    if (value < 0 || value >= size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("metadata key \"%s\" is %d, outside the vocabulary of %d", role.key, value, size()));
    }
    role.id = static_cast<int32_t>(value);
  }
  if (begin_ < 0) begin_ = classifier;
  for (const int32_t id : {end_, turn, message}) {
    if (id >= 0) ends_[id] = true;
  }
  const struct {
    const char* key;
    bool& flag;
  } flags[] = {{"tokenizer.ggml.add_bos_token", add_begin_},
               {"tokenizer.ggml.add_eos_token", add_end_},
               {"tokenizer.ggml.add_space_prefix", add_space_prefix_}};
  for (const auto& flag : flags) {
    if (!file.Has(flag.key)) continue;
    QUERN_ASSIGN(flag.flag, file.Bool(flag.key));
  }
  return absl::OkStatus();
}

void Vocabulary::FindEnds() {
  for (const std::string_view text : kEndTexts) {
    const int32_t id = Find(text);
    if (id >= 0 && (tokens_[id].kind == TokenKind::kControl || tokens_[id].kind == TokenKind::kUserDefined))
      ends_[id] = true;
  }
}

}  // namespace quern::text
