// What profiling costs: decoding without a profiler, and with one attached, in turn; one JSON object a line.
//
//   bench_profile_cost [MODEL...] [--threads N] [--tokens 48] [--rounds 40]     no model: models/addition.gguf
//   {"bench":"profile_cost","model":"addition.gguf","threads":2,"off_us":96.1,"on_us":97.0,"on_percent":0.9,...}
//
// off_us, on_us: median over the rounds of a decode step's time; on_percent: median over the rounds of on / off - 1,
// the two being neighbours in time and taking turns to be first. off_floor_ns: a whole run of a pool that has nothing
// to do, its look for a recorder among the rest; the code that runs kernels without a recorder is an instantiation of
// its own that knows of none, so this is the most that a recorder which is off can cost a step; off_percent is that by
// off_us.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "quern/profile.h"
#include "runtime/thread_pool.h"

namespace {

using quern::bench::Median;
using quern::bench::ThreadTime;
using quern::bench::WallTime;

int Complain(const std::string& error) {
  std::fprintf(stderr, "bench_profile_cost: %s\n", error.c_str());
  return 1;
}

constexpr int kSettle = 5;

// Seconds of a step, over `tokens` steps after a short prompt; negative when one failed.
double StepSeconds(quern::Session& session, int tokens) {
  const std::vector<int32_t> prompt = {1, 5, 9};
  session.Reset();
  bool ok = session.Step(prompt).ok();
  const int32_t next = 7;
  // What came before, such as setting a profiler up, has taken the weights out of the caches.
  for (int t = 0; ok && t < kSettle; ++t) ok = session.Step(std::span(&next, 1)).ok();
  const auto steps = [&] {
    for (int t = 0; ok && t < tokens; ++t) ok = session.Step(std::span(&next, 1)).ok();
  };
  // Of one thread, the processor's time: a neighbour's does not count.
  const double seconds = session.threads() == 1 ? ThreadTime(steps) : WallTime(steps);
  return ok ? seconds / tokens : -1;
}

// Nanoseconds of a run without dispatches.
double FloorNs(int threads) {
  quern::ThreadPool pool(threads);
  const std::vector<void*> scratch(threads);
  std::vector<double> times;
  for (int round = 0; round < 51; ++round) {
    constexpr int kRuns = 1000;
    times.push_back(WallTime([&] {
                      for (int r = 0; r < kRuns; ++r) pool.Run({}, scratch);
                    }) /
                    kRuns);
  }
  return Median(times) * 1e9;
}

int Bench(const std::string& path, const quern::Options& options, int tokens, int rounds) {
  quern::Result<quern::Session> session = quern::Session::Open(path, options);
  if (!session.ok()) return Complain(session.error());
  tokens = static_cast<int>(std::min<int64_t>(tokens, session->context() - 3 - kSettle));
  StepSeconds(*session, tokens);  // warms up
  // The machine's peaks are measured, if they have to be, before the clock runs.
  if (quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*session); !profiler.ok())
    return Complain(profiler.error());
  std::vector<double> off, on, ratio;
  for (int round = 0; round < rounds; ++round) {
    double seconds[2] = {};
    for (int i = 0; i < 2; ++i) {
      const bool recorded = (round + i) % 2 == 1;
      if (recorded) {
        quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*session);
        if (!profiler.ok()) return Complain(profiler.error());
        seconds[1] = StepSeconds(*session, tokens);
      } else {
        seconds[0] = StepSeconds(*session, tokens);
      }
    }
    if (seconds[0] < 0 || seconds[1] < 0) return Complain("a step failed");
    off.push_back(seconds[0]);
    on.push_back(seconds[1]);
    ratio.push_back(seconds[1] / seconds[0]);
  }
  const size_t slash = path.rfind('/');
  const double off_us = Median(off) * 1e6, floor_ns = FloorNs(session->threads());
  std::printf(
      "{\"bench\":\"profile_cost\",\"model\":\"%s\",\"threads\":%d,\"steps\":%d,\"off_us\":%.2f,\"on_us\":%.2f,\"on_"
      "percent\":%.2f,"
      "\"best_off_us\":%.2f,\"best_on_us\":%.2f,\"off_floor_ns\":%.1f,\"off_percent\":%.3f}\n",
      path.substr(slash == std::string::npos ? 0 : slash + 1).c_str(), session->threads(), tokens * rounds, off_us,
      Median(on) * 1e6, (Median(ratio) - 1) * 100, *std::min_element(off.begin(), off.end()) * 1e6,
      *std::min_element(on.begin(), on.end()) * 1e6, floor_ns, floor_ns / off_us / 10);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models;
  quern::Options options;
  options.context = 64;
  int tokens = 48, rounds = 40;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::atoi(argv[++i]) : 0; };
    if (flag == "--threads")
      options.threads = value();
    else if (flag == "--tokens")
      tokens = std::max(value(), 1);
    else if (flag == "--rounds")
      rounds = std::max(value(), 1);
    else if (flag.starts_with("--"))
      return Complain("unknown flag " + flag);
    else
      models.push_back(flag);
  }
  if (models.empty()) models.push_back(QUERN_SOURCE_DIR "/models/addition.gguf");
  for (const std::string& model : models) {
    if (const int failed = Bench(model, options, tokens, rounds); failed != 0) return failed;
  }
  return 0;
}
