// Ops that give elements other places or sizes, or make tensors of sizes.

#include <algorithm>
#include <cmath>

#include "onnx/table.h"

namespace quern::onnx {
namespace {

void Reshape(Call& c) {
  const Value x = c.x(0);
  Extents dims = c.ExtentsOf(c.x(1));
  const bool zeros = c.Int("allowzero", 0) != 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == Extent(0) && !zeros) dims[d] = c.dim(x, static_cast<int64_t>(d));
  }
  c.Return(c.Reshape(x, dims));
}

void Flatten(Call& c) {
  const Value x = c.x(0);
  const int64_t rank = c.rank(x), axis = c.Int("axis", 1),
                at = axis == rank ? rank : c.Axis(axis, std::max<int64_t>(rank, 1));
  Extent before(1), behind(1);
  for (int64_t d = 0; d < rank; ++d) (d < at ? before : behind) = (d < at ? before : behind) * c.dim(x, d);
  c.Return(c.Reshape(x, {before, behind}));
}

void Squeeze(Call& c) {
  const Value x = c.x(0);
  const int64_t rank = c.rank(x);
  std::vector<bool> gone(rank);
  if (const std::optional<Ints> axes = c.IntsFrom(1, "axes")) {
    for (const int64_t axis : *axes) {
      if (rank > 0) gone[c.Axis(axis, rank)] = true;
    }
  } else {
    for (int64_t d = 0; d < rank; ++d) gone[d] = c.dim(x, d) == Extent(1);
  }
  Extents dims;
  for (int64_t d = 0; d < rank; ++d) {
    if (!gone[d]) dims.push_back(c.dim(x, d));
  }
  c.Return(c.Reshape(x, dims));
}

void Unsqueeze(Call& c) {
  const Value x = c.x(0);
  const Ints axes = c.IntsFrom(1, "axes").value_or(Ints{});
  const int64_t rank = c.rank(x) + static_cast<int64_t>(axes.size());
  std::vector<bool> fresh(rank);
  for (const int64_t axis : axes) fresh[c.Axis(axis, rank)] = true;
  if (std::count(fresh.begin(), fresh.end(), true) != static_cast<int64_t>(axes.size()))
    return c.Fail(absl::InvalidArgumentError("an axis is there twice"));
  Extents dims;
  for (int64_t d = 0, from = 0; d < rank; ++d) dims.push_back(fresh[d] ? Extent(1) : c.dim(x, from++));
  c.Return(c.Reshape(x, dims));
}

void Transpose(Call& c) {
  const Value x = c.x(0);
  Ints perm = c.IntList("perm");
  if (perm.empty()) {
    for (int64_t d = c.rank(x); d-- > 0;) perm.push_back(d);
  }
  c.Return(c.Add("Transpose", {x}, {{"perm", perm}}));
}

void Concat(Call& c) {
  const Values x = c.all();
  c.Return(x.size() == 1 ? x[0] : c.Add("Concat", x, {{"axis", c.Axis(c.Int("axis", 0), c.rank(x[0]))}}));
}

void Split(Call& c) {
  const Value x = c.x(0);
  if (c.rank(x) == 0 || c.node.output_size() == 0) return c.Fail("a number cannot be split, or into nothing");
  const int64_t axis = c.Axis(c.Int("axis", 0), c.rank(x)), outputs = c.node.output_size();
  Extents sizes;
  if (c.opset >= 13 && c.Has(1)) {
    sizes = c.ExtentsOf(c.x(1));
  } else if (const Ints given = c.IntList("split"); !given.empty()) {
    sizes.assign(given.begin(), given.end());
  } else {
    // All of one size, but for the last, which may be smaller.
    const Extent size = c.dim(x, axis), each = size.CeilDividedBy(outputs);
    sizes.assign(outputs, each);
    sizes.back() = size - each * Extent(outputs - 1);
  }
  if (static_cast<int64_t>(sizes.size()) != outputs)
    return c.Fail(absl::InvalidArgumentError("there are not as many sizes as results"));
  Extent start(0);
  for (int64_t o = 0; o < outputs && c.ok(); ++o) {
    if (c.Wants(static_cast<int>(o))) c.Return(static_cast<int>(o), c.Slice(x, axis, start, sizes[o]));
    start = start + sizes[o];
  }
}

void Expand(Call& c) {
  const Value x = c.x(0);
  const StatusOr<Extents> dims = ir::BroadcastDims(c.type(x).dims, c.ExtentsOf(c.x(1)), &c.builder.graph.constraints);
  if (!dims.ok()) return c.Fail(dims.status());
  c.Return(c.Expand(x, *dims));
}

void Tile(Call& c) {
  const Value x = c.x(0);
  const Extents repeats = c.ExtentsOf(c.x(1));
  if (static_cast<int>(repeats.size()) != c.rank(x))
    return c.Fail(absl::InvalidArgumentError("a number of repeats for each dimension is needed"));
  Ints numbers;
  for (const Extent& times : repeats) {
    if (times.is_constant()) numbers.push_back(times.constant());
  }
  if (numbers.size() == repeats.size()) return c.Return(c.Add("Tile", {x}, {{"repeats", numbers}}));
  // [a, b] as [1, a, 1, b], which is expanded.
  Extents apart, whole, dims;
  for (int d = 0; d < c.rank(x); ++d) {
    const Extent size = c.dim(x, d);
    if (repeats[d] != Extent(1)) {
      apart.emplace_back(1);
      whole.push_back(repeats[d]);
    }
    apart.push_back(size);
    whole.push_back(size);
    dims.push_back(repeats[d] * size);
  }
  c.Return(c.Reshape(c.Expand(c.Reshape(x, apart), whole), dims));
}

void Shape(Call& c) {
  const Value x = c.x(0);
  const int64_t rank = c.rank(x);
  const auto inside = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = inside(c.Int("start", 0)), end = inside(c.Int("end", rank));
  Extents sizes;
  for (int64_t d = start; d < end; ++d) sizes.push_back(c.dim(x, d));
  c.Return(c.Sizes(sizes));
}

void Size(Call& c) { c.Return(c.Size(c.type(c.x(0)).elements())); }

void ConstantOfShape(Call& c) {
  const Extents dims = c.ExtentsOf(c.x(0));
  const format::Attribute* const value = c.Find("value");
  if (value == nullptr) return c.Return(c.Filled(0, DType::kF32, dims));
  StatusOr<Data> data = c.session.file.Read(value->t());
  if (!data.ok()) return c.Fail(data.status());
  const Value one =
      c.Constant({data->dtype, {data->dims.begin(), data->dims.end()}}, {data->bytes.begin(), data->bytes.end()});
  c.Return(c.Expand(c.Reshape(one, {}), dims));
}

void Constant(Call& c) {
  Item item{.kind = Item::Kind::kTensor};
  item.name = absl::StrCat("constant_", c.session.unnamed++);
  if (c.node.output_size() > 0 && !c.session.params.contains(c.node.output(0)) && c.builder.outer == nullptr &&
      c.scope.label.empty() && !c.session.input_names.contains(c.node.output(0)))
    item.name = c.node.output(0);
  if (const format::Attribute* const value = c.Find("value")) {
    if (TypeName(value->t().data_type()) == "STRING") {
      item.kind = Item::Kind::kStrings;
    } else {
      StatusOr<Data> data = c.session.file.Read(value->t());
      if (!data.ok()) return c.Fail(data.status());
      item.data = std::make_shared<const Data>(*std::move(data));
    }
    return c.ReturnItem(0, std::move(item));
  }
  if (c.Find("value_int") != nullptr) return c.Return(c.Reshape(c.Integers({c.Int("value_int", 0)}), {}));
  if (c.Find("value_ints") != nullptr) return c.Return(c.Integers(c.IntList("value_ints")));
  if (c.Find("value_float") != nullptr) return c.Return(c.Scalar(c.Float("value_float", 0), DType::kF32));
  if (c.Find("value_floats") != nullptr) {
    const std::vector<double> reals = c.FloatList("value_floats");
    return c.Return(c.Reals(reals, DType::kF32, {Extent(static_cast<int64_t>(reals.size()))}));
  }
  if (c.Find("value_string") != nullptr || c.Find("value_strings") != nullptr) {
    item.kind = Item::Kind::kStrings;
    return c.ReturnItem(0, std::move(item));
  }
  c.Fail("a constant that is sparse, or none");
}

void Range(Call& c) {
  const Value start = c.x(0), limit = c.x(1), delta = c.x(2);
  const DType dtype = c.dtype(start);
  Extent length;
  const std::optional<Extents> from = c.MaybeExtents(start), to = c.MaybeExtents(limit);
  const std::optional<Ints> by = IsFloat(dtype) ? std::nullopt : c.MaybeInts(delta);
  for (const Value part : {start, limit, delta}) {
    if (c.type(part).elements() != Extent(1)) return c.Fail(absl::InvalidArgumentError("three numbers are needed"));
  }
  if (from && to && by && by->at(0) != 0) {
    const Extent span = by->at(0) > 0 ? to->at(0) - from->at(0) : from->at(0) - to->at(0);
    length = span.CeilDividedBy(std::abs(by->at(0)));
    if (length.is_constant()) length = Extent(std::max<int64_t>(0, length.constant()));
  } else if (IsFloat(dtype) && c.MaybeReals(start) && c.MaybeReals(limit) && c.MaybeReals(delta)) {
    const double count = std::ceil((c.RealsOf(limit)[0] - c.RealsOf(start)[0]) / c.RealsOf(delta)[0]);
    if (!(count <= 0x1p31)) return c.Fail("it has %g elements", count);
    length = Extent(std::max<int64_t>(0, static_cast<int64_t>(count)));
  } else {
    length = c.OpenSize({start, limit, delta});
  }
  const bool wide = dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kF32 || dtype == DType::kF64;
  const Value index = c.Cast(
      c.Add("Iota", {}, {{"shape", Extents{length}}, {"axis", int64_t{0}}, {"dtype", wide ? dtype : DType::kI64}}),
      dtype);
  c.Return(c.Add("Add", {c.Add("Mul", {index, delta}), start}));
}

void EyeLike(Call& c) {
  const Value x = c.x(0);
  const Extents dims = c.type(x).dims;
  if (dims.size() != 2) return c.Fail(absl::InvalidArgumentError("a matrix is needed"));
  DType to = c.dtype(x);
  if (c.Find("dtype") != nullptr) {
    const StatusOr<DType> given = DTypeOf(static_cast<int>(c.Int("dtype", 1)));
    if (!given.ok()) return c.Fail(given.status());
    to = *given;
  }
  const auto index = [&](int64_t axis) {
    return c.Add("Iota", {}, {{"shape", dims}, {"axis", axis}, {"dtype", DType::kI64}});
  };
  const Value shifted = c.Add("Add", {index(0), c.Scalar(static_cast<double>(c.Int("k", 0)), DType::kI64)});
  c.Return(c.Cast(c.Add("Eq", {shifted, index(1)}), to));
}

void Trilu(Call& c) {
  int64_t k = 0;
  if (c.Has(1)) {
    const Ints given = c.IntsOf(c.x(1));
    k = given.empty() ? 0 : given[0];
  }
  c.Return(c.Add("Trilu", {c.x(0)}, {{"upper", c.Int("upper", 1) != 0}, {"k", k}}));
}

constexpr Importer kRows[] = {
    {"Concat", Concat},
    {"Constant", Constant, "", 0},
    {"ConstantOfShape", ConstantOfShape},
    {"Expand", Expand, "", 2},
    {"EyeLike", EyeLike},
    {"Flatten", Flatten},
    {"Range", Range, "", 3},
    {"Reshape", Reshape, "", 2},
    {"Shape", Shape},
    {"Size", Size},
    {"Split", Split},
    {"Squeeze", Squeeze},
    {"Tile", Tile, "", 2},
    {"Transpose", Transpose},
    {"Trilu", Trilu},
    {"Unsqueeze", Unsqueeze},
};

}  // namespace

std::span<const Importer> ShapeImporters() { return kRows; }

}  // namespace quern::onnx
