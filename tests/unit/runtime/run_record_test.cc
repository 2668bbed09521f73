// A record of a run has every chunk once, in the order of the dispatches; counters count, or say why not.
#include "runtime/run_record.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "runtime/thread_pool.h"

namespace quern {
namespace {

void Spin(const quern_args*, void*, int64_t begin, int64_t end) {
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    for (volatile int i = 0; i < 300; i = i + 1) {}
  }
}

struct Runner {
  explicit Runner(int threads) : pool(threads), memory(threads, std::vector<char>(64)) {
    for (auto& m : memory) scratch.push_back(m.data());
    for (int64_t d = 0; d < 7; ++d) dispatches.push_back({Spin, nullptr, d == 5 ? 0 : 11 + d, d % 3 == 1, nullptr, 0});
  }
  ThreadPool pool;
  std::vector<std::vector<char>> memory;
  std::vector<void*> scratch;
  std::vector<Dispatch> dispatches;
};

TEST(RunRecord, EveryChunkOnceAndInOrder) {
  for (const int threads : {1, 2, 3}) {
    Runner runner(threads);
    for (int round = 0; round < 50; ++round) {
      RunRecord record(threads, runner.dispatches.size());
      runner.pool.Run(runner.dispatches, runner.scratch, &record);
      uint64_t opened = record.begin;
      for (size_t d = 0; d < runner.dispatches.size(); ++d) {
        int64_t chunks = 0;
        int workers = 0;
        uint64_t closed = opened;
        for (int w = 0; w < threads; ++w) {
          const RunSlice& slice = record.at(w, d);
          if (slice.chunks == 0) continue;
          chunks += slice.chunks;
          ++workers;
          EXPECT_GE(slice.begin, opened) << "dispatch " << d << " worker " << w;
          EXPECT_GT(slice.end, slice.begin);
          closed = std::max(closed, slice.end);
        }
        EXPECT_EQ(chunks, runner.dispatches[d].chunks) << "dispatch " << d;
        if (runner.dispatches[d].sequential) EXPECT_EQ(workers, 1);
        opened = closed;
      }
      EXPECT_GE(record.end, opened);
    }
  }
}

TEST(RunRecord, RunsWithAndWithoutOneMix) {
  Runner runner(2);
  for (int round = 0; round < 20; ++round) {
    RunRecord record(2, runner.dispatches.size());
    runner.pool.Run(runner.dispatches, runner.scratch, round % 2 == 0 ? &record : nullptr);
    EXPECT_EQ(record.at(0, 0).chunks + record.at(1, 0).chunks, round % 2 == 0 ? 11 : 0);
  }
}

TEST(Ticks, AgreeWithTheSteadyClock) {
  TickScale scale = TickScale::Start();
  const int64_t before = SteadyNs();
  const uint64_t ticks = TicksBefore();
  const int64_t after = SteadyNs();
  for (volatile int i = 0; i < 20'000'000; i = i + 1) {}
  scale.Finish();
  EXPECT_GT(scale.Nanoseconds(ticks), before - 20'000);
  EXPECT_LT(scale.Nanoseconds(ticks), after + 20'000);
}

// The clock of the task is a counter of the system's own, which every machine has.
constexpr CounterEvent kTaskClock[] = {{"task clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}};

TEST(Counters, CountOrSayWhyNot) {
  CounterGroup counters;
  EXPECT_EQ(counters.Read(), CounterValues{});
  const Status status = counters.Open(kTaskClock);
  if (!status.ok()) {
    EXPECT_NE(std::string(status.message()).find("errno"), std::string::npos) << status;
    GTEST_SKIP() << status.message();
  }
  const CounterValues before = counters.Read();
  for (volatile int i = 0; i < 2'000'000; i = i + 1) {}
  const CounterValues after = counters.Read();
  EXPECT_GT(after[0], before[0]);
  EXPECT_EQ(after[1], 0u);
  CounterGroup moved = std::move(counters);
  EXPECT_TRUE(moved.is_open());
  EXPECT_FALSE(counters.is_open());
}

TEST(Counters, AnEventThatIsNotThereIsOneSentence) {
  constexpr CounterEvent kNone[] = {{"task clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
                                    {"nothing", PERF_TYPE_SOFTWARE, 9999}};
  CounterGroup counters;
  const Status status = counters.Open(kNone);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(counters.is_open());
  EXPECT_EQ(CounterError("cycles", ENOENT),
            "no hardware counters: perf_event_open of cycles failed with errno 2: this machine has no such counter, as "
            "most virtual machines");
  EXPECT_NE(CounterError("cycles", EACCES).find("perf_event_paranoid"), std::string::npos);
  EXPECT_NE(CounterError("cycles", EIO).find("errno 5"), std::string::npos);
}

TEST(Counters, AreReadAroundDispatches) {
  std::vector<CounterGroup> counters(2);
  const Status status = CounterGroup().Open(HardwareCounters());
  Runner runner(2);
  RunRecord record(2, runner.dispatches.size(), counters);
  ASSERT_TRUE(record.has_counts());
  runner.pool.Run(runner.dispatches, runner.scratch, &record);
  const uint64_t cycles = record.counts(0, 0)[0] + record.counts(1, 0)[0];
  if (status.ok())
    EXPECT_GT(cycles, 0u);
  else
    EXPECT_EQ(cycles, 0u);
}

}  // namespace
}  // namespace quern
