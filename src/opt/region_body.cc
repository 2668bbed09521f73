#include "opt/region_body.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quern::opt {
namespace {

// Constants of one element become literals of the code.
bool IsImmediate(const ir::Node& node) { return ir::IsConstant(node) && node.results[0].elements() == Extent(1); }

}  // namespace

// Without recursion: a region may be longer than a stack.
StatusOr<ir::Value> RegionBody::Write(ir::Value value) {
  const auto missing = [&](ir::Value input) { return !now_.contains(input); };
  std::vector<ir::Value> pending = {value};
  while (!pending.empty()) {
    const ir::Value at = pending.back();
    const std::vector<ir::Value>& inputs = view_.node(at.node).inputs;
    const bool looks_inside = view_.Has(at.node) && missing(at);
    const auto next = looks_inside ? std::find_if(inputs.begin(), inputs.end(), missing) : inputs.end();
    if (next != inputs.end()) {
      pending.push_back(*next);
      continue;
    }
    if (missing(at)) QUERN_RETURN_IF_ERROR(WriteNode(at));
    pending.pop_back();
  }
  return now_.at(value);
}

// A node whose operands are written.
Status RegionBody::WriteNode(ir::Value value) {
  const ir::Node& node = view_.node(value.node);
  ir::Value made;
  if (view_.Has(value.node)) {
    std::vector<ir::Value> operands;
    for (const ir::Value& input : node.inputs) operands.push_back(now_.at(input));
    for (const auto& [name, attribute] : node.attributes.values()) {
      if (const auto* extents = std::get_if<std::vector<Extent>>(&attribute)) Declare(*extents);
    }
    QUERN_ASSIGN(made, body.Add(*node.op, std::move(operands), node.attributes, Origin(node)));
    for (int r = 0; r < static_cast<int>(node.results.size()); ++r) now_[{value.node, r}] = {made.node, r};
    return absl::OkStatus();
  }
  if (IsImmediate(node)) {
    QUERN_ASSIGN(made, body.AddConstant(node.results[0], *node.data, Origin(node)));
  } else {
    const ir::TensorType& type = view_.type(value);
    Declare(type.dims);
    QUERN_ASSIGN(made, body.AddInput(absl::StrCat("i", inputs.size()), type));
    inputs.push_back(value);
  }
  now_[value] = made;
  return absl::OkStatus();
}

void RegionBody::Declare(const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) {
    for (const std::string& symbol : extent.Symbols()) {
      if (const auto range = view_.ranges.find(symbol); range != view_.ranges.end()) body.symbols.insert(*range);
    }
  }
}

int RegionBody::Origin(const ir::Node& node) {
  return node.origin < 0 ? -1 : body.AddOrigin(view_.graph.origins()[node.origin]);
}

}  // namespace quern::opt
