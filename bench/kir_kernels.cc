// The worked kernels of docs/kir.md through the JIT, each against a figure of the machine taken in the same rounds.
//
//   bench_kir_kernels [--cpu LEVEL] [--specialise] [--perf-map] [--dump DIR] [--kernels DIR] [NAME...]
// prints one JSON object a line; --kernels reads the texts from another folder, to try a schedule.
//   {"bench":"rms_norm_q8","level":"avx512vnni","m":1,"us":0.71}
//   {"bench":"down_residual","threads":1,"gb_s":11.4,"read_gb_s":12.1,"share":0.94}
//   {"bench":"gate_up_silu","m":256,"gop_s":540,"peak_gop_s":720,"share":0.75}
// One thread is timed by its own processor time and two by the clock; medians of interleaved rounds.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/half.h"
#include "bench/measure.h"
#include "jit/engine.h"
#include "kir/kir.h"
#include "kir/layout.h"
#include "kir/quantise.h"

namespace quern {
namespace {

using bench::Median, bench::ReadLoop, bench::sink, bench::ThreadTime, bench::WallTime;

using Bytes = std::unique_ptr<uint8_t, decltype(&std::free)>;
Bytes Allocate(size_t bytes) {
  return {static_cast<uint8_t*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)), &std::free};
}

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

// Well-formed q4_K blocks of a trained matrix's size: a row times a normal vector of 2048 has a deviation of about 2.
// (With large sums the exponential in SiLU would meet nothing but its ends.)
void FillQ4K(uint8_t* blocks, size_t bytes, std::mt19937_64& rng) {
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = rng();
    std::memcpy(blocks + at, &word, 8);
  }
  for (size_t at = 0; at < bytes; at += 144) {
    const float scale = 1e-4f + 2e-6f * static_cast<float>(rng() % 64);
    const uint16_t d = FloatToHalf(scale), dmin = FloatToHalf(7.5f * scale);  // the mean of a weight is about 0
    std::memcpy(blocks + at, &d, 2);
    std::memcpy(blocks + at + 2, &dmin, 2);
  }
}
void FillPlanar(uint8_t* rows, int64_t count, int64_t k, std::mt19937_64& rng) {
  std::normal_distribution<float> normal;
  std::vector<float> x(k);
  for (int64_t row = 0; row < count; ++row) {
    for (float& value : x) value = normal(rng);
    kir::QuantiseToPlanar(DType::kQ8_K, x.data(), k, rows + row * kir::PlanarRowOf(DType::kQ8_K, k).row_bytes, k, 0);
  }
}

// Operations (multiplies and adds) of `rounds` of twelve independent vpdpbusd.
__attribute__((target("avx512f,avx512vnni"))) double RunDotProducts(int64_t rounds) {
  __m512i acc[12];
  for (auto& a : acc) a = _mm512_setzero_si512();
  const __m512i x = _mm512_set1_epi32(0x01020304);
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& a : acc) {
      a = _mm512_dpbusd_epi32(a, x, x);
      asm volatile("" : "+v"(a));
    }
  }
  for (auto& a : acc) sink = static_cast<uint64_t>(_mm512_reduce_add_epi32(a));
  return static_cast<double>(rounds) * 12 * 128;
}

struct Bench {
  std::shared_ptr<jit::Engine> engine;
  std::string dump, kernels = std::string(QUERN_SOURCE_DIR) + "/tests/kir";

  // Compiles a kernel of tests/kir twice, since the first pays for setting the code generator up; reports the second.
  jit::Module Compile(const std::string& name, kir::Kernel* kernel) {
    std::ifstream file(kernels + "/" + name + ".kir");
    std::stringstream text;
    text << file.rdbuf();
    *kernel = Must(kir::ParseKernel(text.str()));
    (void)Must(engine->Compile({kernel, 1}));
    jit::Module module = Must(engine->Compile({kernel, 1}));
    const jit::CompileReport& r = module.report();
    std::printf(
        "{\"bench\":\"compile\",\"kernel\":\"%s\",\"level\":\"%s\",\"ir_instructions\":%d,\"emit_ms\":%.2f,\"link_ms\":"
        "%.2f,"
        "\"optimise_ms\":%.2f,\"codegen_ms\":%.2f,\"jitlink_ms\":%.2f,\"wall_ms\":%.2f,\"object_bytes\":%zu}\n",
        name.c_str(), engine->target().name, module.stats(0).instructions, 1e-6 * static_cast<double>(r.times.emit),
        1e-6 * static_cast<double>(r.times.link), 1e-6 * static_cast<double>(r.times.optimise),
        1e-6 * static_cast<double>(r.times.codegen), 1e-6 * static_cast<double>(r.jitlink),
        1e-6 * static_cast<double>(r.wall), module.object(0).size());
    if (!dump.empty()) {
      std::ofstream(dump + "/" + name + ".ll") << module.ir_after(0);
      std::ofstream(dump + "/" + name + ".s") << module.assembly(0);
    }
    return module;
  }

  void RmsNorm() {
    kir::Kernel kernel;
    const jit::Module module = Compile("rms_norm_q8", &kernel);
    std::mt19937_64 rng(1);
    for (int64_t m : {1, 64}) {
      const int64_t row = kir::PlanarRowOf(DType::kQ8_K, 2048).row_bytes;
      Bytes h = Allocate(m * 8192), g = Allocate(8192), xq = Allocate(m * row);
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < m * 2048; ++i) reinterpret_cast<float*>(h.get())[i] = normal(rng);
      for (int64_t i = 0; i < 2048; ++i) reinterpret_cast<float*>(g.get())[i] = normal(rng);
      Bytes scratch = Allocate(Must(kir::ScratchBytes(kernel, {{"M", m}})));
      void* buffers[] = {h.get(), g.get(), xq.get()};
      const quern_args args = {buffers, &m};
      std::vector<double> times;
      const int repeats = static_cast<int>(20000 / m);
      for (int round = 0; round < 25; ++round) {
        times.push_back(ThreadTime([&] {
                          for (int i = 0; i < repeats; ++i) module.kernel(0)(&args, scratch.get(), 0, m);
                        }) /
                        repeats);
      }
      std::printf("{\"bench\":\"rms_norm_q8\",\"level\":\"%s\",\"m\":%lld,\"us\":%.3f,\"best_us\":%.3f}\n",
                  engine->target().name, static_cast<long long>(m), 1e6 * Median(times),
                  1e6 * *std::min_element(times.begin(), times.end()));
    }
  }

  void DownResidual() {
    kir::Kernel kernel;
    const jit::Module module = Compile("down_residual", &kernel);
    std::mt19937_64 rng(2);
    const int64_t n = 2048, k = 5632;
    const size_t one = static_cast<size_t>(n * RowBytes(DType::kQ4_K, k)), copies = (size_t{640} << 20) / one,
                 all = one * copies;
    Bytes w = Allocate(all), x = Allocate(kir::PlanarRowOf(DType::kQ8_K, k).row_bytes);
    FillQ4K(w.get(), one, rng);
    for (size_t copy = 1; copy < copies; ++copy) std::memcpy(w.get() + copy * one, w.get(), one);
    FillPlanar(x.get(), 1, k, rng);
    for (int threads : {1, 2}) {
      std::atomic<size_t> next;
      // Both walk the weights in pieces of about 200 KB, taken in turn by whichever thread is free.
      auto walk = [&](const std::function<void(size_t copy, int64_t first, int64_t last)>& piece) {
        const size_t pieces = copies * 32;
        auto work = [&] {
          for (size_t p = next++; p < pieces; p = next++) {
            const int64_t first = static_cast<int64_t>(p % 32) * 2;
            piece(p / 32, first, first + 2);
          }
        };
        next = 0;
        if (threads == 1) return work();
        std::thread other(work);
        work();
        other.join();
      };
      auto time = [&](const std::function<void()>& run) { return threads == 1 ? ThreadTime(run) : WallTime(run); };
      std::vector<double> reads, runs, shares;
      for (int round = 0; round < 9; ++round) {
        reads.push_back(time([&] {
          walk([&](size_t copy, int64_t first, int64_t last) {
            ReadLoop(w.get() + copy * one + first * (one / 64), (last - first) * (one / 64));
          });
        }));
        runs.push_back(time([&] {
          walk([&](size_t copy, int64_t first, int64_t last) {
            alignas(64) static thread_local float h[2048];
            alignas(64) static thread_local uint8_t scratch[4096];
            void* buffers[] = {w.get() + copy * one, x.get(), h};
            const quern_args args = {buffers, nullptr};
            module.kernel(0)(&args, scratch, first, last);
          });
        }));
        shares.push_back(reads.back() / runs.back());
      }
      const double gb = 1e-9 * static_cast<double>(all);
      std::printf(
          "{\"bench\":\"down_residual\",\"level\":\"%s\",\"threads\":%d,\"gb_s\":%.2f,\"read_gb_s\":%.2f,\"share\":%."
          "3f}\n",
          engine->target().name, threads, gb / Median(runs), gb / Median(reads), Median(shares));
      std::fflush(stdout);
    }
    // From cache: how near the code itself is to the memory's speed.
    alignas(64) static float h[2048];
    Bytes scratch = Allocate(Must(kir::ScratchBytes(kernel, {})));
    void* buffers[] = {w.get(), x.get(), h};
    const quern_args args = {buffers, nullptr};
    std::vector<double> times;
    for (int round = 0; round < 15; ++round) {
      times.push_back(ThreadTime([&] {
        for (int i = 0; i < 200; ++i) module.kernel(0)(&args, scratch.get(), 0, 8);
      }));
    }
    std::printf("{\"bench\":\"down_residual_cached\",\"level\":\"%s\",\"gb_s\":%.2f}\n", engine->target().name,
                1e-9 * 200 * 8 * static_cast<double>(one / 64) / Median(times));
  }

  void GateUp() {
    kir::Kernel kernel;
    const jit::Module module = Compile("gate_up_silu", &kernel);
    std::mt19937_64 rng(3);
    const int64_t n = 5632, k = 2048;
    const size_t bytes = static_cast<size_t>(n * RowBytes(DType::kQ4_K, k));
    Bytes wg = Allocate(bytes + 65536), wu = Allocate(bytes + 65536);
    FillQ4K(wg.get(), bytes, rng);
    FillQ4K(wu.get(), bytes, rng);
    const bool vnni = __builtin_cpu_supports("avx512vnni");
    for (int64_t m : {256, 128, 32}) {
      Bytes x = Allocate(m * kir::PlanarRowOf(DType::kQ8_K, k).row_bytes),
            out = Allocate(m * kir::PlanarRowOf(DType::kQ8_K, n).row_bytes);
      FillPlanar(x.get(), m, k, rng);
      Bytes scratch = Allocate(Must(kir::ScratchBytes(kernel, {{"M", m}})));
      void* buffers[] = {wg.get(), wu.get(), x.get(), out.get()};
      const quern_args args = {buffers, &m};
      std::vector<double> runs, peaks, shares;
      const double operations = 4.0 * static_cast<double>(m * n * k);
      for (int round = 0; round < 9; ++round) {
        if (vnni) {
          double done = 0;
          const double seconds = ThreadTime([&] { done = RunDotProducts(2'000'000); });
          peaks.push_back(1e-9 * done / seconds);
        }
        runs.push_back(1e-9 * operations / ThreadTime([&] { module.kernel(0)(&args, scratch.get(), 0, 22); }));
        shares.push_back(vnni ? runs.back() / peaks.back() : 0);
      }
      std::printf(
          "{\"bench\":\"gate_up_silu\",\"level\":\"%s\",\"m\":%lld,\"gop_s\":%.1f,\"peak_gop_s\":%.1f,\"share\":%.3f}"
          "\n",
          engine->target().name, static_cast<long long>(m), Median(runs), vnni ? Median(peaks) : 0.0, Median(shares));
      std::fflush(stdout);
    }
  }
};

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  _mm_setcsr(_mm_getcsr() | 0x8040);  // denormals are flushed, as the runtime does for a run
  quern::jit::EngineOptions options;
  options.threads = 1;
  quern::Bench bench;
  std::set<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--cpu" && i + 1 < argc)
      options.cpu = argv[++i];
    else if (argument == "--specialise")
      options.emit.specialise = true;
    else if (argument == "--perf-map")
      options.perf_map = true;
    else if (argument == "--dump" && i + 1 < argc)
      bench.dump = argv[++i];
    else if (argument == "--kernels" && i + 1 < argc)
      bench.kernels = argv[++i];
    else
      names.insert(argument);
  }
  options.emit.dump_ir = options.emit.dump_assembly = !bench.dump.empty();
  bench.engine = quern::Must(quern::jit::Engine::Create(options));
  auto wanted = [&](const char* name) { return names.empty() || names.count(name) != 0; };
  if (wanted("rms_norm_q8")) bench.RmsNorm();
  if (wanted("down_residual")) bench.DownResidual();
  if (wanted("gate_up_silu")) bench.GateUp();
}
