// Every operator, conversion and reduction on every dtype that the language has, at values where languages differ.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/half.h"
#include "codegen/block_schedule.h"
#include "codegen/metal/emit_metal.h"
#include "gtest/gtest.h"
#include "kir/operators.h"
#include "support/block_kernels.h"
#include "support/metal_kernel.h"
#include "unit/codegen_c/random_kernel.h"

namespace quern::metal {
namespace {

constexpr DType kScalars[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8,  DType::kI16, DType::kI32,
                              DType::kI64, DType::kU8,  DType::kU16,  DType::kU32, DType::kU64, DType::kBool};

void Put(DType dtype, double real, int64_t integer, std::vector<uint8_t>& bytes) {
  uint64_t bits = static_cast<uint64_t>(integer);
  const auto single = static_cast<float>(real);
  if (dtype == DType::kF32) bits = std::bit_cast<uint32_t>(single);
  if (dtype == DType::kF16) bits = FloatToHalf(single);
  if (dtype == DType::kBF16) bits = FloatToBFloat16(single);
  const auto* first = reinterpret_cast<const uint8_t*>(&bits);
  bytes.insert(bytes.end(), first, first + ScalarBytes(dtype));
}

// The edge values of a dtype as memory.
std::vector<uint8_t> Edges(DType dtype) {
  std::vector<uint8_t> bytes;
  if (IsFloat(dtype)) {
    for (double value : {0.0,           -0.0,         0.5,    1.5,     2.5,     -2.5,     3.7,       -3.7,
                         0.3,           1e-7,         127.5,  254.5,   -129.0,  65519.0,  65520.0,   2147483648.0,
                         -2147483649.0, 4294967296.0, 9.3e18, -9.3e18, 1.85e19, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      Put(dtype, value, 0, bytes);
    }
    return bytes;
  }
  const int bits = dtype == DType::kBool ? 1 : 8 * ScalarBytes(dtype);
  const bool is_unsigned = IsUnsigned(dtype) || dtype == DType::kBool;
  const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1;
  const int64_t low = is_unsigned ? 0 : -high - 1;
  if (dtype == DType::kBool) {
    for (int64_t value : {0, 1}) Put(dtype, 0, value, bytes);
    return bytes;
  }
  // Beyond 24 and 8 bits, what rounds to floats: ties, and what is a tie after a first rounding.
  for (int64_t value : {low,
                        low + 1,
                        int64_t{0},
                        int64_t{1},
                        int64_t{2},
                        int64_t{7},
                        int64_t{bits - 1},
                        int64_t{bits},
                        high - 1,
                        high,
                        int64_t{16777217},
                        int64_t{16777219},
                        int64_t{0x1ffffff},
                        (int64_t{0x101} << 40) + 1,
                        (int64_t{0x1000001} << 20) + 1,
                        (int64_t{0x1000001} << 20),
                        (int64_t{0x1010000} << 8) + 1,
                        int64_t{-1},
                        int64_t{-7},
                        int64_t{-16777217}}) {
    Put(dtype, 0, value, bytes);
  }
  return bytes;
}

// Not verified, which would ask for a proof that no divisor is 0.
MetalCase CaseOf(const std::string& text, DType dtype, bool exact) {
  const StatusOr<kir::Kernel> kernel = kir::ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << text;
  MetalCase test{.kernel = kernel.ok() ? *kernel : kir::Kernel{},
                 .tolerance = exact ? 0 : 2e-6,
                 .each = true,
                 .inputs = {Edges(dtype)}};
  return test;
}

void Check(const std::vector<MetalCase>& cases) {
  const Status status = CheckKernelsThroughMetal(cases);
  EXPECT_TRUE(status.ok()) << status.message();
}

std::string Parameters(std::string_view name, DType in, size_t n, DType out, const std::string& dims) {
  return absl::StrCat("kernel ", std::string(name), " (e : ", Row(in).name, "[", n, "] in\n y : ", Row(out).name, "[",
                      dims, "] out\n) { grid g in 0..1 { thread t in 0..64 @ block { for i in t..", dims, " by 64 { ");
}

TEST(MetalTables, OperatorsOnEveryDtype) {
  std::vector<MetalCase> cases;
  for (DType dtype : kScalars) {
    const size_t n = Edges(dtype).size() / static_cast<size_t>(ScalarBytes(dtype));
    for (int o = 0; o < kir::kOpCount; ++o) {
      const kir::OpRow& row = kir::Row(static_cast<kir::Op>(o));
      if (!kir::Takes(row.domain, dtype)) continue;
      const bool comparison =
          row.op == kir::Op::kEq || row.op == kir::Op::kNe || row.op == kir::Op::kLt || row.op == kir::Op::kLe;
      std::string value;
      if (row.op == kir::Op::kSelect)
        value = "select(i % 3 == 0, a, b)";
      else if (row.syntax == kir::OpSyntax::kPrefix)
        value = absl::StrCat(row.name, "a");
      else if (row.syntax == kir::OpSyntax::kInfix)
        value = absl::StrCat("a ", row.name, " b");
      else
        value = absl::StrCat(row.name, row.arity == 1 ? "(a)" : row.arity == 2 ? "(a, b)" : "(a, b, c)");
      const std::string text = absl::StrCat(Parameters(absl::StrCat("op", o, "_", Row(dtype).name), dtype, n,
                                                       comparison ? DType::kBool : dtype, absl::StrCat(n * n)),
                                            "let a = e[i / ", n, "] let b = e[i % ", n, "] let c = e[(i * 7 + 3) % ", n,
                                            "] y[i] = ", value, " } } } }");
      cases.push_back(CaseOf(text, dtype, !IsFloat(dtype)));
    }
  }
  ASSERT_GT(cases.size(), 250u);
  Check(cases);
}

TEST(MetalTables, ConversionsBetweenAllDtypes) {
  std::vector<MetalCase> cases;
  for (DType from : kScalars) {
    const size_t n = Edges(from).size() / static_cast<size_t>(ScalarBytes(from));
    for (DType to : kScalars) {
      const std::string pair = absl::StrCat(Row(from).name, "_", Row(to).name);
      // Of a loaded value, and of one that an operator made: it is rounded first.
      for (const char* value : {"e[i]", "select(i >= 0, e[i], e[0])"}) {
        cases.push_back(CaseOf(absl::StrCat(Parameters("cast_" + pair, from, n, to, absl::StrCat(n)), "y[i] = cast<",
                                            Row(to).name, ">(", value, ") } } } }"),
                               from, /*exact=*/true));
      }
      if (ScalarBytes(from) != ScalarBytes(to) || from == DType::kBool || to == DType::kBool) continue;
      cases.push_back(CaseOf(absl::StrCat(Parameters("bits_" + pair, from, n, to, absl::StrCat(n)), "y[i] = bits<",
                                          Row(to).name, ">(e[i]) } } } }"),
                             from, /*exact=*/true));
    }
  }
  Check(cases);
}

// In order, and by all threads of a block; indices known to be small and not.
TEST(MetalTables, ReductionsAndIndices) {
  std::vector<MetalCase> cases;
  for (DType dtype : kScalars) {
    if (dtype == DType::kBool) continue;
    for (const char* op : {"sum", "prod", "max", "min"}) {
      const std::string head =
          absl::StrCat("kernel ", op, "_", Row(dtype).name, " (x : ", Row(dtype).name,
                       "[3, N] in\n y : ", Row(dtype).name, "[3] out\n) sym N in 1..300 { grid g in 0..3 { ");
      const StatusOr<kir::Kernel> together = Scheduled(
          absl::StrCat(head, "let s = ", op, " vec k in 0..N { x[g, k] }\n y[g] = s } }"), Targets()[0].facts);
      const StatusOr<kir::Kernel> alone =
          Scheduled(absl::StrCat(head, "vec i in g..g + 1 { y[i] = ", op, " for k in 0..N { x[i, k] } } } }"),
                    Targets()[0].facts);
      ASSERT_TRUE(together.ok() && alone.ok()) << together.status() << alone.status();
      // Products stay numbers for as few factors.
      const int64_t n = op[0] == 'p' ? 17 : 131;
      cases.push_back({.kernel = *together, .binding = {{"N", n}}, .seed = 5, .tolerance = 1e-4});
      cases.push_back({.kernel = *alone, .binding = {{"N", n}}, .seed = 6, .tolerance = 1e-4});
    }
  }
  const StatusOr<kir::Kernel> indices = Scheduled(R"(kernel indices (l : i64[64] in
    x : f32[M, 7] in
    y : f32[64] out
    z : i64[64, 6] out
  ) sym M in 1..50, BIG in 1.. {
    grid g in 0..1 { vec i in 0..64 {
      let j = l[i] * 3000000000
      y[i] = (x[l[i], i - 3] else 0.25) + cast<f32>(i * BIG)
      z[i, 0] = j + i
      z[i, 1] = (i - 40) / 7
      z[i, 2] = (i - 40) % 7
      z[i, 3] = max(i, l[i]) - min(j, 5)
      z[i, 4] = i * BIG * 1000
      z[i, 5] = select(i < 20, i, l[i]) * -i
    } }
  })",
                                                  Targets()[0].facts);
  ASSERT_TRUE(indices.ok()) << indices.status();
  cases.push_back({.kernel = *indices, .binding = {{"M", 13}, {"BIG", 5000000011}}, .seed = 3});
  Check(cases);
}

// Random kernels, as far as they have a schedule for threads.
TEST(MetalTables, RandomKernels) {
  constexpr int64_t kRows[] = {1, 2, 5, 13};
  std::vector<MetalCase> cases;
  for (uint64_t seed = 1; seed <= 200 && cases.size() < 25; ++seed) {
    StatusOr<kir::Kernel> kernel = codegen::ScheduleBlocks(
        kir::RandomKernel(seed, {.statements = 7, .depth = 3, .smooth = true}), Targets()[0].facts);
    if (!kernel.ok() || seed == 20) continue;  // 20 subtracts two values of which single precision keeps one digit
    // Parameters that nothing reads: what is left verifies.
    for (size_t i = kernel->params.size(); i-- > 0;) {
      kir::Kernel fewer = *kernel;
      fewer.params.erase(fewer.params.begin() + static_cast<std::ptrdiff_t>(i));
      if (kir::Verify(fewer).ok()) kernel = fewer;
    }
    cases.push_back({.kernel = *kernel, .binding = {{"M", kRows[seed % 4]}}, .seed = seed, .tolerance = 1e-4});
  }
  EXPECT_EQ(cases.size(), 25u);
  Check(cases);
}

}  // namespace
}  // namespace quern::metal
