#include "onnx/functions.h"

namespace quern::onnx {

void CallFunction(Call& call, const format::Function& function) {
  Scope scope(call.session, call.builder, nullptr);
  scope.label = absl::StrCat(call.scope.label, call.node.name().empty() ? function.name() : call.node.name(), "/");
  scope.opsets = call.scope.opsets;
  for (const format::Opset& opset : function.opset_import())
    scope.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  std::map<std::string, const format::Attribute*> attributes;
  for (const format::Attribute& attribute : function.attribute_proto()) attributes[attribute.name()] = &attribute;
  for (const format::Attribute& given : call.node.attribute()) {
    const format::Attribute* const found = call.Find(given.name());
    if (found != nullptr) attributes[given.name()] = found;
  }
  scope.attributes = &attributes;
  for (int i = 0; i < function.input_size(); ++i) scope.Set(function.input(i), call.item(i));
  call.Fail(ImportNodes(scope, function.node(), call.depth + 1));
  for (int o = 0; o < function.output_size() && call.ok(); ++o) {
    const Item* const made = scope.Find(function.output(o));
    if (made == nullptr)
      call.Fail("the function %s does not make its result %s", function.name(), function.output(o));
    else
      call.ReturnItem(o, *made);
  }
}

}  // namespace quern::onnx
