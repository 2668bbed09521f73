#include "ir/max_places.h"

#include <cmath>
#include <limits>

#include "ir/shape.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

// The number of no element.
constexpr int64_t kPadding = std::numeric_limits<int32_t>::max();

const OpDef& Pool() { return *FindOp("Pool"); }

Attributes ForwardOf(Attributes attributes) {
  attributes.Set("kind", std::string("max"));
  return attributes;
}

Value Folded(Expansion& e, Value windows, int64_t axis) {
  return e.Add("ArgMax", {windows}, {{"axis", axis}, {"keep_dim", false}});
}

}  // namespace

StatusOr<TensorType> InferMaxPool(const InferContext& context) {
  const TensorType x = context.operands[0];
  Attributes attributes = ForwardOf(context.attributes);
  QUERN_RETURN_IF_ERROR(CheckAttributes(Pool().name, Pool().attributes, attributes, /*fill_defaults=*/true));
  InferContext forward{context.op, {&x, 1}, attributes, context.symbols, context.constraints};
  QUERN_ASSIGN(const std::vector<TensorType> y, Pool().infer(forward));
  return y[0];
}

std::vector<AttrDef> MaxPoolAttributes() {
  return WindowAttributes(
      {{.name = "kernel", .kind = AttrKind::kInts},
       {.name = "ceil", .kind = AttrKind::kBool, .default_value = false, .doc = "windows may reach past the end"}});
}

// Windows of x have k.. elements at each of o.. places; windows of the numbers of elements say where each lies.
Value FirstLargest(Expansion& e, const Attributes& attributes, Value x, std::span<const Extent> places) {
  if (!e.ok()) return {};
  const std::vector<Extent> dims = e.type(x).dims, image(dims.begin() + 2, dims.end());
  const Window window = WindowReaching(attributes, image, places);
  Extent count(1), elements(1), kernel(1);
  for (size_t d = 0; d < image.size(); ++d) {
    count = count * places[d];
    elements = elements * image[d];
    kernel = kernel * Extent(window.kernel[d]);
  }
  // Windows may reach past the places that there are.
  const auto windows_of = [&](Value value, double outside, int64_t leading, std::vector<Extent> shape) {
    Value windows = Windows(e, value, window, outside);
    for (size_t d = 0; d < places.size(); ++d) {
      windows = e.Add("Narrow", {windows},
                      {{"axis", leading + static_cast<int64_t>(image.size() + d)},
                       {"start", std::vector<Extent>{Extent(0)}},
                       {"length", std::vector<Extent>{places[d]}}});
    }
    return e.Sized(windows, std::move(shape));
  };
  const Extent lines = dims[0] * dims[1];
  const Value values = windows_of(x, -std::numeric_limits<double>::infinity(), /*leading=*/2, {lines, kernel, count});
  const Value numbers = e.Sized(e.Iota({elements}), image);
  const Value where = windows_of(numbers, static_cast<double>(kPadding), /*leading=*/0, {kernel, count});
  const Value flat = e.Sized(where, {kernel * count});
  // Of the window at place p its k-th element: number k * count + p.
  const Value stride = e.Add("Size", {}, {{"extent", std::vector<Extent>{count}}}), column = e.Iota({1, count}, 1);
  const auto number_of = [&](Value k) {
    return e.Add("Gather", {flat, e.Add("Add", {e.Add("Mul", {k, stride}), column})});
  };
  Value chosen = number_of(Folded(e, values, 1));
  if (window.IsPadded()) {
    // Padding has won where every element is -inf: the first element it is.
    const Value padding = e.Stored(e.Scalar(static_cast<double>(kPadding), DType::kF64), DType::kI64);
    const Value exists = e.Stored(e.Add("Ne", {where, padding}), DType::kI64);
    const Value first = number_of(e.Sized(Folded(e, exists, 0), {Extent(1), count}));
    chosen = e.Add("Where", {e.Add("Eq", {chosen, padding}), first, chosen});
  }
  std::vector<Extent> shape = {lines};
  shape.insert(shape.end(), places.begin(), places.end());
  return e.Sized(chosen, std::move(shape));
}

void ForEachFirstLargest(const Attributes& attributes, const RefTensor& x, std::span<const int64_t> y,
                         const std::function<void(int64_t place, int64_t element)>& take) {
  const Window window = WindowOf(attributes, attributes.Ints("kernel"));
  const size_t rank = x.dims.size();
  std::vector<int64_t> index(rank), place(rank);
  int64_t all = 1, count = 1;
  for (const int64_t k : window.kernel) all *= k;
  for (const int64_t extent : y) count *= extent;
  for (int64_t from = 0; from < count; ++from, NextIndex(y, index)) {
    int64_t best = -1;
    std::vector<int64_t> k(window.kernel.size());
    for (int64_t t = 0; t < all; ++t, NextIndex(window.kernel, k)) {
      place = index;
      bool exists = true;
      for (size_t d = 2; d < rank; ++d) {
        place[d] = index[d] * window.strides[d - 2] + k[d - 2] * window.dilations[d - 2] - window.low[d - 2];
        exists = exists && place[d] >= 0 && place[d] < x.dims[d];
      }
      if (!exists) continue;
      const int64_t at = x.Offset(place);
      const bool more = best < 0 || x.data[at] > x.data[best] || (std::isnan(x.data[at]) && !std::isnan(x.data[best]));
      if (more) best = at;
    }
    if (best >= 0) take(from, best);
  }
}

}  // namespace quern::ir
