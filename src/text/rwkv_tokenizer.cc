// RWKV's tokenizer: a text is bytes, of which the longest token is taken, again and again. Vocabularies have tokens as
// Python writes bytes: \t, \n, \r, \xNN, and \ before any other character for that character.

#include "text/tokenizer.h"

namespace quern::text {
namespace {

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The bytes that a token of the vocabulary stands for. Error: an escape that is none.
StatusOr<std::string> BytesOf(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size(); ++at) {
    if (token[at] != '\\') {
      bytes += token[at];
      continue;
    }
    const char code = ++at < token.size() ? token[at] : '\0';
    if (code == 'x') {
      const int high = at + 2 < token.size() ? DigitOf(token[at + 1]) : -1;
      const int low = at + 2 < token.size() ? DigitOf(token[at + 2]) : -1;
      if (high < 0 || low < 0) return absl::InvalidArgumentError("\\x is not followed by two hexadecimal digits");
      bytes += static_cast<char>(high * 16 + low);
      at += 2;
    } else if (at == token.size()) {
      return absl::InvalidArgumentError("a \\ is its last character");
    } else {
      bytes += code == 't' ? '\t' : code == 'n' ? '\n' : code == 'r' ? '\r' : code;
    }
  }
  return bytes;
}

class RwkvTokenizer : public Tokenizer {
 public:
  // `texts`: of each token the bytes.
  RwkvTokenizer(std::shared_ptr<const Metadata> file, Vocabulary vocabulary, std::vector<std::string> texts)
      : Tokenizer(std::move(file), std::move(vocabulary)), texts_(std::move(texts)) {
    std::vector<std::pair<std::string_view, int32_t>> pairs;
    for (size_t id = 0; id < texts_.size(); ++id) pairs.emplace_back(texts_[id], static_cast<int32_t>(id));
    finder_ = TokenFinder(std::move(pairs));
  }

 private:
  void EncodeFragment(std::string_view text, bool, std::vector<int32_t>& ids) const override {
    while (!text.empty()) {
      const int32_t id = finder_.LongestAt(text);
      if (id >= 0)
        ids.push_back(id);
      else if (vocabulary().unknown() >= 0)
        ids.push_back(vocabulary().unknown());
      text.remove_prefix(id >= 0 ? texts_[static_cast<size_t>(id)].size() : 1);
    }
  }

  std::string NormalPiece(std::string_view token) const override { return BytesOf(token).value_or(""); }

  const std::vector<std::string> texts_;
  TokenFinder finder_;
};

}  // namespace

StatusOr<std::unique_ptr<const Tokenizer>> MakeRwkvTokenizer(std::shared_ptr<const Metadata> file) {
  QUERN_ASSIGN(Vocabulary vocabulary, Vocabulary::FromMetadata(*file, {}));
  std::vector<std::string> texts;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    StatusOr<std::string> bytes = BytesOf(vocabulary.token(id).text);
    if (!bytes.ok())
      return absl::InvalidArgumentError(absl::StrFormat("token %d: %s", id, std::string(bytes.status().message())));
    texts.push_back(*std::move(bytes));
  }
  return std::make_unique<const RwkvTokenizer>(std::move(file), std::move(vocabulary), std::move(texts));
}

}  // namespace quern::text
