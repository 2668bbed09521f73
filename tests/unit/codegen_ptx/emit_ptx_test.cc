// PTX of scheduled kernels: golden files of the text (QUERN_BLESS=1 writes them), what ptxas says where it is installed,
// and what is refused.
#include "codegen/ptx/emit_ptx.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/block_schedule.h"
#include "codegen/region.h"
#include "gtest/gtest.h"
#include "ir/graph.h"

namespace quern::ptx {
namespace {

using codegen::DeviceModule;
using codegen::DeviceTarget;

constexpr const char* kMap = R"(kernel map (x : f32[S] in
    y : f32[S] out
  ) sym S in 1..100000 {
    grid c0 in 0..S by 8192 { vec i in c0..min(c0 + 8192, S) { y[i] = x[i] * sigmoid(x[i]) } }
  })";
constexpr const char* kRows = R"(kernel rows (x : f32[M, C] in
    g : f32[C] in
    y : f32[M, C] out
  ) sym M in 1..512, C in 1..5000 {
    grid i0 in 0..M {
      let r0 = (sum accs 4 vec c0 in 0..C { contract(x[i0, c0] * x[i0, c0]) }) / cast<f32>(C)
      let s0 = rsqrt(r0 + 1e-5)
      vec c in 0..C { y[i0, c] = x[i0, c] * s0 * g[c] }
    }
  })";

std::string ProductOf(const char* dtype, const char* depth = "K") {
  const std::string a = std::string(dtype) == "f32" ? "a[i, k]" : "cast<f32>(a[i, k])";
  const std::string b = std::string(dtype) == "f32" ? "b[j, k]" : "cast<f32>(b[j, k])";
  return absl::StrCat("kernel product (a : ", dtype, "[M, ", depth, "] in\n b : ", dtype, "[N, ", depth, "] in\n c : f32[M, N] out\n",
                      ") sym M in 1..4096, N in 1..4096", depth[0] == 'K' ? ", K in 1..4096" : "",
                      " { grid i in 0..M, j in 0..N { c[i, j] = sum for k in 0..", depth, " { ", a, " * ", b, " } } }");
}

const DeviceTarget& TargetOf(std::string_view cpu) {
  for (const DeviceTarget& target : Targets()) {
    if (target.cpu == cpu) return target;
  }
  return Targets()[0];
}

// Four heads of queries over two of keys, of 16, in a cache of halves; each query sees those up to its own place.
std::string AttentionOf(const char* rows) {
  const bool many = rows[0] == 'S';
  const std::string symbols = many ? " sym P in 0..2000, S in 9..256" : " sym P in 0..2000", keys = absl::StrCat("P + ", rows);
  const std::string inputs = absl::StrCat("  %0 = Input() {name = \"q\"} : f32[1, ", rows, ", 64]\n  %1 = Input() {name = \"k\"} : f16[1, ", keys,
                                          ", 32]\n  %2 = Input() {name = \"v\"} : f16[1, ", keys, ", 32]\n");
  const std::string type = absl::StrCat(" : f32[1, ", rows, ", 64]");
  return absl::StrCat("graph g", symbols, " {\n", inputs, "  %3 = Region(%0, %1, %2) {family = \"attention\"}", type, " body graph body", symbols, " {\n", inputs,
                      "  %3 = Attention(%0, %1, %2) {head_dim = 16, heads = 4, kv_heads = 2, layout = \"packed\", mask = \"causal\", scale = 0.0, ",
                      "softcap = 0.0, window = 0}", type, "\n  return %3\n}\n  return %3\n}");
}

// Weights become halves as they are copied to shared memory, activations are rounded.
std::string MixedProductOf(const char* format, const char* half) {
  return absl::StrCat("kernel product (x : f32[M, 512] in\n w : ", format, "[N, 512] @blocks in\n c : f32[M, N] out\n) sym M in 1..4096, ",
                      "N in 1..4096 { grid bm in 0..M by 64, bn in 0..N by 64 { alloc sa, sb : ", half, "[64, 40] shared\n",
                      "thread w0 in 0..4 @ warp { tile acc : f32[32, 32] = 0\n pipeline k0 in 0..512 by 32 stages 2 { fetch {\n",
                      "copy sa[0 : +64, 0 : +32] = x[bm : +64, k0 : +32]\n copy sb[0 : +64, 0 : +32] = w[bn : +64, k0 : +32]\n } use {\n",
                      "mma_", half, " acc += sa[w0 / 2 * 32 : +32, 0 : +32], sb[w0 % 2 * 32 : +32, 0 : +32]\n } }\n",
                      "map (i, j) in acc [min(32, M - bm - w0 / 2 * 32), min(32, N - bn - w0 % 2 * 32)] {\n",
                      "c[bm + w0 / 2 * 32 + i, bn + w0 % 2 * 32 + j] = acc } } } }");
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

// A row of a matrix of blocks times a vector, by a warp: each lane takes eight neighbours at a time.
std::string GemvOf(const char* format) {
  std::string sums = "let s0 = acc\n";
  for (int i = 0; i < 5; ++i) absl::StrAppend(&sums, "let o", i, " = shuffle_xor(s", i, ", ", 16 >> i, ")\nlet s", i + 1, " = s", i, " + o", i, "\n");
  return absl::StrCat("kernel gemv (w : ", format, "[N, 768] @blocks in\n x : f32[768] in\n y : f32[N] out\n) sym N in 1..4096 {\n"
                      "grid n in 0..N { thread t in 0..32 @ block {\n var acc : f32 = 0\n for k in t * 8..768 by 256 { unroll u in 0..8 {"
                      " acc := contract(acc + decode(w, n, k + u) * x[k + u]) } }\n", sums, "if t == 0 { y[n] = s5 } } } }");
}

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
  return absl::StrCat("kernel ", name, "_", type, " (a", two ? ", b" : "", " : ", type, "[S] in\n y : ", type, "[S] out\n) sym S in 1..100000 { ",
                      "grid c in 0..S by 32 { thread t in 0..32 @ block { if c + t < S { let i = c + t\n y[i] = ", value, " } } } }");
}

StatusOr<DeviceModule> Emitted(const kir::Kernel& kernel, const std::string& symbol, const DeviceTarget& target) {
  return target.emit({&kernel, 1}, {&symbol, 1}, target);
}

// A plain kernel scheduled, or one that has threads already.
StatusOr<kir::Kernel> Scheduled(const std::string& text, const codegen::BlockFacts& facts) {
  QUERN_ASSIGN(kir::Kernel kernel, kir::ParseKernel(text));
  QUERN_RETURN_IF_ERROR(kir::Verify(kernel));
  QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
  if (shape.threads > 0) return kernel;
  return codegen::ScheduleBlocks(kernel, facts);
}

// The kernels of the only region of a graph.
StatusOr<std::vector<kir::Kernel>> Lowered(const std::string& text, const codegen::BlockFacts& facts) {
  QUERN_ASSIGN(const ir::Graph graph, ir::Parse(text));
  codegen::TargetFacts target;
  target.blocks = facts;
  std::vector<kir::Kernel> kernels;
  for (const ir::Node& node : graph.nodes()) {
    if (node.body == nullptr) continue;
    QUERN_ASSIGN(codegen::LoweredRegion lowered, codegen::LowerRegion(graph, node, graph.symbols, target));
    for (codegen::KernelUse& use : lowered.kernels) kernels.push_back(std::move(use.kernel));
  }
  return kernels;
}

// One entry a kernel of a graph, "SYMBOL", "SYMBOL_1", ...; a kernel's alone otherwise.
StatusOr<DeviceModule> Made(const std::string& text, const std::string& symbol, const char* cpu = "sm_80") {
  const DeviceTarget& target = TargetOf(cpu);
  if (!text.starts_with("graph")) {
    QUERN_ASSIGN(const kir::Kernel scheduled, Scheduled(text, target.facts));
    return Emitted(scheduled, symbol, target);
  }
  QUERN_ASSIGN(const std::vector<kir::Kernel> kernels, Lowered(text, target.facts));
  std::vector<std::string> symbols;
  for (size_t i = 0; i < kernels.size(); ++i) symbols.push_back(i == 0 ? symbol : absl::StrCat(symbol, "_", i));
  return target.emit(kernels, symbols, target);
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
  const std::string command = absl::StrCat(Ptxas(), " -v -arch=", target, " -o ", stem, ".cubin ", stem, ".ptx > ", stem, ".log 2>&1");
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadFile(stem + ".log");
  return ReadFile(stem + ".log");
}

// A product of constant sizes, large enough for squares of 128.
constexpr const char* kLargeProduct = R"(kernel product (a : bf16[4096, 4096] in
    b : bf16[4096, 4096] in
    c : bf16[4096, 4096] out
  ) {
    grid i in 0..4096, j in 0..4096 { c[i, j] = cast<bf16>(sum for k in 0..4096 { cast<f32>(a[i, k]) * cast<f32>(b[j, k]) }) }
  })";

struct Case { const char* name; std::string text; const char* cpu = "sm_80"; };
std::vector<Case> Cases() {
  return {{"scalars", kScalars}, {"map", kMap}, {"rows", kRows}, {"product_f32", ProductOf("f32")}, {"product_f16", ProductOf("f16")},
          {"product_bf16", ProductOf("bf16")}, {"product_large", kLargeProduct}, {"product_large_groups", kLargeProduct, "sm_90a"},
          {"product_f16_groups", ProductOf("f16", "136"), "sm_90a"}, {"product_f16_async", ProductOf("f16", "136")}, {"product_f32_async", ProductOf("f32", "36")},
          {"attention_token", AttentionOf("1")}, {"attention_prompt", AttentionOf("S")},
          {"product_q4_K_f16", MixedProductOf("q4_K", "f16")}, {"product_q8_0_bf16", MixedProductOf("q8_0", "bf16")},
          {"gemv_q4_0", GemvOf("q4_0")}, {"gemv_q8_0", GemvOf("q8_0")},
          {"gemv_q4_K", GemvOf("q4_K")}, {"gemv_q5_K", GemvOf("q5_K")}, {"gemv_q6_K", GemvOf("q6_K")}};
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

TEST(EmitPtx, UsesWhatTheMachineHas) {
  const std::string rows = Made(kRows, "rows")->text;
  EXPECT_NE(rows.find("shfl.sync.bfly.b32"), std::string::npos);
  EXPECT_NE(rows.find("bar.sync"), std::string::npos);
  EXPECT_NE(rows.find("sqrt.rn.f32"), std::string::npos);
  EXPECT_NE(Made(ProductOf("f16"), "p")->text.find("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), std::string::npos);
  EXPECT_NE(Made(ProductOf("bf16"), "p")->text.find("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), std::string::npos);
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
  EXPECT_EQ(Errors(Made("kernel k (x : q8_K[4, 256] @planar in\n y : f32[256] out\n) { grid g in 0..1 { vec i in 0..256 { "
                        "y[i] = decode(x, 0, i) } } }", "k")),
            "kernel k: PTX of q8_K[4, 256] @planar");
  const StatusOr<kir::Kernel> plain = kir::ParseKernel(kMap);
  EXPECT_EQ(Errors(Emitted(*plain, "k", Targets()[0])), "kernel map is not scheduled for blocks of threads");
}

}  // namespace
}  // namespace quern::ptx
