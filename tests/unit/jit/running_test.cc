// Running values of vec loops at every level: each operator and dtype, both ways, with and without an element's own
// term, beside the interpreter; and beside a loop of floats where they leave the finite numbers.
#include "absl/strings/str_cat.h"
#include "jit_support.h"

namespace quern::jit_test {
namespace {

constexpr const char* kOps[] = {"sum", "prod", "max", "min"};

// s joined with element `at` of the row.
std::string Joined(std::string_view op, const std::string& s, const char* at) {
  const std::string x = absl::StrCat("x[r, ", at, "]");
  if (op == "sum") return absl::StrCat(s, " + ", x);
  if (op == "prod") return absl::StrCat(s, " * ", x);
  return absl::StrCat(std::string(op), "(", s, ", ", x, ")");
}

class Running : public testing::TestWithParam<DType> {};

TEST_P(Running, AgreesWithTheInterpreter) {
  const DType dtype = GetParam();
  SCOPED_TRACE(absl::StrFormat("seed %d", kSeed));
  Rng rng(kSeed + static_cast<uint64_t>(dtype));
  const std::string type(Row(dtype).name);
  std::string params = absl::StrCat("  x : ", type, "[M, N] in\n"), vars, forward, backward;
  for (const char* op : kOps) {
    absl::StrAppend(&params, "  f", op, ", e", op, ", b", op, ", d", op, " : ", type, "[M, N] out\n");
    absl::StrAppend(&vars, "    var s", op, " : ", type, " = 1\n    var t", op, " : ", type, " = 1\n");
    absl::StrAppend(&forward, "      let w", op, " = s", op, "\n      s", op,
                    " := ", Joined(op, absl::StrCat("s", op), "c"), "\n      f", op, "[r, c] = s", op, "\n      e", op,
                    "[r, c] = w", op, "\n");
    absl::StrAppend(&backward, "      let v", op, " = t", op, "\n      t", op,
                    " := ", Joined(op, absl::StrCat("t", op), "N - 1 - c"), "\n      b", op, "[r, N - 1 - c] = t", op,
                    "\n      d", op, "[r, N - 1 - c] = v", op, "\n");
  }
  const kir::Kernel kernel = Parse(
      absl::StrCat("kernel running (\n", params, ") sym M in 1..4, N in 1..4096 {\n  grid r in 0..M {\n", vars,
                   "    vec c in 0..N {\n", forward, "    }\n    vec c in 0..N {\n", backward, "    }\n  }\n}\n"));
  std::vector<Case> cases;
  for (const int64_t n : {1, 2, 3, 7, 15, 16, 17, 31, 33, 101, 257}) {
    Case test{.kernel = &kernel, .symbols = {{"M", 2}, {"N", n}}, .buffers = {}, .tolerance = {}, .each = {}};
    test.buffers = MakeBuffers(kernel, test.symbols);
    FillInputs(kernel, test.buffers, {.range = 1.1}, rng);
    test.tolerance = dtype == DType::kF64 ? Tolerance{1e-13, 1e-13} : Tolerance{2e-5, 2e-5};
    cases.push_back(std::move(test));
  }
  CheckCases(cases);
}

INSTANTIATE_TEST_SUITE_P(All, Running,
                         testing::Values(DType::kF32, DType::kF64, DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                                         DType::kU8, DType::kU16, DType::kU32, DType::kU64),
                         [](const auto& info) { return std::string(Row(info.param).name); });

// One that takes another, is read by an inner loop, or whose term stands behind the first read of what was before.
TEST(RunningForms, AgreeWithTheInterpreter) {
  Rng rng(kSeed);
  const kir::Kernel kernel = Parse(R"(
    kernel forms (
      x : f32[N] in
      y : f32[6, N] out
    ) sym N in 1..300 {
      grid r in 0..1 {
        var a : f32 = 0
        var b : f32 = 0
        var m : f32 = -inf
        vec c in 0..N {
          a := a + x[c]
          b := b + a
          m := max(m, b)
          y[0, c] = a * x[c]
          y[1, c] = b
          y[2, c] = sum for k in 0..3 { m * 2 }
        }
        var d : f32 = a
        var e : f32 = 1
        vec c in 0..N {
          let before = d
          let term = x[c] * x[c]
          d := d + term
          y[3, c] = before
          y[4, c] = d
        }
        vec c in 0..N {
          e := e * x[c]
          e := e * 0.5
          y[5, c] = e
        }
      }
    }
  )");
  std::vector<Case> cases;
  for (const int64_t n : {1, 16, 19, 64, 300}) {
    Case test{.kernel = &kernel, .symbols = {{"N", n}}, .buffers = {}, .tolerance = {1e-4, 1e-3}, .each = {}};
    test.buffers = MakeBuffers(kernel, test.symbols);
    FillInputs(kernel, test.buffers, {.range = 1}, rng);
    cases.push_back(std::move(test));
  }
  CheckCases(cases);
}

// Infinities and NaN begin where a loop has them: of sums and products that pass the largest float on the way, of 0
// times what overflows by itself, and of infinities and NaN among the terms.
TEST(RunningForms, LeavesTheFiniteNumbersWhereALoopDoes) {
  constexpr int64_t kN = 83;
  const kir::Kernel kernel = Parse(R"(
    kernel edges (
      x : f32[M, 83] in
      s, p : f32[M, 83] out
    ) sym M in 1..64 {
      grid r in 0..M {
        var a : f32 = 0
        var b : f32 = 1
        vec c in 0..83 {
          a := a + x[r, c]
          b := b * x[r, c]
          s[r, c] = a
          p[r, c] = b
        }
      }
    }
  )");
  std::vector<std::vector<float>> rows;
  const auto row = [&](std::initializer_list<float> start, float rest) {
    rows.emplace_back(start);
    rows.back().resize(kN, rest);
  };
  row({0, 300}, 300);              // 0 times an infinity of the tree
  row({1e30f, 1e30f}, 1e-30f);     // infinite from the second element on
  row({1e-30f, 1e-30f}, 1e30f);    // 0 from the second element on
  row({3e38f, 3e38f}, -3e38f);     // the same of sums
  row({3e38f, -3e38f, 3e38f}, 0);  // finite in order
  row({-3e38f, 3e38f, 3e38f, -3e38f, 1}, 1);
  row({1, INFINITY}, 0);
  row({1, INFINITY, 2, -INFINITY}, 1);
  row({1, 2, 3, NAN}, 4);
  row({-0.0f, -0.0f}, -0.0f);
  rows.emplace_back(kN, 1.5f);
  rows.back()[40] = INFINITY, rows.back()[70] = -INFINITY;
  const Binding symbols = {{"M", static_cast<int64_t>(rows.size())}};
  for (const cpu::Target* target : cpu::HostTargets()) {
    SCOPED_TRACE(target->name);
    auto engine = MakeEngine(*target);
    ASSERT_NE(engine, nullptr);
    auto module = engine->Compile({&kernel, 1});
    ASSERT_TRUE(module.ok()) << module.status();
    const std::vector<Memory> buffers = MakeBuffers(kernel, symbols);
    float* x = reinterpret_cast<float*>(buffers[0].data());
    for (size_t r = 0; r < rows.size(); ++r) std::copy(rows[r].begin(), rows[r].end(), x + r * kN);
    RunCompiled(module->kernel(0), kernel, symbols, buffers);
    const auto* sums = reinterpret_cast<const float*>(buffers[1].data());
    const auto* products = reinterpret_cast<const float*>(buffers[2].data());
    for (size_t r = 0; r < rows.size(); ++r) {
      float sum = 0, product = 1;
      for (int64_t c = 0; c < kN; ++c) {
        sum += rows[r][c];
        product *= rows[r][c];
        const Tolerance tolerance = {1e-5, 1e-30};
        EXPECT_TRUE(Near(sums[r * kN + c], sum, DType::kF32, tolerance)) << r << " " << c << " " << sums[r * kN + c];
        EXPECT_TRUE(Near(products[r * kN + c], product, DType::kF32, tolerance))
            << r << " " << c << " " << products[r * kN + c] << " for " << product;
        if (sum == 0) EXPECT_EQ(std::signbit(sums[r * kN + c]), std::signbit(sum)) << r << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace quern::jit_test
