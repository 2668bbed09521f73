#include "hir/extensions.h"

#include "hir/block.h"

namespace quern::hir {

Status Extensions::Register(std::string name, Function function) {
  if (FindBlock(name) != nullptr || functions_.contains(name)) {
    return ToStatus({DiagnosticCode::kDuplicateName, "Extensions", name, "", "", ""});
  }
  functions_.emplace(std::move(name), std::move(function));
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Extensions::Append(Module& module, std::string_view name, std::vector<Value> inputs,
                                                const Attributes& attributes, std::string_view label) const {
  const auto found = functions_.find(name);
  if (found == functions_.end()) {
    return ToStatus({DiagnosticCode::kUnknownOp, std::string(name), "", "", "", std::string(label)});
  }
  StatusOr<std::vector<Value>> results = std::vector<Value>();
  QUERN_RETURN_IF_ERROR(module.Named(label.empty() ? name : label, [&] {
    results = found->second(module, inputs, attributes);
    return results.status();
  }));
  return results;
}

}  // namespace quern::hir
