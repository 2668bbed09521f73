// Byte-level BPE ("gpt2"): a text is split into words (pre_tokenizer.h), every byte of a word becomes a printable
// character, and the pair of neighbours whose merge stands first in the file's list is merged until none is in it.
//
//   " the" -> "Ġ" "t" "h" "e" -> "Ġt" "h" "e" -> "Ġt" "he" -> "Ġthe"

#include <algorithm>
#include <queue>

#include "text/byte_characters.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace quern::text {
namespace {

struct Symbol {
  int previous, next;
  std::string_view text;
};

struct Merge {
  int left, right;
  int32_t rank;
  size_t bytes;  // of the merged text when it was found: tells a stale candidate
  // The queue pops the least rank, then the leftmost.
  bool operator<(const Merge& other) const { return rank > other.rank || (rank == other.rank && left > other.left); }
};

class BpeTokenizer : public Tokenizer {
 public:
  BpeTokenizer(std::shared_ptr<const Metadata> file, Vocabulary vocabulary, TextMap ranks, const SplitRule& rule,
               PreTokenizer splitter)
      : Tokenizer(std::move(file), std::move(vocabulary)),
        ranks_(std::move(ranks)),
        rule_(rule),
        splitter_(std::move(splitter)) {}

  StatusOr<Merging> merging() const override { return Merging{&ranks_, &rule_}; }

 private:
  void EncodeFragment(std::string_view text, bool /*first*/, std::vector<int32_t>& ids) const override {
    std::string word;
    std::vector<Symbol> symbols;
    size_t begin = 0;
    for (const size_t end : splitter_.Split(text)) {
      word.clear();
      for (const char byte : text.substr(begin, end - begin)) AppendByteCharacter(word, static_cast<uint8_t>(byte));
      EncodeWord(word, symbols, ids);
      begin = end;
    }
  }

  // `symbols` is room to work in.
  void EncodeWord(std::string_view word, std::vector<Symbol>& symbols, std::vector<int32_t>& ids) const {
    if (const int32_t whole = rule_.ignore_merges ? vocabulary().Find(word) : -1; whole >= 0) {
      ids.push_back(whole);
      return;
    }
    symbols.clear();
    for (size_t at = 0; at < word.size();) {
      const size_t length = static_cast<uint8_t>(word[at]) < 0x80 ? 1 : 2;
      const int index = static_cast<int>(symbols.size());
      symbols.push_back({index - 1, index + 1, word.substr(at, length)});
      at += length;
    }
    symbols.back().next = -1;
    MergeAll(symbols);
    for (int i = 0; i >= 0; i = symbols[i].next) {
      const int32_t id = vocabulary().Find(symbols[i].text);
      if (id >= 0)
        ids.push_back(id);
      else
        EmitCharacters(symbols[i].text, ids);
    }
  }

  void MergeAll(std::vector<Symbol>& symbols) const {
    std::priority_queue<Merge> queue;
    std::string key;
    auto consider = [&](int left, int right) {
      if (left < 0 || right < 0) return;
      key = symbols[left].text;
      key += ' ';
      key += symbols[right].text;
      const auto it = ranks_.find(key);
      if (it != ranks_.end()) queue.push({left, right, it->second, key.size() - 1});
    };
    for (size_t i = 1; i < symbols.size(); ++i) consider(static_cast<int>(i) - 1, static_cast<int>(i));
    while (!queue.empty()) {
      const Merge merge = queue.top();
      queue.pop();
      Symbol& left = symbols[merge.left];
      Symbol& right = symbols[merge.right];
      if (left.text.empty() || right.text.empty() || left.next != merge.right ||
          left.text.size() + right.text.size() != merge.bytes)
        continue;
      left.text = std::string_view(left.text.data(), merge.bytes);
      right.text = {};
      left.next = right.next;
      if (right.next >= 0) symbols[right.next].previous = merge.left;
      consider(left.previous, merge.left);
      consider(merge.left, left.next);
    }
  }

  // What is merged and still no token is characters; what is none of these either, unknown.
  void EmitCharacters(std::string_view text, std::vector<int32_t>& ids) const {
    for (size_t at = 0; at < text.size();) {
      const size_t length = static_cast<uint8_t>(text[at]) < 0x80 ? 1 : 2;
      int32_t id = vocabulary().Find(text.substr(at, length));
      if (id < 0) id = vocabulary().unknown();
      if (id >= 0) ids.push_back(id);
      at += length;
    }
  }

  std::string NormalPiece(std::string_view token) const override { return BytesOfCharacters(token); }

  TextMap ranks_;  // "left right" to the place in the list of merges
  const SplitRule& rule_;
  PreTokenizer splitter_;
};

}  // namespace

StatusOr<std::unique_ptr<const Tokenizer>> MakeBpeTokenizer(std::shared_ptr<const Metadata> file) {
  std::string_view name = "default";
  if (file->Has("tokenizer.ggml.pre")) {
    QUERN_ASSIGN(name, file->String("tokenizer.ggml.pre"));
  }
  QUERN_ASSIGN(const SplitRule* rule, FindSplitRule(name));
  QUERN_ASSIGN(PreTokenizer splitter, PreTokenizer::Make(*rule));
  QUERN_ASSIGN(Vocabulary vocabulary, Vocabulary::FromMetadata(*file, {.add_begin = rule->add_begin}));
  QUERN_ASSIGN(TextMap ranks, ReadMerges(*file));
  return std::make_unique<const BpeTokenizer>(std::move(file), std::move(vocabulary), std::move(ranks), *rule,
                                              std::move(splitter));
}

}  // namespace quern::text
