// A vocabulary: the first half of the bytes is a file, the rest a text. Whatever they are, there is an error or a
// tokenizer whose ids are in range; and a byte-level vocabulary's pieces are the text again.
#include <cstdlib>

#include "import/gguf.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  // The text is at the end: GGUF does not mind what follows its tensors.
  const size_t text_size = size > 64 ? std::min<size_t>(data[size - 1], 64) : 0;
  const std::string_view words(reinterpret_cast<const char*>(data) + size - text_size, text_size);
  StatusOr<GgufFile> file = GgufFile::Parse({data, size});
  if (!file.ok()) return 0;
  const auto tokenizer = text::Tokenizer::FromMetadata(std::make_shared<const GgufFile>(*std::move(file)));
  if (!tokenizer.ok()) return 0;
  const text::Vocabulary& vocabulary = (*tokenizer)->vocabulary();
  for (const std::string_view input : {words, std::string_view("12+3= <s>\xff a\n\n  1234 \xc3\xa9")}) {
    for (const bool special : {false, true}) {
      const std::vector<int32_t> ids = (*tokenizer)->Encode(input, {.parse_special = special});
      text::Utf8Stream stream;
      for (const int32_t id : ids) {
        if (id < 0 || id >= vocabulary.size()) std::abort();
        stream.Add((*tokenizer)->Piece(id, special));
        vocabulary.IsEnd(id);
      }
      stream.Flush();
      (*tokenizer)->Decode(ids);
    }
  }
  return 0;
}
