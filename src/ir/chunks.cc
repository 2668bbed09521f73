#include "ir/chunks.h"

namespace quern::ir {

using Dims = std::vector<Extent>;

Value Chunks::Split(Value x, Dims inside, size_t heads) const {
  if (!e_.ok()) return {};
  TensorType missing = e_.type(x);
  missing.dims[1] = count_ * size_ - length_;
  if (missing.dims[1] != Extent(0)) {
    const Value zeros = e_.Add("Expand", {e_.Scalar(0, missing.dtype)}, {{"shape", missing.dims}});
    x = e_.Add("Concat", {x, zeros}, {{"axis", int64_t{1}}});
  }
  Dims dims = {batch_, count_, size_};
  dims.insert(dims.end(), inside.begin(), inside.end());
  std::vector<int64_t> perm = {1, 0};
  for (size_t h = 0; h < heads; ++h) perm.push_back(static_cast<int64_t>(3 + h));
  perm.push_back(2);
  for (size_t d = 3 + heads; d < dims.size(); ++d) perm.push_back(static_cast<int64_t>(d));
  return e_.Add("Transpose", {e_.Sized(x, dims)}, {{"perm", perm}});
}

Value Chunks::Joined(Value x) const {
  const Value o = e_.Add("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 4, 2, 3, 5}}});
  if (!e_.ok()) return {};
  const Dims dims = e_.type(o).dims;
  const Value all = e_.Sized(o, {batch_, count_ * size_, dims[3] * dims[4], dims[5]});
  return e_.Add("Narrow", {all}, {{"axis", int64_t{1}}, {"start", Dims{Extent(0)}}, {"length", Dims{length_}}});
}

}  // namespace quern::ir
