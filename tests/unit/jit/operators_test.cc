// Every operator and cast on every dtype, widened and scalar, at extents around the lane counts, against the
// interpreter.
#include <cstring>
#include <map>

#include "jit_support.h"
#include "kir/operators.h"

namespace quern::jit_test {
namespace {

using kir::Op;

constexpr DType kScalars[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                              DType::kI16, DType::kI32, DType::kI64,  DType::kU8,  DType::kU16,
                              DType::kU32, DType::kU64, DType::kBool};
constexpr int64_t kExtents[] = {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 37};

std::string Spell(Op op, DType dtype) {
  const kir::OpRow& row = kir::Row(op);
  const std::string name = row.name;
  // Integer divisors must be proved other than zero; both signs are tried.
  if (dtype == DType::kU64 && (op == Op::kDiv || op == Op::kMod)) return "a[i] " + name + " 7";
  // By positive and by negative numbers, -1 and the lowest among them.
  if (!IsFloat(dtype) && (op == Op::kDiv || op == Op::kMod)) {
    const std::string positive = "(a[i] " + name + " max(b[i], 1))";
    return IsUnsigned(dtype) ? positive : positive + " ^ (a[i] " + name + " min(b[i], -1))";
  }
  if (op == Op::kSelect) return "select(p[i], a[i], b[i])";
  // Logarithms and roots of positive numbers, angles and exponents of moderate size: m.
  const std::string x = row.math ? "m" : "a", y = op == Op::kPow ? "n" : "b";
  const std::string first = op == Op::kPow || op == Op::kLog || op == Op::kLog2 ? "abs(m[i])" : x + "[i]";
  if (row.arity == 3) return name + "(a[i], b[i], m[i])";
  if (row.syntax == kir::OpSyntax::kPrefix) return name + first;
  if (row.syntax == kir::OpSyntax::kInfix) return first + " " + name + " " + y + "[i]";
  return name + "(" + first + (row.arity == 2 ? ", " + y + "[i])" : ")");
}

enum class Form { kVecSymbol, kVecConstant, kScalar };

// One kernel that applies every operator of `ops` to a, b and p, one output each.
kir::Kernel OperatorKernel(DType dtype, const std::vector<Op>& ops, Form form, int64_t extent) {
  const std::string type(Row(dtype).name);
  const std::string n = form == Form::kVecConstant ? std::to_string(extent) : "N";
  std::string text =
      "kernel ops_" + type + "_" + std::to_string(static_cast<int>(form)) + "_" + std::to_string(extent) + " (\n";
  for (const char* name : {"a", "b", "m", "n"}) text += absl::StrFormat("  %s : %s[%s] in\n", name, type, n);
  text += "  p : bool[" + n + "] in\n";
  std::string body;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool compare = ops[i] == Op::kEq || ops[i] == Op::kNe || ops[i] == Op::kLt || ops[i] == Op::kLe;
    text += absl::StrFormat("  y%d : %s[%s] out\n", i, compare ? "bool" : type, n);
    body += absl::StrFormat("      y%d[i] = %s\n", i, Spell(ops[i], dtype));
  }
  text += form == Form::kVecConstant ? ") {\n" : ") sym N in 1..4096 {\n";
  text +=
      "  grid g in 0..1 {\n    " + std::string(form == Form::kScalar ? "for" : "vec") + " i in 0.." + n + " {\n" + body;
  return Parse(text + "    }\n  }\n}\n");
}

Tolerance ToleranceOf(Op op, DType dtype) {
  if (!IsFloat(dtype)) return {};
  const kir::OpRow& row = kir::Row(op);
  const double epsilon = dtype == DType::kF64 ? 1e-15 : 1.2e-7;
  if (row.math) return {8 * epsilon, 4 * epsilon};
  // fma may round twice where there is no such instruction; rsqrt is a root and a division.
  if (op == Op::kFma) return {4 * epsilon, 1e-6};
  if (op == Op::kRsqrt) return {2 * epsilon, 0};
  return {};  // exact
}

class Operators : public testing::TestWithParam<DType> {};

TEST_P(Operators, AgreeWithTheInterpreter) {
  const DType dtype = GetParam();
  SCOPED_TRACE(absl::StrFormat("seed %d", kSeed));
  Rng rng(kSeed + static_cast<uint64_t>(dtype));
  std::vector<Op> ops;
  for (int op = 0; op < kir::kOpCount; ++op) {
    if (kir::Takes(kir::Row(static_cast<Op>(op)).domain, dtype)) ops.push_back(static_cast<Op>(op));
  }
  std::vector<kir::Kernel> kernels = {OperatorKernel(dtype, ops, Form::kVecSymbol, 0),
                                      OperatorKernel(dtype, ops, Form::kScalar, 0),
                                      OperatorKernel(dtype, ops, Form::kVecConstant, 23)};
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) {
    for (int64_t extent : kExtents) {
      const bool constant = kernel.symbols.empty();
      if (constant && extent != kExtents[0]) continue;
      Case test{.kernel = &kernel, .symbols = {}, .buffers = {}, .tolerance = {}, .each = {}};
      if (!constant) test.symbols["N"] = extent;
      test.buffers = MakeBuffers(kernel, test.symbols);
      FillInputs(kernel, test.buffers, {.range = 8, .specials = true}, rng);
      for (int p : {2, 3}) {
        if (IsFloat(dtype)) FillScalars(dtype, test.buffers[p].span(), {.range = 3}, rng);
      }
      if (Row(dtype).kind == DTypeClass::kSigned) {  // the quotient that a machine's division does not have
        const int64_t lowest = INT64_MIN >> (64 - 8 * ScalarBytes(dtype)), minus_one = -1;
        std::memcpy(test.buffers[0].span().data(), &lowest, static_cast<size_t>(ScalarBytes(dtype)));
        std::memcpy(test.buffers[1].span().data(), &minus_one, static_cast<size_t>(ScalarBytes(dtype)));
      }
      test.each.assign(5, {});
      for (Op op : ops) test.each.push_back(ToleranceOf(op, dtype));
      cases.push_back(std::move(test));
    }
  }
  CheckCases(cases);
}

INSTANTIATE_TEST_SUITE_P(All, Operators, testing::ValuesIn(kScalars),
                         [](const auto& info) { return std::string(Row(info.param).name); });

class Casts : public testing::TestWithParam<DType> {};

TEST_P(Casts, AgreeWithTheInterpreter) {
  const DType from = GetParam();
  SCOPED_TRACE(absl::StrFormat("seed %d", kSeed));
  Rng rng(kSeed + static_cast<uint64_t>(from));
  const std::string type(Row(from).name);
  std::vector<kir::Kernel> kernels;
  for (const char* loop : {"vec", "for"}) {
    std::string text = absl::StrFormat("kernel cast_%s_%s (\n  a : %s[N] in\n", type, loop, type), body;
    for (DType to : kScalars) {
      if (to == from) continue;
      text += absl::StrFormat("  to_%s : %s[N] out\n", Row(to).name, Row(to).name);
      body += absl::StrFormat("      to_%s[i] = cast<%s>(a[i])\n", Row(to).name, Row(to).name);
      const bool same_size = ScalarBytes(to) == ScalarBytes(from) && to != DType::kBool && from != DType::kBool;
      if (!same_size) continue;
      text += absl::StrFormat("  as_%s : %s[N] out\n", Row(to).name, Row(to).name);
      body += absl::StrFormat("      as_%s[i] = bits<%s>(a[i])\n", Row(to).name, Row(to).name);
    }
    kernels.push_back(Parse(text + ") sym N in 1..4096 {\n  grid g in 0..1 {\n    " + loop + " i in 0..N {\n" + body +
                            "    }\n  }\n}\n"));
  }
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) {
    for (int64_t extent : {1, 7, 16, 37, 101}) {
      Case test{.kernel = &kernel, .symbols = {{"N", extent}}, .buffers = {}, .tolerance = {}, .each = {}};
      test.buffers = MakeBuffers(kernel, test.symbols);
      FillInputs(kernel, test.buffers, {.range = 300, .specials = true}, rng);
      // Just past the middle of two values of bf16: half to even, for who rounds by way of a double.
      constexpr int64_t kPastMiddle = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
      if (!IsFloat(from) && ScalarBytes(from) == 8) std::memcpy(test.buffers[0].span().data(), &kPastMiddle, 8);
      // Just before the middle, of f16 and of bf16: up, for who rounds by way of f32.
      for (int i = 0; from == DType::kF64 && i < std::min<int64_t>(2, extent); ++i) {
        const double before_middle = i == 0 ? 1 + 0x3p-11 - 0x1p-45 : 1 + 0x3p-8 - 0x1p-45;
        std::memcpy(test.buffers[0].span().data() + 8 * i, &before_middle, 8);
      }
      cases.push_back(std::move(test));
    }
  }
  CheckCases(cases);
}

INSTANTIATE_TEST_SUITE_P(All, Casts, testing::ValuesIn(kScalars),
                         [](const auto& info) { return std::string(Row(info.param).name); });

class Reductions : public testing::TestWithParam<DType> {};

TEST_P(Reductions, AgreeWithTheInterpreter) {
  const DType dtype = GetParam();
  SCOPED_TRACE(absl::StrFormat("seed %d", kSeed));
  Rng rng(kSeed + static_cast<uint64_t>(dtype));
  const std::string type(Row(dtype).name);
  // Rows reduced by vec with 1, 3 and 4 accumulators and by a plain loop; columns reduced inside a vec loop.
  std::string text = absl::StrFormat("kernel reduce_%s (\n  x : %s[M, N] in\n", type, type), body, columns;
  int outputs = 0;
  for (const char* op : {"sum", "prod", "max", "min"}) {
    for (const char* loop : {"vec", "accs 3 vec", "accs 4 vec", "for"}) {
      text += absl::StrFormat("  r%d : %s[M] out\n", outputs, type);
      body += absl::StrFormat("    r%d[m] = %s %s c in 0..N { x[m, c] }\n", outputs++, op, loop);
    }
    text += absl::StrFormat("  c%s : %s[M, N] out\n", op, type);
    columns += absl::StrFormat("      c%s[m, c] = %s for r in 0..M { x[r, c] }\n", op, op);
  }
  const kir::Kernel kernel = Parse(text + ") sym M in 1..64, N in 1..4096 {\n  grid m in 0..M {\n" + body +
                                   "    vec c in 0..N {\n" + columns + "    }\n  }\n}\n");
  std::vector<Case> cases;
  for (int64_t extent : kExtents) {
    for (int64_t rows : {1, 3}) {
      Case test{.kernel = &kernel,
                .symbols = {{"M", rows}, {"N", extent * (rows == 3 ? 5 : 1)}},
                .buffers = {},
                .tolerance = {},
                .each = {}};
      test.buffers = MakeBuffers(kernel, test.symbols);
      FillInputs(kernel, test.buffers, {.range = 1.1}, rng);
      test.tolerance = dtype == DType::kF64 ? Tolerance{1e-13, 1e-13} : Tolerance{1e-5, 1e-5};
      cases.push_back(std::move(test));
    }
  }
  CheckCases(cases);
}

INSTANTIATE_TEST_SUITE_P(All, Reductions,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kI16,
                                         DType::kI32, DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64),
                         [](const auto& info) { return std::string(Row(info.param).name); });

}  // namespace
}  // namespace quern::jit_test
