// MSL of scheduled kernels: golden files of the text (QUERN_BLESS=1 writes them), runs on the CPU, and what is refused.
#include "codegen/metal/emit_metal.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "support/block_formats.h"
#include "support/block_kernels.h"
#include "support/metal_kernel.h"

namespace quern::metal {
namespace {

using codegen::DeviceModule;

const codegen::DeviceTarget& Target() { return Targets()[0]; }

StatusOr<DeviceModule> Emitted(const kir::Kernel& kernel, const std::string& symbol) {
  return Target().emit({&kernel, 1}, {&symbol, 1}, Target());
}

StatusOr<DeviceModule> Made(const std::string& text, const std::string& symbol) {
  QUERN_ASSIGN(const std::vector<kir::Kernel> kernels, ScheduledAll(text, Target().facts));
  return Target().emit(kernels, EntryNames(symbol, kernels.size()), Target());
}

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Errors(const StatusOr<DeviceModule>& made) { return std::string(made.status().message()); }

MetalCase CaseOf(const std::string& text, const Binding& binding, uint64_t seed = 7, double tolerance = 1e-5) {
  const StatusOr<kir::Kernel> kernel = Scheduled(text, Target().facts);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << text;
  return {.kernel = kernel.ok() ? *kernel : kir::Kernel{}, .binding = binding, .seed = seed, .tolerance = tolerance};
}

void Check(const std::vector<MetalCase>& cases) {
  const Status status = CheckKernelsThroughMetal(cases);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EmitMetal, GoldenFiles) {
  for (const BlockKernel& test : BlockKernels()) {
    SCOPED_TRACE(test.name);
    const StatusOr<DeviceModule> made = Made(test.text, test.name);
    ASSERT_TRUE(made.ok()) << made.status();
    const std::string path = absl::StrCat(QUERN_SOURCE_DIR, "/tests/metal/", test.name, ".metal");
    if (std::getenv("QUERN_BLESS") != nullptr) std::ofstream(path) << made->text;
    EXPECT_EQ(made->text, ReadFile(path)) << "differs from " << path;
    EXPECT_EQ(Made(test.text, test.name)->text, made->text);
  }
}

TEST(EmitMetal, RunsOnTheCpu) {
  std::vector<MetalCase> cases;
  for (const BlockKernel& test : BlockKernels()) {
    const StatusOr<std::vector<kir::Kernel>> kernels = ScheduledAll(test.text, Target().facts);
    ASSERT_TRUE(kernels.ok()) << test.name << ": " << kernels.status();
    // Of each symbol two sizes, from distinct primes.
    static const std::map<std::string, std::array<int64_t, 2>, std::less<>> kSizes = {
        {"S", {2311, 257}}, {"M", {67, 3}}, {"N", {5, 71}}, {"C", {1031, 31}}, {"K", {37, 61}}, {"P", {0, 97}}};
    for (const kir::Kernel& kernel : *kernels) {
      Binding binding, other;
      for (const kir::SymbolDecl& symbol : kernel.symbols) {
        if (symbol.derived) continue;  // follows from the others
        ASSERT_TRUE(kSizes.contains(symbol.name)) << symbol.name;
        const auto& sizes = kSizes.find(symbol.name)->second;
        const bool prompt = symbol.name == "S" && symbol.range.low > 1;
        binding[symbol.name] = prompt ? 23 : sizes[0];
        other[symbol.name] = prompt ? 11 : sizes[1];
      }
      cases.push_back({.kernel = kernel, .binding = binding, .seed = 11});
      cases.push_back({.kernel = kernel, .binding = other, .seed = 12});
    }
  }
  Check(cases);
}

TEST(EmitMetal, SaysHowKernelsAreLaunched) {
  const StatusOr<DeviceModule> product = Made(ProductOf("f16"), "p");
  ASSERT_TRUE(product.ok());
  EXPECT_EQ(product->kernels[0].symbol, "p");
  EXPECT_EQ(product->kernels[0].threads, 128);
  // Two slices, and 64 floats of each of 4 simdgroups.
  EXPECT_EQ(product->kernels[0].shared_bytes, 2 * 64 * 40 * 2 + 4 * 64 * 4);
  EXPECT_NE(product->text.find("simdgroup_multiply_accumulate"), std::string::npos);
  EXPECT_NE(Made(ProductOf("bf16"), "p")->text.find("simdgroup_bfloat8x8"), std::string::npos);
}

TEST(EmitMetal, OneTextForSeveralKernels) {
  std::vector<kir::Kernel> kernels;
  for (const char* dtype : {"f32", "f16"}) kernels.push_back(*Scheduled(ProductOf(dtype), Target().facts));
  const std::vector<std::string> symbols = {"first", "second"};
  const StatusOr<DeviceModule> made = Target().emit(kernels, symbols, Target());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->kernels.size(), 2u);
  EXPECT_LT(made->text.find("void first("), made->text.find("void second("));
}

// What warps and lanes do alone: stores of a warp, shuffles of every kind and dtype, maps that write their tiles.
TEST(EmitMetal, WarpsAndLanes) {
  std::vector<MetalCase> cases;
  for (const char* dtype : {"f32", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u32", "u64", "bool"}) {
    cases.push_back(CaseOf(
        absl::StrCat(
            "kernel shuffles (x : ", dtype, "[64] in\n l : i64[64] in\n y : ", dtype,
            "[3, 64] out\n) { grid g in 0..1 {\n",
            "thread t in 0..64 @ block { let v = x[t]\n let a = shuffle_xor(v, 5)\n y[0, t] = a\n",
            "let b = shuffle_down(v, 3)\n y[1, t] = b\n let c = shuffle(v, min(max(l[t], 0), 31))\n y[2, t] = c } } }"),
        {}));
  }
  cases.push_back(CaseOf(R"(kernel xors (x : f32[64] in
    y : f32[64] out
  ) { grid g in 0..1 { thread w in 0..2 @ warp { thread l in 0..32 @ lane {
    let a = shuffle_xor(x[32 * w + l], (l + 1) % 2 * 7) let b = shuffle_down(a, l % 4) y[32 * w + l] = b
  } } } })",
                         {}));
  // A warp stores as one and reads what it stored.
  cases.push_back(CaseOf(R"(kernel warps (x : f32[96] in
    y : f32[96] out
    z : f32[3] out
  ) { grid g in 0..1 { alloc s : f32[3] shared thread w in 0..3 @ warp {
    s[w] = x[w * 32] * 2
    let a = s[w] + 1
    s[w] = a
    z[w] = s[w] * 3
    thread l in 0..32 @ lane { y[w * 32 + l] = x[w * 32 + l] + a }
  } } })",
                         {}));
  cases.push_back(CaseOf(R"(kernel maps (a : f16[48, 32] in
    b : f16[16, 32] in
    c : f32[48, 16] out
    d : f32[48, 16] out
  ) { grid g in 0..1 { alloc sa : f16[48, 32] shared alloc sb : f16[16, 32] shared
    copy sa = a
    copy sb = b
    barrier
    thread w in 0..3 @ warp {
      tile u, v : f32[16, 16] = 0.5
      mma_f16 u += sa[16 * w : +16, :], sb
      mma_f16 v += sa[16 * w : +16, 8 : +16], sb[:, 0 : +16]
      map (i, j) in u, v [16, 13] { u[i, j] = u * 2 + v if j % 2 == 0 { v[i, j] = u + cast<f32>(i) } }
      mma_f16 u += sa[16 * w : +16, :], sb
      map (i, j) in u, v { c[16 * w + i, j] = u d[16 * w + i, j] = v }
    }
  } })",
                         {}));
  Check(cases);
}

// Copies clip, convert and decode; buffers that the kernel writes are read back behind a barrier.
TEST(EmitMetal, CopiesAndBarriers) {
  std::vector<MetalCase> cases;
  const char* const pairs[][2] = {{"f32", "f16"}, {"f32", "bf16"},  {"f16", "f32"}, {"bf16", "f16"},
                                  {"i8", "i8"},   {"bool", "bool"}, {"i64", "i64"}};
  for (const auto& [from, to] : pairs) {
    cases.push_back(CaseOf(
        absl::StrCat("kernel copies (x : ", from, "[M, N, 7] in\n y : ", to,
                     "[M, 5, 7] out\n) sym M in 1..64, N in 1..64 {\n", "grid m in 0..M { alloc s : ", to,
                     "[5, 7] shared\n copy s = x[m, min(2, N - 1) : +5, :]\n barrier\n",
                     "thread t in 0..64 @ block { for i in t..35 by 64 { y[m, i / 7, i % 7] = s[i / 7, i % 7] } } } }"),
        {{"M", 3}, {"N", 5}}));
  }
  for (const DType dtype : AllFormats()) {
    const char* const format = Row(dtype).name;
    for (const char* to : {"f32", "f16", "bf16"}) {
      cases.push_back(CaseOf(
          absl::StrCat(
              "kernel decodes (x : ", format, "[N, 512] @blocks in\n y : ", to, "[3, 77] out\n) sym N in 1..64 {\n",
              "grid g in 0..1 { alloc s : ", to, "[3, 77] shared\n copy s = x[0 : +3, 201 : +77]\n barrier\n",
              "thread t in 0..64 @ block { for i in t..231 by 64 { y[i / 77, i % 77] = s[i / 77, i % 77] } } } }"),
          {{"N", 2}}));
    }
  }
  cases.push_back(CaseOf(R"(kernel back (x : f32[96] in
    y : f32[96] out
    z : f32[96] out
  ) { grid g in 0..1 { thread t in 0..96 @ block { y[t] = x[t] * 2 barrier z[t] = y[95 - t] } } })",
                         {}));
  Check(cases);
  EXPECT_NE(Made("kernel back (x : f32[96] in\n y : f32[96] out\n z : f32[96] out\n) { grid g in 0..1 { thread t in "
                 "0..96 @ block { y[t] = x[t] "
                 "barrier z[t] = y[95 - t] } } }",
                 "k")
                ->text.find("threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"),
            std::string::npos);
}

// Names that the language has for itself.
TEST(EmitMetal, NamesThatAreTaken) {
  Check({CaseOf(R"(kernel float4 (device : f32[64] in
    constant : f32[64] in
    symbols : f32[64] out
    min_f32 : f32[64] out
  ) sym INFINITY in 1..64, thread_id in 1..64 {
    grid half in 0..1 { vec uint in 0..64 {
      let precise = min(device[uint], constant[uint])
      let rint = exp(precise)
      symbols[uint] = rint + cast<f32>(INFINITY) + cast<f32>(thread_id)
      min_f32[uint] = precise
    } }
  })",
                {{"INFINITY", 3}, {"thread_id", 5}})});
}

// Indices beyond 31 bits are 64-bit numbers.
TEST(EmitMetal, LargeSizes) {
  const StatusOr<DeviceModule> made = Made(
      "kernel k (x : f32[N, 100000] in\n y : f32[N] out\n) sym N in 1..1000000 { grid n in 0..N { thread t in 0..32 @ "
      "block {"
      " if t == 0 { y[n] = x[n, 99999] } } } }",
      "k");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_NE(made->text.find("x[long(n) * 100000 + 99999]"), std::string::npos) << made->text;
}

TEST(EmitMetal, SaysWhatItCannotEmit) {
  EXPECT_EQ(
      Errors(Made("kernel k (x : f64[64] in\n y : f64[64] out\n) { grid g in 0..1 { vec i in 0..64 { y[i] = x[i] } } }",
                  "k")),
      "kernel k: Metal of f64[64]");
  EXPECT_EQ(Errors(Made("kernel k (x : f32[64] in\n y : f32[64] out\n) { grid g in 0..1 { vec i in 0..64 { y[i] = "
                        "cast<f32>(cast<f64>(x[i]) * 2.0) } } }",
                        "k")),
            "kernel k: Metal of f64");
  EXPECT_EQ(Errors(Made("kernel k (x : q8_K[4, 256] @planar in\n y : f32[64] out\n) { grid g in 0..1 { vec i in 0..64 "
                        "{ y[i] = decode(x, 0, i) } } }",
                        "k")),
            "kernel k: Metal of q8_K[4, 256] @planar");
  EXPECT_EQ(Errors(Made("kernel k (x : f32[64] in\n y : f32[64] out\n) { grid g in 0..1 { alloc s : f32[9000] shared "
                        "thread t in 0..64 @ block {"
                        " s[t] = x[t] y[t] = s[t] } } }",
                        "k")),
            "kernel k: Metal of 36000 bytes of threadgroup memory, more than 32768");
  std::string many = "kernel k (";
  for (int i = 0; i < 31; ++i) absl::StrAppend(&many, "x", i, " : f32[64] in\n");
  EXPECT_EQ(Errors(Made(many + "y : f32[64] out\n) { grid g in 0..1 { vec i in 0..64 { y[i] = x0[i] } } }", "k")),
            "kernel k: Metal of 32 buffers, of which a kernel has 31");
  // Sizes lie in a buffer, too.
  many = many.substr(0, many.rfind("x30"));
  EXPECT_EQ(Errors(Made(many + "y : f32[64] out\n) { grid g in 0..1 { vec i in 0..64 { y[i] = x0[i] } } }", "k")), "");
  EXPECT_EQ(Errors(Made(many + "y : f32[S] out\n) sym S in 1..64 { grid g in 0..1 { vec i in 0..S { y[i] = x0[i] } } }",
                        "k")),
            "kernel k: Metal of 31 buffers, of which a kernel has 31");
  EXPECT_EQ(Errors(Made(GroupProduct(), "k")), "kernel product: Metal of a group of warps");
  const StatusOr<kir::Kernel> plain = kir::ParseKernel(BlockKernels()[0].text);
  EXPECT_EQ(Errors(Emitted(*plain, "k")), "kernel map is not scheduled for blocks of threads");
}

}  // namespace
}  // namespace quern::metal
