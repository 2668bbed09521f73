#include "opt/choose_kernels.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/diagnostic.h"
#include "ir/logical.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

StatusOr<KernelChoice> ParseChoice(std::string_view text) {
  if (text == "native") return KernelChoice::kNative;
  if (text == "common") return KernelChoice::kCommon;
  if (text == "only-native") return KernelChoice::kOnlyNative;
  return absl::InvalidArgumentError(
      absl::StrFormat("kernels: \"%s\" is none of native, common and only-native", std::string(text)));
}

}  // namespace

KernelChoice KernelPolicy::Of(std::string_view op) const {
  const auto own = by_op.find(op);
  return own == by_op.end() ? all : own->second;
}

StatusOr<KernelPolicy> ParseKernelPolicy(std::string_view text) {
  KernelPolicy policy;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    const std::string entry(part);
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      QUERN_ASSIGN(policy.all, ParseChoice(entry));
      continue;
    }
    const std::string op = entry.substr(0, equals);
    if (ir::FindOp(op) == nullptr) return ir::UnknownOp(op);
    QUERN_ASSIGN(policy.by_op[op], ParseChoice(entry.substr(equals + 1)));
  }
  return policy;
}

StatusOr<ir::Graph> ChooseKernels(const ir::Graph& graph, const KernelPolicy& policy) {
  Rewriter rewriter(graph, "choose_kernels", [&](const ir::Graph& body) { return ChooseKernels(body, policy); });
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    const KernelChoice choice = policy.Of(node.op->name);
    const ir::LogicalKernel* const logical = ir::FindLogical(*node.op);
    if (choice == KernelChoice::kOnlyNative && ir::LacksKernel(node)) {
      return ir::WithOrigin(graph, node.origin,
                            ToStatus({DiagnosticCode::kUnsupported, node.op->name, "", "",
                                      absl::StrFormat("only a kernel of its own for %s, which is made of other ops,",
                                                      node.results[0].ToString()),
                                      ""}));
    }
    if (choice != KernelChoice::kCommon || logical == nullptr || !logical->spellable(node)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    QUERN_ASSIGN(const std::vector<ir::Value> results,
                 logical->spell(rewriter.to, node, rewriter.Now(node.inputs), rewriter.OriginOf(n)));
    for (size_t r = 0; r < results.size(); ++r) rewriter.Replace({n, static_cast<int>(r)}, results[r]);
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
