// Whole kernels: the worked examples, every kind of access and statement, expanded meanings, loading and unloading.
#include <fstream>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "jit_support.h"
#include "kir/share.h"
#include "simd/library.h"
#include "support/resident.h"
#include "unit/codegen_c/random_kernel.h"

namespace quern::jit_test {
namespace {

kir::Kernel FromFile(const std::string& name) {
  std::ifstream file(std::string(QUERN_SOURCE_DIR) + "/tests/kir/" + name + ".kir");
  std::stringstream text;
  text << file.rdbuf();
  return Parse(text.str());
}

Case MakeCase(const kir::Kernel& kernel, const Binding& symbols, const Tolerance& tolerance, Rng& rng,
              const FillOptions& fill = {.range = 1}) {
  Case test{.kernel = &kernel,
            .symbols = symbols,
            .buffers = MakeBuffers(kernel, symbols),
            .tolerance = tolerance,
            .each = {}};
  FillInputs(kernel, test.buffers, fill, rng);
  return test;
}

// A smaller copy of a worked kernel: a literal of its text replaced by another.
kir::Kernel Shrunk(const std::string& name, const std::vector<std::pair<std::string, std::string>>& changes) {
  std::ifstream file(std::string(QUERN_SOURCE_DIR) + "/tests/kir/" + name + ".kir");
  std::stringstream stream;
  stream << file.rdbuf();
  std::string text = stream.str();
  for (const auto& [from, to] : changes) {
    size_t count = 0;
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
      ++count;
    }
    EXPECT_GT(count, 0u) << from;
  }
  return Parse(text);
}

TEST(Kernels, RmsNormQuantised) {
  Rng rng(kSeed);
  const kir::Kernel kernel = FromFile("rms_norm_q8");
  // A quant may fall on the other side of a half: one step of the block, whose scale is about max / 127.
  std::vector<Case> cases;
  for (int64_t m : {1, 5}) cases.push_back(MakeCase(kernel, {{"M", m}}, {1e-5, 0.03}, rng));
  CheckCases(cases);
}

TEST(Kernels, GemvWithResidual) {
  Rng rng(kSeed);
  const kir::Kernel kernel = Shrunk("down_residual", {{"5632", "768"}, {"2048", "96"}});
  CheckCases({MakeCase(kernel, {}, {1e-4, 2e-3}, rng)});
}

TEST(Kernels, GateUpSilu) {
  Rng rng(kSeed);
  const kir::Kernel kernel = Shrunk("gate_up_silu", {{"5632", "512"}, {"2048", "256"}});
  std::vector<Case> cases;
  for (int64_t m : {9, 23}) cases.push_back(MakeCase(kernel, {{"M", m}}, {1e-3, 0.2}, rng));
  CheckCases(cases);
}

TEST(Kernels, AttentionDecode) {
  Rng rng(kSeed);
  const kir::Kernel kernel = Shrunk("attn_decode", {{"8192", "640"}});
  std::vector<Case> cases;
  for (int64_t n : {1, 63, 577}) cases.push_back(MakeCase(kernel, {{"n", n}, {"P", 640}}, {1e-4, 1e-4}, rng));
  CheckCases(cases);
}

// The same kernels with no tile bound: meanings and block decoders are emitted in line.
TEST(Kernels, ExpandedMeanings) {
  Rng rng(kSeed);
  const kir::Kernel gemv = Shrunk("down_residual", {{"5632", "256"}, {"2048", "64"}});
  const kir::Kernel attention = Shrunk("attn_decode", {{"8192", "70"}, {"256", "32"}, {"258", "34"}, {"257", "33"}});
  CheckCases({MakeCase(gemv, {}, {1e-4, 2e-3}, rng), MakeCase(attention, {{"n", 67}, {"P", 70}}, {1e-4, 1e-4}, rng)},
             {.expand_tiles = true});
}

// The tiles' own bitcode in line, with the kernel's constants.
TEST(Kernels, Specialised) {
  Rng rng(kSeed);
  const kir::Kernel norm = FromFile("rms_norm_q8");
  const kir::Kernel gemv = Shrunk("down_residual", {{"5632", "768"}, {"2048", "96"}});
  CheckCases({MakeCase(norm, {{"M", 2}}, {1e-5, 0.03}, rng), MakeCase(gemv, {}, {1e-4, 2e-3}, rng)},
             {.specialise = true});
}

TEST(Kernels, Accesses) {
  Rng rng(kSeed);
  // Contiguous, invariant, step 2 and 3, backwards, gathered, with a default outside, scattered, transposed.
  const kir::Kernel kernel = Parse(R"(
    kernel accesses (
      x    : f32[7, 240] in
      ids  : i32[N] in
      tiny : f16[N] in
      y    : f32[9, N] out
      z    : f32[N, 3] out
    ) sym N in 1..79 {
      grid r in 0..1 {
        vec i in 0..N {
          y[0, i] = x[3, i]
          y[1, i] = x[r, 5] * x[1, i]
          y[2, i] = x[2, 2 * i]
          y[3, i] = x[2, 3 * i + 1]
          y[4, i] = x[4, 79 - i]
          y[5, i] = x[6, cast<i64>(min(max(ids[i], 0), 239))]
          y[6, i] = x[5, i - 3] else 7.5
          y[7, i] = x[cast<i64>(ids[i]), 2 * i] else -1.0
          y[8, i] = cast<f32>(tiny[i])
        }
        vec i in 0..N {
          z[i, 0] = x[0, i]
          z[i, 1] = x[1, i] else 0.0
          z[i, 2] = cast<f32>(i)
        }
      }
    }
  )");
  std::vector<Case> cases;
  for (int64_t n : {1, 15, 16, 17, 79})
    cases.push_back(MakeCase(kernel, {{"N", n}}, {}, rng, {.range = 9, .int_limit = 9}));
  CheckCases(cases);
}

TEST(Kernels, Statements) {
  Rng rng(kSeed);
  const kir::Kernel kernel = Parse(R"(
    kernel statements (
      x : f32[M, N] in
      k : i32[M] in
      y : f32[M, N] out
      s : f32[M] inout
    ) sym M in 1..64, N in 1..64, C = ceil(N / 8) {
      grid m in 0..M by 3 {
        for r in m .. min(m + 3, M) {
         for b in 0..C {
          let low = b * 8
          var total : f32 = 0.0
          alloc copy : f32[8] scratch
          for c in low .. min(low + 8, N) {
            copy[c - low] = x[r, c]
            total := total + abs(x[r, c])
          }
          if k[r] < 4 {
            vec c in low .. min(low + 8, N) {
              var t : f32 = copy[c - low]
              for j in 0..3 {
                t := t * 0.5 + total
              }
              y[r, c] = t
            }
          } else {
            unroll j in 0..8 by 3 {
              vec c in low + j .. min(low + min(j + 3, 8), N) {
                y[r, c] = copy[c - low] + cast<f32>(j) * total
              }
            }
          }
          if b == 0 {
            s[r] = s[r] + total
          }
         }
        }
      }
    }
  )");
  std::vector<Case> cases;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {7, 23}, {5, 64}}) {
    cases.push_back(MakeCase(kernel, {{"M", m}, {"N", n}}, {1e-5, 1e-5}, rng, {.range = 2, .int_limit = 8}));
  }
  CheckCases(cases);
}

// Lets of reductions: of vectors and of single elements, nested, in a vec loop, and some that no vector holds.
TEST(Kernels, LetsOfReductions) {
  Rng rng(kSeed);
  const kir::Kernel kernel = Parse(R"(
    kernel spread (
      x : f32[M, N] in
      k : i32[M] in
      y : f32[M, N] out
      s : f32[M, 4] out
    ) sym M in 1..64, N in 1..96 {
      grid r in 0..M {
        s[r, 0] = sum accs 4 vec c in 0..N { let d = x[r, c] - 0.25  let q = d * d  contract(q * q + d) }
        s[r, 1] = max for c in 0..N { let at = (c * 7 + 3) % N; let d = x[r, at]; d * d - d }
        s[r, 2] = sum vec c in 0..N {
          let last = c % 4  let d = x[r, c]
          d + (sum for j in 0..last { let e = x[r, min(j, N - 1)] + d; e * e })
        }
        s[r, 3] = sum accs 3 vec c in 0..N {
          let d = x[r, c]  let three = 3  let half = cast<f32>(k[r]) * 0.5
          d * (prod for j in 0..three { let e = d + cast<f32>(j) * half; e * 0.5 })
        }
        vec c in 0..N {
          let t = x[r, c]
          y[r, c] = sum for j in 0..3 { let d = t * cast<f32>(j); let q = d + t; q * q + d }
        }
      }
    }
  )");
  std::vector<Case> cases;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {7, 23}, {5, 71}}) {
    cases.push_back(MakeCase(kernel, {{"M", m}, {"N", n}}, {1e-5, 1e-5}, rng, {.range = 2, .int_limit = 8}));
  }
  CheckCases(cases);
}

// One value that is used three times, of one that is, of one ..
TEST(Kernels, SharedChain) {
  Rng rng(kSeed);
  const kir::Kernel kernel = kir::ShareValues(kir::ChainKernel(300));
  CheckCases({MakeCase(kernel, {{"M", 5}}, {1e-5, 1e-6}, rng, {.range = 0.5})});
}

// Each format and layout, read element by element along the lanes and down the rows.
TEST(Kernels, Decode) {
  Rng rng(kSeed);
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> types = {"q8_0[5, 96] @planar", "q8_K[5, 512] @planar"};
  for (const DType format : AllFormats()) types.push_back(absl::StrCat(Row(format).name, "[5, 512] @blocks"));
  for (const std::string& text : types) {
    const std::string k = text.substr(text.find(", ") + 2, text.find(']') - text.find(", ") - 2);
    kernels.push_back(Parse(absl::StrFormat(R"(
      kernel decode_%s (
        w : %s in
        y : f32[5, %s] out
        s : f32[5] out
      ) {
        grid r in 0..5 {
          vec c in 0..%s {
            y[r, c] = decode(w, r, c)
          }
          s[r] = sum for c in 0..%s { decode(w, r, c) }
        }
      }
    )",
                                            text.substr(0, text.find('[')), text, k, k, k)));
  }
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) cases.push_back(MakeCase(kernel, {}, {3e-7, 1e-6}, rng));
  for (Case& test : cases) test.each = {{}, {3e-7, 1e-6}, {1e-5, 1e-4}};
  CheckCases(cases);
}

// Panels, too; but at some levels they have contents that only their tiles know.
TEST(Kernels, DecodePanels) {
  Rng rng(kSeed);
  std::vector<kir::Kernel> kernels;
  std::vector<DType> formats = AllFormats();
  std::erase_if(formats, [](DType format) { return !FormatOf(format).activation; });
  for (const DType format : formats) {
    const char* const type = Row(format).name;
    kernels.push_back(Parse(absl::StrFormat(R"(
      kernel panel_%s (
        w : %s[13, 512] @blocks in
        y : f32[13, 512] out
      ) {
        grid g in 0..1 {
          alloc p : %s[16, 512] @panel16 scratch
          pack p = w
          for r in 0..13 {
            vec c in 0..512 {
              y[r, c] = decode(p, r, c)
            }
          }
        }
      }
    )",
                                            type, type, type)));
  }
  std::vector<Case> of_32, of_256;  // elements of a block
  for (size_t i = 0; i < kernels.size(); ++i)
    (FormatOf(formats[i]).elements == 32 ? of_32 : of_256).push_back(MakeCase(kernels[i], {}, {3e-7, 1e-6}, rng));
  CheckCases(of_32, {}, [](const cpu::Target& target) { return cpu::HasPlainPanels(target, DType::kQ8_0); });
  CheckCases(of_256, {}, [](const cpu::Target& target) { return cpu::HasPlainPanels(target, DType::kQ4_K); });
}

// Rows of weights times f32 rows: by the format's tile, where it has one.
TEST(Kernels, DotsOfEveryFormat) {
  Rng rng(kSeed);
  std::vector<kir::Kernel> kernels;
  for (const DType format : AllFormats()) {
    kernels.push_back(Parse(absl::StrFormat(R"(
      kernel dot_%s_rows (
        x : f32[M, 768] in
        w : %s[37, 768] @blocks in
        y : f32[M, 37] out
      ) sym M in 1..8 {
        grid g in 0..1 {
          tile t : f32[8, 37] = 0
          dot_%s_x t += w, x
          map (i, j) in t [M, 37] { y[i, j] = t }
        }
      }
    )",
                                            Row(format).name, Row(format).name, Row(format).name)));
  }
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) cases.push_back(MakeCase(kernel, {{"M", 3}}, {1e-4, 1e-3}, rng));
  CheckCases(cases);
}

// Blocks decoded to rows and to panels of columns, by the SIMD library or element by element.
TEST(Kernels, PacksToFloats) {
  Rng rng(kSeed);
  std::vector<kir::Kernel> kernels;
  for (const DType format : AllFormats()) {
    kernels.push_back(Parse(absl::StrFormat(R"(
      kernel unpack_%s (
        w : %s[M, 512] @blocks in
        y : f32[M, 512] out
        z : f32[M, 256] out
      ) sym M in 1..32 {
        grid g in 0..1 {
          pack y = w
          alloc p : f32[32, 256] @kn32 scratch
          pack p = w[:, 256 : +256]
          for r in 0..M {
            vec c in 0..256 {
              z[r, c] = p[r, c]
            }
          }
        }
      }
    )",
                                            Row(format).name, Row(format).name)));
  }
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) cases.push_back(MakeCase(kernel, {{"M", 13}}, {3e-7, 1e-6}, rng));
  CheckCases(cases);
}

// A tile of zeros next to the call that begins with them lies nowhere: what it has after the call is right where that
// fills all of it and where it fills a part, of one that starts with ones, of two of which one does, and of a call with
// another one behind it.
TEST(Kernels, TilesStartInTheirCall) {
  Rng rng(kSeed);
  const kir::Kernel kernel = Parse(R"(kernel starts (
  x : f32[M, 19] in
  w : f32[5, 32, 19] in
  y : f32[6, M, 32] out
) sym M in 1..30 {
  grid m in 0..M by 7 {
    alloc p : f32[32, 19] @kn32 scratch
    alloc q : f32[32, 19] @kn32 scratch
    pack p[:, :] = w[0, :, :]
    pack q[0 : +23, :] = w[1, 0 : +23, :]
    tile a : f32[7, 32] = 0.0
    mma_f32 a += x[m : +7, :], p
    tile b : f32[7, 32] = 0.0
    prefetch x[m : +7, :]
    mma_f32 b += x[m : +7, :], q[0 : +23, :]
    mma_f32 b += x[m : +7, :], p
    tile c : f32[7, 32] = 1.0
    mma_f32 c += x[m : +7, :], p
    tile d : f32[7, 32] = 0.0
    tile e : f32[7, 32] = 2.0
    mma_f32_pair d, e += x[m : +7, :], p, p
    tile f : f32[7, 32] = 0.0
    tile g : f32[7, 32] = 0.0
    mma_f32_pair f, g += x[m : +7, :], p, p
    map (i, j) in a, b, c, d, e, f [min(M - m, 7), 32] {
      y[0, m + i, j] = a
      y[1, m + i, j] = b
      y[2, m + i, j] = c
      y[3, m + i, j] = d
      y[4, m + i, j] = e
      y[5, m + i, j] = f + 2 * g[i, j]
    }
  }
})");
  std::vector<Case> cases;
  for (const int64_t m : {1, 7, 12, 30}) cases.push_back(MakeCase(kernel, {{"M", m}}, {1e-4, 1e-4}, rng));
  CheckCases(cases);
  CheckCases(cases, {.expand_tiles = true});
}

TEST(Kernels, TilesOfAnySize) {
  Rng rng(kSeed);
  std::vector<kir::Kernel> kernels;
  for (const char* const type : {"f32", "f64"}) {
    kernels.push_back(Parse(absl::StrReplaceAll(R"(
      kernel $t_gemm (
        x : $t[M, 67] in
        w : $t[N, 67] in
        y : $t[M, N] out
      ) sym M in 1..64, N in 1..96 {
        grid n in 0..N by 32 {
          alloc p : $t[32, 67] @kn32 scratch
          pack p = w[n : +32, :]
          for m in 0..M by 6 {
            tile c : $t[6, 32] = 0.5
            mma_$t c += x[m : +6, :], p
            map (i, j) in c [min(M - m, 6), min(N - n, 32)] {
              y[m + i, n + j] = max(c, 0.25)
            }
          }
        }
      }
    )",
                                                {{"$t", type}})));
  }
  std::vector<Case> cases;
  for (const kir::Kernel& kernel : kernels) {
    const double most = &kernel == &kernels[0] ? 1e-4 : 1e-13;
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {7, 37}, {13, 96}})
      cases.push_back(MakeCase(kernel, {{"M", m}, {"N", n}}, {most, most}, rng));
  }
  CheckCases(cases);
}

TEST(Engine, CompilesManyAndUnloads) {
  std::vector<kir::Kernel> kernels;
  for (int i = 0; i < 24; ++i) {
    kernels.push_back(Parse(absl::StrFormat(R"(
      kernel scale%d (x : f32[64] in, y : f32[64] out) {
        grid g in 0..1 { vec c in 0..64 { y[c] = x[c] * %d.5 } }
      })",
                                            i, i)));
  }
  auto engine = MakeEngine(*cpu::HostTargets().back());
  ASSERT_NE(engine, nullptr);
  int64_t first = 0;
  for (int round = 0; round < 40; ++round) {
    auto module = engine->Compile(round < 2 ? std::span(kernels) : std::span(kernels).subspan(0, 2));
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_GT(engine->live_bytes(), 0);
    for (size_t i = 0; i < module->size(); ++i) {
      std::vector<Memory> buffers = MakeBuffers(kernels[i], {});
      for (int c = 0; c < 64; ++c) reinterpret_cast<float*>(buffers[0].data())[c] = static_cast<float>(c);
      RunCompiled(module->kernel(i), kernels[i], {}, buffers);
      EXPECT_EQ(reinterpret_cast<float*>(buffers[1].data())[7], 7 * (static_cast<float>(i) + 0.5f));
    }
    if (round == 8) first = testing::ResidentBytes();
  }
  EXPECT_EQ(engine->live_bytes(), 0);
  EXPECT_LT(testing::ResidentBytes() - first, int64_t{4} << 20) << "code of dead modules stays mapped";
}

// An object saved and linked again computes the same bits.
TEST(Engine, LoadsItsOwnObjects) {
  Rng rng(kSeed);
  const kir::Kernel kernel = FromFile("rms_norm_q8");
  auto engine = MakeEngine(*cpu::HostTargets().back());
  ASSERT_NE(engine, nullptr);
  auto compiled = engine->Compile({&kernel, 1});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const std::string object = compiled->object(0);
  const jit::SavedObject saved[] = {{object, compiled->symbol(0)}, {object, compiled->symbol(0)}};  // twice: no clash
  Case test = MakeCase(kernel, {{"M", 3}}, {}, rng);
  std::vector<Memory> fresh = test.buffers, loaded = test.buffers;
  RunCompiled(compiled->kernel(0), kernel, test.symbols, fresh);
  auto module = engine->Load(saved);
  ASSERT_TRUE(module.ok()) << module.status();
  RunCompiled(module->kernel(0), kernel, test.symbols, loaded);
  EXPECT_EQ(std::memcmp(fresh[2].data(), loaded[2].data(), fresh[2].size()), 0);
  EXPECT_EQ(module->size(), 2u);
  const int64_t live = engine->live_bytes();
  const jit::SavedObject broken[] = {saved[0], {"not an object", "k"}}, nobody[] = {saved[0], {object, "nobody"}};
  EXPECT_FALSE(engine->Load(broken).ok());
  EXPECT_FALSE(engine->Load(nobody).ok());
  EXPECT_FALSE(engine->Load({{jit::SavedObject{object.substr(0, object.size() / 2), "k"}}}).ok());
  EXPECT_EQ(engine->live_bytes(), live);
}

// Half of the lanes lie outside, whatever the row.
TEST(Kernels, GuardsThatNoLaneOfAHalfPasses) {
  const kir::Kernel kernel = Parse(R"(
kernel guards (
  x_f32 : f32[M, 11] in
  x_i16 : i16[M, 11] in
  x_i64 : i64[M, 11] in
  x_u64 : u64[M, 11] in
  x_bool : bool[M, 11] in
  y : i64[M, 11] out
) sym M in 1..64 {
  grid r0 in 0..M by 3 {
    for r in r0 .. min(M, r0 + 3) {
      alloc a : i64[11] scratch
      vec c in 0..11 {
        let other = x_i64[r + -2, c + -4] else -3
        let total = bits<i64>(x_u64[r, c]) + (x_i64[r, c] | other)
        a[c] = select(x_bool[r, c * 2] else false, -3, abs(total))
      }
      vec c in 0..11 {
        y[r, c] = a[10 - c]
      }
      if x_bool[r, 5] {
        alloc b : f32[11] scratch
        vec c in 0..11 {
          let before = tan(-(0.0)) * ceil(x_f32[r + -2, c * 2] else 0.0)
          b[c] = fma(x_f32[r, c], cast<f32>(x_i16[r, c] << x_i16[r, c]), x_f32[r, c]) * before
        }
      }
    }
  }
})");
  Rng rng(kSeed);
  std::vector<Case> cases;
  for (const int64_t m : {1, 2, 5, 13}) cases.push_back(MakeCase(kernel, {{"M", m}}, {0, 0}, rng));
  CheckCases(cases);
}

TEST(Engine, NamesWhatTheMachineLacks) {
  auto unknown = jit::Engine::Create({.cpu = "z80"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().message(), ::testing::HasSubstr("known: native, sse4 or x86-64-v2, avx2"));
  for (const cpu::Target& target : cpu::Targets()) {
    const std::vector<std::string> missing = cpu::MissingOnHost(target);
    auto engine = jit::Engine::Create({.cpu = target.name});
    EXPECT_EQ(engine.ok(), missing.empty());
    if (!missing.empty()) {
      EXPECT_THAT(engine.status().message(), ::testing::HasSubstr(missing[0]));
    }
  }
}

}  // namespace
}  // namespace quern::jit_test
