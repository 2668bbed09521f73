#include "ir/reduction.h"

#include <algorithm>

#include "ir/shape.h"

namespace quern::ir {

std::vector<bool> ReducedAxes(const Attributes& attributes, size_t rank) {
  std::vector<bool> reduced(rank);
  for (const int64_t axis : attributes.Ints("axes")) reduced[FromStart(axis, rank)] = true;
  return reduced;
}

std::vector<AttrDef> ReductionAttributes() {
  return {{.name = "axes", .kind = AttrKind::kInts},
          {.name = "keep_dim", .kind = AttrKind::kBool, .default_value = false}};
}

StatusOr<std::vector<TensorType>> InferReduced(const InferContext& context) {
  const TensorType& x = context.operands[0];
  for (const int64_t axis : context.attributes.Ints("axes"))
    QUERN_RETURN_IF_ERROR(AxisOf(context, "axes", axis).status());
  const std::vector<bool> reduced = ReducedAxes(context.attributes, x.dims.size());
  if (std::count(reduced.begin(), reduced.end(), true) != static_cast<int64_t>(context.attributes.Ints("axes").size()))
    return context.AttributeError("axes", "each axis once");
  TensorType result{x.dtype, {}};
  for (int d = 0; d < x.rank(); ++d) {
    if (!reduced[d])
      result.dims.push_back(x.dims[d]);
    else if (context.attributes.Bool("keep_dim"))
      result.dims.push_back(Extent(1));
  }
  return std::vector<TensorType>{std::move(result)};
}

void ForEachTerm(const RefContext& context, const std::function<void(int64_t at, int64_t from)>& add) {
  const RefTensor& x = *context.operands[0];
  const std::vector<bool> reduced = ReducedAxes(context.node.attributes, x.dims.size());
  const int64_t elements = x.elements();
  std::vector<int64_t> index(x.dims.size());
  for (int64_t from = 0; from < elements; ++from, NextIndex(x.dims, index)) {
    int64_t at = 0;
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (!reduced[d]) at = at * x.dims[d] + index[d];
    }
    add(at, from);
  }
}

namespace {

template <typename T, typename Read, typename Put>
void ReduceEach(const RefContext& context, const Read& read, const Put& put) {
  std::vector<std::vector<T>> terms(context.results[0].elements());
  ForEachTerm(context, [&](int64_t at, int64_t from) { terms[at].push_back(read(from)); });
  for (size_t at = 0; at < terms.size(); ++at) put(static_cast<int64_t>(at), std::span<const T>(terms[at]));
}

}  // namespace

void ReduceMagnitudes(RefContext& context, const std::function<double(std::span<const double> terms)>& reduce) {
  ReduceEach<double>(
      context, [&](int64_t from) { return context.operands[0]->data[from]; },
      [&](int64_t at, std::span<const double> terms) { context.results[0].data[at] = reduce(terms); });
}

void ReduceFloats(RefContext& context, const std::function<double(std::span<const double> terms)>& reduce) {
  ReduceMagnitudes(context, reduce);
  RefTensor& y = context.results[0];
  for (double& value : y.data) value = RoundTo(y.dtype, value);
}

void ReduceIntegers(RefContext& context, const std::function<Wide(std::span<const Wide> terms)>& reduce) {
  ReduceEach<Wide>(
      context, [&](int64_t from) { return context.operands[0]->Integer(from); },
      [&](int64_t at, std::span<const Wide> terms) { context.results[0].SetInteger(at, reduce(terms)); });
}

}  // namespace quern::ir
