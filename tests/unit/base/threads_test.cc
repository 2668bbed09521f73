#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "support/memory_limit.h"

namespace quern {
namespace {

TEST(RunOnThreads, EachOnAThreadOfItsOwn) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::thread::id> ids(threads);
    RunOnThreads(threads, [&](int thread) { ids[thread] = std::this_thread::get_id(); });
    EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), threads);
    for (const std::thread::id id : ids) EXPECT_NE(id, std::this_thread::get_id());
  }
  std::atomic<int> calls = 0;
  RunOnThreads(0, [&](int) { ++calls; });
  EXPECT_EQ(calls, 1);
}

// What is taken, not dealt, is done by as many as there are.
TEST(RunOnThreads, FewerWhereThereAreNoMore) {
  if (!testing::kLimitsMemory) GTEST_SKIP() << "address space has no meaning under a sanitizer";
  std::atomic<int> next = 0, most = 0;
  const testing::MemoryLimit limit(int64_t{64} << 20);  // some stacks
  RunOnThreads(64, [&](int thread) {
    for (int seen = most; seen < thread && !most.compare_exchange_weak(seen, thread);) {}
    while (next++ < 1000) std::this_thread::yield();
  });
  EXPECT_GE(next, 1000);
  EXPECT_LT(most, 63);
}

}  // namespace
}  // namespace quern
