// Every row of the tables through the C compiler: operators on every dtype, conversions, packs, decoders, tile ops.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kir/build.h"
#include "kir/tile_op.h"
#include "support/c_kernel.h"

namespace quern::kir {
namespace {

namespace kb = build;
using namespace build::operators;

constexpr DType kScalars[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                              DType::kI16, DType::kI32, DType::kI64,  DType::kU8,  DType::kU16,
                              DType::kU32, DType::kU64, DType::kBool};

void Check(const std::vector<CKernelCase>& cases) {
  ASSERT_FALSE(cases.empty());
  const Status status = CheckKernelsThroughC(cases);
  EXPECT_TRUE(status.ok()) << status.message();
}

Param MakeParam(std::string name, DType dtype, std::vector<Extent> dims, Mode mode, Layout layout = Layout::kRow) {
  Param param;
  param.name = std::move(name);
  param.type = {dtype, std::move(dims), layout};
  param.mode = mode;
  return param;
}

// Values at which languages differ: every pair of them meets.
std::vector<ExprRef> EdgeValues(DType dtype) {
  std::vector<ExprRef> values;
  if (dtype == DType::kBool) return {kb::Bool(false), kb::Bool(true)};
  if (IsFloat(dtype)) {
    for (double value : {0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 0.3, 1e-40, 127.5, 254.5, -129.0, 65519.0, 65520.0,
                         2147483648.0, -2147483649.0, 4294967296.0, 9.3e18, -9.3e18, 1.85e19,
                         // By way of f32 these would be rounded twice: to a tie, then down.
                         1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-11 + 0x1p-40, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      values.push_back(kb::Num(value, dtype));
    }
    return values;
  }
  const int bits = 8 * ScalarBytes(dtype);
  const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (IsUnsigned(dtype) ? bits : bits - 1)) - 1;
  const int64_t low = IsUnsigned(dtype) ? 0 : -high - 1;
  for (int64_t value : {low, low + 1, int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}, int64_t{bits - 1}, int64_t{bits},
                        high - 1, high}) {
    values.push_back(kb::Int(value, dtype));
  }
  if (!IsUnsigned(dtype)) values.push_back(kb::Int(-1, dtype)), values.push_back(kb::Int(-7, dtype));
  if (dtype == DType::kU64) values.push_back(kb::Int(-1, dtype));  // the greatest
  return values;
}

// An alloc `e` with the edge values, so that the compiler sees loads and not constants.
void FillEdges(Kernel& kernel, DType dtype) {
  const std::vector<ExprRef> values = EdgeValues(dtype);
  kernel.body.push_back(kb::Alloc("e", {dtype, {static_cast<int64_t>(values.size())}, Layout::kRow}));
  for (size_t i = 0; i < values.size(); ++i)
    kernel.body.push_back(kb::Store("e", {kb::Int(static_cast<int64_t>(i))}, values[i]));
}

// One kernel a dtype: every operator on all pairs of edge values, of random values, and on loads of both.
TEST(Tables, OperatorsOnEveryDtype) {
  std::vector<CKernelCase> cases;
  for (DType dtype : kScalars) {
    const int64_t n = static_cast<int64_t>(EdgeValues(dtype).size());
    CKernelCase test{.tolerance = 0};
    Kernel& kernel = test.kernel;
    kernel.name = absl::StrCat("operators_", Row(dtype).name);
    kernel.grid.push_back({"g", kb::Int(0), kb::Int(1), 1});
    kernel.params.push_back(MakeParam("x", dtype, {37}, Mode::kIn));
    FillEdges(kernel, dtype);
    const ExprRef i = kb::Ref("i"), j = kb::Ref("j"), c = kb::Ref("c");
    for (int number = 0; number < kOpCount; ++number) {
      const Op op = static_cast<Op>(number);
      if (!Takes(Row(op).domain, dtype)) continue;
      if (dtype == DType::kBool && (op == Op::kLt || op == Op::kLe)) continue;
      auto apply = [&](ExprRef a, ExprRef b) -> ExprRef {
        if (Row(op).arity == 1) return kb::Call(op, {a});
        if (op == Op::kSelect) return kb::Select(kb::Call(Op::kNe, {a, b}), a, b);
        return Row(op).arity == 2 ? kb::Call(op, {a, b}) : kb::Call(op, {a, b, a});
      };
      const ExprRef edge = apply(kb::At("e", dtype, {i}), kb::At("e", dtype, {j}));
      const ExprRef usual = apply(kb::At("x", dtype, {c}), kb::At("x", dtype, {kb::Int(36) - c}));
      const std::string y = absl::StrCat("edge", number), z = absl::StrCat("usual", number);
      kernel.params.push_back(MakeParam(y, edge->dtype, {n, n}, Mode::kOut));
      kernel.params.push_back(MakeParam(z, edge->dtype, {37}, Mode::kOut));
      kernel.body.push_back(
          kb::For("i", kb::Int(0), kb::Int(n), {kb::Vec("j", kb::Int(0), kb::Int(n), {kb::Store(y, {i, j}, edge)})}));
      kernel.body.push_back(kb::Vec("c", kb::Int(0), kb::Int(37), {kb::Store(z, {c}, usual)}));
    }
    cases.push_back(std::move(test));
  }
  Check(cases);
}

// The functions in float: near the double ones on ordinary values.
TEST(Tables, MathInFloat) {
  CKernelCase test{.seed = 3, .tolerance = 1e-6};
  test.kernel.name = "math";
  test.kernel.grid.push_back({"c", kb::Int(0), kb::Int(211), 1});
  test.kernel.params.push_back(MakeParam("x", DType::kF32, {211}, Mode::kIn));
  const ExprRef c = kb::Ref("c"), x = kb::At("x", DType::kF32, {c}), positive = kb::Call(Op::kAbs, {x}) + 0.25;
  for (int number = 0; number < kOpCount; ++number) {
    const Op op = static_cast<Op>(number);
    if (Row(op).domain != OpDomain::kFloat || op == Op::kTan) continue;  // tan has poles
    const std::string y = absl::StrCat("y_", Row(op).name);
    test.kernel.params.push_back(MakeParam(y, DType::kF32, {211}, Mode::kOut));
    const bool logarithm = op == Op::kLog || op == Op::kLog2 || op == Op::kSqrt || op == Op::kRsqrt || op == Op::kPow;
    std::vector<ExprRef> args(Row(op).arity, positive);
    if (!logarithm) args[0] = x;
    test.kernel.body.push_back(kb::Store(y, {c}, kb::Call(op, args)));
  }
  Check({test});
}

TEST(Tables, ConversionsBetweenAllDtypes) {
  std::vector<CKernelCase> cases;
  for (DType from : kScalars) {
    CKernelCase test{.tolerance = 0};
    Kernel& kernel = test.kernel;
    kernel.name = absl::StrCat("conversions_", Row(from).name);
    kernel.grid.push_back({"g", kb::Int(0), kb::Int(1), 1});
    kernel.params.push_back(MakeParam("x", from, {41}, Mode::kIn));
    FillEdges(kernel, from);
    const int64_t n = static_cast<int64_t>(EdgeValues(from).size());
    const ExprRef i = kb::Ref("i");
    for (DType to : kScalars) {
      auto store = [&](const char* stem, int64_t size, const ExprRef& value) {
        const std::string y = absl::StrCat(stem, "_", Row(to).name);
        kernel.params.push_back(MakeParam(y, to, {size}, Mode::kOut));
        kernel.body.push_back(kb::Vec("i", kb::Int(0), kb::Int(size), {kb::Store(y, {i}, value)}));
      };
      const ExprRef edge = kb::At("e", from, {i}), usual = kb::At("x", from, {i});
      store("edge", n, kb::CastTo(to, edge));
      store("usual", 41, kb::CastTo(to, usual));
      if (IsFloat(to)) {  // what the cast rounds to, not only what a store would
        const std::string y = absl::StrCat("kept_", Row(to).name);
        kernel.params.push_back(MakeParam(y, DType::kF64, {n}, Mode::kOut));
        kernel.body.push_back(
            kb::Vec("i", kb::Int(0), kb::Int(n), {kb::Store(y, {i}, kb::CastTo(DType::kF64, kb::CastTo(to, edge)))}));
      }
      if (from != DType::kBool)
        store("computed", 41, kb::CastTo(to, usual * usual));  // rounded to its dtype, then cast
      if (from != DType::kBool && to != DType::kBool && ScalarBytes(from) == ScalarBytes(to))
        store("bits", 41, kb::BitsTo(to, usual));
    }
    cases.push_back(std::move(test));
  }
  Check(cases);
}

TEST(Tables, ReductionsOfEveryDtype) {
  CKernelCase test{.tolerance = 0};
  Kernel& kernel = test.kernel;
  kernel.name = "reductions";
  kernel.grid.push_back({"r", kb::Int(0), kb::Int(3), 1});
  for (DType dtype : kScalars) {
    if (dtype == DType::kBool) continue;
    const std::string x = absl::StrCat("x_", Row(dtype).name);
    kernel.params.push_back(MakeParam(x, dtype, {3, 37}, Mode::kIn));
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
      for (int64_t size : {0, 1, 37}) {  // 0: the identity
        const std::string y = absl::StrCat("y_", Row(dtype).name, "_", std::string(Name(op)), size);
        kernel.params.push_back(MakeParam(y, dtype, {3}, Mode::kOut));
        const ExprRef value = kb::At(x, dtype, {kb::Ref("r"), kb::Ref("c")});
        kernel.body.push_back(
            kb::Store(y, {kb::Ref("r")}, kb::ReduceVec(op, 4, "c", kb::Int(0), kb::Int(size), value)));
      }
    }
  }
  Check({test});
}

// Each format in each layout, decoded by one statement.
TEST(Tables, DecodersOfEveryLayout) {
  std::vector<CKernelCase> cases;
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) {
    const DType format = static_cast<DType>(d);
    for (Layout layout : {Layout::kBlocks, Layout::kPlanar, Layout::kPanel16}) {
      if (!LayoutAllows(layout, format)) continue;
      const int64_t rows = layout == Layout::kPanel16 ? 16 : 3;
      CKernelCase test{.seed = 5, .tolerance = 1e-6};
      test.kernel.name = absl::StrCat("decode_", Row(format).name, "_", Row(layout).name);
      test.kernel.grid.push_back({"r", kb::Int(0), kb::Int(rows), 1});
      test.kernel.params = {MakeParam("w", format, {rows, 768}, Mode::kIn, layout),
                            MakeParam("y", DType::kF32, {rows, 768}, Mode::kOut)};
      const Index at = {kb::Ref("r"), kb::Ref("c")};
      test.kernel.body = {kb::Vec("c", kb::Int(0), kb::Int(768), {kb::Store("y", at, kb::DecodeAt("w", at))})};
      cases.push_back(std::move(test));
    }
  }
  Check(cases);
}

// Every pack: of whole buffers, and of a part that starts at a row and a block inside and is clipped at the end.
TEST(Tables, Packs) {
  std::vector<CKernelCase> cases;
  for (const PackRow& row : PackTable()) {
    const bool panel = row.dst_layout == Layout::kPanel16 || row.dst_layout == Layout::kKn32;
    const int64_t panel_rows = row.dst_layout == Layout::kPanel16 ? 16 : 32;
    for (const bool part : {false, true}) {
      CKernelCase test{.binding = {{"M", 35}}, .seed = 11, .tolerance = 1e-6};
      Kernel& kernel = test.kernel;
      kernel.name = absl::StrCat("pack_", Row(row.src).name, "_to_", Row(row.dst).name, "_", Row(row.dst_layout).name,
                                 part ? "_part" : "_whole");
      kernel.symbols.push_back({"M", {1, 64}, {}});
      const Extent m = Extent::Symbol("M");
      const int64_t k = part ? 1024 : 256;
      const auto columns = [&](bool cut) { return cut ? kb::Range(kb::Int(256), kb::Int(512)) : kb::All(); };
      kernel.params.push_back(MakeParam("src", row.src, {m, k}, Mode::kIn, row.src_layout));
      if (panel) {  // one panel a chunk, so one chunk
        kernel.grid.push_back({"g", kb::Int(20), kb::Int(21), 1});
        kernel.params.push_back(MakeParam("dst", row.dst, {panel_rows, part ? 512 : 256}, Mode::kOut, row.dst_layout));
        const ExprRef first = part ? kb::Ref("g") : kb::Int(0);
        kernel.body = {
            kb::Pack(kb::Whole("dst", 2), kb::SliceOf("src", {kb::Range(first, kb::Int(panel_rows)), columns(part)}))};
      } else if (Turns(row.src_layout, row.dst_layout)) {
        kernel.grid.push_back({"g", kb::Int(0), kb::Ref("M"), 33});
        kernel.params.push_back(MakeParam("dst", row.dst, {k, m}, Mode::kOut));
        const SliceDim rows = kb::Range(kb::Ref("g"), kb::Int(33));
        kernel.body = {kb::Pack(kb::SliceOf("dst", {columns(part), rows}), kb::SliceOf("src", {rows, columns(part)}))};
        test.max_chunks = 100;
        test.tolerance = 0;
      } else {
        kernel.grid.push_back({"g", kb::Int(0), kb::Ref("M"), 4});
        kernel.params.push_back(MakeParam("dst", row.dst, {m, k}, Mode::kOut, row.dst_layout));
        const SliceDim rows = kb::Range(kb::Ref("g"), kb::Int(4));
        kernel.body = {kb::Pack(kb::SliceOf("dst", {rows, columns(part)}), kb::SliceOf("src", {rows, columns(part)}))};
        test.max_chunks = 100;
      }
      cases.push_back(std::move(test));
    }
  }
  Check(cases);
}

// Rows on which quantisers differ: all zero, ties, equal extremes of both signs, scales that underflow.
TEST(Tables, QuantisersAtTheirEdges) {
  std::vector<CKernelCase> cases;
  for (const char* format : {"q8_0", "q8_K"}) {
    auto kernel = ParseKernel(absl::StrCat("kernel edges_", format, " (y : ", format, R"([6, 256] @planar out) {
      grid r in 0..6 {
        alloc x : f32[256] scratch
        vec c in 0..256 {
          let step = cast<f32>(c % 255 - 127)
          let tie = select(c % 32 == 5, 127, step * 0.5)
          let sign = select((c + r) % 2 == 0, 2.5, -2.5)
          x[c] = select(r == 0, 0, select(r == 1, tie, select(r < 4, sign, select(r == 4, step * 1e-42, step * 1e-30))))
        }
        pack y[r, :] = x
      }
    })"));
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    cases.push_back({.kernel = *std::move(kernel), .max_chunks = 6, .tolerance = 0});
  }
  Check(cases);
}

// Every tile op, at sizes below the tile's: operands are parameters, tiles start at 0.5 and are stored.
TEST(Tables, TileOps) {
  std::vector<CKernelCase> cases;
  for (const TileOp* op : TileOps()) {
    for (const bool optional : {false, true}) {
      size_t operands = op->operands.size();
      if (!optional) {
        while (operands > 0 && op->operands[operands - 1].optional) --operands;
        if (operands == op->operands.size() && !op->attributes.empty())
          continue;  // nothing is left out: once is enough
      }
      CKernelCase test{.binding = {{"M", 5}}, .seed = 13, .tolerance = 1e-4};
      Kernel& kernel = test.kernel;
      kernel.name = absl::StrCat(op->name, optional ? "_all" : "_required");
      kernel.grid.push_back({"g", kb::Int(0), kb::Int(1), 1});
      kernel.symbols.push_back({"M", {1, 9}, {}});
      // Sizes: blocks need whole blocks, panels all their rows; the first size is run-time.
      auto size_of = [&](std::string_view name) -> Extent {
        if (name == op->sizes[0]) return Extent::Symbol("M");
        int64_t size = name == "k" ? 37 : name == "p" ? 19 : 7;
        for (const TileOperand& operand : op->operands) {
          for (size_t d = 0; d < operand.dims.size(); ++d) {
            if (name != operand.dims[d]) continue;
            if (IsBlock(operand.dtype) && d + 1 == operand.dims.size()) size = 512;
            if (operand.layout == Layout::kPanel16 && d == 0) size = 16;
            if (operand.layout == Layout::kKn32 && d == 0) size = 32;
          }
        }
        return size;
      };
      std::vector<Slice> slices;
      for (size_t o = 0; o < operands; ++o) {
        const TileOperand& operand = op->operands[o];
        std::vector<Extent> dims;
        for (const char* dim : operand.dims) dims.push_back(*dim == '\0' ? Extent(3) : size_of(dim));
        kernel.params.push_back(
            MakeParam(absl::StrCat("in_", operand.name), operand.dtype, dims, Mode::kIn, operand.layout));
        Slice slice = kb::Whole(kernel.params.back().name, static_cast<int>(dims.size()));
        for (size_t d = 0; d < dims.size(); ++d) {
          if (*operand.dims[d] == '\0') slice.dims[d] = kb::Point(kb::Int(1));
        }
        slices.push_back(std::move(slice));
      }
      std::vector<std::pair<std::string, ExprRef>> attributes;
      for (const TileAttribute& attribute : op->attributes) {
        if (optional) attributes.emplace_back(attribute.name, IsFloat(attribute.dtype) ? kb::Num(0.75) : kb::Int(64));
      }
      std::vector<std::string> tiles;
      Block stores;
      for (const TileOperand& tile : op->tiles) {
        std::vector<int64_t> dims;
        std::vector<ExprRef> live;
        std::vector<std::string> indices;
        std::vector<Extent> extents;
        Index index;
        for (const char* dim : tile.dims) {
          const Extent size = size_of(dim);
          dims.push_back(size.is_constant() ? size.constant() : 9);
          live.push_back(kb::FromExtent(size));
          extents.push_back(size);
          indices.push_back(absl::StrCat("i", indices.size()));
          index.push_back(kb::Ref(indices.back()));
        }
        tiles.push_back(absl::StrCat("t_", tile.name));
        kernel.body.push_back(kb::Tile(tiles.back(), dims, 0.5, tile.dtype));
        kernel.params.push_back(MakeParam(absl::StrCat("out_", tile.name), tile.dtype, extents, Mode::kOut));
        stores.push_back(kb::Map(indices, {tiles.back()}, live,
                                 {kb::Store(kernel.params.back().name, index, kb::Ref(tiles.back(), tile.dtype))}));
      }
      kernel.body.push_back(kb::CallTile(op->name, tiles, slices, attributes));
      kernel.body.insert(kernel.body.end(), stores.begin(), stores.end());
      cases.push_back(std::move(test));
    }
  }
  ASSERT_GE(cases.size(), TileOps().size());
  Check(cases);
}

}  // namespace
}  // namespace quern::kir
