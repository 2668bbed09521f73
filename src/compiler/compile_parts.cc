#include "compiler/compile_parts.h"

#include <algorithm>
#include <functional>

namespace quern::compiler {
namespace {

bool Lies(std::span<const uint8_t> part, std::span<const uint8_t> whole) {
  return std::less_equal<>()(whole.data(), part.data()) &&
         std::less_equal<>()(part.data() + part.size(), whole.data() + whole.size());
}

}  // namespace

Signature SignatureOf(const hir::Module& module, const ir::Graph& graph) {
  Signature signature = quern::SignatureOf(graph);
  const auto restore = [](Port& port, const ir::TensorType& type) {
    if (IsComplex(type.dtype)) port.type = type;
  };
  for (const hir::Node& node : module.nodes()) {
    if (node.results.size() != 1 || !IsComplex(node.results[0].dtype) || node.attributes.Find("name") == nullptr)
      continue;
    for (std::vector<Port>* ports : {&signature.inputs, &signature.params, &signature.states}) {
      for (Port& port : *ports) {
        if (port.name == node.attributes.String("name")) restore(port, node.results[0]);
      }
    }
  }
  for (Port& port : signature.outputs) restore(port, module.type(module.outputs[port.output]));
  return signature;
}

StatusOr<aot::WeightFile> WeightsOf(const ModelFile& file) {
  if (file.weights().size() != 1) {
    return absl::UnimplementedError(
        absl::StrFormat("the weights are in %u files, and a compiled model is handed one: --pack-weights makes one of "
                        "them, and so does quern quantise",
                        file.weights().size()));
  }
  const auto& [path, bytes] = file.weights()[0];
  std::error_code error;
  aot::WeightFile weights{std::filesystem::absolute(path, error).string(), bytes, static_cast<int64_t>(bytes.size())};
  for (const ModelTensor& tensor : file.tensors()) {
    if (Lies(tensor.bytes, bytes))
      weights.header_bytes = std::min(weights.header_bytes, tensor.bytes.data() - bytes.data());
  }
  return weights;
}

std::vector<aot::Param> ParamsOf(const models::ModelSpec& spec, const ModelFile& file) {
  std::vector<aot::Param> params;
  const std::span<const uint8_t> whole =
      file.weights().size() == 1 ? file.weights()[0].bytes : std::span<const uint8_t>();
  for (const models::ParamData& param : spec.params) {
    const int64_t offset = Lies(param.bytes, whole) ? param.bytes.data() - whole.data() : -1;
    params.push_back({param.name, param.bytes, offset % lir::kParamAlign == 0 ? offset : -1});
  }
  return params;
}

Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? absl::UnavailableError(absl::StrFormat("cannot make the folder %s: %s", folder, error.message()))
               : absl::OkStatus();
}

}  // namespace quern::compiler
