// The files of a folder of Hugging Face's; the first byte says which. Whatever they hold, there is an error that says
// something, or a model or a tokenizer whose ids are in range.
//
//   c  a config.json, a zero byte, and a .safetensors file
//   t  a tokenizer.json, a zero byte, and a tokenizer_config.json
//   i  a model.safetensors.index.json
#include <cstdlib>

#include "import/hugging_face/model_folder.h"
#include "models/model_spec.h"
#include "text/folder_vocabulary.h"
#include "text/tokenizer.h"

namespace {

using namespace quern;

void Check(const Status& status) {
  if (!status.ok() && status.message().empty()) std::abort();
}

void ReadModelFolder(std::string_view config, std::span<const uint8_t> weights) {
  StatusOr<ModelFolder> folder = ModelFolder::Parse(config, weights);
  Check(folder.status());
  if (!folder.ok()) return;
  const auto model = models::ReadModel(std::make_shared<const ModelFile>(*std::move(folder)), {.context = 16});
  Check(model.status());
}

void ReadTokenizer(std::string_view tokenizer, std::string_view beside) {
  text::TokenizerFiles files;
  files.tokenizer_config = files.config = files.generation_config = hugging_face::Json::object();
  StatusOr<hugging_face::Json> json = hugging_face::ParseJson(tokenizer);
  if (!json.ok()) return;
  files.tokenizer = *std::move(json);
  if (StatusOr<hugging_face::Json> config = hugging_face::ParseJson(beside); config.ok())
    files.tokenizer_config = files.generation_config = *std::move(config);
  StatusOr<Metadata> metadata = text::ReadTokenizerFiles(files);
  Check(metadata.status());
  if (!metadata.ok()) return;
  const auto made = text::Tokenizer::FromMetadata(std::make_shared<const Metadata>(*std::move(metadata)));
  Check(made.status());
  if (!made.ok()) return;
  for (const int32_t id : (*made)->Encode("12+3= <s>\xff a\n\n  1234 \xc3\xa9")) {
    if (id < 0 || id >= (*made)->vocabulary().size()) std::abort();
    (*made)->Piece(id);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t zero = std::min(all.find('\0'), all.size()), next = std::min(zero + 1, all.size());
  switch (data[0]) {
    case 'c': ReadModelFolder(all.substr(0, zero), {data + 1 + next, all.size() - next}); break;
    case 't': ReadTokenizer(all.substr(0, zero), all.substr(next)); break;
    case 'i': Check(hugging_face::ShardsOf(all).status()); break;
    default: break;
  }
  return 0;
}
