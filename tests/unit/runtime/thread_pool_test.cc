// The pool runs every chunk once, keeps dispatches in order, gives sequential work to one thread and leaves the
// caller's floating-point mode alone.
#include "runtime/thread_pool.h"
#include "support/memory_limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace quern {
namespace {

// A kernel that checks that the dispatch before it is complete: cell[i] of stage s must be s everywhere before any
// chunk of stage s + 1 begins.
struct Board {
  std::vector<std::atomic<int64_t>> cells;
  std::atomic<int64_t> errors{0};
};

void Step(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
  Board& board = *static_cast<Board*>(args->buffers[0]);
  const int64_t stage = args->symbols[0];
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    for (const auto& cell : board.cells) {
      const int64_t value = cell.load(std::memory_order_relaxed);
      if (value != stage && value != stage + 1) board.errors.fetch_add(1);
    }
    if (board.cells[chunk].exchange(stage + 1, std::memory_order_relaxed) != stage) board.errors.fetch_add(1);
    static_cast<volatile char*>(scratch)[0] = 1;
  }
}

void RunBoard(ThreadPool& pool, int stages, int rounds) {
  constexpr int kCells = 37;
  std::vector<std::vector<char>> memory(pool.threads(), std::vector<char>(64));
  std::vector<void*> scratch;
  for (auto& m : memory) scratch.push_back(m.data());
  for (int round = 0; round < rounds; ++round) {
    Board board{std::vector<std::atomic<int64_t>>(kCells)};
    void* buffers[] = {&board};
    std::vector<int64_t> stage_values(stages);
    std::vector<quern_args> args(stages);
    std::vector<Dispatch> dispatches(stages);
    for (int s = 0; s < stages; ++s) {
      stage_values[s] = s;
      args[s] = {buffers, &stage_values[s]};
      dispatches[s] = {Step, &args[s], kCells, s % 3 == 1, nullptr, 0};
    }
    pool.Run(dispatches, scratch);
    ASSERT_EQ(board.errors.load(), 0) << "round " << round;
    for (const auto& cell : board.cells) ASSERT_EQ(cell.load(), stages);
  }
}

TEST(ThreadPool, KeepsOrderAndRunsEveryChunkOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    RunBoard(pool, 12, 200);
  }
}

// More threads than processors: a worker that loses its processor in one run must not find itself in the next.
TEST(ThreadPool, RunsOfChangingLengths) {
  ThreadPool pool(6);
  for (int round = 0; round < 600; ++round) RunBoard(pool, 1 + round * 5 % 13, 1);
}

TEST(ThreadPool, WakesSleepingWorkers) {
  ThreadPool pool(2);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the spin
    RunBoard(pool, 5, 1);
  }
}

// No thread to be had is an error, not an exception, and who wants what there is gets that: the others' work is done
// too.
TEST(ThreadPool, FewerThreadsThanAskedFor) {
  if (!testing::kLimitsMemory) GTEST_SKIP() << "address space has no meaning under a sanitizer";
  std::unique_ptr<ThreadPool> pool;
  {
    const testing::MemoryLimit limit(int64_t{64} << 20);  // some stacks
    const auto made = ThreadPool::Create(4096);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted) << made.status();
    pool = std::make_unique<ThreadPool>(64);
  }
  EXPECT_LT(pool->threads(), 64);
  RunBoard(*pool, 12, 20);
}

// Two programs of one pool, which take turns.
TEST(ThreadPool, TwoCallers) {
  ThreadPool pool(3);
  std::thread other([&] { RunBoard(pool, 9, 100); });
  RunBoard(pool, 12, 100);
  other.join();
}

// The dispatch that is under way when the flag is set ends; none after it starts, shared or not.
TEST(ThreadPool, StopsWhenCancelled) {
  struct Run {
    std::atomic<bool> cancel{false};
    std::atomic<int64_t> chunks{0};
  };
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<void*> scratch(threads, nullptr);
    for (const int64_t at : {0, 4, 5, 11}) {
      Run run;
      void* buffers[] = {&run};
      std::vector<int64_t> last(12, 0);
      std::vector<quern_args> args(12);
      std::vector<Dispatch> dispatches(12);
      for (int64_t d = 0; d < 12; ++d) {
        last[d] = d == at ? 1 : 0;
        args[d] = {buffers, &last[d]};
        const auto kernel = [](const quern_args* own, void*, int64_t begin, int64_t end) {
          Run& here = *static_cast<Run*>(own->buffers[0]);
          here.chunks += end - begin;
          if (own->symbols[0] == 1) here.cancel = true;
        };
        dispatches[d] = {kernel, &args[d], 7, d % 3 == 2, nullptr, 0};
      }
      EXPECT_EQ(pool.Run(dispatches, scratch, nullptr, &run.cancel), at == 11);
      EXPECT_EQ(run.chunks.load(), 7 * (at + 1));
      run.cancel = true;
      EXPECT_FALSE(pool.Run(dispatches, scratch, nullptr, &run.cancel));
      EXPECT_EQ(run.chunks.load(), 7 * (at + 1));
    }
  }
}

TEST(ThreadPool, RunsNothing) {
  ThreadPool pool(2);
  std::vector<void*> scratch(2, nullptr);
  pool.Run({}, scratch);
}

void Denormal(const quern_args* args, void*, int64_t, int64_t) {
  volatile float tiny = 1e-38f;
  *static_cast<float*>(args->buffers[0]) = tiny * 0.01f;
}

TEST(ThreadPool, FlushesDenormalsInsideOnly) {
  ThreadPool pool(1);
  float value = -1;
  void* buffers[] = {&value};
  const quern_args args{buffers, nullptr};
  const Dispatch dispatch{Denormal, &args, 1, false, nullptr, 0};
  void* scratch[] = {nullptr};
  pool.Run(std::span(&dispatch, 1), scratch);
  EXPECT_EQ(value, 0.0f);
  volatile float tiny = 1e-38f;
  EXPECT_NE(tiny * 0.01f, 0.0f);
}

TEST(DefaultThreads, IsPositiveAndBounded) {
  EXPECT_GE(DefaultThreads(), 1);
  EXPECT_LE(DefaultThreads(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace quern
