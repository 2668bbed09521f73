// What this machine can do at most, measured: the roofs that a profile holds kernels against. docs/profiling.md says
// how.
//
//   QUERN_ASSIGN(const Machine machine, MachineOf(target.name, pool, {.folder = cache::UserFolder().value_or("")}));
//   machine.memory.back().gbps;  machine.f32_gflops
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/thread_pool.h"

namespace quern::profile {

// One level of the memory as all threads read it together.
struct MemoryLevel {
  std::string name;   // "l2", "l3", "l3 far", "dram"
  int64_t bytes = 0;  // a working set of at most this many bytes stays in it; 0: any
  double gbps = 0;    // read, all threads
};

struct Machine {
  std::string cpu;    // as the system names it
  std::string level;  // of the kernels: "avx512vnni"
  int threads = 1;
  std::vector<MemoryLevel> memory;  // nearest first; the last is DRAM
  double dram_gbps_one = 0;         // one thread alone
  int64_t dram_bytes = 0;           // of the buffer that stood for DRAM
  double f32_gflops = 0;            // multiply-adds of all threads, two operations each
  double bf16_gflops = 0;           // likewise, of products of bf16
  double int8_gops = 0;             // likewise, of byte dot products
  double dispatch_ns = 0;           // from one launch to the next, without work
  double probe_ms = 0;              // that measuring took
  bool stored = false;              // from an earlier run
  int64_t measured = 0;             // seconds since 1970 of the first of the measurements that it is the best of
  int rounds = 1;                   // how many these are

  // What cannot be of one machine: memory that all threads read more slowly than one of them, or than memory further
  // away. Such peaks were measured while something else ran.
  bool Consistent() const;
  // The best of both. Levels of memory are of the measurement that filled more of its buffer, of `other` where both
  // filled as much: the other may lack some. DRAM is not of one whose buffer a cache may have held, unless both are.
  void Merge(const Machine& other);
  // Index of the level that holds a working set.
  int LevelFor(int64_t bytes) const;
};

struct ProbeOptions {
  std::string folder;  // where peaks are kept, made when it is not there; empty: nowhere
  bool fresh = false;  // measure, and take the best of this and of what is there
};

// From the file, or measured in less than 300 ms and then kept, unless the system was too slow to give memory for a
// buffer larger than caches. What is measured is consistent: what shows to be too low is raised. A file that is not, or
// that is older than 30 days, is measured anew. `level`: one that this machine runs. A folder that cannot be read or
// written is no error.
StatusOr<Machine> MachineOf(const std::string& level, ThreadPool& pool, const ProbeOptions& options);

// JSON as it is stored. Error: the text is anything else.
std::string MachineText(const Machine& machine);
StatusOr<Machine> ParseMachine(const std::string& text);

}  // namespace quern::profile
