#include "ir/arg_fold.h"

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

namespace kb = kir::build;
using kir::ExprRef;
using kir::Op;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  if (x.dims[axis] == Extent(0)) return context.ShapeError(0, absl::StrFormat("1 element or more along axis %d", axis));
  TensorType result{DType::kI64, x.dims};
  if (context.attributes.Bool("keep_dim"))
    result.dims[axis] = Extent(1);
  else
    result.dims.erase(result.dims.begin() + axis);
  return std::vector<TensorType>{std::move(result)};
}

std::vector<bool> Axes(const Node& node, int rank) {
  std::vector<bool> along(rank);
  along[FromStart(node.attributes.Int("axis"), rank)] = true;
  return along;
}

StatusOr<std::vector<TensorType>> InferScan(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(AxisOf(context).status());
  return std::vector<TensorType>{context.operands[0], {DType::kI64, context.operands[0].dims}};
}

ExprRef Both(const ExprRef& a, const ExprRef& b) { return kb::Call(Op::kAnd, {a, b}); }
ExprRef Either(const ExprRef& a, const ExprRef& b) { return kb::Call(Op::kOr, {a, b}); }
ExprRef IsNan(const ExprRef& x) { return kb::Call(Op::kNe, {x, x}); }
// Whether x beats y as values alone; and whether neither beats the other.
template <bool kLargest>
ExprRef Beats(const ExprRef& x, const ExprRef& y) {
  const ExprRef more = kLargest ? kb::Call(Op::kLt, {y, x}) : kb::Call(Op::kLt, {x, y});
  return IsFloat(x->dtype) ? Either(more, Both(IsNan(x), kb::Call(Op::kNot, {IsNan(y)}))) : more;
}
ExprRef Ties(const ExprRef& x, const ExprRef& y) {
  const ExprRef same = kb::Call(Op::kEq, {x, y});
  return IsFloat(x->dtype) ? Either(same, Both(IsNan(x), IsNan(y))) : same;
}

// The best value and its place; the place is -1 as long as there is none.
LineDef::State Start(const Node&, DType dtype) { return {kb::CastTo(dtype, kb::Int(0)), kb::Int(-1)}; }

ExprRef IsEmpty(const LineDef::State& state) { return kb::Call(Op::kLt, {state[1], kb::Int(0)}); }

template <bool kLargest>
LineDef::State Take(const Node& node, const LineDef::State& state, const ExprRef& x, const ExprRef& at) {
  ExprRef wins = Either(IsEmpty(state), Beats<kLargest>(x, state[0]));
  // Elements come in order, and of several NaNs the first wins in either case.
  const AttrValue* const last = node.attributes.Find("last");
  if (last != nullptr && std::get<bool>(*last)) wins = Either(wins, kb::Call(Op::kEq, {x, state[0]}));
  return {kb::Select(wins, x, state[0]), kb::Select(wins, at, state[1])};
}

template <bool kLargest>
LineDef::State Join(const Node& node, const LineDef::State& a, const LineDef::State& b) {
  ExprRef before = kb::Call(Op::kLt, {b[1], a[1]});
  if (node.attributes.Bool("last")) {
    const ExprRef after = kb::Call(Op::kLt, {a[1], b[1]});
    before = IsFloat(a[0]->dtype) ? kb::Select(IsNan(a[0]), before, after) : after;
  }
  const ExprRef better = Either(Beats<kLargest>(b[0], a[0]), Both(Ties(a[0], b[0]), before));
  const ExprRef wins = Both(kb::Call(Op::kNot, {IsEmpty(b)}), Either(IsEmpty(a), better));
  return {kb::Select(wins, b[0], a[0]), kb::Select(wins, b[1], a[1])};
}

LineDef::State Results(const Node&, const LineDef::State& state) { return {state[1]}; }

template <bool kLargest>
constexpr LineDef kLine = {
    .axes = Axes, .start = Start, .take = Take<kLargest>, .join = Join<kLargest>, .results = Results};

LineDef::State ScanResults(const Node& node, const LineDef::State& state) {
  return {kb::CastTo(node.results[0].dtype, state[0]), state[1]};
}

constexpr LineDef kLargestSoFar = {.axes = Axes,
                                   .scan = [](const Node&) { return LineDef::Scan{}; },
                                   .start = Start,
                                   .take = Take<true>,
                                   .join = Join<true>,
                                   .results = ScanResults};

// Whether `value`, which comes later, takes the place of `held`.
template <bool kLargest, typename Number>
bool Replaces(Number value, Number held, bool last) {
  return (kLargest ? value > held : value < held) || (last && value == held);
}

template <bool kLargest>
Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  const bool last = context.node.attributes.Bool("last");
  int64_t result = 0;
  // Of no elements there is no best.
  if (x.dims[FromStart(context.node.attributes.Int("axis"), static_cast<int>(x.dims.size()))] == 0) {
    for (int64_t i = 0; i < context.results[0].elements(); ++i) context.results[0].SetInteger(i, -1);
    return absl::OkStatus();
  }
  ForEachLine(x, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& at) {
    size_t best = 0;
    for (size_t i = 1; i < at.size(); ++i) {
      if (IsInteger(x.dtype)) {
        if (Replaces<kLargest>(x.Integer(at[i]), x.Integer(at[best]), last)) best = i;
      } else if (!std::isnan(x.data[at[best]])) {
        if (std::isnan(x.data[at[i]]) || Replaces<kLargest>(x.data[at[i]], x.data[at[best]], last)) best = i;
      }
    }
    context.results[0].SetInteger(result++, static_cast<Wide>(best));
  });
  return absl::OkStatus();
}

Status ReferenceOfScan(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  ForEachLine(x, context.node.attributes.Int("axis"), [&](const std::vector<int64_t>& at) {
    size_t best = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const bool more = IsInteger(x.dtype) ? x.Integer(at[i]) > x.Integer(at[best])
                                           : x.data[at[i]] > x.data[at[best]] ||
                                                 (std::isnan(x.data[at[i]]) && !std::isnan(x.data[at[best]]));
      if (more) best = i;
      context.results[0].Take(at[i], x, at[best]);
      context.results[1].SetInteger(at[i], static_cast<Wide>(best));
    }
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef* LargestSoFar(const char* name, const char* doc) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kRoot,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kNumeric, .shape = "rank 1 or more"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt}},
      .infer = InferScan,
      .line = &kLargestSoFar,
      .reference = ReferenceOfScan,
      .rtol = 0,
      .examples = {{{"f32[2, 37]"}, {{"axis", int64_t{1}}}},
                   {{"f16[7, S]"}, {{"axis", int64_t{0}}}},
                   {{"i64[3, 17]"}, {{"axis", int64_t{-1}}}},
                   {{"bf16[2, 11, 3]"}, {{"axis", int64_t{1}}}}},
      .jumps = true,
  });
}

const OpDef* ArgFold(const char* name, const char* doc, bool largest) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kRoot,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kNumeric, .shape = "rank 1 or more"}},
      .attributes =
          {{.name = "axis", .kind = AttrKind::kInt},
           {.name = "keep_dim", .kind = AttrKind::kBool, .default_value = false},
           {.name = "last", .kind = AttrKind::kBool, .default_value = false, .doc = "the last of equal ones"}},
      .infer = Infer,
      .line = largest ? &kLine<true> : &kLine<false>,
      .reference = largest ? Reference<true> : Reference<false>,
      .rtol = 0,
      .onnx = name,
      .examples = {{{"f32[2, 3]"}, {{"axis", int64_t{1}}}}},
  });
}

}  // namespace quern::ir
