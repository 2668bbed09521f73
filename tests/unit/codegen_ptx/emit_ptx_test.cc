// PTX of scheduled kernels: golden files of the text (QUERN_BLESS=1 writes them), what ptxas says where it is
// installed, and what is refused.
#include "codegen/ptx/emit_ptx.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/block_kernels.h"
#include "support/ptx_machine.h"

namespace quern::ptx {
namespace {

using codegen::DeviceModule;
using codegen::DeviceTarget;

const DeviceTarget& TargetOf(std::string_view cpu) {
  for (const DeviceTarget& target : Targets()) {
    if (target.cpu == cpu) return target;
  }
  return Targets()[0];
}

// Conversions that round once, integers at their limits, and what NaN, signs and ties ask of the rest.
constexpr const char* kScalars = R"(kernel scalars (x : f64[S] in
    f : f32[S] in
    n, m : i64[S] in
    half : f16[S, 2] out
    brain : bf16[S, 2] out
    whole : i32[S, 2] out
    whole64 : i64[S, 4] out
    real : f32[S, 7] out
  ) sym S in 1..100000 {
    grid c in 0..S by 32 { thread t in 0..32 @ block { if c + t < S {
      let i = c + t
      half[i, 0] = cast<f16>(x[i])
      half[i, 1] = cast<f16>(n[i])
      brain[i, 0] = cast<bf16>(x[i])
      brain[i, 1] = cast<bf16>(n[i])
      whole[i, 0] = cast<i32>(f[i])
      whole[i, 1] = cast<i32>(cast<u8>(x[i]))
      whole64[i, 0] = select(m[i] != 0, n[i] / select(m[i] == 0, 1, m[i]), 0)
      whole64[i, 1] = select(m[i] != 0, n[i] % select(m[i] == 0, 1, m[i]), 0)
      whole64[i, 2] = n[i] << m[i]
      whole64[i, 3] = n[i] >> m[i]
      real[i, 0] = floor(f[i])
      real[i, 1] = ceil(f[i])
      real[i, 2] = trunc(f[i])
      real[i, 3] = round(f[i])
      real[i, 4] = min(f[i], cast<f32>(x[i]))
      real[i, 5] = max(f[i], cast<f32>(x[i]))
      real[i, 6] = abs(rsqrt(f[i]))
    } } }
  })";

// The functions that are no instructions; each becomes a kernel of its own: y = f(a) or f(a, b).
std::vector<std::string> Functions() {
  std::vector<std::string> made;
  for (int i = 0; i < kir::kOpCount; ++i) {
    const kir::OpRow& row = kir::Row(static_cast<kir::Op>(i));
    if (row.math || row.op == kir::Op::kMod) made.push_back(row.op == kir::Op::kMod ? "mod" : row.name);
  }
  return made;
}

std::string FunctionKernel(const std::string& name, const std::string& type) {
  const bool two = name == "pow" || name == "atan2" || name == "mod";
  const std::string value = name == "mod" ? "a[i] % b[i]" : absl::StrCat(name, two ? "(a[i], b[i])" : "(a[i])");
  return absl::StrCat(
      "kernel ", name, "_", type, " (a", two ? ", b" : "", " : ", type, "[S] in\n y : ", type,
      "[S] out\n) sym S in 1..100000 { ",
      "grid c in 0..S by 32 { thread t in 0..32 @ block { if c + t < S { let i = c + t\n y[i] = ", value, " } } } }");
}

StatusOr<DeviceModule> Emitted(const kir::Kernel& kernel, const std::string& symbol, const DeviceTarget& target) {
  return target.emit({&kernel, 1}, {&symbol, 1}, target);
}

// One entry a kernel of a graph, "SYMBOL", "SYMBOL_1", ...; a kernel's alone otherwise.
StatusOr<DeviceModule> Made(const std::string& text, const std::string& symbol, const char* cpu = "sm_80") {
  const DeviceTarget& target = TargetOf(cpu);
  QUERN_ASSIGN(const std::vector<kir::Kernel> kernels, ScheduledAll(text, target.facts));
  return target.emit(kernels, EntryNames(symbol, kernels.size()), target);
}

// Of BlockKernels.
std::string TextOf(std::string_view name) {
  for (const BlockKernel& kernel : BlockKernels()) {
    if (name == kernel.name) return kernel.text;
  }
  ADD_FAILURE() << "no kernel is called " << name;
  return "";
}

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Errors(const StatusOr<DeviceModule>& made) { return std::string(made.status().message()); }

// The assembler: QUERN_PTXAS, else on the path; "" where there is none.
std::string Ptxas() {
  if (const char* given = std::getenv("QUERN_PTXAS")) return given;
  return std::system("ptxas --version > /dev/null 2>&1") == 0 ? "ptxas" : "";
}

// Assembles and returns what ptxas -v says.
std::string Assembled(const std::string& ptx, const std::string& name, const char* target) {
  const std::string stem = absl::StrCat(testing::TempDir(), "/", name, "_", target);
  std::ofstream(stem + ".ptx") << ptx;
  const std::string command =
      absl::StrCat(Ptxas(), " -v -arch=", target, " -o ", stem, ".cubin ", stem, ".ptx > ", stem, ".log 2>&1");
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadFile(stem + ".log");
  return ReadFile(stem + ".log");
}

// A product of constant sizes, large enough for squares of 128.
constexpr const char* kLargeProduct = R"(kernel product (a : bf16[4096, 4096] in
    b : bf16[4096, 4096] in
    c : bf16[4096, 4096] out
  ) {
    grid i in 0..4096, j in 0..4096 {
      c[i, j] = cast<bf16>(sum for k in 0..4096 { cast<f32>(a[i, k]) * cast<f32>(b[j, k]) })
    }
  })";

struct Case {
  const char* name;
  std::string text;
  const char* cpu = "sm_80";
};
std::vector<Case> Cases() {
  return {{"scalars", kScalars},
          {"map", TextOf("map")},
          {"rows", TextOf("rows")},
          {"spread", TextOf("spread")},
          {"product_f32", ProductOf("f32")},
          {"product_f16", ProductOf("f16")},
          {"product_bf16", ProductOf("bf16")},
          {"product_large", kLargeProduct},
          {"product_large_groups", kLargeProduct, "sm_90a"},
          {"product_f16_groups", ProductOf("f16", "136"), "sm_90a"},
          {"product_f16_async", ProductOf("f16", "136")},
          {"product_f32_async", ProductOf("f32", "36")},
          {"attention_token", AttentionOf("1")},
          {"attention_prompt", AttentionOf("S")},
          {"product_q4_K_f16", MixedProductOf("q4_K", "f16")},
          {"product_q8_0_bf16", MixedProductOf("q8_0", "bf16")},
          {"gemv_q4_0", GemvOf("q4_0")},
          {"gemv_q8_0", GemvOf("q8_0")},
          {"gemv_q4_K", GemvOf("q4_K")},
          {"gemv_q5_K", GemvOf("q5_K")},
          {"gemv_q6_K", GemvOf("q6_K")},
          {"gemv_q5_0", GemvOf("q5_0")},
          {"gemv_iq4_nl", GemvOf("iq4_nl")},
          {"gemv_q4_1", GemvOf("q4_1")},
          {"gemv_q5_1", GemvOf("q5_1")},
          {"gemv_q2_K", GemvOf("q2_K")},
          {"gemv_q3_K", GemvOf("q3_K")},
          {"gemv_iq4_xs", GemvOf("iq4_xs")},
          {"gemv_mxfp4", GemvOf("mxfp4")},
          {"gemv_tq1_0", GemvOf("tq1_0")},
          {"gemv_tq2_0", GemvOf("tq2_0")},
          {"gemv_iq2_xs", GemvOf("iq2_xs")},
          {"gemv_iq3_s", GemvOf("iq3_s")},
          {"gemv_iq1_m", GemvOf("iq1_m")}};
}

TEST(EmitPtx, GoldenFiles) {
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.name);
    const StatusOr<DeviceModule> made = Made(test.text, test.name, test.cpu);
    ASSERT_TRUE(made.ok()) << made.status();
    const std::string path = absl::StrCat(QUERN_SOURCE_DIR, "/tests/ptx/", test.name, ".ptx");
    if (std::getenv("QUERN_BLESS") != nullptr) std::ofstream(path) << made->text;
    EXPECT_EQ(made->text, ReadFile(path)) << "differs from " << path;
    EXPECT_EQ(Made(test.text, test.name, test.cpu)->text, made->text);
  }
}

TEST(EmitPtx, GoldenFunctions) {
  for (const std::string type : {"f32", "f64"}) {
    SCOPED_TRACE(type);
    std::vector<kir::Kernel> kernels;
    std::vector<std::string> symbols;
    for (const std::string& name : Functions()) {
      kernels.push_back(*Scheduled(FunctionKernel(name, type), Targets()[0].facts));
      symbols.push_back(kernels.back().name);
    }
    const StatusOr<DeviceModule> made = Targets()[0].emit(kernels, symbols, Targets()[0]);
    ASSERT_TRUE(made.ok()) << made.status();
    const std::string path = absl::StrCat(QUERN_SOURCE_DIR, "/tests/ptx/math_", type, ".ptx");
    if (std::getenv("QUERN_BLESS") != nullptr) std::ofstream(path) << made->text;
    EXPECT_EQ(made->text, ReadFile(path)) << "differs from " << path;
  }
}

// Many kernels make one text, each with the shared memory that is its own.
TEST(EmitPtx, OneTextForManyKernels) {
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> symbols;
  for (const Case& test : Cases()) {
    if (test.text.starts_with("graph")) continue;
    kernels.push_back(*Scheduled(test.text, Targets()[0].facts));
    symbols.push_back(test.name);
  }
  const StatusOr<DeviceModule> all = Targets()[0].emit(kernels, symbols, Targets()[0]);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->kernels.size(), symbols.size());
  EXPECT_EQ(all->text.find(".version"), all->text.rfind(".version"));
  for (size_t i = 0; i < symbols.size(); ++i) {
    SCOPED_TRACE(symbols[i]);
    EXPECT_NE(all->text.find(absl::StrCat(".visible .entry ", symbols[i], "(")), std::string::npos);
    const StatusOr<DeviceModule> alone = Emitted(kernels[i], symbols[i], Targets()[0]);
    EXPECT_EQ(all->kernels[i].symbol, symbols[i]);
    EXPECT_EQ(all->kernels[i].threads, alone->kernels[0].threads);
    EXPECT_EQ(all->kernels[i].shared_bytes, alone->kernels[0].shared_bytes);
  }
}

// The table of a format is defined once, whichever kernels read it: assemblers refuse two of a name.
TEST(EmitPtx, KernelsShareTables) {
  std::vector<kir::Kernel> kernels;
  for (const char* format : {"iq2_xxs", "iq3_s", "iq2_xxs", "q4_0", "iq3_s"})
    kernels.push_back(*Scheduled(GemvOf(format), Targets()[0].facts));
  const StatusOr<DeviceModule> made = Targets()[0].emit(kernels, EntryNames("gemv", kernels.size()), Targets()[0]);
  ASSERT_TRUE(made.ok()) << made.status();
  const StatusOr<PtxModule> module = PtxModule::Parse(made->text);
  ASSERT_TRUE(module.ok()) << module.status();
  for (const codegen::DeviceKernel& kernel : made->kernels) EXPECT_NE(module->Find(kernel.symbol), nullptr);
  EXPECT_FALSE(PtxModule::Parse(absl::StrCat(made->text, made->text)).ok());
  const size_t table = made->text.find("grid_iq3_s[");
  ASSERT_NE(table, std::string::npos);
  EXPECT_EQ(made->text.find("grid_iq3_s[", table + 1), std::string::npos);
}

TEST(EmitPtx, UsesWhatTheMachineHas) {
  const std::string rows = Made(TextOf("rows"), "rows")->text;
  EXPECT_NE(rows.find("shfl.sync.bfly.b32"), std::string::npos);
  EXPECT_NE(rows.find("bar.sync"), std::string::npos);
  EXPECT_NE(rows.find("sqrt.rn.f32"), std::string::npos);
  EXPECT_NE(Made(ProductOf("f16"), "p")->text.find("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
            std::string::npos);
  EXPECT_NE(Made(ProductOf("bf16"), "p")->text.find("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
            std::string::npos);
  // Copies of whole 16 bytes go on by themselves, two ahead of their use; fragments come by four.
  const std::string product = Made(ProductOf("f16", "136"), "p")->text;
  EXPECT_NE(product.find("cp.async.cg.shared.global"), std::string::npos);
  EXPECT_NE(product.find("cp.async.wait_group 1;"), std::string::npos);
  EXPECT_NE(product.find("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), std::string::npos);
  EXPECT_EQ(product.find("ld.shared"), std::string::npos);
  // Four warps as one: from descriptors, after a fence.
  const std::string group = Made(ProductOf("f16", "136"), "p", "sm_90a")->text;
  EXPECT_NE(group.find("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"), std::string::npos);
  EXPECT_NE(group.find("fence.proxy.async.shared::cta;"), std::string::npos);
  EXPECT_EQ(group.find("ldmatrix"), std::string::npos);
  EXPECT_NE(Made(ProductOf("f32", "36"), "p")->text.find("cp.async.ca.shared.global"), std::string::npos);
  EXPECT_EQ(Made(ProductOf("f16"), "p")->kernels[0].shared_bytes, 3 * 2 * 64 * 40 * 2);
  EXPECT_EQ(Made(ProductOf("f16"), "p")->kernels[0].threads, 128);
  EXPECT_EQ(Made(ProductOf("f32"), "p")->kernels[0].threads, 256);
  // Tiles are registers: nothing is kept in local memory.
  for (const Case& test : Cases()) EXPECT_EQ(Made(test.text, "p")->text.find(".local"), std::string::npos) << test.name;
}

// An index below 0 is beyond the end as an unsigned number is: one comparison keeps both out.
TEST(EmitPtx, GuardedLoadsCompareUnsigned) {
  const StatusOr<DeviceModule> made = Made(
      "kernel k (x : f32[S] in\n y : f32[S] out\n) sym S in 1..999 { grid g in 0..S by 64 { vec i in g .. min(g + 64, "
      "S) "
      "{ y[i] = x[i - 3] else 0.0 } } }",
      "k");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->text, ::testing::ContainsRegex("setp\\.[a-z]+\\.u(32|64)")) << made->text;
}

TEST(EmitPtx, Assembles) {
  if (Ptxas().empty()) GTEST_SKIP() << "no ptxas: set QUERN_PTXAS to that of the PyPI package nvidia-cuda-nvcc-cu12";
  for (const DeviceTarget& target : Targets()) {
    for (const Case& test : Cases()) {
      SCOPED_TRACE(absl::StrCat(test.name, " ", target.cpu));
      const StatusOr<DeviceModule> made = Made(test.text, test.name, target.cpu);
      ASSERT_TRUE(made.ok()) << made.status();
      const std::string log = Assembled(made->text, test.name, target.cpu);
      for (size_t at = log.find(" bytes spill"); at != std::string::npos; at = log.find(" bytes spill", at + 1)) {
        EXPECT_EQ(log.substr(at - 2, 2), " 0") << log;
      }
      size_t used = log.find("Used ");
      ASSERT_NE(used, std::string::npos) << log;
      for (; used != std::string::npos; used = log.find("Used ", used + 1)) {
        std::printf("%s %s: %s\n", test.name, target.cpu, log.substr(used, log.find('\n', used) - used).c_str());
      }
    }
  }
}

TEST(EmitPtx, SaysWhatItCannotEmit) {
  EXPECT_EQ(
      Errors(Made("kernel k (x : q8_K[4, 256] @planar in\n y : f32[256] out\n) { grid g in 0..1 { vec i in 0..256 { "
                  "y[i] = decode(x, 0, i) } } }",
                  "k")),
      "kernel k: PTX of q8_K[4, 256] @planar");
  const StatusOr<kir::Kernel> plain = kir::ParseKernel(TextOf("map"));
  EXPECT_EQ(Errors(Emitted(*plain, "k", Targets()[0])), "kernel map is not scheduled for blocks of threads");
  for (const DeviceTarget& target : Targets()) {
    EXPECT_EQ(Errors(Made(GroupProduct(), "k", target.cpu)),
              target.facts.group_products
                  ? ""
                  : "kernel product: PTX of a product of a group of warps, which the machine does not have");
  }
}

}  // namespace
}  // namespace quern::ptx
