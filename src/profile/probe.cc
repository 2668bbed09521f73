#include "profile/probe.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/memory.h"
#include "base/ticks.h"
#include "profile/peaks.h"

namespace quern::profile {
namespace {

// Larger than what caches keep of it between two passes; and what a buffer may take to fill. A virtual machine that has
// to be given the memory first may need milliseconds for a megabyte: it gets a smaller one.
constexpr int64_t kDramBytes = int64_t{256} << 20, kFillStep = int64_t{16} << 20, kFillNs = 120'000'000;
// Where the system does not say.
constexpr int64_t kUsualL2 = int64_t{1} << 20, kUsualL3 = int64_t{16} << 20;
// Largest buffer that stands for the third level: a virtual machine is told of more than is left for it.
constexpr int64_t kMostL3 = int64_t{24} << 20, kFarL3 = int64_t{80} << 20;
constexpr int kRounds = 3;

std::atomic<uint64_t> sink{0};

// What chunks of the probes do, by the kernel ABI: `buffers[0]` is a Task.
struct Task {
  const PeakLoops* loops;
  uint8_t* data;
  int64_t bytes;  // of a chunk
  int64_t steps, repeat;
};

const Task& TaskOf(const quern_args* args) { return *static_cast<const Task*>(args->buffers[0]); }

void Fill(const quern_args* args, void*, int64_t begin, int64_t end) {
  const Task& task = TaskOf(args);
  for (int64_t chunk = begin; chunk < end; ++chunk)
    std::memset(task.data + chunk * task.bytes, 1, static_cast<size_t>(task.bytes));
}

void Read(const quern_args* args, void*, int64_t begin, int64_t end) {
  const Task& task = TaskOf(args);
  uint64_t sum = 0;
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    for (int64_t r = 0; r < task.repeat; ++r) sum += task.loops->read(task.data + chunk * task.bytes, task.bytes);
  }
  sink.fetch_add(sum, std::memory_order_relaxed);
}

void Float(const quern_args* args, void*, int64_t begin, int64_t end) {
  for (int64_t chunk = begin; chunk < end; ++chunk) TaskOf(args).loops->f32(TaskOf(args).steps);
}

void Pairs(const quern_args* args, void*, int64_t begin, int64_t end) {
  for (int64_t chunk = begin; chunk < end; ++chunk) TaskOf(args).loops->bf16(TaskOf(args).steps);
}

void Byte(const quern_args* args, void*, int64_t begin, int64_t end) {
  for (int64_t chunk = begin; chunk < end; ++chunk) TaskOf(args).loops->int8(TaskOf(args).steps);
}

void Nothing(const quern_args*, void*, int64_t, int64_t) {}

class Bench {
 public:
  explicit Bench(ThreadPool& pool) : pool_(pool), scratch_(pool.threads(), nullptr) {}

  // Nanoseconds of `count` launches of the kernel over `chunks` on all threads: the quickest round.
  int64_t Best(quern_kernel* kernel, Task task, int64_t chunks, int count = 1, int rounds = kRounds) {
    void* buffers[] = {&task};
    const quern_args args = {buffers, nullptr};
    const std::vector<Dispatch> dispatches(count, Dispatch{kernel, &args, chunks, 0, nullptr, 0});
    int64_t best = INT64_MAX;
    for (int round = 0; round < rounds; ++round) {
      const int64_t start = SteadyNs();
      pool_.Run(dispatches, scratch_);
      best = std::min(best, SteadyNs() - start);
    }
    return std::max<int64_t>(best, 1);
  }

 private:
  ThreadPool& pool_;
  std::vector<void*> scratch_;
};

int64_t CacheBytes(int name, int64_t usual) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : usual;
}

// Operations a nanosecond of one loop on all threads; each measurement lasts two milliseconds or so.
double Operations(Bench& bench, quern_kernel* kernel, const PeakLoops& loops, int64_t (*loop)(int64_t), int threads) {
  constexpr int64_t kTrial = 2000;
  const int64_t start = SteadyNs();
  const int64_t operations = loop(kTrial);
  const int64_t trial = std::max<int64_t>(SteadyNs() - start, 1);
  const int64_t steps = std::clamp<int64_t>(kTrial * 500'000 / trial, 100, 10'000'000);
  const int64_t chunks = int64_t{4} * threads;
  return static_cast<double>(operations * steps * chunks) /
         static_cast<double>(bench.Best(kernel, {&loops, nullptr, 0, steps, 0}, chunks));
}

}  // namespace

Status Probe(ThreadPool& pool, std::string_view level, Machine& machine) {
  const int64_t start = SteadyNs();
  const int threads = pool.threads();
  const PeakLoops& loops = PeaksOf(level);
  Bench bench(pool);
  machine.f32_gflops = Operations(bench, Float, loops, loops.f32, threads);
  machine.bf16_gflops = Operations(bench, Pairs, loops, loops.bf16, threads);
  machine.int8_gops = Operations(bench, Byte, loops, loops.int8, threads);
  constexpr int kLaunches = 300;
  machine.dispatch_ns = static_cast<double>(bench.Best(Nothing, {}, threads, kLaunches)) / kLaunches;

  QUERN_ASSIGN(const Memory memory, Memory::Allocate(kDramBytes));
  constexpr int64_t kChunk = int64_t{1} << 20;
  const int64_t filling = SteadyNs();
  int64_t filled = 0;
  while (filled < kDramBytes && (filled < 2 * kFillStep || SteadyNs() - filling < kFillNs)) {
    bench.Best(Fill, {&loops, memory.data() + filled, kChunk, 0, 0}, kFillStep / kChunk, 1, 1);
    filled += kFillStep;
  }
  const auto gbps = [&](int64_t chunk, int64_t chunks, int64_t repeat, int rounds) {
    return static_cast<double>(chunk * chunks * repeat) /
           static_cast<double>(bench.Best(Read, {&loops, memory.data(), chunk, 0, repeat}, chunks, 1, rounds));
  };
  // Each thread reads a block of its own again and again, half of its cache.
  const int64_t l2 = CacheBytes(_SC_LEVEL2_CACHE_SIZE, kUsualL2), l3 = CacheBytes(_SC_LEVEL3_CACHE_SIZE, kUsualL3);
  const int64_t own = std::clamp<int64_t>(l2 / 2, 4096, filled / threads) / 4096 * 4096;
  machine.memory.push_back({"l2", own * threads, gbps(own, threads, 16, kRounds)});
  // All of them together read one that is larger than all second levels.
  const int64_t shared = std::min(l3 / 2, kMostL3);
  if (shared > 2 * own * threads) {
    const int64_t part = shared / threads / 4096 * 4096;
    machine.memory.push_back({"l3", shared, gbps(part, threads, 3, kRounds)});
    // Of a very large one, the slices of other cores answer more slowly.
    if (l3 >= 2 * kFarL3 && filled >= kFarL3)
      machine.memory.push_back({"l3 far", kFarL3, gbps(kChunk, kFarL3 / kChunk, 1, kRounds)});
  }
  machine.dram_bytes = filled;
  machine.memory.push_back({"dram", 0, gbps(kChunk, filled / kChunk, 1, kRounds)});
  int64_t best = INT64_MAX;
  for (int64_t at = 0; at + 2 * kFillStep <= filled; at += 2 * kFillStep) {
    const int64_t from = SteadyNs();
    sink.fetch_add(loops.read(memory.data() + at, 2 * kFillStep), std::memory_order_relaxed);
    best = std::min(best, SteadyNs() - from);
  }
  machine.dram_gbps_one = static_cast<double>(2 * kFillStep) / static_cast<double>(best);
  machine.probe_ms = static_cast<double>(SteadyNs() - start) * 1e-6;
  return absl::OkStatus();
}

}  // namespace quern::profile
