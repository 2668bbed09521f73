#include <set>

#include "absl/strings/str_cat.h"
#include "onnx/importer.h"

namespace quern::onnx {
namespace {

struct Seen {
  const ModelFile& file;
  std::set<std::pair<std::string, std::string>> functions;
  std::set<std::string> said;
  std::vector<std::string> lines;

  void Say(const std::string& what, const std::string& first) {
    if (said.insert(what).second) lines.push_back(absl::StrCat(what, " (first: ", first, ")"));
  }
  void Type(const format::ValueInfo& info) {
    if (!info.type().has_tensor_type()) return Say("an input that is no dense tensor", info.name());
    const int type = info.type().tensor_type().elem_type();
    if (!DTypeOf(type).ok()) Say(absl::StrCat("inputs of ", TypeName(type)), info.name());
  }
  void Nodes(const google::protobuf::RepeatedPtrField<format::Node>& nodes) {
    for (const format::Node& node : nodes) {
      const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
      if (!functions.contains({domain, node.op_type()}) && FindImporter(domain, node.op_type()) == nullptr) {
        Say(absl::StrCat("op ", domain, domain.empty() ? "" : ".", node.op_type()),
            node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name());
      }
      for (const format::Attribute& attribute : node.attribute()) {
        if (attribute.has_g()) Graph(attribute.g());
      }
    }
  }
  void Graph(const format::Graph& graph) {
    for (const format::Tensor& tensor : graph.initializer()) {
      if (!DTypeOf(tensor.data_type()).ok())
        Say(absl::StrCat("tensors of ", TypeName(tensor.data_type())), tensor.name());
    }
    if (graph.sparse_initializer_size() > 0) Say("sparse tensors", graph.sparse_initializer(0).values().name());
    Nodes(graph.node());
  }
};

}  // namespace

std::vector<std::string> NotCovered(const ModelFile& file) {
  Seen seen{file, {}, {}, {}};
  for (const format::Function& function : file.model().functions())
    seen.functions.insert({function.domain() == "ai.onnx" ? "" : function.domain(), function.name()});
  for (const format::ValueInfo& input : file.model().graph().input()) seen.Type(input);
  seen.Graph(file.model().graph());
  for (const format::Function& function : file.model().functions()) seen.Nodes(function.node());
  return seen.lines;
}

}  // namespace quern::onnx
