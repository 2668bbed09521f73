#include "models/model_spec.h"

#include "absl/strings/str_join.h"
#include "models/architecture.h"

namespace quern::models {
namespace {

constexpr size_t kMostOfAName = 64;  // what an error says of one that a file made up

}  // namespace

StatusOr<ModelSpec> ReadModel(std::shared_ptr<const ModelFile> file, const ModelOptions& options) {
  QUERN_ASSIGN(const std::string_view name, file->String("general.architecture"));
  const Architecture* architecture = FindArchitecture(name);
  if (architecture == nullptr) {
    const std::string known = absl::StrJoin(
        Architectures(), ", ", [](std::string* out, const Architecture* known) { out->append(known->name); });
    return absl::UnimplementedError(absl::StrFormat("general.architecture: \"%s\" is not supported; these are: %s",
                                                    name.substr(0, kMostOfAName), known));
  }
  Decoder decoder(std::move(file), architecture->name, options);
  const Value logits = architecture->build(decoder);
  return decoder.Finish(logits);
}

}  // namespace quern::models
