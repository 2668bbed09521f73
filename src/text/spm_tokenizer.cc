// SentencePiece (SPM) as GGUF files of Llama models carry it: greedy merging of adjacent pieces by score, bytes as a
// fallback, spaces written as U+2581. Each fragment gets a space in front where the file says so. Where there is a list
// of merges (tokenizer.json has one), it says which neighbours are one piece, and which of these come first.

#include <algorithm>
#include <queue>

#include "text/tokenizer.h"

namespace quern::text {
namespace {

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

class SpmTokenizer : public Tokenizer {
 public:
  SpmTokenizer(std::shared_ptr<const Metadata> file, Vocabulary vocabulary, TextMap ranks, SpacePrefix prefix)
      : Tokenizer(std::move(file), std::move(vocabulary)), ranks_(std::move(ranks)), prefix_(prefix) {}

  StatusOr<Merging> merging() const override { return Merging{ranks_.empty() ? nullptr : &ranks_, nullptr, prefix_}; }

 private:
  void EncodeFragment(std::string_view fragment, bool first, std::vector<int32_t>& ids) const override {
    const bool wanted = prefix_ != SpacePrefix::kNone &&
                        (prefix_ == SpacePrefix::kEach || !fragment.starts_with(' ')) &&
                        (prefix_ != SpacePrefix::kFirst || first);
    const std::string_view prefix = wanted ? " " : "";
    const std::string text = ReplaceAll(std::string(prefix) + std::string(fragment), " ", kVisibleSpace);
    std::vector<Symbol> symbols = Characters(text);
    MergeAll(symbols);
    for (int i = 0; i >= 0; i = symbols[i].next) {
      const int32_t id = vocabulary().Find(symbols[i].text);
      if (id >= 0)
        ids.push_back(id);
      else
        EmitBytes(symbols[i].text, ids);
    }
  }

  static std::vector<Symbol> Characters(std::string_view text) {
    std::vector<Symbol> symbols;
    for (size_t at = 0; at < text.size();) {
      const size_t length = std::min(Utf8Length(static_cast<uint8_t>(text[at])), text.size() - at);
      const int index = static_cast<int>(symbols.size());
      symbols.push_back({index - 1, index + 1, text.substr(at, length)});
      at += length;
    }
    symbols.back().next = -1;
    return symbols;
  }

  void MergeAll(std::vector<Symbol>& symbols) const {
    std::priority_queue<Merge> queue;
    std::string key;
    auto consider = [&](int left, int right) {
      if (left < 0 || right < 0) return;
      // Neighbouring symbols are neighbours in the text as well.
      const std::string_view merged(symbols[left].text.data(), symbols[left].text.size() + symbols[right].text.size());
      if (!ranks_.empty()) {
        key = symbols[left].text;
        key += ' ';
        key += symbols[right].text;
        const auto found = ranks_.find(key);
        if (found != ranks_.end()) queue.push({left, right, -static_cast<float>(found->second), merged.size()});
        return;
      }
      const int32_t id = vocabulary().Find(merged);
      if (id >= 0) queue.push({left, right, vocabulary().token(id).score, merged.size()});
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
  }

  void EmitBytes(std::string_view text, std::vector<int32_t>& ids) const {
    for (const char c : text) {
      const int32_t id = vocabulary().ByteToken(static_cast<uint8_t>(c));
      if (id >= 0)
        ids.push_back(id);
      else if (vocabulary().unknown() >= 0)
        ids.push_back(vocabulary().unknown());
    }
  }

  std::string NormalPiece(std::string_view token) const override { return ReplaceAll(token, kVisibleSpace, " "); }
  std::string UserDefinedPiece(std::string_view token) const override { return NormalPiece(token); }

  const TextMap ranks_;  // empty: scores say what is merged
  const SpacePrefix prefix_;
};

}  // namespace

StatusOr<std::unique_ptr<const Tokenizer>> MakeSpmTokenizer(std::shared_ptr<const Metadata> file) {
  QUERN_ASSIGN(Vocabulary vocabulary,
               Vocabulary::FromMetadata(*file, {.scores = true, .add_begin = true, .add_space_prefix = true}));
  TextMap ranks;
  if (file->Has("tokenizer.ggml.merges")) {
    QUERN_ASSIGN(ranks, ReadMerges(*file));
  }
  SpacePrefix prefix = vocabulary.add_space_prefix() ? SpacePrefix::kEach : SpacePrefix::kNone;
  if (vocabulary.add_space_prefix() && file->Has(kMetaspace)) {
    QUERN_ASSIGN(const std::string_view scheme, file->String(kMetaspace));
    prefix = scheme == "first" ? SpacePrefix::kFirst : SpacePrefix::kUnlessSpace;
  }
  return std::make_unique<const SpmTokenizer>(std::move(file), std::move(vocabulary), std::move(ranks), prefix);
}

}  // namespace quern::text
