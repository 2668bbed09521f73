#include "compiler/compile_parts.h"

#include <algorithm>
#include <functional>

namespace quern::compiler {

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

Signature SignatureOf(const CompileSource& source, const ir::Graph& graph) {
  Signature signature = SignatureOf(*source.module, graph);
  for (Port& output : signature.outputs) {
    if (!source.outputs.empty()) output.name = source.outputs[output.output];
  }
  return signature;
}

aot::WeightFile WeightsOf(const std::string& path, const GgufFile& file) {
  aot::WeightFile weights{path, file.bytes(), static_cast<int64_t>(file.bytes().size())};
  for (const GgufTensor& tensor : file.tensors()) {
    weights.header_bytes = std::min<int64_t>(weights.header_bytes, tensor.bytes.data() - file.bytes().data());
  }
  return weights;
}

std::vector<aot::Param> ParamsOf(const models::ModelSpec& spec, const GgufFile& file) {
  std::vector<aot::Param> params;
  const std::span<const uint8_t> whole = file.bytes();
  for (const models::ParamData& param : spec.params) {
    const bool mapped = std::less_equal<>()(whole.data(), param.bytes.data()) &&
                        std::less_equal<>()(param.bytes.data() + param.bytes.size(), whole.data() + whole.size());
    const int64_t offset = mapped ? param.bytes.data() - whole.data() : -1;
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
