#include "import/spm_tokenizer.h"

#include <algorithm>
#include <queue>

namespace quern {
namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, SentencePiece's visible space

// Bytes of the UTF-8 character that begins with `lead`; a stray continuation byte counts as one.
size_t Utf8Length(uint8_t lead) {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  if (lead >= 0xc0) return 2;
  return 1;
}

std::string Replace(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(from)) {
      result += to;
      at += from.size();
    } else {
      result += text[at++];
    }
  }
  return result;
}

// The byte that "<0x0A>" stands for; -1 for any other text. Digits alone: the library's conversions also take signs and
// blanks.
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

// A run of characters that is one piece so far; merged ones leave a gap that the links skip.
struct Symbol {
  int previous, next;
  std::string_view text;
};

struct Merge {
  int left, right;
  float score;
  size_t bytes;  // of the merged text when it was found: tells a stale candidate
  // The queue pops the highest score, then the leftmost.
  bool operator<(const Merge& other) const {
    return score < other.score || (score == other.score && left > other.left);
  }
};

}  // namespace

StatusOr<SpmTokenizer> SpmTokenizer::FromGguf(const GgufFile& file) {
  QUERN_ASSIGN(const std::string_view model, file.String("tokenizer.ggml.model"));
  if (model != "llama") {
    return absl::UnimplementedError(absl::StrFormat(
        "tokenizer model \"%s\" is not supported, only \"llama\" (SentencePiece) is", std::string(model)));
  }
  QUERN_ASSIGN(const auto tokens, file.Strings("tokenizer.ggml.tokens"));
  QUERN_ASSIGN(const auto scores, file.Floats("tokenizer.ggml.scores"));
  QUERN_ASSIGN(const auto kinds, file.Ints("tokenizer.ggml.token_type"));
  if (tokens.empty() || tokens.size() != scores.size() || tokens.size() != kinds.size() || tokens.size() > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the tokenizer has %u tokens, %u scores and %u types; equal counts above 0 expected",
                        tokens.size(), scores.size(), kinds.size()));
  }
  SpmTokenizer result;
  std::fill(std::begin(result.byte_ids_), std::end(result.byte_ids_), -1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (kinds[i] < kNormal || kinds[i] > kByte) {
      return absl::InvalidArgumentError(absl::StrFormat("token %u has unknown type %d", i, kinds[i]));
    }
    const Kind kind = static_cast<Kind>(kinds[i]);
    const int32_t id = static_cast<int32_t>(i);
    result.pieces_.push_back({std::string(tokens[i]), static_cast<float>(scores[i]), kind});
    result.ids_.emplace(std::string(tokens[i]), id);  // of equal texts the first id wins
    if (kind == kUserDefined && !tokens[i].empty()) result.user_defined_.push_back(id);
    if (kind == kByte) {
      const int byte = ByteOf(tokens[i]);
      if (byte < 0)
        return absl::InvalidArgumentError(
            absl::StrFormat("byte token %u is \"%s\", <0xNN> expected", i, std::string(tokens[i])));
      result.byte_ids_[byte] = id;
    }
    if (kind == kUnknown) result.unknown_ = id;
  }
  std::sort(result.user_defined_.begin(), result.user_defined_.end(), [&](int32_t a, int32_t b) {
    return std::pair(std::string_view(result.pieces_[a].text), a) <
           std::pair(std::string_view(result.pieces_[b].text), b);
  });
  auto special = [&](const char* key, int32_t& id) -> Status {
    if (!file.Has(key)) return absl::OkStatus();
    QUERN_ASSIGN(const int64_t value, file.Int(key));
    if (value < 0 || value >= result.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("metadata key \"%s\" is %d, outside the vocabulary of %d", key, value, result.size()));
    }
    id = static_cast<int32_t>(value);
    return absl::OkStatus();
  };
  QUERN_RETURN_IF_ERROR(special("tokenizer.ggml.bos_token_id", result.bos_));
  QUERN_RETURN_IF_ERROR(special("tokenizer.ggml.eos_token_id", result.eos_));
  QUERN_RETURN_IF_ERROR(special("tokenizer.ggml.eot_token_id", result.eot_));
  QUERN_RETURN_IF_ERROR(special("tokenizer.ggml.unknown_token_id", result.unknown_));
  if (file.Has("tokenizer.ggml.add_bos_token")) {
    QUERN_ASSIGN(result.add_bos_, file.Bool("tokenizer.ggml.add_bos_token"));
  }
  if (file.Has("tokenizer.ggml.add_space_prefix")) {
    QUERN_ASSIGN(result.add_space_prefix_, file.Bool("tokenizer.ggml.add_space_prefix"));
  }
  return result;
}

std::vector<int32_t> SpmTokenizer::Encode(std::string_view text, bool add_special) const {
  std::vector<int32_t> ids;
  if (add_special && add_bos_ && bos_ >= 0) ids.push_back(bos_);
  // User-defined tokens are cut out first; what lies between is encoded on its own, with a space before it: it begins
  // the text or follows such a token.
  auto encode = [&](std::string_view fragment) {
    if (fragment.empty()) return;
    const std::string_view prefix = add_space_prefix_ ? " " : "";
    EncodeFragment(Replace(std::string(prefix) + std::string(fragment), " ", kSpace), ids);
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const int32_t found = LongestUserDefined(text.substr(at));
    if (found < 0) {
      ++at;
      continue;
    }
    encode(text.substr(begin, at - begin));
    ids.push_back(found);
    at += pieces_[found].text.size();
    begin = at;
  }
  encode(text.substr(begin));
  return ids;
}

// Byte by byte, the tokens that begin like the text are a smaller and smaller part of the sorted list.
int32_t SpmTokenizer::LongestUserDefined(std::string_view text) const {
  int32_t longest = -1;
  auto low = user_defined_.begin(), high = user_defined_.end();
  for (size_t at = 0;; ++at) {
    // Those that end here stand first, the least id first of all.
    if (low != high && pieces_[*low].text.size() == at && at > 0) longest = *low;
    while (low != high && pieces_[*low].text.size() == at) ++low;
    if (low == high || at == text.size()) return longest;
    const auto byte = [&](int32_t id) { return static_cast<uint8_t>(pieces_[id].text[at]); };
    const uint8_t next = static_cast<uint8_t>(text[at]);
    low = std::partition_point(low, high, [&](int32_t id) { return byte(id) < next; });
    high = std::partition_point(low, high, [&](int32_t id) { return byte(id) == next; });
  }
}

void SpmTokenizer::EncodeFragment(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<Symbol> symbols;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::min(Utf8Length(static_cast<uint8_t>(text[at])), text.size() - at);
    const int index = static_cast<int>(symbols.size());
    symbols.push_back({index - 1, index + 1, text.substr(at, length)});
    at += length;
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;

  std::priority_queue<Merge> queue;
  auto consider = [&](int left, int right) {
    if (left < 0 || right < 0) return;
    // Neighbouring symbols are neighbours in the text as well.
    const std::string_view merged(symbols[left].text.data(), symbols[left].text.size() + symbols[right].text.size());
    const auto it = ids_.find(std::string(merged));
    if (it != ids_.end()) queue.push({left, right, pieces_[it->second].score, merged.size()});
  };
  for (size_t i = 1; i < symbols.size(); ++i) consider(static_cast<int>(i) - 1, static_cast<int>(i));
  while (!queue.empty()) {
    const Merge merge = queue.top();
    queue.pop();
    Symbol& left = symbols[merge.left];
    Symbol& right = symbols[merge.right];
    if (left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != merge.bytes) continue;
    left.text = std::string_view(left.text.data(), merge.bytes);
    right.text = {};
    left.next = right.next;
    if (right.next >= 0) symbols[right.next].previous = merge.left;
    consider(left.previous, merge.left);
    consider(merge.left, left.next);
  }
  for (int i = 0; i >= 0; i = symbols[i].next) {
    const auto it = ids_.find(std::string(symbols[i].text));
    if (it != ids_.end())
      ids.push_back(it->second);
    else
      EmitBytes(symbols[i].text, ids);
  }
}

void SpmTokenizer::EmitBytes(std::string_view text, std::vector<int32_t>& ids) const {
  for (const char c : text) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(c)];
    if (id >= 0)
      ids.push_back(id);
    else if (unknown_ >= 0)
      ids.push_back(unknown_);
  }
}

std::string SpmTokenizer::Piece(int32_t id) const {
  const Piece_& piece = pieces_[id];
  switch (piece.kind) {
    case kControl:
    case kUnused: return "";
    case kUnknown: return "\xe2\x96\x85";
    case kByte: return std::string(1, static_cast<char>(ByteOf(piece.text)));
    case kNormal:
    case kUserDefined: return Replace(piece.text, kSpace, " ");
  }
  return "";
}

std::string SpmTokenizer::Decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) text += Piece(id);
  if (add_space_prefix_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace quern
