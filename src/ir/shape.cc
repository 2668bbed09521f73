#include "ir/shape.h"

#include "base/check.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

StatusOr<int> AxisOf(const InferContext& context, const char* attribute, int64_t axis) {
  const int rank = context.operands[0].rank();
  if (rank == 0) return context.ShapeError(0, "rank 1 or more");
  if (axis < -rank || axis >= rank)
    return context.AttributeError(attribute, absl::StrFormat("%d to %d", -rank, rank - 1));
  return static_cast<int>(FromStart(axis, rank));
}

kir::ExprRef Widened(const kir::ExprRef& value) {
  const bool half = value->dtype == DType::kF16 || value->dtype == DType::kBF16;
  return half ? kir::build::CastTo(DType::kF32, value) : value;
}

kir::ExprRef IndexInside(const kir::ExprRef& id, const kir::ExprRef& size) {
  namespace kb = kir::build;
  const kir::ExprRef wrapped = kb::Select(kb::Call(kir::Op::kLt, {id, kb::Int(0)}), id + size, id);
  return kb::Max(kb::Int(0), kb::Min(wrapped, size - 1.0));
}

kir::ExprRef StartInside(const kir::ExprRef& start, const Extent& whole, const Extent& size) {
  namespace kb = kir::build;
  return kb::Max(kb::Int(0), kb::Min(start, kb::FromExtent(whole - size)));
}

kir::Index ReshapeIndex(const std::vector<Extent>& result, const std::vector<Extent>& source, const kir::Index& index) {
  namespace kb = kir::build;
  kir::Index at(source.size());
  // Without elements no index is ever taken: the one that runs from 0 to 0 is inside every extent, and divides by none.
  if (const auto none = std::find(result.begin(), result.end(), Extent(0)); none != result.end()) {
    for (size_t d = 0; d < source.size(); ++d)
      at[d] = source[d] == Extent(1) ? kb::Int(0) : index[none - result.begin()];
    return at;
  }
  size_t r = 0, s = 0;
  while (r < result.size() || s < source.size()) {
    // Grow the group [r, r_end) x [s, s_end) until both sides hold the same number of elements.
    size_t r_end = r, s_end = s;
    Extent r_size(1), s_size(1);
    auto grow_result = [&] { r_size = r_size * result[r_end++]; };
    auto grow_source = [&] { s_size = s_size * source[s_end++]; };
    if (r < result.size()) grow_result();
    if (s < source.size()) grow_source();
    while (r_size != s_size && (r_end < result.size() || s_end < source.size())) {
      const bool source_is_smaller =
          s_end < source.size() && (r_end == result.size() || r_size.DividedBy(s_size).has_value());
      if (source_is_smaller)
        grow_source();
      else
        grow_result();
    }
    // Trailing ones may be left over on one side; they belong to the last group.
    while (r_end < result.size() && s_end == source.size()) grow_result();
    while (s_end < source.size() && r_end == result.size()) grow_source();

    kir::ExprRef linear = kb::Int(0);
    for (size_t d = r; d < r_end; ++d) {
      if (result[d] == Extent(1)) continue;
      linear = linear * kb::FromExtent(result[d]) + index[d];
    }
    size_t live = s_end;  // the first dimension that is not 1 takes what is left, without a modulo
    for (size_t d = s_end; d-- > s;) {
      if (source[d] != Extent(1)) live = d;
    }
    for (size_t d = s_end; d-- > s;) {
      if (source[d] == Extent(1)) {
        at[d] = kb::Int(0);
      } else if (d == live) {
        at[d] = linear;
      } else {
        at[d] = linear % kb::FromExtent(source[d]);
        linear = linear / kb::FromExtent(source[d]);
      }
    }
    r = r_end;
    s = s_end;
  }
  return at;
}

void MoveElements(const RefTensor& x, RefTensor& y, const std::function<void(std::vector<int64_t>& index)>& from) {
  const int64_t elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::vector<int64_t> place = index;
    from(place);
    y.Take(at, x, x.Offset(place));
  }
}

std::vector<int64_t> SizesOf(const std::vector<Extent>& dims, const Binding& binding) {
  std::vector<int64_t> sizes;
  for (const Extent& dim : dims) {
    const StatusOr<int64_t> size = dim.Evaluate(binding);
    QUERN_CHECK(size.ok());
    sizes.push_back(*size);
  }
  return sizes;
}

}  // namespace quern::ir
