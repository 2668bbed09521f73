#include "models/model_spec.h"

#include "models/llama.h"

namespace quern::models {

StatusOr<ModelSpec> ModelFromGguf(std::shared_ptr<const GgufFile> file, const ModelOptions& options) {
  QUERN_ASSIGN(const std::string_view architecture, file->String("general.architecture"));
  if (architecture == "llama") return LlamaFromGguf(std::move(file), options);
  return absl::UnimplementedError(
      absl::StrFormat("general.architecture: \"%s\" is not supported", std::string(architecture)));
}

}  // namespace quern::models
