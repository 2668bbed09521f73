// Which form logical kernels (ir/logical.h) take: their own kernel, or other ops.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace quern::opt {

enum class KernelChoice : uint8_t {
  kNative,      // its own kernel, where there is one for the node
  kCommon,      // other ops, where there is such a form of the node
  kOnlyNative,  // its own kernel, or an error
};

struct KernelPolicy {
  KernelChoice all = KernelChoice::kNative;
  std::map<std::string, KernelChoice, std::less<>> by_op;

  KernelChoice Of(std::string_view op) const;
};

// "common"; "native,Attention=common": the one without a name is for all. "": native. Errors: an unknown choice or
// op.
StatusOr<KernelPolicy> ParseKernelPolicy(std::string_view text);

// The graph with logical kernels as the policy has them. Error: kUnsupported, for a node that may only be native and
// for which there is no kernel.
StatusOr<ir::Graph> ChooseKernels(const ir::Graph& graph, const KernelPolicy& policy);

}  // namespace quern::opt
