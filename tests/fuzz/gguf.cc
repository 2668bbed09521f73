// A model file: header, tokenizer and hyper-parameters. Whatever the bytes are, there is an error or a module that
// verifies; and text goes through the tokenizer and back.
#include <cstdlib>

#include "hir/module.h"
#include "import/gguf.h"
#include "import/spm_tokenizer.h"
#include "models/model_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  StatusOr<GgufFile> file = GgufFile::Parse({data, size});
  if (!file.ok()) return 0;
  if (const StatusOr<SpmTokenizer> tokenizer = SpmTokenizer::FromGguf(*file); tokenizer.ok()) {
    for (const int32_t id : tokenizer->Encode("12+3= <s>\xff a", true)) tokenizer->Piece(id);
  }
  const StatusOr<models::ModelSpec> spec =
      models::ModelFromGguf(std::make_shared<const GgufFile>(*std::move(file)), {.context = 16});
  if (spec.ok() && !hir::Lower(spec->module).ok()) std::abort();
  return 0;
}
