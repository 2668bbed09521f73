// The float tiles against the machine: bytes a second beside a read loop, floating point operations beside an FMA loop.
//
//   bench_tiles_float [level] [name prefix]     one JSON object a line
//   {"bench":"dot_f16","level":"avx512","m":1,"n":32,"k":2048,"gb_s":11.9,"read_gb_s":12.5,"share":0.95}
//
// A figure and what it is compared with are timed in turn, in rounds, and medians are printed: the memory of a shared
// machine changes within minutes, so a ratio of two separate runs means nothing.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/half.h"
#include "bench/measure.h"
#include "profile/peaks.h"
#include "simd/library.h"

namespace quern::simd {
namespace {

using bench::InTurn, bench::ReadLoop;

using DotTile = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t);
using MmaTile = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                     int64_t, int64_t, int64_t);
using PackTile = void(void*, int64_t, const void*, int64_t, int64_t, int64_t);
using FlashTile = void(float*, int64_t, float*, int64_t, float*, int64_t, const void*, int64_t, const void*, int64_t,
                       const void*, int64_t, const void*, int64_t, const void*, int64_t, const void*, int64_t, int64_t,
                       int64_t, int64_t, float, float, void*);

struct Memory {
  explicit Memory(int64_t bytes) : data(static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))) {}
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  float* floats() { return reinterpret_cast<float*>(data); }
  uint16_t* halves() { return reinterpret_cast<uint16_t*>(data); }
  char* data;
};

void FillFloats(float* to, int64_t count) {
  uint32_t state = 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    to[i] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
}
void FillHalves(uint16_t* to, int64_t count) {
  std::vector<uint16_t> some(4099);
  std::mt19937 engine(7);
  for (uint16_t& half : some) half = FloatToHalf(std::uniform_real_distribution<float>(-1, 1)(engine));
  for (int64_t i = 0; i < count; ++i) to[i] = some[i % 4099];
}

class Bench {
 public:
  Bench(std::string level, std::string prefix)
      : level_(std::move(level)), prefix_(std::move(prefix)), peak_(profile::PeaksOf(level_).f32) {}

  bool Wants(std::string_view name) const { return name.substr(0, prefix_.size()) == prefix_; }
  template <typename Signature>
  Signature* Tile(const std::string& name) const {
    return reinterpret_cast<Signature*>(const_cast<void*>(FindTile(name + "_" + level_)));
  }

  // From main memory: more weights than the last cache holds.
  void Dot(bool half, int64_t m, int64_t k) {
    const std::string name = half ? "dot_f16" : "dot_f32";
    if (!Wants(name)) return;
    if (!big_) {
      big_ = std::make_unique<Memory>(kBig);
      FillHalves(big_->halves(), kBig / 2);
    }
    Memory x(m * k * 4), y(m * 32 * 4);
    FillFloats(x.floats(), m * k);
    FillFloats(y.floats(), m * 32);
    auto* dot = Tile<DotTile>("qk_" + name);
    const int64_t row = k * (half ? 2 : 4), chunk = 32 * row, chunks = kBig / 2 / chunk;
    // The two walk different halves, each long enough that nothing of a round is left in a cache for the next.
    const std::vector<double> seconds =
        InTurn(5, {[&] {
                     for (int64_t i = 0; i < chunks; ++i) {
                       dot(y.floats(), 32, big_->data + i * chunk, row, x.data, k * 4, m, 32, k, 8192);
                     }
                   },
                   [&] { ReadLoop(big_->data + kBig / 2, chunks * chunk); }});
    const double bytes = static_cast<double>(chunks) * chunk;
    std::printf(
        "{\"bench\":\"%s\",\"level\":\"%s\",\"m\":%ld,\"n\":32,\"k\":%ld,\"gb_s\":%.2f,\"read_gb_s\":%.2f,"
        "\"share\":%.3f}\n",
        name.c_str(), level_.c_str(), m, k, bytes / seconds[0] / 1e9, bytes / seconds[1] / 1e9,
        seconds[1] / seconds[0]);
    std::fflush(stdout);
  }

  void Mma(int64_t m, int64_t k) {
    if (!Wants("mma_f32")) return;
    Memory x(m * k * 4), panel(k * 128), c(m * 128);
    FillFloats(x.floats(), m * k);
    FillFloats(panel.floats(), k * 32);
    FillFloats(c.floats(), m * 32);
    auto* mma = Tile<MmaTile>("qk_mma_f32");
    const double operations = 2.0 * m * 32 * k;
    const int repeat = std::max(1, static_cast<int>(2e8 / operations));
    PrintShare("mma_f32", operations * repeat, "\"m\":" + std::to_string(m) + ",\"k\":" + std::to_string(k), [&] {
      for (int i = 0; i < repeat; ++i) mma(c.floats(), 32, x.data, k * 4, panel.data, 0, m, 32, k, 0, 0, 0, 0);
    });
  }

  // 32 rows in the second cache, as a GEMM finds them after a prefetch; bytes are those read and written.
  void Pack(bool half, int64_t k) {
    const std::string name = half ? "pack_f16" : "pack_f32";
    if (!Wants(name)) return;
    const int64_t row = k * (half ? 2 : 4);
    Memory src(32 * row), dst(k * 128);
    FillHalves(src.halves(), 16 * row);
    auto* pack = Tile<PackTile>("qk_" + name + "_kn32");
    const int repeat = 200;
    const std::vector<double> seconds = InTurn(9, {[&] {
                                                 for (int i = 0; i < repeat; ++i)
                                                   pack(dst.data, 0, src.data, row, 32, k);
                                               }});
    const double each = seconds[0] / repeat;
    std::printf("{\"bench\":\"%s\",\"level\":\"%s\",\"k\":%ld,\"us\":%.2f,\"gb_s\":%.1f,\"elements_per_ns\":%.2f}\n",
                name.c_str(), level_.c_str(), k, each * 1e6, (32 * row + k * 128) / each / 1e9, 32 * k / each / 1e9);
    std::fflush(stdout);
  }

  // r rows that share a kv head over a cache of 8 kv heads. Decode (few rows) walks caches in main memory and is
  // compared with reading them; more rows are compared with the FMA peak, keys in the second cache.
  void Flash(bool half, int64_t r, int64_t d) {
    const std::string name = half ? "flash_f16" : "flash_f32";
    if (!Wants(name)) return;
    constexpr int64_t kHeads = 8, kKeys = 64;
    const int64_t size = half ? 2 : 4, row = kHeads * d * size;
    auto* flash = Tile<FlashTile>("qk_flash_step_" + std::string(half ? "f16" : "f32"));
    Memory q(r * d * 4), o(r * d * 4), ml(2 * r * 4), workspace(256 * d + 16384);
    FillFloats(q.floats(), r * d);
    std::vector<int32_t> lo(r, 0), hi(r, kKeys);
    const std::string shape = "\"r\":" + std::to_string(r) + ",\"d\":" + std::to_string(d);
    const float scale = 1.0f / 16;
    const auto start = [&] {
      std::fill(o.floats(), o.floats() + r * d, 0.0f);
      std::fill(ml.floats(), ml.floats() + r, -__builtin_huge_valf());
      std::fill(ml.floats() + r, ml.floats() + 2 * r, 0.0f);
    };
    const auto step = [&](const char* k, const char* v, int64_t stride) {
      flash(o.floats(), d, ml.floats(), 1, ml.floats() + r, 1, q.data, d * 4, k, stride, v, stride, lo.data(), 0,
            hi.data(), 0, nullptr, 0, r, d, kKeys, scale, 0.0f, workspace.data);
    };
    if (r <= 8) {
      const int64_t positions = kFlashBytes / row / 2 / kKeys * kKeys;
      Memory cache(2 * kFlashBytes);
      if (half) {
        FillHalves(cache.halves(), kFlashBytes);
      } else {
        FillFloats(cache.floats(), kFlashBytes / 2);
      }
      const char* k = cache.data;
      const char* v = cache.data + positions * row;
      const std::vector<double> seconds =
          InTurn(5, {[&] {
                       for (int64_t head = 0; head < kHeads; ++head) {
                         start();
                         for (int64_t t = 0; t < positions; t += kKeys)
                           step(k + t * row + head * d * size, v + t * row + head * d * size, row);
                       }
                     },
                     [&] { ReadLoop(cache.data + kFlashBytes, 2 * positions * row); }});
      const double bytes = 2.0 * positions * row;
      std::printf(
          "{\"bench\":\"%s\",\"level\":\"%s\",%s,\"from\":\"memory\",\"gb_s\":%.2f,\"read_gb_s\":%.2f,\"share\":%.3f}"
          "\n",
          name.c_str(), level_.c_str(), shape.c_str(), bytes / seconds[0] / 1e9, bytes / seconds[1] / 1e9,
          seconds[1] / seconds[0]);
      std::fflush(stdout);
    }
    Memory kv(2 * kKeys * row);
    if (half) {
      FillHalves(kv.halves(), kKeys * row);
    } else {
      FillFloats(kv.floats(), kKeys * row / 2);
    }
    const double operations = 4.0 * r * kKeys * d;
    const int repeat = std::max(1, static_cast<int>(5e7 / operations));
    start();
    PrintShare(name, operations * repeat, shape + ",\"from\":\"cache\"", [&] {
      for (int i = 0; i < repeat; ++i) step(kv.data, kv.data + kKeys * row, row);
    });
  }

 private:
  static constexpr int64_t kBig = int64_t{1} << 30;
  static constexpr int64_t kFlashBytes = int64_t{1} << 28;

  void PrintShare(const std::string& name, double operations, const std::string& shape,
                  const std::function<void()>& body) {
    body();
    constexpr int64_t kPeakSteps = 200000;
    int64_t peak_operations = 0;
    const std::vector<double> seconds = InTurn(9, {body, [&] { peak_operations = kPeakSteps * peak_(kPeakSteps); }});
    const double rate = operations / seconds[0] / 1e9, peak = peak_operations / seconds[1] / 1e9;
    std::printf("{\"bench\":\"%s\",\"level\":\"%s\",%s,\"gflop_s\":%.1f,\"peak_gflop_s\":%.1f,\"share\":%.3f}\n",
                name.c_str(), level_.c_str(), shape.c_str(), rate, peak, rate / peak);
    std::fflush(stdout);
  }

  std::string level_, prefix_;
  int64_t (*peak_)(int64_t steps);
  std::unique_ptr<Memory> big_;
};

int Main(int argc, char** argv) {
  const std::string level(argc > 1 ? std::string_view(argv[1]) : HostLevel().name);
  const Level* found = FindLevel(level);
  if (found == nullptr || !HostSupports(*found)) {
    std::fprintf(stderr, "bench_tiles_float: this host has no level \"%s\"\n", level.c_str());
    return 2;
  }
  Bench bench(level, argc > 2 ? argv[2] : "");
  for (bool half : {false, true}) {
    for (int64_t k : {768, 2048, 5632}) bench.Dot(half, 1, k);
    for (int64_t m : {2, 4, 8}) bench.Dot(half, m, 2048);
    bench.Dot(half, 8, 5632);
  }
  for (int64_t k : {256, 768, 2048, 5632}) {
    for (int64_t m : {1, 2, 3, 4, 6, 8, 11, 12, 13, 16, 24, 29, 64, 128, 256}) bench.Mma(m, k);
  }
  for (bool half : {false, true}) {
    for (int64_t k : {768, 2048, 5632}) bench.Pack(half, k);
    for (int64_t d : {64, 128, 256}) {
      for (int64_t r : {1, 2, 8, 16, 32, 64}) bench.Flash(half, r, d);
    }
    bench.Flash(half, 32, 96);
  }
  return 0;
}

}  // namespace
}  // namespace quern::simd

int main(int argc, char** argv) { return quern::simd::Main(argc, argv); }
