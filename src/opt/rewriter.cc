#include "opt/rewriter.h"

#include <algorithm>

#include "base/check.h"

namespace quern::opt {

using ir::Value;

Rewriter::Rewriter(const ir::Graph& from, std::string pass, BodyPass bodies)
    : from_(from),
      pass_(std::move(pass)),
      bodies_(std::move(bodies)),
      now_(from.nodes().size()),
      kept_origins_(from.origins().size(), -2) {
  to.name = from.name;
  to.symbols = from.symbols;
  for (size_t n = 0; n < now_.size(); ++n) now_[n].resize(from.nodes()[n].results.size());
}

Value Rewriter::Now(Value old) const {
  const Value now = now_[old.node][old.result];
  QUERN_CHECK(now.node >= 0);
  return now;
}

std::vector<Value> Rewriter::Now(const std::vector<Value>& old) const {
  std::vector<Value> now;
  for (const Value& value : old) now.push_back(Now(value));
  return now;
}

void Rewriter::Replace(Value old, Value now) { now_[old.node][old.result] = now; }

int Rewriter::KeptOrigin(int n) {
  const int origin = from_.node(n).origin;
  if (origin < 0) return origin;
  if (kept_origins_[origin] == -2) kept_origins_[origin] = to.AddOrigin(from_.origins()[origin]);
  return kept_origins_[origin];
}

Status Rewriter::Made(int n, const StatusOr<Value>& made) {
  if (!made.ok()) return made.status();
  for (size_t r = 0; r < from_.node(n).results.size(); ++r) now_[n][r] = {made->node, static_cast<int>(r)};
  return absl::OkStatus();
}

Status Rewriter::Copy(int n) {
  const ir::Node& node = from_.node(n);
  // Most nodes of most passes: nothing about them has changed.
  std::vector<Value> inputs = Now(node.inputs);
  bool same = true;
  for (size_t i = 0; same && i < inputs.size(); ++i) same = to.type(inputs[i]) == from_.type(node.inputs[i]);
  if (!ir::IsControl(node) || bodies_ == nullptr) {
    if (same) return Made(n, to.AddCopy(node, std::move(inputs), KeptOrigin(n)));
    return CopyAs(n, node.attributes, node.results[0], node.bodies);
  }
  std::vector<std::shared_ptr<const ir::Graph>> bodies;
  for (const std::shared_ptr<const ir::Graph>& body : node.bodies) {
    QUERN_ASSIGN(ir::Graph rewritten, bodies_(*body));
    bodies.push_back(std::make_shared<const ir::Graph>(std::move(rewritten)));
  }
  return CopyAs(n, node.attributes, node.results[0], std::move(bodies));
}

Status Rewriter::CopyAs(int n, ir::Attributes attributes, const ir::TensorType& leaf_type,
                        std::vector<std::shared_ptr<const ir::Graph>> bodies) {
  const ir::Node& node = from_.node(n);
  const int origin = KeptOrigin(n);
  StatusOr<Value> made = Value{};
  if (ir::IsInput(node)) {
    made = to.AddInput(node.attributes.String("name"), leaf_type, origin);
  } else if (ir::IsParam(node)) {
    made = to.AddParam(node.attributes.String("name"), leaf_type, origin);
  } else if (ir::IsConstant(node)) {
    made = to.AddConstant(leaf_type, *node.data, origin);
  } else if (ir::IsRegion(node)) {
    made = to.AddRegion(node.attributes.String("family"), Now(node.inputs), std::move(bodies[0]), origin);
  } else {
    made = to.Add(*node.op, Now(node.inputs), std::move(attributes), origin, std::move(bodies));
  }
  return Made(n, made);
}

ir::MakeNode Rewriter::Maker(int n) {
  return [this, n](std::string_view op, std::vector<ir::Value> operands, ir::Attributes attributes) {
    return Add(n, op, std::move(operands), std::move(attributes));
  };
}

int Rewriter::OriginOf(int n) {
  const int origin = from_.node(n).origin;
  return to.AddOrigin({origin < 0 ? "" : from_.origins()[origin].label, pass_});
}

StatusOr<Value> Rewriter::Add(int n, std::string_view op, std::vector<Value> inputs, ir::Attributes attributes) {
  return to.Add(op, std::move(inputs), std::move(attributes), OriginOf(n));
}

StatusOr<ir::Graph> Rewriter::Finish() {
  to.outputs = Now(from_.outputs);
  to.output_names = from_.output_names;
  to.donations = from_.donations;
  // Constraints of nodes that are gone still hold: they are what the caller promises.
  std::vector<ir::ExtentConstraint> inferred = std::move(to.constraints);
  to.constraints.clear();
  ir::AddConstraints(to.constraints, from_.constraints);
  ir::AddConstraints(to.constraints, inferred);
  return std::move(to);
}

}  // namespace quern::opt
