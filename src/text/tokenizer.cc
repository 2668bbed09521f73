#include "text/tokenizer.h"

namespace quern::text {
namespace {

struct Model {
  std::string_view name;
  StatusOr<std::unique_ptr<const Tokenizer>> (*make)(std::shared_ptr<const Metadata> file);
};
constexpr Model kModels[] = {
    {"llama", MakeSpmTokenizer}, {"gpt2", MakeBpeTokenizer},  {"bert", MakeWpmTokenizer},
    {"t5", MakeUgmTokenizer},    {"rwkv", MakeRwkvTokenizer},
};

}  // namespace

size_t Utf8Length(uint8_t lead) {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  if (lead >= 0xc0) return 2;
  return 1;
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const size_t at = text.find(from);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    result += to;
    text.remove_prefix(at + from.size());
  }
}

StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::FromMetadata(std::shared_ptr<const Metadata> file) {
  QUERN_ASSIGN(const std::string_view name, file->String("tokenizer.ggml.model"));
  for (const Model& model : kModels) {
    if (model.name == name) return model.make(std::move(file));
  }
  return absl::UnimplementedError(absl::StrFormat(
      "tokenizer model \"%s\" is not supported; \"llama\" (SentencePiece), \"gpt2\" (byte-level BPE), \"bert\" "
      "(WordPiece), \"t5\" (Unigram) and \"rwkv\" are",
      std::string(name)));
}

StatusOr<Merging> Tokenizer::merging() const {
  QUERN_ASSIGN(const std::string_view name, file_->String("tokenizer.ggml.model"));
  return absl::UnimplementedError(absl::StrFormat(
      "tokenizer model \"%s\" does not go into an object: the library of text in C has \"llama\" (SentencePiece) and "
      "\"gpt2\" (byte-level BPE)",
      std::string(name)));
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<int32_t> ids;
  if (options.add_special && vocabulary_.add_begin() && vocabulary_.begin() >= 0) ids.push_back(vocabulary_.begin());
  const TokenFinder& finder = vocabulary_.finder(options.parse_special);
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const int32_t found = finder.LongestAt(text.substr(at));
    if (found < 0) {
      ++at;
      continue;
    }
    if (at > begin) EncodeFragment(text.substr(begin, at - begin), begin == 0, ids);
    ids.push_back(found);
    at += vocabulary_.token(found).text.size();
    begin = at;
  }
  if (begin < text.size()) EncodeFragment(text.substr(begin), begin == 0, ids);
  const int32_t end = vocabulary_.separator() >= 0 ? vocabulary_.separator() : vocabulary_.end();
  if (options.add_special && vocabulary_.add_end() && end >= 0) ids.push_back(end);
  return ids;
}

std::string Tokenizer::Piece(int32_t id, bool special) const {
  const Token& token = vocabulary_.token(id);
  switch (token.kind) {
    case TokenKind::kControl:
    case TokenKind::kUnused: return special ? std::string(token.text) : "";
    case TokenKind::kUnknown: return special ? std::string(token.text) : "\xe2\x96\x85";
    case TokenKind::kByte: return std::string(1, static_cast<char>(ByteOf(token.text)));
    case TokenKind::kNormal: return NormalPiece(token.text);
    case TokenKind::kUserDefined: return UserDefinedPiece(token.text);
  }
  return "";
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool special) const {
  std::string text;
  for (const int32_t id : ids) text += Piece(id, special);
  if (vocabulary_.add_space_prefix() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::shared_ptr<const TokenTrie> Tokenizer::trie() const {
  std::call_once(trie_made_, [&] {
    std::vector<std::string> pieces(static_cast<size_t>(vocabulary_.size()));
    std::vector<int32_t> ends;
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      if (vocabulary_.token(id).kind != TokenKind::kUnknown) pieces[static_cast<size_t>(id)] = Piece(id);
      if (vocabulary_.IsEnd(id)) ends.push_back(id);
    }
    trie_ = std::make_shared<const TokenTrie>(pieces, std::move(ends));
  });
  return trie_;
}

}  // namespace quern::text
