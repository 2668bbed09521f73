#include "models/model_spec.h"

#include "models/llama.h"

namespace quern::models {

namespace {

constexpr size_t kMostOfAName = 64;  // what an error says of one that a file made up

}  // namespace

StatusOr<ModelSpec> ModelFromGguf(std::shared_ptr<const GgufFile> file, const ModelOptions& options) {
  QUERN_ASSIGN(const std::string_view architecture, file->String("general.architecture"));
  if (architecture == "llama") return LlamaFromGguf(std::move(file), options);
  return absl::UnimplementedError(absl::StrFormat("general.architecture: \"%s\" is not supported, only \"llama\" is",
                                                  std::string(architecture.substr(0, kMostOfAName))));
}

}  // namespace quern::models
