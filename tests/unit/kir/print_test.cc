// Text of kernels: what is printed, and that printing and parsing are inverse on worked and on random kernels.
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kir/build.h"
#include "kir/canonical.h"
#include "kir/parse.h"
#include "kir/tile_op.h"

namespace quern::kir {
namespace {

namespace kb = build;
using namespace build::operators;  // NOLINT: the point of that namespace

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Scope TestScope() {
  return {.scalars = {{"i", DType::kI64},
                      {"x", DType::kF32},
                      {"h", DType::kF16},
                      {"d", DType::kF64},
                      {"n", DType::kI32},
                      {"b", DType::kBool}},
          .buffers = {{"v", {DType::kF32, {8}, Layout::kRow}}, {"w", {DType::kQ8_0, {4, 32}, Layout::kBlocks}}}};
}

// The text of what `text` parses to, checked to be a fixed point with the same meaning.
std::string Reprint(const std::string& text) {
  const StatusOr<ExprRef> expr = ParseExpr(text, TestScope());
  if (!expr.ok()) return std::string(expr.status().message());
  const std::string printed = Print(*expr);
  const StatusOr<ExprRef> again = ParseExpr(printed, TestScope());
  EXPECT_TRUE(again.ok()) << printed << ": " << again.status();
  if (!again.ok()) return printed;
  EXPECT_TRUE(Same(*expr, *again)) << text << " -> " << printed;
  EXPECT_EQ(Print(*again), printed);
  return printed;
}

TEST(PrintExpr, LiteralsTakeTheirDtypeFromTheirPlace) {
  EXPECT_EQ(Reprint("1"), "1");
  EXPECT_EQ(Reprint("0.5"), "0.5");
  EXPECT_EQ(Reprint("x * 2"), "x * 2.0");
  EXPECT_EQ(Reprint("h + 1"), "h + 1.0");
  EXPECT_EQ(Reprint("1 + 0.5"), "1.0 + 0.5");
  EXPECT_EQ(Reprint("n * (1 + 2)"), "n * (1 + 2)");
  EXPECT_EQ(Reprint("cast<f32>(1i32)"), "cast<f32>(1i32)");
  EXPECT_EQ(Reprint("0.5f16 + 1.0f16"), "0.5f16 + 1.0f16");
  EXPECT_EQ(Reprint("1i8 < 2"), "1i8 < 2i8");
  EXPECT_EQ(Reprint("18446744073709551615u64"), "18446744073709551615u64");
  EXPECT_EQ(Reprint("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Reprint("-inf"), "-inf");
  EXPECT_EQ(Reprint("nanf64"), "nanf64");
  EXPECT_EQ(Reprint("max(x, -inf)"), "max(x, -inf)");
  EXPECT_EQ(Reprint("d * 0.1"), "d * 0.1");
  EXPECT_EQ(Reprint("x * 0.1"), "x * 0.1");
  EXPECT_EQ(Reprint("x * 1e-5"), "x * 1e-05");
  EXPECT_EQ(Reprint("x + 16777217"), "x + 16777216.0");
  EXPECT_EQ(Reprint("-0.0"), "-0.0");
  EXPECT_EQ(Reprint("true"), "true");
}

TEST(PrintExpr, ParenthesesOnlyWhereNeeded) {
  EXPECT_EQ(Reprint("(x + x) + (x + x)"), "x + x + (x + x)");
  EXPECT_EQ(Reprint("(x * x) - (x / x)"), "x * x - x / x");
  EXPECT_EQ(Reprint("((x - x) * x)"), "(x - x) * x");
  EXPECT_EQ(Reprint("-(x + x)"), "-(x + x)");
  EXPECT_EQ(Reprint("-(-x)"), "-(-x)");
  EXPECT_EQ(Reprint("-(1.0)"), "-(1.0)");
  EXPECT_EQ(Reprint("x - -1"), "x - -1.0");
  EXPECT_EQ(Reprint("!b & (i < 3) | b"), "!b & (i < 3) | b");
  EXPECT_EQ(Reprint("i > 3"), "3 < i");
  EXPECT_EQ(Reprint("i >= 3"), "3 <= i");
  EXPECT_EQ(Reprint("i << 2 + 1"), "i << 2 + 1");
  EXPECT_EQ(Reprint("(i << 2) + 1"), "(i << 2) + 1");
}

TEST(PrintExpr, EveryFormOfExpression) {
  EXPECT_EQ(Reprint("select(b, x, 0)"), "select(b, x, 0.0)");
  EXPECT_EQ(Reprint("v[i + 1] else 0"), "v[i + 1] else 0.0");
  EXPECT_EQ(Reprint("v[i] else 0 * x"), "(v[i] else 0.0) * x");
  EXPECT_EQ(Reprint("bits<i32>(x)"), "bits<i32>(x)");
  EXPECT_EQ(Reprint("decode(w, 1, i)"), "decode(w, 1, i)");
  EXPECT_EQ(Reprint("sum accs 4 vec c in 0..2*i { v[c] * v[c] }"), "sum accs 4 vec c in 0 .. 2 * i { v[c] * v[c] }");
  EXPECT_EQ(Reprint("max for c in 0..8 { v[c] } + 1"), "max for c in 0..8 { v[c] } + 1.0");
  EXPECT_EQ(Reprint("sum vec c in 0..8 { let t = tanh(v[c])  let k = 2 * c; let q = 3  t * v[k] + cast<f32>(q) }"),
            "sum vec c in 0..8 { let t = tanh(v[c]); let k = 2 * c; let q = 3; t * v[k] + cast<f32>(q) }");
  EXPECT_EQ(Reprint("sum for c in 0..8 { let t = v[c]; -t }"), "sum for c in 0..8 { let t = v[c]; -t }");
  EXPECT_EQ(Reprint("contract(sum for c in 0..8 { let t = v[c] * x; t * t })"),
            "sum for c in 0..8 { let t = contract(v[c] * x); contract(t * t) }");
  EXPECT_EQ(Reprint("x + contract(x * x + exact(x * x + x))"), "x + contract(x * x + exact(x * x + x))");
  EXPECT_EQ(Reprint("contract(sum vec c in 0..8 { v[c] * x })"), "sum vec c in 0..8 { contract(v[c] * x) }");
  EXPECT_EQ(Reprint("pow(x, fma(x, 2, 1))"), "pow(x, fma(x, 2.0, 1.0))");
}

TEST(PrintExpr, NegationIsNotALiteral) {
  const ExprRef negated = kb::Call(Op::kNeg, {kb::Num(1)});
  EXPECT_FALSE(Same(negated, kb::Num(-1)));
  EXPECT_EQ(Print(negated), "-(1.0)");
}

TEST(Build, SimplifiesIndices) {
  const ExprRef i = kb::Ref("i");
  EXPECT_EQ(Print(i + 0), "i");
  EXPECT_EQ(Print(i * 1), "i");
  EXPECT_EQ(Print(i * 0), "0");
  EXPECT_EQ(Print(i + 2 + 3), "i + 5");
  EXPECT_EQ(Print(i + 2 + -2.0), "i");
  EXPECT_EQ(Print(kb::Int(2) * kb::Int(3)), "6");
  EXPECT_EQ(Print(kb::Int(-7) % kb::Int(4)), "1");
  EXPECT_EQ(Print(kb::FromExtent(Extent::Symbol("M") * Extent(3) + Extent(2))), "M * 3 + 2");
  const ExprRef x = kb::Ref("x", DType::kF32);
  EXPECT_EQ(Print(x + 0), "x + 0.0");  // -0.0 + 0.0 is 0.0: floats stay
}

TEST(Build, LiteralsHoldWhatTheirDtypeHolds) {
  EXPECT_EQ(std::get<Const>(kb::Num(0.1)->node).real, static_cast<double>(0.1f));
  EXPECT_EQ(std::get<Const>(kb::Num(0.1, DType::kF16)->node).real, 0.0999755859375);
  EXPECT_TRUE(IntegerFits(DType::kI8, -128));
  EXPECT_FALSE(IntegerFits(DType::kI8, 128));
  EXPECT_FALSE(IntegerFits(DType::kU16, -1));
}

TEST(Build, ContractMarksFloatArithmeticOnly) {
  const ExprRef i = kb::Ref("i"), x = kb::Ref("x", DType::kF32);
  EXPECT_EQ(Print(kb::Contract(kb::At("v", DType::kF32, {i * 2 + 1}) * x + x)), "contract(v[i * 2 + 1] * x + x)");
  EXPECT_EQ(Print(kb::Contract(x / x)), "x / x");
}

class WorkedKernel : public testing::TestWithParam<const char*> {};

TEST_P(WorkedKernel, RoundTrips) {
  const std::string path = std::string(QUERN_SOURCE_DIR) + "/tests/kir/" + GetParam() + ".kir";
  const StatusOr<Kernel> kernel = ParseKernel(ReadFile(path));
  ASSERT_TRUE(kernel.ok()) << path << ":" << kernel.status().message();
  EXPECT_EQ(kernel->name, GetParam());
  const std::string printed = Print(*kernel);
  const StatusOr<Kernel> again = ParseKernel(printed);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
  EXPECT_TRUE(Same(*kernel, *again)) << printed;
  EXPECT_EQ(Print(*again), printed);

  const std::string key = Print(*kernel, {.normalise_names = true});
  const StatusOr<Kernel> normal = ParseKernel(key);
  ASSERT_TRUE(normal.ok()) << normal.status() << "\n" << key;
  EXPECT_EQ(Print(*normal, {.normalise_names = true}), key);
  EXPECT_EQ(Print(*normal), key);
}

INSTANTIATE_TEST_SUITE_P(All, WorkedKernel,
                         testing::Values("rms_norm_q8", "down_residual", "gate_up_silu", "attn_decode"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PrintKernel, Golden) {
  const std::string text = R"(kernel all (
  x : f32[M, 16] in align 32
  y : f32[M, 16] out inplace x
  s : f32 inout
  q : q8_0[M, 2*K] @planar out
  z : f32[S, 33] in
) sym M in 1..512, K, L in 2.., S = ceil(M + 3 / 512) {
  grid r in 0..M by 4, c in 0..K seq {
    let a = x[r, 0] + 1.0
    var t : f16 = 0.5
    t := t * 2.0   @[layers.3/ffn \[a\]: Silu]
    alloc m : f32[16, M] scratch
    for i in 0..4 {   @[second]
      if r + i < M {
        y[r + i, 0] = a
      } else {
        s[] = s[] else 0.0
      }
    }
    unroll i in 0..8 by 2 {
      prefetch x[r + 8 : +4, :]
    }
    vec i in 0..16 tail peel {
      m[i, r] = x[r, i]
    }
    vec i in 0 .. K - 1 tail pad {
      m[0, i] = -inf
    }
    tile u : f32[1, 32] = 0.0
    dot_f32 u += z[0 : +32, :], x[r : +1, :] ahead 64 * r
    map (i, j) in u [min(M - r, 1), 32] {
      y[r + i, j] = u + u[0, 1]
    }
    pack q[r : +4, :] = m
  }
}
)";
  std::string escaped = text;
  escaped.replace(escaped.find("\\[a"), 2, "[");  // "[" needs no escape in an origin
  const StatusOr<Kernel> kernel = ParseKernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(Print(*kernel), escaped);
  EXPECT_EQ(kernel->origins, (std::vector<std::string>{"layers.3/ffn [a]: Silu", "second"}));
  EXPECT_EQ(kernel->symbols[3].range, (SymbolRange{1, 2}));
  EXPECT_THAT(Print(*kernel, {.origins = false}), testing::Not(testing::HasSubstr("@[")));
}

TEST(PrintKernel, NamesDoNotMatterOnceNormalised) {
  auto text = [](const char* kernel, const char* x, const char* m, const char* i, const char* note) {
    return absl::StrFormat(
        "kernel %s (\n%s : f32[%s, 8] inout\n) sym %s {\n grid %s in 0..%s {\n"
        "let e = %s[%s, 0] %s\n for k in 0..8 { %s[%s, k] = e } } }",
        kernel, x, m, m, i, m, x, i, note, x, i);
  };
  const StatusOr<Kernel> a = ParseKernel(text("one", "x", "M", "r", "@[here]"));
  const StatusOr<Kernel> b = ParseKernel(text("two", "buf", "ROWS", "row", ""));
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_FALSE(Same(*a, *b));
  EXPECT_EQ(Print(*a, {.normalise_names = true}), Print(*b, {.normalise_names = true}));
}

TEST(PrintKernel, LetsOfReductionsAreNormalised) {
  auto text = [](const char* k, const char* t, const char* u) {
    return absl::StrFormat(
        "kernel k (\nx : f32[8] inout\n) {\n grid r in 0..1 { let e = 1.0 x[0] = e * (sum vec %s in 0..8 "
        "{ let %s = x[%s]; let %s = %s * %s; %s + %s }) + (sum for j in 0..8 { let s = x[j]; s }) } }",
        k, t, k, u, t, t, t, u);
  };
  const StatusOr<Kernel> a = ParseKernel(text("i", "t", "u")), b = ParseKernel(text("c", "one", "two"));
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_FALSE(Same(*a, *b));
  EXPECT_TRUE(Same(*a, *ParseKernel(text("i", "t", "u"))));
  EXPECT_EQ(Print(*a, {.normalise_names = true}), Print(*b, {.normalise_names = true}));
  EXPECT_THAT(Print(*a, {.normalise_names = true}),
              testing::HasSubstr("sum vec i1 in 0..8 { let v1 = b0[i1]; let v2 = v1 * v1; v1 + v2 } + "
                                 "sum for i2 in 0..8 { let v3 = b0[i2]; v3 }"));
}

// ---------------------------------------------------------------------------------------------------------------------
// Random kernels

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Kernel Make() {
    Kernel kernel;
    kernel.name = "random";
    kernel.symbols.push_back({.name = "M", .range = {1, Pick(100) + 1}, .derived = {}});
    kernel.symbols.push_back(DerivedSymbol("S", Extent::Symbol("M") * Extent(3), Pick(9) + 1, kernel.symbols));
    for (size_t d = 0; d < std::size(kScalars); ++d) {
      Param param;
      param.name = Buffer(kScalars[d]);
      param.type = {kScalars[d], {Extent::Symbol("M"), 17}, Layout::kRow};
      param.mode = static_cast<Mode>(Pick(3));
      param.align = 1 << Pick(8);
      kernel.params.push_back(param);
    }
    kernel.grid.push_back({"g", kb::Int(0), kb::Ref("M"), Pick(4) + 1});
    kernel.sequential = Pick(2) == 0;
    kernel.origins = {"a", "b]\\c", "two\nlines"};
    indices_ = {"g", "M", "S"};
    kernel.body = MakeBlock(3);
    return kernel;
  }

 private:
  static constexpr DType kScalars[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                                       DType::kI16, DType::kI32, DType::kI64,  DType::kU8,  DType::kU16,
                                       DType::kU32, DType::kU64, DType::kBool};
  static std::string Buffer(DType dtype) { return "b_" + std::string(Name(dtype)); }

  int64_t Pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  std::string Fresh() { return "n" + std::to_string(names_++); }
  DType Scalar() { return kScalars[Pick(std::size(kScalars))]; }

  ExprRef Leaf(DType dtype) {
    if (dtype == DType::kI64 && Pick(2) == 0) return kb::Ref(indices_[Pick(indices_.size())]);
    if (Pick(3) == 0) return kb::At(Buffer(dtype), dtype, {kb::Ref("g"), kb::Int(Pick(17))});
    if (dtype == DType::kBool) return kb::Bool(Pick(2) == 0);
    if (!IsFloat(dtype)) {
      const int64_t bits = static_cast<int64_t>(random_()) << 32 ^ static_cast<int64_t>(random_());
      return MakeInteger(IntegerFits(dtype, bits) ? bits : Pick(100), dtype);
    }
    constexpr double kSpecial[] = {0.0,
                                   -0.0,
                                   1.0,
                                   0.1,
                                   1e30,
                                   1e-30,
                                   3.5,
                                   -2.75,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
    if (Pick(2) == 0) return kb::Num(kSpecial[Pick(std::size(kSpecial))], dtype);
    return kb::Num(std::ldexp(static_cast<double>(random_()), static_cast<int>(Pick(60)) - 50), dtype);
  }

  ExprRef MakeExpr(DType dtype, int depth) {
    if (depth == 0) return Leaf(dtype);
    switch (Pick(8)) {
      case 0: return Leaf(dtype);
      case 1: {
        // Any operator with this result.
        for (int attempt = 0; attempt < 20; ++attempt) {
          const Op op = static_cast<Op>(Pick(kOpCount));
          const bool compares = op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe;
          const DType from = compares ? Scalar() : dtype;
          std::vector<DType> dtypes(Row(op).arity, from);
          if (op == Op::kSelect) dtypes[0] = DType::kBool;
          const StatusOr<DType> result = ResultType(op, dtypes);
          if (!result.ok() || *result != dtype) continue;
          std::vector<ExprRef> args;
          for (DType arg : dtypes) args.push_back(MakeExpr(arg, depth - 1));
          return MakeApply(op, std::move(args), Pick(2) == 0);
        }
        return Leaf(dtype);
      }
      case 2: {
        ExprRef value = MakeExpr(Scalar(), depth - 1);
        return value->dtype == dtype ? value : kb::CastTo(dtype, std::move(value));
      }
      case 3: {
        ExprRef value = MakeExpr(Scalar(), depth - 1);
        const bool fits =
            dtype != DType::kBool && value->dtype != DType::kBool && ScalarBytes(dtype) == ScalarBytes(value->dtype);
        return fits ? kb::BitsTo(dtype, std::move(value)) : Leaf(dtype);
      }
      case 4: {
        ExprRef otherwise = Pick(2) == 0 ? MakeExpr(dtype, depth - 1) : nullptr;
        return kb::At(Buffer(dtype), dtype, {MakeExpr(DType::kI64, depth - 1), MakeExpr(DType::kI64, depth - 1)},
                      otherwise);
      }
      case 5: {
        if (dtype == DType::kBool) return Leaf(dtype);
        const std::string index = Fresh();
        ExprRef low = MakeExpr(DType::kI64, depth - 1), high = MakeExpr(DType::kI64, depth - 1);
        const size_t indices = indices_.size();
        indices_.push_back(index);
        Lets lets;
        for (int64_t n = Pick(3); n > 0; --n) {
          ExprRef value = MakeExpr(Scalar(), depth - 1);
          lets.emplace_back(Fresh(), value);
          if (value->dtype == DType::kI64) indices_.push_back(lets.back().first);
        }
        ExprRef body = MakeExpr(dtype, depth - 1);
        indices_.resize(indices);
        const ReduceOp op = static_cast<ReduceOp>(Pick(4));
        if (Pick(2) == 0) return kb::ReduceFor(op, index, low, high, body, lets);
        return kb::ReduceVec(op, static_cast<int>(Pick(kMaxAccs)) + 1, index, low, high, body, lets);
      }
      default: {
        if (dtype == DType::kBool) return Leaf(dtype);
        constexpr Op kCommon[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMod, Op::kMin, Op::kNeg};
        const Op op = kCommon[Pick(std::size(kCommon))];
        std::vector<ExprRef> args;
        for (int i = 0; i < Row(op).arity; ++i) args.push_back(MakeExpr(dtype, depth - 1));
        return MakeApply(op, std::move(args), Pick(2) == 0);
      }
    }
  }
  ExprRef At(int depth = 2) { return MakeExpr(DType::kI64, depth); }

  SliceDim MakeDim() {
    switch (Pick(3)) {
      case 0: return kb::All();
      case 1: return kb::Point(At());
      default: return kb::Range(At(), At());
    }
  }
  Slice MakeSlice() { return kb::SliceOf(Buffer(Scalar()), {MakeDim(), MakeDim()}); }

  Block MakeBlock(int depth) {
    const size_t indices = indices_.size(), vars = vars_.size();
    Block block;
    for (int64_t n = Pick(4) + 1; n > 0; --n) {
      block.push_back(kb::WithOrigin(MakeStmt(depth), static_cast<int>(Pick(4)) - 1));
    }
    indices_.resize(indices);
    vars_.resize(vars);
    return block;
  }

  StmtRef MakeLoop(int depth) {
    const std::string index = Fresh();
    ExprRef low = At(), high = At();
    indices_.push_back(index);
    Block body = MakeBlock(depth - 1);
    indices_.pop_back();
    switch (Pick(3)) {
      case 0: return kb::For(index, low, high, body, Pick(5) + 1);
      case 1: return kb::Unroll(index, low, high, body, Pick(5) + 1);
      default: return kb::Vec(index, low, high, body, static_cast<VecTail>(Pick(3)));
    }
  }

  StmtRef MakeStmt(int depth) {
    const DType dtype = Scalar();
    switch (Pick(depth > 0 ? 12 : 8)) {
      case 0: return kb::Store(Buffer(dtype), {At(), At()}, MakeExpr(dtype, 4));
      case 1: {
        ExprRef value = MakeExpr(dtype, 4);
        const std::string name = Fresh();
        if (dtype == DType::kI64) indices_.push_back(name);
        return kb::Let(name, value);
      }
      case 2: {
        ExprRef value = MakeExpr(dtype, 3);
        vars_.emplace_back(Fresh(), dtype);
        return kb::Var(vars_.back().first, value);
      }
      case 3: {
        if (vars_.empty()) return kb::Prefetch(MakeSlice());
        const auto var = vars_[Pick(vars_.size())];
        return kb::Assign(var.first, MakeExpr(var.second, 3));
      }
      case 4: return kb::Alloc(Fresh(), {dtype, {Extent::Symbol("M") * Extent(2) + Extent(Pick(5)), 3}, Layout::kRow});
      case 5: return kb::Alloc(Fresh(), {DType::kQ4_K, {16, 256}, Layout::kPanel16});
      case 6: return kb::Pack(MakeSlice(), MakeSlice());
      case 7: return kb::Prefetch(MakeSlice());
      case 8:
      case 9: return MakeLoop(depth);
      case 10:
        return kb::If(MakeExpr(DType::kBool, 3), MakeBlock(depth - 1), Pick(2) == 0 ? MakeBlock(depth - 1) : Block());
      default: {
        // A tile lives in a block of its own, so that its name is in scope where it is used.
        const std::string tile = Fresh(), i = Fresh(), j = Fresh();
        Block body = {kb::Tile(tile, {3, 5}, 0.25)};
        body.push_back(kb::CallTile("dot_f32", {tile}, {MakeSlice(), MakeSlice()},
                                    Pick(2) == 0 ? std::vector<std::pair<std::string, ExprRef>>{{"ahead", At()}}
                                                 : std::vector<std::pair<std::string, ExprRef>>{}));
        Block inner = {kb::Store("b_f32", {kb::Ref(i), kb::Ref(j)}, kb::Ref(tile, DType::kF32) * 2.0),
                       kb::Store(tile, {kb::Ref(i), kb::Ref(j)}, MakeExpr(DType::kF32, 2))};
        body.push_back(kb::Map({i, j}, {tile}, {At(), At()}, inner));
        return kb::If(kb::Bool(true), body);
      }
    }
  }

  std::mt19937 random_;
  int names_ = 0;
  std::vector<std::string> indices_;
  std::vector<std::pair<std::string, DType>> vars_;
};

TEST(PrintKernel, RandomKernelsRoundTrip) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    const Kernel kernel = Generator(seed).Make();
    const std::string text = Print(kernel);
    const StatusOr<Kernel> parsed = ParseKernel(text);
    ASSERT_TRUE(parsed.ok()) << "seed " << seed << ": " << parsed.status() << "\n" << text;
    ASSERT_TRUE(Same(kernel, *parsed)) << "seed " << seed << "\n" << text << "\n" << Print(*parsed);
    ASSERT_EQ(Print(*parsed), text) << "seed " << seed;
    const std::string key = Print(kernel, {.normalise_names = true});
    ASSERT_EQ(Print(*parsed, {.normalise_names = true}), key) << "seed " << seed;
    const StatusOr<Kernel> normal = ParseKernel(key);
    ASSERT_TRUE(normal.ok()) << "seed " << seed << ": " << normal.status() << "\n" << key;
    ASSERT_EQ(Print(*normal), key) << "seed " << seed;
  }
}

TEST(Same, SeesEveryField) {
  const std::string text = ReadFile(std::string(QUERN_SOURCE_DIR) + "/tests/kir/gate_up_silu.kir");
  const std::pair<const char*, const char*> changes[] = {{"M in 9..256", "M in 9..255"},
                                                         {"align 32", "align 16"},
                                                         {"by 32", "by 16"},
                                                         {"(-g)", "(g)"},
                                                         {"= 0\n", "= 1\n"},
                                                         {"+32, :", "+31, :"},
                                                         {"[ffn_up", "[ffn_down"},
                                                         {"16] {", "15] {"},
                                                         {"mma_q4_K g", "mma_q4_K u"},
                                                         {"m + i", "i + m"},
                                                         {"pack pg", "pack pu"}};
  const StatusOr<Kernel> kernel = ParseKernel(text);
  ASSERT_TRUE(kernel.ok());
  for (const auto& [from, to] : changes) {
    std::string changed = text;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, std::string_view(from).size(), to);
    const StatusOr<Kernel> other = ParseKernel(changed);
    ASSERT_TRUE(other.ok()) << from << ": " << other.status();
    EXPECT_FALSE(Same(*kernel, *other)) << from;
  }
}

}  // namespace
}  // namespace quern::kir
