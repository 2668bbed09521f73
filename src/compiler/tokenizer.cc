// Tokenizer and TextStream of the public interface.
#include "quern/tokenizer.h"

#include "compiler/public_error.h"
#include "generate/stop_strings.h"
#include "text/folder_vocabulary.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

namespace quern {

Result<Tokenizer> Tokenizer::Open(const std::string& path) {
  StatusOr<std::shared_ptr<const Metadata>> vocabulary = text::OpenVocabulary(path);
  if (!vocabulary.ok()) return Result<Tokenizer>::Failed(compiler::ErrorOf(vocabulary.status()));
  auto made = text::Tokenizer::FromMetadata(*std::move(vocabulary));
  if (!made.ok()) return Result<Tokenizer>::Failed(compiler::ErrorOf(made.status()));
  return Tokenizer(*std::move(made));
}

int32_t Tokenizer::size() const { return tokenizer_->vocabulary().size(); }

std::vector<int32_t> Tokenizer::Encode(std::string_view text, const TokenizeOptions& options) const {
  return tokenizer_->Encode(text, {.add_special = options.begin, .parse_special = options.parse_special});
}

std::string Tokenizer::Piece(int32_t id, bool special) const {
  return id >= 0 && id < size() ? tokenizer_->Piece(id, special) : std::string();
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool special) const {
  std::vector<int32_t> known;
  for (const int32_t id : ids) {
    if (id >= 0 && id < size()) known.push_back(id);
  }
  return tokenizer_->Decode(known, special);
}

bool Tokenizer::IsEnd(int32_t id) const { return tokenizer_->vocabulary().IsEnd(id); }
int32_t Tokenizer::begin() const { return tokenizer_->vocabulary().begin(); }
int32_t Tokenizer::end() const { return tokenizer_->vocabulary().end(); }

struct TextStream::State {
  Tokenizer tokenizer;
  bool special;
  text::Utf8Stream characters;
  StopStrings stops;
};

TextStream::TextStream(Tokenizer tokenizer, std::vector<std::string> stops, bool special)
    : state_(std::make_unique<State>(State{std::move(tokenizer), special, {}, StopStrings(std::move(stops))})) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::string TextStream::Add(int32_t id) {
  return state_->stops.Add(state_->characters.Add(state_->tokenizer.Piece(id, state_->special)));
}

std::string TextStream::Flush() {
  const std::string last = state_->stops.Add(state_->characters.Flush());
  return last + state_->stops.Flush();
}

bool TextStream::stopped() const { return state_->stops.stopped(); }

}  // namespace quern
