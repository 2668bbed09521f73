// Reductions over axes, arg-extremes, sums along an axis, softmax and its like.

#include <algorithm>

#include "onnx/table.h"

namespace quern::onnx {
namespace {

// The axes of a reduction; none with noop_with_empty_axes, where all the rest of the op is done by element.
Ints AxesOf(Call& c, Value x) {
  const bool operand = c.opset >= 18 || (c.opset >= 13 && c.node.op_type() == "ReduceSum");
  std::optional<Ints> axes = c.IntsFrom(operand ? 1 : c.inputs(), "axes");
  const int64_t rank = c.rank(x);
  if (axes && !axes->empty()) {
    for (int64_t& axis : *axes) axis = c.Axis(axis, std::max<int64_t>(rank, 1));
    std::sort(axes->begin(), axes->end());
    axes->erase(std::unique(axes->begin(), axes->end()), axes->end());
    if (rank == 0) axes->clear();
    return *axes;
  }
  Ints all;
  if (c.Int("noop_with_empty_axes", 0) != 0) return all;
  for (int64_t d = 0; d < rank; ++d) all.push_back(d);
  return all;
}

// `reduce` makes the reduction over axes of x, with or without extents of 1 there.
template <typename Make>
void Reduced(Call& c, const Make& reduce) {
  const Value x = c.x(0);
  const Ints axes = AxesOf(c, x);
  if (!c.ok()) return;
  c.Return(reduce(x, axes, c.Int("keepdims", 1) != 0));
}

// Reduce, by its name.
void Plain(Call& c) {
  Reduced(c, [&](Value x, const Ints& axes, bool keep) {
    std::string op = c.row.op;
    if (axes.empty()) return x;
    if (c.dtype(x) == DType::kBool) op = op == "max" ? "any" : "all";
    return c.Reduce(op.c_str(), x, axes, keep);
  });
}

// An op of ours by that name; of whole numbers where `integers`, else they are computed with in f64.
template <bool integers>
void Named(Call& c) {
  Reduced(c, [&](Value x, const Ints& axes, bool keep) {
    const DType dtype = c.dtype(x);
    if (!integers && !IsFloat(dtype)) x = c.Cast(x, DType::kF64);
    return c.Cast(c.Add(c.row.op, {x}, {{"axes", axes}, {"keep_dim", keep}}), dtype);
  });
}

void ArgExtreme(Call& c) {
  const Value x = c.x(0);
  c.Return(c.Add(c.row.op, {x},
                 {{"axis", c.Axis(c.Int("axis", 0), c.rank(x))},
                  {"keep_dim", c.Int("keepdims", 1) != 0},
                  {"last", c.Int("select_last_index", 0) != 0}}));
}

void CumSum(Call& c) {
  const Ints axis = c.IntsOf(c.x(1));
  const Value x = c.x(0);
  if (axis.size() != 1) return c.Fail(absl::InvalidArgumentError("one axis is needed"));
  c.Return(c.Add("CumSum", {x},
                 {{"axis", c.Axis(axis[0], c.rank(x))},
                  {"exclusive", c.Int("exclusive", 0) != 0},
                  {"reverse", c.Int("reverse", 0) != 0}}));
}

// Softmax, LogSoftmax and Hardmax: before version 13 all dimensions from the axis on were one.
void Softmax(Call& c) {
  const Value x = c.x(0);
  if (c.opset >= 13) return c.Return(c.Add(c.row.op, {x}, {{"axis", c.Axis(c.Int("axis", -1), c.rank(x))}}));
  const int64_t axis = c.Axis(c.Int("axis", 1), c.rank(x));
  const Extents dims = c.type(x).dims;
  if (axis == c.rank(x) - 1) return c.Return(c.Add(c.row.op, {x}, {{"axis", axis}}));
  Extents joined(dims.begin(), dims.begin() + axis);
  Extent rest(1);
  for (size_t d = axis; d < dims.size(); ++d) rest = rest * dims[d];
  joined.push_back(rest);
  c.Return(c.Reshape(c.Add(c.row.op, {c.Reshape(x, joined)}, {{"axis", axis}}), dims));
}

constexpr Importer kRows[] = {
    {"ArgMax", ArgExtreme, "ArgMax"},
    {"ArgMin", ArgExtreme, "ArgMin"},
    {"CumSum", CumSum, "", 2},
    {"Hardmax", Softmax, "Hardmax"},
    {"LogSoftmax", Softmax, "LogSoftmax"},
    {"ReduceL1", Named<true>, "ReduceL1"},
    {"ReduceL2", Named<false>, "ReduceL2"},
    {"ReduceLogSum", Named<false>, "ReduceLogSum"},
    {"ReduceLogSumExp", Named<false>, "ReduceLogSumExp"},
    {"ReduceMax", Plain, "max"},
    {"ReduceMean", Plain, "mean"},
    {"ReduceMin", Plain, "min"},
    {"ReduceProd", Plain, "prod"},
    {"ReduceSum", Plain, "sum"},
    {"ReduceSumSquare", Named<true>, "ReduceSumSquare"},
    {"Softmax", Softmax, "Softmax"},
};

}  // namespace

std::span<const Importer> ReductionImporters() { return kRows; }

}  // namespace quern::onnx
