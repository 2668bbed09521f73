// The quantised tiles against the machine: weights streamed beside a read loop, integer operations beside a loop of
// nothing but the level's own products of bytes.
//
//   bench_tiles_quant [level] [name prefix]     one JSON object a line
//   {"bench":"dot_q4_K","level":"avx512vnni","memory":"dram","m":1,"n":32,"k":2048,"gb_s":12.0,"read_gb_s":12.3,
//    "share":0.97}
//   {"bench":"mma_q4_K","level":"avx512vnni","m":12,"n":16,"k":2048,"gop_s":610,"peak_gop_s":811,"share":0.75}
//
// A figure and what it is compared with are timed in turn, in rounds, and medians are printed: the memory of a shared
// machine changes within minutes, so a ratio of two separate runs means nothing.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_format.h"
#include "bench/measure.h"
#include "kir/layout.h"
#include "kir/quantise.h"
#include "kir/random_buffer.h"
#include "profile/peaks.h"
#include "simd/library.h"

namespace quern::simd {
namespace {

using bench::InTurn, bench::ReadLoop;

using Dot = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                 int64_t);
using Mma = void(float*, int64_t, const void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t);
using Pack = void(void*, int64_t, const void*, int64_t, int64_t, int64_t);
using PackPlanar = void(void*, int64_t, const void*, int64_t, int64_t, int64_t, int64_t, int64_t);

std::string_view wanted_prefix;

template <typename Signature>
Signature* Find(const std::string& name, std::string_view level) {
  const void* address = FindTile(name + "_" + std::string(level));
  if (address == nullptr)
    std::fprintf(stderr, "no tile %s_%s\n", name.c_str(), std::string(level).c_str()), std::exit(1);
  return reinterpret_cast<Signature*>(const_cast<void*>(address));
}

bool Wanted(const std::string& name) { return std::string_view(name).substr(0, wanted_prefix.size()) == wanted_prefix; }

struct Format {
  DType weight, activation;
  const char* name;
};
// Those that have tiles.
std::vector<Format> Formats() {
  std::vector<Format> formats;
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) {
    const auto weight = static_cast<DType>(d);
    const BlockFormat& format = FormatOf(weight);
    if (format.activation) formats.push_back({weight, *format.activation, format.name});
  }
  return formats;
}

uint8_t* Map(int64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::perror("mmap"), std::exit(1);
  return static_cast<uint8_t*>(memory);
}

// Random rows with d of ordinary size, so that no denormal slows the sums.
void FillWeights(DType dtype, int64_t rows, int64_t k, uint8_t* to) {
  std::mt19937_64 random(5);
  const int64_t bytes = rows * RowBytes(dtype, k), block = Row(dtype).block_bytes;
  for (int64_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = random();
    std::memcpy(to + at, &word, 8);
  }
  for (int64_t at = 0; at < bytes; at += block) kir::PutScales(dtype, to + at, 0.01f, 0.01f);
}

std::vector<float> Activations(int64_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

void BenchDot(const Format& format, const std::string& level, bool exact, int64_t m, bool dram) {
  const std::string name = std::string("dot_") + format.name + (exact ? "_x" : "");
  if (!Wanted(name)) return;
  constexpr int64_t kN = 32;
  const int64_t k = 2048, row_bytes = RowBytes(format.weight, k), chunk = kN * row_bytes;
  const int64_t chunks = dram ? (int64_t{256} << 20) / chunk : 1, repeat = dram ? 1 : 400;
  uint8_t* w = Map(chunks * chunk + 65536);
  FillWeights(format.weight, chunks * kN, k, w);
  const std::vector<float> rows = Activations(m * k);
  const int64_t planar_bytes = kir::PlanarRowOf(format.activation, k).row_bytes;
  uint8_t* planar = Map(m * planar_bytes);
  for (int64_t r = 0; r < m; ++r)
    kir::QuantiseToPlanar(format.activation, &rows[r * k], k, planar + r * planar_bytes, k, 0);
  const void* x = exact ? static_cast<const void*>(rows.data()) : planar;
  const int64_t x_stride = exact ? k * 4 : planar_bytes;
  std::vector<float> y(m * kN);
  auto* tile = Find<Dot>("qk_" + name, level);
  auto stream = [&](int64_t ahead) {
    for (int64_t i = 0; i < repeat; ++i) {
      for (int64_t c = 0; c < chunks; ++c)
        tile(y.data(), kN, w + c * chunk, row_bytes, x, x_stride, m, kN, k, ahead, 0);
    }
  };
  const std::vector<double> seconds = InTurn(dram ? 5 : 15, {
                                                                [&] {
                                                                  for (int64_t i = 0; i < repeat; ++i)
                                                                    ReadLoop(w, chunks * chunk);
                                                                },
                                                                [&] { stream(8192); },
                                                                [&] { stream(0); },
                                                            });
  const double bytes = 1e-9 * chunks * chunk * repeat;
  std::printf(
      "{\"bench\":\"%s\",\"level\":\"%s\",\"memory\":\"%s\",\"m\":%d,\"n\":%d,\"k\":%d,\"gb_s\":%.1f,"
      "\"no_prefetch_gb_s\":%.1f,\"read_gb_s\":%.1f,\"share\":%.2f}\n",
      name.c_str(), level.c_str(), dram ? "dram" : "cache", static_cast<int>(m), static_cast<int>(kN),
      static_cast<int>(k), bytes / seconds[1], bytes / seconds[2], bytes / seconds[0], seconds[0] / seconds[1]);
  munmap(w, chunks * chunk + 65536);
  munmap(planar, m * planar_bytes);
}

void BenchMma(const Format& format, const std::string& level, int64_t m, int64_t k) {
  const std::string name = std::string("mma_") + format.name;
  if (!Wanted(name)) return;
  const int64_t row_bytes = RowBytes(format.weight, k), panel_bytes = kir::Panel16Of(format.weight, k).bytes;
  const int64_t planar_bytes = kir::PlanarRowOf(format.activation, k).row_bytes;
  uint8_t* w = Map(16 * row_bytes);
  uint8_t* panel = Map(panel_bytes);
  uint8_t* x = Map(m * planar_bytes);
  FillWeights(format.weight, 16, k, w);
  Find<Pack>(std::string("qk_pack_") + format.name + "_panel16", level)(panel, panel_bytes, w, row_bytes, 16, k);
  const std::vector<float> rows = Activations(m * k);
  for (int64_t r = 0; r < m; ++r) kir::QuantiseToPlanar(format.activation, &rows[r * k], k, x + r * planar_bytes, k, 0);
  std::vector<float> c(m * 16);
  auto* tile = Find<Mma>("qk_" + name, level);
  const int64_t repeat = std::max<int64_t>(1, 100000000 / (m * 16 * k));
  constexpr int64_t kPeakSteps = 40000;
  const auto peak_loop = profile::PeaksOf(level).int8;
  int64_t peak_operations = 0;
  const std::vector<double> seconds = InTurn(15, {[&] { peak_operations = kPeakSteps * peak_loop(kPeakSteps); },
                                                  [&] {
                                                    for (int64_t i = 0; i < repeat; ++i)
                                                      tile(c.data(), 16, x, planar_bytes, panel, 0, m, 16, k);
                                                  }});
  const double rate = 2e-9 * m * 16 * k * repeat / seconds[1], peak = 1e-9 * peak_operations / seconds[0];
  std::printf(
      "{\"bench\":\"%s\",\"level\":\"%s\",\"m\":%d,\"n\":16,\"k\":%d,\"gop_s\":%.0f,\"peak_gop_s\":%.0f,\"share\":%.2f}"
      "\n",
      name.c_str(), level.c_str(), static_cast<int>(m), static_cast<int>(k), rate, peak, rate / peak);
  munmap(w, 16 * row_bytes);
  munmap(panel, panel_bytes);
  munmap(x, m * planar_bytes);
}

// Panels and unpacks of rows in cache: nanoseconds for each weight.
void BenchPack(const Format& format, const std::string& level, const std::string& name, int64_t rows,
               int64_t dst_bytes) {
  if (!Wanted(name)) return;
  constexpr int64_t kK = 2048;
  const int64_t row_bytes = RowBytes(format.weight, kK);
  uint8_t* w = Map(rows * row_bytes);
  uint8_t* to = Map(dst_bytes);
  FillWeights(format.weight, rows, kK, w);
  auto* tile = Find<Pack>("qk_" + name, level);
  constexpr int kRepeat = 50;
  const double seconds = InTurn(15, {[&] {
                                  for (int i = 0; i < kRepeat; ++i) tile(to, kK * 4, w, row_bytes, rows, kK);
                                }})[0];
  std::printf("{\"bench\":\"%s\",\"level\":\"%s\",\"rows\":%d,\"k\":%d,\"ns_per_weight\":%.4f}\n", name.c_str(),
              level.c_str(), static_cast<int>(rows), static_cast<int>(kK), 1e9 * seconds / (kRepeat * rows * kK));
  munmap(w, rows * row_bytes);
  munmap(to, dst_bytes);
}

void BenchActivations(DType dtype, const std::string& level) {
  const std::string name = "pack_" + std::string(Name(dtype)) + "_planar";
  if (!Wanted(name)) return;
  constexpr int64_t kK = 768;
  const std::vector<float> x = Activations(kK);
  std::vector<uint8_t> row(kir::PlanarRowOf(dtype, kK).row_bytes);
  auto* tile = Find<PackPlanar>("qk_" + name, level);
  constexpr int kRepeat = 2000;
  const double seconds = InTurn(15, {[&] {
                                  for (int i = 0; i < kRepeat; ++i) tile(row.data(), 0, x.data(), 0, 1, kK, kK, 0);
                                }})[0];
  std::printf("{\"bench\":\"%s\",\"level\":\"%s\",\"k\":%d,\"us_per_row\":%.3f}\n", name.c_str(), level.c_str(),
              static_cast<int>(kK), 1e6 * seconds / kRepeat);
}

void BenchLevel(const std::string& level) {
  for (DType dtype : {DType::kQ8_0, DType::kQ8_K}) BenchActivations(dtype, level);
  for (const Format& format : Formats()) {
    for (bool dram : {false, true}) {
      for (int64_t m : {1, 2, 4, 8}) {
        if (!dram || m == 1) BenchDot(format, level, false, m, dram);
      }
      BenchDot(format, level, true, 1, dram);
    }
    for (int64_t m : {4, 8, 10, 12, 16, 32, 128, 256}) BenchMma(format, level, m, 2048);
    BenchMma(format, level, 12, 5632);
    const std::string text = format.name;
    BenchPack(format, level, "pack_" + text + "_panel16", 16, kir::Panel16Of(format.weight, 2048).bytes);
    BenchPack(format, level, "pack_" + text + "_kn32", 32, 2048 * 32 * 4);
    BenchPack(format, level, "unpack_" + text, 16, 16 * 2048 * 4);
  }
}

}  // namespace
}  // namespace quern::simd

int main(int argc, char** argv) {
  using namespace quern::simd;
  wanted_prefix = argc > 2 ? argv[2] : "";
  const std::string level(argc > 1 ? std::string_view(argv[1]) : HostLevel().name);
  const Level* found = FindLevel(level);
  if (found == nullptr || !HostSupports(*found)) {
    std::fprintf(stderr, "level %s is unknown or not supported by this processor\n", level.c_str());
    return 1;
  }
  BenchLevel(level);
  return 0;
}
