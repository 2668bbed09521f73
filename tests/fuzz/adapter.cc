// A LoRA adapter beside a small model. Whatever the bytes are, there is an error or a module that verifies.
#include <cstdlib>

#include "hir/module.h"
#include "import/gguf.h"
#include "models/model_spec.h"
#include "support/described_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  static const auto* const described =
      new support::DescribedModel(*support::ReadDescribedModel(QUERN_GOLDEN_DIR "/architectures/llama.txt"));
  static const auto* const model =
      new std::shared_ptr<const ModelFile>(std::make_shared<const GgufFile>(*GgufFile::Parse(described->file)));
  StatusOr<GgufFile> file = GgufFile::Parse({data, size});
  if (!file.ok()) return 0;
  const StatusOr<models::ModelSpec> spec = models::ReadModel(
      *model, {.context = 16, .adapters = {{std::make_shared<const GgufFile>(*std::move(file)), "adapter.gguf", 0.5}}});
  if (spec.ok() && !hir::Lower(spec->module).ok()) std::abort();
  return 0;
}
