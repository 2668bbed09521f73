#include "ir/control.h"

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"

namespace quern::ir {

Status OtherType(const OpDef& op, std::string what, const TensorType& got, const TensorType& expected) {
  const DiagnosticCode code =
      got.dtype != expected.dtype ? DiagnosticCode::kDTypeMismatch : DiagnosticCode::kShapeMismatch;
  return ToStatus({code, op.name, std::move(what), expected.ToString(), got.ToString(), ""});
}

Status CheckBodyInputs(const OpDef& op, const char* name, const Graph& body, std::span<const TensorType> types) {
  const std::vector<int> inputs = body.Inputs();
  if (inputs.size() != types.size()) {
    return ToStatus({DiagnosticCode::kInputCount, absl::StrCat(op.name, ": ", name), "", absl::StrCat(types.size()),
                     absl::StrCat(inputs.size()), ""});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& input = body.node(inputs[i]);
    if (input.results[0] == types[i]) continue;
    return OtherType(op, absl::StrFormat("input %u (%s) of %s", i, input.attributes.String("name"), name),
                     input.results[0], types[i]);
  }
  return absl::OkStatus();
}

std::vector<TensorType> OutputTypes(const Graph& body) {
  std::vector<TensorType> types;
  for (const Value& output : body.outputs) types.push_back(body.type(output));
  return types;
}

int Carries(const Node& node) {
  const int64_t carries = node.attributes.Int("carries");
  return static_cast<int>(carries < 0 ? static_cast<int64_t>(node.inputs.size()) : carries);
}

}  // namespace quern::ir
