// The text of emitted C, the worked kernels of tests/kir, and the comparison itself.
#include "codegen/c/emit_c.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/c_kernel.h"

namespace quern::c {
namespace {

using ::testing::HasSubstr;

kir::Kernel Parse(const std::string& text) {
  auto kernel = kir::ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message() << "\n" << text;
  return kernel.ok() ? *std::move(kernel) : kir::Kernel{};
}

// What follows the prelude.
std::string FunctionText(const std::string& text, const EmitOptions& options = {}) {
  auto emitted = EmitC(Parse(text), options);
  EXPECT_TRUE(emitted.ok()) << emitted.status().message();
  return emitted.ok() ? emitted->substr(emitted->find("\nvoid ") + 1) : "";
}

constexpr const char* kScale =
    "kernel scale (x : f32[M] in, y : f32[M] out) sym M in 1..64 { grid r in 0..M { y[r] = x[r] * 0.5 } }";

TEST(EmitC, WritesReadableText) {
  EXPECT_EQ(FunctionText(kScale), R"(void scale(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
  const int64_t M = args->symbols[0];
  const float* const x = args->buffers[0];
  float* const y = args->buffers[1];
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    const int64_t r = chunk;
    y[r] = x[r] * 0.5f;
  }
}
)");
}

TEST(EmitC, WritesOnlyTheHelpersInUse) {
  auto plain = EmitC(Parse(kScale));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->find("static"), std::string::npos) << *plain;
  auto half =
      EmitC(Parse("kernel k (x : f16[8] in, y : f16[8] out) { grid r in 0..8 { y[r] = max(x[r], cast<f16>(1.0)) } }"));
  ASSERT_TRUE(half.ok());
  for (const char* needed : {"narrow(", "bits_of_f16(", "from_bits_f16(", "max_f32("})
    EXPECT_THAT(*half, HasSubstr(needed));
  EXPECT_EQ(half->find("min_f32"), std::string::npos);
}

TEST(EmitC, KeepsReductionsReadable) {
  EXPECT_THAT(FunctionText(R"(kernel k (x : f32[M, 37] in, y : f32[M] out) sym M in 1..9 {
    grid r in 0..M { y[r] = 1 + (max accs 2 vec c in 0..37 { x[r, c] }) }
  })"),
              HasSubstr(R"(
    float max = -INFINITY;
    for (int64_t c = 0; c < 37; ++c) {
      max = max_f32(max, x[r * 37 + c]);
    }
    y[r] = 1.0f + max;
)"));
}

// C's own operators only where nothing can overflow and nothing is negative; what they give is checked as well.
TEST(EmitC, WritesIndicesPlainly) {
  const std::string text = R"(kernel k (x : i64[M, 9] in, y : i64[M, 9, 9] out) sym M in 1..64 {
    grid r in 0..M {
      for c in -4..5 {
        y[r, c + 4, 0] = (r * 9 + c) / 4
        y[r, c + 4, 1] = c % 4
        y[r, c + 4, 2] = (c + 4) % 4
        y[r, c + 4, 3] = c % -3
        y[r, c + 4, 4] = r * 4611686018427387904
        y[r, c + 4, 5] = x[r, c + 4] + 9223372036854775807
        y[r, c + 4, 6] = c - (r - c) - 5
        y[r, c + 4, 7] = max(c, 2) * (M - r)
        y[r, c + 4, 8] = (c + 4) % 8 + (c + 4) % 9
      }
    }
  })";
  const std::string emitted = FunctionText(text);
  for (const char* line : {"= (r * 9 + c) / 4;", "= mod_i64(c, 4);", "= (c + 4) % 4;", "= mod_i64(c, -3);",
                           "= mul_i64(r, 4611686018427387904L);", "= c - (r - c) - 5;", "= max_i64(c, 2) * (M - r);",
                           "= add_i64(x[r * 9 + (c + 4)], 9223372036854775807L);", "= (c + 4) % 8 + (c + 4);"}) {
    EXPECT_THAT(emitted, HasSubstr(line));
  }
  const Status status = CheckKernelThroughC(Parse(text), {{"M", 5}}, 1);
  EXPECT_TRUE(status.ok()) << status.message();
}

// A bound is taken before the loop, and a value before what its statement changes.
TEST(EmitC, TakesBoundsOnce) {
  const kir::Kernel kernel = Parse(R"(kernel k (n : i32[M] in, y : i64[M] out, z : f32[M] inout) sym M in 1..64 {
    grid r in 0..M {
      var t : i64 = cast<i64>(n[r]) + 20
      for i in 0..t { t := t + i }
      y[r] = t
      z[r] = z[r] + (sum for i in 0..7 { z[r] * cast<f32>(i) })
    }
  })");
  const Status status = CheckKernelThroughC(kernel, {{"M", 5}}, 1);
  EXPECT_TRUE(status.ok()) << status.message();
}

// 2^60 + 2^52 + 1 and 2^63 + 2^55 + 1: a double loses the 1, and half way goes to even.
TEST(EmitC, RoundsLongIntegersOnce) {
  const kir::Kernel kernel = Parse(R"(kernel k (y : bf16[3] out) {
    grid r in 0..1 {
      y[0] = cast<bf16>(r + 1157425104234217473)
      y[1] = cast<bf16>(r - 1157425104234217473)
      y[2] = cast<bf16>(9259400833873739777u64)
    }
  })");
  const Status status = CheckKernelThroughC(kernel, {}, 1);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EmitC, RenamesWhatCWouldNotTake) {
  const kir::Kernel kernel = Parse(R"(kernel k (int : f32[NAN, 7] in, add_i64 : i64[NAN] in, args : f32[NAN] out)
      sym NAN in 1..9 {
    grid chunk in 0..NAN {
      let fabs = abs(int[chunk, 3])
      let double = sum for float in 0..7 { int[chunk, float] }
      let inside = add_i64[chunk] + add_i64[chunk]
      args[chunk] = fabs + double + cast<f32>(inside)
    }
  })");
  const Status status = CheckKernelThroughC(kernel, {{"NAN", 5}}, 1);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EmitC, RefusesWhatIsNotDefined) {
  kir::Kernel kernel = Parse(kScale);
  kernel.params[0].name = "z";
  const auto emitted = EmitC(kernel);
  ASSERT_FALSE(emitted.ok());
  EXPECT_EQ(emitted.status().message(), "kernel scale, in C: x is not defined");
}

TEST(CheckKernelThroughC, PassesTheWorkedKernels) {
  // Odd sizes; the interpreter's speed limits the chunks.
  const std::map<std::string, std::pair<Binding, int64_t>> cases = {
      {"rms_norm_q8", {{{"M", 3}}, 3}},
      {"down_residual", {{}, 2}},
      {"gate_up_silu", {{{"M", 11}}, 1}},
      {"attn_decode", {{{"n", 523}, {"P", 8192}}, 3}},
  };
  std::vector<CKernelCase> checked;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(QUERN_SOURCE_DIR) + "/tests/kir")) {
    if (entry.path().extension() != ".kir") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    auto kernels = kir::ParseKernels(text.str());
    ASSERT_TRUE(kernels.ok()) << entry.path() << ": " << kernels.status().message();
    for (kir::Kernel& kernel : *kernels) {
      CKernelCase test{.kernel = std::move(kernel), .seed = 7, .max_chunks = 2};
      const auto known = cases.find(entry.path().stem().string());
      if (known != cases.end()) {
        test.binding = known->second.first;
        test.max_chunks = known->second.second;
      } else {  // a file added later: each symbol at an odd size of its range
        for (const kir::SymbolDecl& symbol : test.kernel.symbols) {
          if (!symbol.derived) test.binding[symbol.name] = std::clamp<int64_t>(13, symbol.range.low, symbol.range.high);
        }
      }
      checked.push_back(std::move(test));
    }
  }
  ASSERT_GE(checked.size(), cases.size());
  const Status status = CheckKernelsThroughC(checked);
  EXPECT_TRUE(status.ok()) << status.message();
}

// What the comparison must not let through.
TEST(CheckKernelThroughC, SeesEachKindOfDifference) {
  const std::string head = "kernel k (x : f32[M, 5] in, y : f32[M, 5] out) sym M in 1..9 { grid r in 0..M { ";
  const kir::Kernel right = Parse(head + "vec c in 0..5 { y[r, c] = x[r, c] * 3 } } }");
  const std::pair<const char*, const char*> wrong[] = {
      {"vec c in 0..5 { y[r, c] = x[r, c] * 3.0000002 } } }", "in double, y["},  // one ulp
      {"vec c in 0..4 { y[r, c] = x[r, c] * 3 } } }", "in double, y["},          // the last element
      {"vec c in 0..5 { y[r, c] = x[r, c] * 3 } if r == M - 1 { y[r + 1, 0] = 0 } } }", "writes outside y"},
      {"vec c in 0..5 { y[r, c] = x[r, c] * 3 } alloc s : f32[1] scratch s[0] = 1 } }", "writes outside its scratch"},
  };
  for (const auto& [body, message] : wrong) {
    CKernelCase test{.kernel = right, .binding = {{"M", 4}}, .emitted = Parse(head + body)};
    const Status status = CheckKernelsThroughC({&test, 1});
    ASSERT_FALSE(status.ok()) << body;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << body;
    EXPECT_THAT(std::string(status.message()), HasSubstr("kernel k, seed 1")) << body;
  }
}

TEST(CLibrary, ReportsTheCompilerAndLeavesNoFiles) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "quern-c-library-test";
  std::filesystem::create_directory(folder);
  const char* const before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  setenv("TMPDIR", folder.c_str(), 1);
  const auto failed = CLibrary::Compile({"int broken(void) { return oops; }"});
  const auto compiled = CLibrary::Compile({"void f(void) {}", "void g(void) {}"});
  const bool empty = std::filesystem::is_empty(folder);
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", saved.c_str(), 1);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(empty);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("oops"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_NE(compiled->Find(1, "g"), nullptr);
  EXPECT_EQ(compiled->Find(1, "f"), nullptr);
}

}  // namespace
}  // namespace quern::c
