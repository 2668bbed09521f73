// Identities that hold bit for bit. A rule looks at a node over its new operands and gives the value that takes its
// place, or nothing. Rules for floats hold with NaN and signed zeros: x * 1, x / 1, x - 0 and x + (-0) are x; x + 0 is
// not, for -0 + 0 is 0.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "opt/constant_value.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ir::Value;

// A node of the old graph about to be written, over new operands.
struct Site {
  Rewriter& rewriter;
  int n;                      // old node
  std::vector<Value> inputs;  // new operands

  const ir::Node& node() const { return rewriter.from().node(n); }
  const ir::TensorType& result() const { return node().results[0]; }
  const ir::TensorType& type(size_t operand) const { return rewriter.to.type(inputs[operand]); }
  // The new node behind an operand.
  const ir::Node& behind(size_t operand) const { return rewriter.to.node(inputs[operand].node); }
  StatusOr<std::optional<Value>> Make(std::string_view op, std::vector<Value> operands,
                                      ir::Attributes attributes) const {
    QUERN_ASSIGN(const Value made, rewriter.Add(n, op, std::move(operands), std::move(attributes)));
    return made;
  }
};
using Replacement = StatusOr<std::optional<Value>>;

int64_t AxisOf(const ir::Node& node, int rank) {
  const int64_t axis = node.attributes.Int("axis");
  return axis < 0 ? axis + rank : axis;
}

bool IsScalar(const Site& site, size_t operand, double value) {
  const std::optional<double> constant = ScalarConstant(site.rewriter.to, site.inputs[operand]);
  return constant && *constant == value && std::signbit(*constant) == std::signbit(value);
}

Replacement Unchanged(const Site& site) {
  if (site.type(0) == site.result()) return site.inputs[0];
  return std::nullopt;
}

// `x` with the extents of the result, past all Reshapes behind it.
Replacement Reshaped(const Site& site, Value x) {
  while (Is(site.rewriter.to.node(x.node), "Reshape")) x = site.rewriter.to.node(x.node).inputs[0];
  if (site.rewriter.to.type(x) == site.result()) return x;
  return site.Make("Reshape", {x}, {{"shape", site.result().dims}});
}

Replacement SimplifyReshape(const Site& site) {
  if (site.type(0) == site.result()) return site.inputs[0];
  if (!Is(site.behind(0), "Reshape")) return std::nullopt;
  return Reshaped(site, site.inputs[0]);
}

Replacement SimplifyTranspose(const Site& site) {
  std::vector<int64_t> perm = site.node().attributes.Ints("perm");
  Value x = site.inputs[0];
  const bool twice = Is(site.behind(0), "Transpose");
  if (twice) {
    const std::vector<int64_t>& first = site.behind(0).attributes.Ints("perm");
    for (int64_t& p : perm) p = first[p];
    x = site.behind(0).inputs[0];
  }
  const ir::TensorType& type = site.rewriter.to.type(x);
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  // Moving dimensions of one element moves nothing.
  std::vector<int64_t> live;
  std::copy_if(perm.begin(), perm.end(), std::back_inserter(live),
               [&](int64_t p) { return type.dims[p] != Extent(1); });
  if (std::is_sorted(live.begin(), live.end())) return Reshaped(site, x);
  if (twice) return site.Make("Transpose", {x}, {{"perm", perm}});
  return std::nullopt;
}

Replacement SimplifyExpand(const Site& site) {
  if (site.type(0) == site.result()) return site.inputs[0];
  if (site.type(0).elements() == site.result().elements()) return Reshaped(site, site.inputs[0]);
  return std::nullopt;
}

Replacement SimplifyNarrow(const Site& site) {
  if (site.type(0) == site.result()) return site.inputs[0];
  const int64_t axis = AxisOf(site.node(), site.result().rank());
  const Extent start = site.node().attributes.Extents("start")[0], length = site.node().attributes.Extents("length")[0];
  const ir::Node& behind = site.behind(0);
  if (Is(behind, "Narrow") && AxisOf(behind, site.result().rank()) == axis) {
    const Extent sum = behind.attributes.Extents("start")[0] + start;
    return site.Make("Narrow", {behind.inputs[0]},
                     {{"axis", axis}, {"start", std::vector<Extent>{sum}}, {"length", std::vector<Extent>{length}}});
  }
  if (!Is(behind, "Concat") || AxisOf(behind, site.result().rank()) != axis) return std::nullopt;
  // The part of one operand read back.
  Extent offset(0);
  for (const Value& operand : behind.inputs) {
    const Extent size = site.rewriter.to.type(operand).dims[axis], inside = start - offset;
    const SymbolRanges& ranges = site.rewriter.to.symbols;
    if (inside == Extent(0) && size == length) return operand;
    if (inside.ProvablyAtLeast(Extent(0), ranges) && size.ProvablyAtLeast(inside + length, ranges)) {
      return site.Make(
          "Narrow", {operand},
          {{"axis", axis}, {"start", std::vector<Extent>{inside}}, {"length", std::vector<Extent>{length}}});
    }
    offset = offset + size;
  }
  return std::nullopt;
}

Replacement SimplifyConcat(const Site& site) {
  if (site.inputs.size() == 1) return site.inputs[0];
  return std::nullopt;
}

// f(f(x)) = x.
Replacement SimplifyInvolution(const Site& site) {
  if (site.behind(0).op == site.node().op) return site.behind(0).inputs[0];
  return std::nullopt;
}

// f(f(x)) = f(x).
Replacement SimplifyIdempotent(const Site& site) {
  if (site.behind(0).op == site.node().op) return site.inputs[0];
  return std::nullopt;
}

// An operand that `neutral` leaves as it is, and that broadcasts to nothing larger.
Replacement Neutral(const Site& site, double neutral, bool commutes) {
  if (IsScalar(site, 1, neutral) && site.type(0) == site.result()) return site.inputs[0];
  if (commutes && IsScalar(site, 0, neutral) && site.type(1) == site.result()) return site.inputs[1];
  return std::nullopt;
}
Replacement SimplifyMul(const Site& site) { return Neutral(site, 1, true); }
Replacement SimplifyDiv(const Site& site) { return Neutral(site, 1, false); }
Replacement SimplifySub(const Site& site) { return Neutral(site, 0, false); }
Replacement SimplifyAdd(const Site& site) { return Neutral(site, IsFloat(site.result().dtype) ? -0.0 : 0.0, true); }

Replacement SimplifyWhere(const Site& site) {
  if (site.inputs[1] == site.inputs[2] && site.type(1) == site.result()) return site.inputs[1];
  return std::nullopt;
}

// A transposed right side is read as it lies.
Replacement SimplifyMatMul(const Site& site) {
  const ir::Node& behind = site.behind(1);
  if (site.node().attributes.Bool("transpose_b") || !Is(behind, "Transpose")) return std::nullopt;
  const std::vector<int64_t>& perm = behind.attributes.Ints("perm");
  std::vector<int64_t> swapped(perm.size());
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  if (perm != swapped) return std::nullopt;
  return site.Make("MatMul", {site.inputs[0], behind.inputs[0]}, {{"transpose_b", true}});
}

struct Rule {
  const char* op;
  Replacement (*apply)(const Site&);
};
constexpr Rule kRules[] = {
    {"Abs", SimplifyIdempotent},
    {"Add", SimplifyAdd},
    {"Cast", Unchanged},
    {"Ceil", SimplifyIdempotent},
    {"Concat", SimplifyConcat},
    {"Div", SimplifyDiv},
    {"Expand", SimplifyExpand},
    {"Floor", SimplifyIdempotent},
    {"MatMul", SimplifyMatMul},
    {"Mul", SimplifyMul},
    {"Narrow", SimplifyNarrow},
    {"Neg", SimplifyInvolution},
    {"Not", SimplifyInvolution},
    {"Pad", Unchanged},
    {"Relu", SimplifyIdempotent},
    {"Reshape", SimplifyReshape},
    {"Round", SimplifyIdempotent},
    {"Sign", SimplifyIdempotent},
    {"Slice", Unchanged},
    {"Sub", SimplifySub},
    {"Transpose", SimplifyTranspose},
    {"Where", SimplifyWhere},
};

}  // namespace

StatusOr<ir::Graph> Simplify(const ir::Graph& graph) {
  Rewriter rewriter(graph, "simplify", Simplify);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    std::optional<Value> replacement;
    for (const Rule& rule : kRules) {
      if (!Is(node, rule.op)) continue;
      QUERN_ASSIGN(replacement, rule.apply(Site{rewriter, n, rewriter.Now(node.inputs)}));
    }
    if (replacement)
      rewriter.Replace({n, 0}, *replacement);
    else
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  QUERN_ASSIGN(const ir::Graph simplified, rewriter.Finish());
  return Dce(simplified);  // what the rules looked through may have no reader left
}

}  // namespace quern::opt
