// What each op makes of elements that are known as sizes divided by numbers.

#include "onnx/ratios.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ir/op.h"

namespace quern::onnx {
namespace {

using ir::Node;
using Known = std::optional<Ratios>;

constexpr double kLargestDivisor = 1 << 20;            // of a float
constexpr int64_t kLargestProduct = int64_t{1} << 40;  // of what becomes of several

std::optional<Ratio> RatioOf(double value) {
  for (double divisor = 1; divisor <= kLargestDivisor; divisor *= 2) {
    const double scaled = value * divisor;
    if (std::fabs(scaled) > 0x1p52) return std::nullopt;
    if (scaled == std::floor(scaled)) return Ratio{Extent(static_cast<int64_t>(scaled)), static_cast<int64_t>(divisor)};
  }
  return std::nullopt;
}

std::optional<int64_t> NumberOf(const Ratio& ratio) {
  if (!ratio.extent.is_constant() || ratio.divisor != 1) return std::nullopt;
  return ratio.extent.constant();
}

using Join = std::optional<Ratio> (*)(const Step& step, const Ratio& a, const Ratio& b);

// extent / (a b); nothing where that is no divisor that numbers have.
std::optional<Ratio> Reduced(Extent extent, int64_t a, int64_t b) {
  int64_t divisor = 0;
  if (__builtin_mul_overflow(a, b, &divisor) || divisor < 1 || divisor > kLargestProduct) return std::nullopt;
  if (divisor == 1) return Ratio{std::move(extent)};
  const std::optional<Extent> exact = extent.DividedBy(Extent(divisor));
  if (exact) return Ratio{*exact};
  return Ratio{std::move(extent), divisor};
}

// Of every pair of elements; one that stands alone is paired with all.
template <Join join>
Known Pairwise(const Step& step) {
  const Ratios &a = step.x[0], &b = step.x[1];
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return std::nullopt;
  const std::optional<int64_t> all = ElementsOf(step.type, kMostRatios);
  if (!all || *all != static_cast<int64_t>(std::max(a.size(), b.size()))) return std::nullopt;
  Ratios result;
  for (int64_t i = 0; i < *all; ++i) {
    const std::optional<Ratio> made = join(step, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
    if (!made) return std::nullopt;
    result.push_back(*made);
  }
  return result;
}

template <std::optional<Ratio> (*each)(const Step& step, const Ratio& a)>
Known Each(const Step& step) {
  Ratios result;
  for (const Ratio& a : step.x[0]) {
    const std::optional<Ratio> made = each(step, a);
    if (!made) return std::nullopt;
    result.push_back(*made);
  }
  return result;
}

std::optional<Ratio> AddOf(const Step&, const Ratio& a, const Ratio& b) {
  return Reduced(a.extent * Extent(b.divisor) + b.extent * Extent(a.divisor), a.divisor, b.divisor);
}
std::optional<Ratio> SubOf(const Step&, const Ratio& a, const Ratio& b) {
  return Reduced(a.extent * Extent(b.divisor) - b.extent * Extent(a.divisor), a.divisor, b.divisor);
}
std::optional<Ratio> MulOf(const Step&, const Ratio& a, const Ratio& b) {
  return Reduced(a.extent * b.extent, a.divisor, b.divisor);
}
std::optional<Ratio> FloorOf(const Step&, const Ratio& a) {
  return Ratio{a.divisor == 1 ? a.extent : a.extent.FloorDividedBy(a.divisor)};
}
std::optional<Ratio> CeilOf(const Step&, const Ratio& a) {
  return Ratio{a.divisor == 1 ? a.extent : a.extent.CeilDividedBy(a.divisor)};
}
std::optional<Ratio> DivOf(const Step& step, const Ratio& a, const Ratio& b) {
  if (a.divisor != 1 || b.divisor != 1) {
    if (!b.extent.is_constant() || b.extent.constant() <= 0) return std::nullopt;
    return Reduced(a.extent * Extent(b.divisor), a.divisor, b.extent.constant());
  }
  if (b.extent.is_constant() && b.extent.constant() == 0) return std::nullopt;
  if (const std::optional<Extent> exact = a.extent.DividedBy(b.extent)) return Ratio{*exact};
  if (!b.extent.is_constant() || b.extent.constant() < 0) return std::nullopt;
  if (step.floats()) return Ratio{a.extent, b.extent.constant()};
  // Integers are cut towards 0, which is downwards where none is negative.
  const std::optional<int64_t> low = a.extent.LowerBound(step.ranges());
  if (!low || *low < 0) return std::nullopt;
  return Ratio{a.extent.FloorDividedBy(b.extent.constant())};
}
std::optional<Ratio> ModOf(const Step& step, const Ratio& a, const Ratio& b) {
  const std::optional<int64_t> by = NumberOf(b);
  if (!by || *by <= 0 || a.divisor != 1 || step.floats()) return std::nullopt;
  return Ratio{a.extent - a.extent.FloorDividedBy(*by) * Extent(*by)};
}
std::optional<Ratio> MaxOf(const Step& step, const Ratio& a, const Ratio& b) {
  if (step.AtLeast(a, b)) return a;
  if (step.AtLeast(b, a)) return b;
  return std::nullopt;
}
std::optional<Ratio> MinOf(const Step& step, const Ratio& a, const Ratio& b) {
  if (step.AtLeast(a, b)) return b;
  if (step.AtLeast(b, a)) return a;
  return std::nullopt;
}
std::optional<Ratio> Truth(bool yes, bool no) {
  if (!yes && !no) return std::nullopt;
  return Ratio{Extent(yes ? 1 : 0)};
}
bool Above(const Step& step, const Ratio& a, const Ratio& b) {
  const Extent left = a.extent * Extent(b.divisor), right = b.extent * Extent(a.divisor);
  return left.ProvablyAtLeast(right + Extent(1), step.ranges());
}
std::optional<Ratio> EqOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(a.extent == b.extent && a.divisor == b.divisor, Above(step, a, b) || Above(step, b, a));
}
std::optional<Ratio> NeOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(Above(step, a, b) || Above(step, b, a), a.extent == b.extent && a.divisor == b.divisor);
}
std::optional<Ratio> GtOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(Above(step, a, b), step.AtLeast(b, a));
}
std::optional<Ratio> GeOf(const Step& step, const Ratio& a, const Ratio& b) {
  return Truth(step.AtLeast(a, b), Above(step, b, a));
}
std::optional<Ratio> LtOf(const Step& step, const Ratio& a, const Ratio& b) { return GtOf(step, b, a); }
std::optional<Ratio> LeOf(const Step& step, const Ratio& a, const Ratio& b) { return GeOf(step, b, a); }
std::optional<Ratio> AndOf(const Step&, const Ratio& a, const Ratio& b) {
  const std::optional<int64_t> left = NumberOf(a), right = NumberOf(b);
  if (!left || !right) return std::nullopt;
  return Ratio{Extent(*left & *right)};
}
std::optional<Ratio> OrOf(const Step&, const Ratio& a, const Ratio& b) {
  const std::optional<int64_t> left = NumberOf(a), right = NumberOf(b);
  if (!left || !right) return std::nullopt;
  return Ratio{Extent(*left | *right)};
}
std::optional<Ratio> NotOf(const Step&, const Ratio& a) {
  const std::optional<int64_t> value = NumberOf(a);
  if (!value) return std::nullopt;
  return Ratio{Extent(*value == 0 ? 1 : 0)};
}
std::optional<Ratio> NegOf(const Step&, const Ratio& a) { return Ratio{Extent(0) - a.extent, a.divisor}; }
std::optional<Ratio> CastOf(const Step& step, const Ratio& a) {
  const DType to = step.type.dtype;
  if (to == DType::kBool) {
    const std::optional<int64_t> value = NumberOf(a);
    if (value) return Ratio{Extent(*value != 0 ? 1 : 0)};
    const std::optional<int64_t> low = a.extent.LowerBound(step.ranges());
    return low && *low > 0 ? std::optional<Ratio>(Ratio{Extent(1)}) : std::nullopt;
  }
  if (!IsInteger(to) || a.divisor == 1) return a;
  const std::optional<int64_t> low = a.extent.LowerBound(step.ranges());
  if (!low || *low < 0) return std::nullopt;
  return FloorOf(step, a);
}

Known Same(const Step& step) { return step.x[0]; }
Known ExpandOf(const Step& step) {
  const std::optional<int64_t> all = ElementsOf(step.type, kMostRatios);
  if (!all || (step.x[0].size() != 1 && static_cast<int64_t>(step.x[0].size()) != *all)) return std::nullopt;
  return step.x[0].size() == 1 ? Ratios(*all, step.x[0][0]) : step.x[0];
}
Known ConcatOf(const Step& step) {
  if (step.type.rank() != 1) return std::nullopt;
  Ratios result;
  for (const Ratios& part : step.x) result.insert(result.end(), part.begin(), part.end());
  return result;
}
Known GatherOf(const Step& step) {
  if (step.graph.type(step.node.inputs[0]).rank() != 1) return std::nullopt;
  Ratios result;
  const auto size = static_cast<int64_t>(step.x[0].size());
  for (const Ratio& index : step.x[1]) {
    const std::optional<int64_t> at = NumberOf(index);
    if (!at || *at < -size || *at >= size) return std::nullopt;
    result.push_back(step.x[0][*at < 0 ? *at + size : *at]);
  }
  return result;
}
Known NarrowOf(const Step& step) {
  const Extent start = step.node.attributes.Extents("start")[0], length = step.node.attributes.Extents("length")[0];
  if (step.type.rank() != 1 || !start.is_constant() || !length.is_constant()) return std::nullopt;
  const auto from = step.x[0].begin() + start.constant();
  return Ratios(from, from + length.constant());
}
Known WhereOf(const Step& step) {
  const std::optional<int64_t> all = ElementsOf(step.type, kMostRatios);
  if (!all) return std::nullopt;
  for (const Ratios& x : step.x) {
    if (x.size() != 1 && static_cast<int64_t>(x.size()) != *all) return std::nullopt;
  }
  Ratios result;
  for (int64_t i = 0; i < *all; ++i) {
    const std::optional<int64_t> which = NumberOf(step.x[0][step.x[0].size() == 1 ? 0 : i]);
    if (!which) return std::nullopt;
    const Ratios& from = step.x[*which != 0 ? 1 : 2];
    result.push_back(from[from.size() == 1 ? 0 : i]);
  }
  return result;
}
Known ReduceOf(const Step& step) {
  if (ElementsOf(step.type, 1) != 1 || step.x[0].empty()) return std::nullopt;
  const std::string& op = step.node.attributes.String("op");
  const Join join = op == "sum" ? AddOf : op == "prod" ? MulOf : op == "max" ? MaxOf : op == "min" ? MinOf : nullptr;
  if (join == nullptr) return std::nullopt;
  std::optional<Ratio> result = step.x[0][0];
  for (size_t i = 1; i < step.x[0].size() && result; ++i) result = join(step, *result, step.x[0][i]);
  if (!result) return std::nullopt;
  return Ratios{*result};
}

struct Row {
  std::string_view op;
  Known (*make)(const Step& step);
};
constexpr Row kRows[] = {
    {"Reshape", Same},        {"StopGradient", Same},   {"Expand", ExpandOf},        {"Concat", ConcatOf},
    {"Gather", GatherOf},     {"Narrow", NarrowOf},     {"Where", WhereOf},          {"Reduce", ReduceOf},
    {"Cast", Each<CastOf>},   {"Neg", Each<NegOf>},     {"Not", Each<NotOf>},        {"Floor", Each<FloorOf>},
    {"Ceil", Each<CeilOf>},   {"Add", Pairwise<AddOf>}, {"Sub", Pairwise<SubOf>},    {"Mul", Pairwise<MulOf>},
    {"Div", Pairwise<DivOf>}, {"Mod", Pairwise<ModOf>}, {"Max", Pairwise<MaxOf>},    {"Min", Pairwise<MinOf>},
    {"Eq", Pairwise<EqOf>},   {"Ne", Pairwise<NeOf>},   {"Gt", Pairwise<GtOf>},      {"Ge", Pairwise<GeOf>},
    {"Lt", Pairwise<LtOf>},   {"Le", Pairwise<LeOf>},   {"BitAnd", Pairwise<AndOf>}, {"BitOr", Pairwise<OrOf>},
};

}  // namespace

std::optional<int64_t> ElementsOf(const ir::TensorType& type, int64_t most) {
  int64_t elements = 1;
  for (const Extent& dim : type.dims) {
    if (!dim.is_constant() || dim.constant() < 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, dim.constant(), &elements) || elements > most) return std::nullopt;
  }
  return elements;
}

std::optional<Ratios> FromTensor(const ir::RefTensor& tensor) {
  Ratios ratios;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    std::optional<Ratio> ratio;
    if (IsInteger(tensor.dtype))
      ratio = Ratio{Extent(tensor.integers[i])};
    else if (!IsComplex(tensor.dtype))
      ratio = RatioOf(tensor.data[i]);
    if (!ratio) return std::nullopt;
    ratios.push_back(*ratio);
  }
  return ratios;
}

std::optional<Ratios> StepRatios(const Step& step) {
  for (const Row& row : kRows) {
    if (row.op == step.node.op->name) return row.make(step);
  }
  return std::nullopt;
}

}  // namespace quern::onnx
