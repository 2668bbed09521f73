// A model in ONNX, with nothing beside it: an error, or a graph that verifies, with the bytes of its parameters.
#include <cstdio>
#include <cstdlib>

#include "onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quern;
  const auto file = onnx::ModelFile::Parse({data, size}, "");
  if (absl::IsInternal(file.status())) std::abort();
  if (!file.ok()) return 0;
  onnx::NotCovered(**file);
  const StatusOr<onnx::Imported> imported = onnx::Import(**file, {.usual_size = 3});
  if (absl::IsInternal(imported.status())) std::abort();
  if (!imported.ok()) return 0;
  if (const Status verified = ir::Verify(imported->graph); !verified.ok()) {
    std::fprintf(stderr, "%s\n", verified.ToString().c_str());
    std::abort();
  }
  for (const ir::Node* param : ir::AllParams(imported->graph)) {
    if (!imported->params.contains(param->attributes.String("name"))) std::abort();
  }
  return 0;
}
