// A model file: header and hyper-parameters. Whatever the bytes are, there is an error or a module that verifies.
#include <cstdlib>

#include "hir/module.h"
#include "import/gguf.h"
#include "models/model_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  StatusOr<GgufFile> file = GgufFile::Parse({data, size});
  if (!file.ok()) return 0;
  const StatusOr<models::ModelSpec> spec =
      models::ReadModel(std::make_shared<const GgufFile>(*std::move(file)), {.context = 16});
  if (spec.ok() && !hir::Lower(spec->module).ok()) std::abort();
  return 0;
}
