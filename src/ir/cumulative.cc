#include "ir/cumulative.h"

#include <cmath>

#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(AxisOf(context).status());
  return std::vector<TensorType>{context.operands[0]};
}

std::vector<bool> Axes(const Node& node, int rank) {
  std::vector<bool> along(rank);
  along[FromStart(node.attributes.Int("axis"), rank)] = true;
  return along;
}

LineDef::Scan Scan(const Node& node) { return {node.attributes.Bool("exclusive"), node.attributes.Bool("reverse")}; }

template <kir::ReduceOp kReduce>
constexpr LineDef kLine = {.axes = Axes, .reduce = [](const Node&) { return kReduce; }, .scan = Scan};

// What `join` makes of the terms so far, each of which is given to `put` with its position.
template <typename T, typename Term, typename Join, typename Put>
void Along(const RefContext& context, T start, const Term& term, const Join& join, const Put& put) {
  const Attributes& attributes = context.node.attributes;
  const bool exclusive = attributes.Bool("exclusive"), reverse = attributes.Bool("reverse");
  ForEachLine(*context.operands[0], attributes.Int("axis"), [&](const std::vector<int64_t>& line) {
    T total = start;
    for (size_t i = 0; i < line.size(); ++i) {
      const int64_t at = line[reverse ? line.size() - 1 - i : i];
      const T before = total;
      total = join(total, term(at));
      put(at, exclusive ? before : total);
    }
  });
}

bool Sums(const RefContext& context) { return context.node.op->line->reduce(context.node) == kir::ReduceOp::kSum; }

Status Reference(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  RefTensor& y = context.results[0];
  const bool sums = Sums(context);
  if (IsInteger(y.dtype)) {
    // Wrapped as they go: products of many have no room.
    Along(
        context, Wide{sums ? 0 : 1}, [&](int64_t at) { return x.Integer(at); },
        [&](Wide a, Wide b) { return static_cast<Wide>(static_cast<uint64_t>(sums ? a + b : Times(a, b))); },
        [&](int64_t at, Wide total) { y.SetInteger(at, total); });
  } else {
    Along(
        context, sums ? 0.0 : 1.0, [&](int64_t at) { return x.data[at]; },
        [&](double a, double b) { return sums ? a + b : a * b; },
        [&](int64_t at, double total) { y.data[at] = RoundTo(y.dtype, total); });
  }
  return absl::OkStatus();
}

// Of sums that of the terms so far: their roundings are left where they cancel.
Status Magnitude(RefContext& context) {
  const RefTensor& x = *context.operands[0];
  const bool sums = Sums(context);
  Along(
      context, sums ? 0.0 : 1.0, [&](int64_t at) { return std::fabs(x.data[at]); },
      [&](double a, double b) { return sums ? a + b : a * b; },
      [&](int64_t at, double total) { context.results[0].data[at] = total; });
  return absl::OkStatus();
}

}  // namespace

const OpDef* Cumulative(const char* name, const char* doc, kir::ReduceOp reduce, const char* onnx) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kRoot,
      .family = "lines",
      .operands = {{.name = "x", .kind = OperandKind::kNumeric, .shape = "rank 1 or more"}},
      .attributes =
          {{.name = "axis", .kind = AttrKind::kInt},
           {.name = "exclusive", .kind = AttrKind::kBool, .default_value = false, .doc = "without the element itself"},
           {.name = "reverse", .kind = AttrKind::kBool, .default_value = false, .doc = "from the end"}},
      .infer = Infer,
      .line = reduce == kir::ReduceOp::kSum ? &kLine<kir::ReduceOp::kSum> : &kLine<kir::ReduceOp::kProd>,
      .reference = Reference,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .onnx = onnx,
      .examples = {{{"f32[2, 3]"}, {{"axis", int64_t{1}}}},
                   {{"f32[7, 5]"}, {{"axis", int64_t{0}}, {"exclusive", true}}},
                   {{"i32[3, 17]"}, {{"axis", int64_t{-1}}, {"reverse", true}}},
                   {{"f64[2, 11, 3]"}, {{"axis", int64_t{1}}, {"exclusive", true}, {"reverse", true}}}},
  });
}

}  // namespace quern::ir
