#include "support/block_kernels.h"

#include "absl/strings/str_cat.h"
#include "codegen/block_schedule.h"
#include "codegen/region.h"
#include "ir/graph.h"
#include "support/block_formats.h"

namespace quern {
namespace {

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
constexpr const char* kSoftmax = R"(kernel rows (x : f32[M, 131] in
    y : f32[M, 131] out
  ) sym M in 1..512 {
    grid b0 in 0..M by 62 {
      for i0 in b0..min(b0 + 62, M) {
        let r0 = max accs 4 vec c0 in 0..131 { x[i0, c0] }
        alloc row2 : f32[131] scratch
        vec c2 in 0..131 { row2[c2] = exp(x[i0, c2] - r0) }
        let r1 = sum accs 4 vec c1 in 0..131 { row2[c1] }
        vec c in 0..131 { y[i0, c] = row2[130 - c] / r1 }
      }
    }
  })";
// Values that a reduction uses more than once: shared by the block, and each thread's own.
constexpr const char* kSpread = R"(kernel spread (x : f32[M, C] in
    y : f32[M, C] out
  ) sym M in 1..512, C in 1..5000 {
    grid i in 0..M {
      let m0 = (sum accs 4 vec c0 in 0..C { x[i, c0] }) / cast<f32>(C)
      let m1 = sum accs 4 vec c0 in 0..C { let d = x[i, c0] - m0; let q = d * d; contract(q * q + q) }
      vec c in 0..C { y[i, c] = m1 / sum for k in 1..4 { let d = x[i, c] * cast<f32>(k); d * d + 1.0 } }
    }
  })";

}  // namespace

std::string ProductOf(const char* dtype, const char* depth) {
  const std::string a = std::string(dtype) == "f32" ? "a[i, k]" : "cast<f32>(a[i, k])";
  const std::string b = std::string(dtype) == "f32" ? "b[j, k]" : "cast<f32>(b[j, k])";
  return absl::StrCat("kernel product (a : ", dtype, "[M, ", depth, "] in\n b : ", dtype, "[N, ", depth,
                      "] in\n c : f32[M, N] out\n", ") sym M in 1..4096, N in 1..4096",
                      depth[0] == 'K' ? ", K in 1..4096" : "",
                      " { grid i in 0..M, j in 0..N { c[i, j] = sum for k in 0..", depth, " { ", a, " * ", b, " } } }");
}

std::string MixedProductOf(const char* format, const char* half) {
  return absl::StrCat(
      "kernel product (x : f32[M, 512] in\n w : ", format,
      "[N, 512] @blocks in\n c : f32[M, N] out\n) sym M in 1..4096, ",
      "N in 1..4096 { grid bm in 0..M by 64, bn in 0..N by 64 { alloc sa, sb : ", half, "[64, 40] shared\n",
      "thread w0 in 0..4 @ warp { tile acc : f32[32, 32] = 0\n pipeline k0 in 0..512 by 32 stages 2 { fetch {\n",
      "copy sa[0 : +64, 0 : +32] = x[bm : +64, k0 : +32]\n copy sb[0 : +64, 0 : +32] = w[bn : +64, k0 : +32]\n } use "
      "{\n",
      "mma_", half, " acc += sa[w0 / 2 * 32 : +32, 0 : +32], sb[w0 % 2 * 32 : +32, 0 : +32]\n } }\n",
      "map (i, j) in acc [min(32, M - bm - w0 / 2 * 32), min(32, N - bn - w0 % 2 * 32)] {\n",
      "c[bm + w0 / 2 * 32 + i, bn + w0 % 2 * 32 + j] = acc } } } }");
}

std::string GroupProduct() {
  return R"(kernel product (a : f16[64, 32] in
    b : f16[64, 32] in
    c : f32[64, 64] out
  ) {
    grid one in 0..1 {
      alloc sa, sb : f16[64, 32] shared
      copy sa = a
      copy sb = b
      barrier
      thread g in 0..1 @ group {
        tile acc : f32[64, 64] = 0
        mma_f16 acc += sa, sb
        map (i, j) in acc [64, 64] { c[i, j] = acc }
      }
    }
  })";
}

std::string GemvOf(const char* format) {
  std::string sums = "let s0 = acc\n";
  for (int i = 0; i < 5; ++i)
    absl::StrAppend(&sums, "let o", i, " = shuffle_xor(s", i, ", ", 16 >> i, ")\nlet s", i + 1, " = s", i, " + o", i,
                    "\n");
  return absl::StrCat("kernel gemv (w : ", format,
                      "[N, 768] @blocks in\n x : f32[768] in\n y : f32[N] out\n) sym N in 1..4096 {\n"
                      "grid n in 0..N { thread t in 0..32 @ block {\n var acc : f32 = 0\n for k in t * 8..768 by 256 { "
                      "unroll u in 0..8 {"
                      " acc := contract(acc + decode(w, n, k + u) * x[k + u]) } }\n",
                      sums, "if t == 0 { y[n] = s5 } } } }");
}

std::string AttentionOf(const char* rows) {
  const bool many = rows[0] == 'S';
  const std::string symbols = many ? " sym P in 0..2000, S in 9..256" : " sym P in 0..2000",
                    keys = absl::StrCat("P + ", rows);
  const std::string inputs =
      absl::StrCat("  %0 = Input() {name = \"q\"} : f32[1, ", rows, ", 64]\n  %1 = Input() {name = \"k\"} : f16[1, ",
                   keys, ", 32]\n  %2 = Input() {name = \"v\"} : f16[1, ", keys, ", 32]\n");
  const std::string type = absl::StrCat(" : f32[1, ", rows, ", 64]");
  return absl::StrCat("graph g", symbols, " {\n", inputs, "  %3 = Region(%0, %1, %2) {family = \"attention\"}", type,
                      " body graph body", symbols, " {\n", inputs,
                      "  %3 = Attention(%0, %1, %2) {head_dim = 16, heads = 4, kv_heads = 2, layout = \"packed\", mask "
                      "= \"causal\", scale = 0.0, ",
                      "softcap = 0.0, window = 0}", type, "\n  return %3\n}\n  return %3\n}");
}

std::vector<BlockKernel> BlockKernels() {
  std::vector<BlockKernel> kernels = {{"map", kMap},
                                      {"rows", kRows},
                                      {"softmax", kSoftmax},
                                      {"spread", kSpread},
                                      {"product_f32", ProductOf("f32")},
                                      {"product_f16", ProductOf("f16")},
                                      {"product_bf16", ProductOf("bf16")},
                                      {"product_q4_K_f16", MixedProductOf("q4_K", "f16")},
                                      {"product_q8_0_bf16", MixedProductOf("q8_0", "bf16")},
                                      {"attention_token", AttentionOf("1")},
                                      {"attention_prompt", AttentionOf("S")}};
  for (const DType format : AllFormats())
    kernels.push_back({absl::StrCat("gemv_", Row(format).name), GemvOf(Row(format).name)});
  return kernels;
}

StatusOr<std::vector<kir::Kernel>> ScheduledAll(const std::string& text, const family::BlockFacts& facts) {
  std::vector<kir::Kernel> kernels;
  if (text.starts_with("graph")) {
    QUERN_ASSIGN(const ir::Graph graph, ir::Parse(text));
    family::TargetFacts target;
    target.blocks = facts;
    for (const ir::Node& node : graph.nodes()) {
      if (node.bodies.empty()) continue;
      QUERN_ASSIGN(family::LoweredRegion lowered,
                   codegen::LowerRegion(family::MemoryOf(graph), node, graph.symbols, target));
      for (family::KernelUse& use : lowered.kernels) kernels.push_back(std::move(use.kernel));
    }
    return kernels;
  }
  QUERN_ASSIGN(kir::Kernel kernel, kir::ParseKernel(text));
  QUERN_RETURN_IF_ERROR(kir::Verify(kernel));
  QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
  if (shape.threads == 0) {
    QUERN_ASSIGN(kernel, codegen::ScheduleBlocks(kernel, facts));
  }
  kernels.push_back(std::move(kernel));
  return kernels;
}

StatusOr<kir::Kernel> Scheduled(const std::string& text, const family::BlockFacts& facts) {
  QUERN_ASSIGN(std::vector<kir::Kernel> kernels, ScheduledAll(text, facts));
  return std::move(kernels[0]);
}

std::vector<std::string> EntryNames(const std::string& name, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(i == 0 ? name : absl::StrCat(name, "_", i));
  return names;
}

}  // namespace quern
