// The threads of a pool run on processors of their own: masks of the workers, on this machine and on made-up ones.
#include "rt/placement.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "quern/rt.h"
#include "runtime/thread_pool.h"

namespace {

using Mask = std::set<int>;

// A machine that is not this one: who asks the system is answered from here while it is set.
struct Machine {
  Mask processors;
  std::map<pid_t, Mask> masks;  // of threads that have set one
  std::mutex lock;
};
Machine* machine = nullptr;
thread_local int made_up_processor = 0;

Mask FromSet(const cpu_set_t& set) {
  Mask mask;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) mask.insert(cpu);
  }
  return mask;
}

cpu_set_t ToSet(const Mask& mask) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : mask) CPU_SET(cpu, &set);
  return set;
}

pid_t ThisThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

}  // namespace

// Instead of those of the C library, in this program.
extern "C" int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* set) noexcept {
  if (machine == nullptr) {
    CPU_ZERO_S(bytes, set);
    return syscall(SYS_sched_getaffinity, thread, bytes, set) < 0 ? -1 : 0;
  }
  const std::lock_guard<std::mutex> hold(machine->lock);
  const auto found = machine->masks.find(thread == 0 ? ThisThread() : thread);
  *set = ToSet(found == machine->masks.end() ? machine->processors : found->second);
  return 0;
}

extern "C" int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* set) noexcept {
  if (machine == nullptr) return syscall(SYS_sched_setaffinity, thread, bytes, set) < 0 ? -1 : 0;
  const Mask mask = FromSet(*set);
  if (mask.empty()) return -1;
  const std::lock_guard<std::mutex> hold(machine->lock);
  if (thread == 0) thread = ThisThread();
  machine->masks[thread] = mask;
  // A running thread is moved at once.
  if (thread == ThisThread() && !mask.contains(made_up_processor)) made_up_processor = *mask.begin();
  return 0;
}

extern "C" int sched_getcpu() noexcept {
  if (machine != nullptr) return made_up_processor;
  unsigned cpu = 0;
  return syscall(SYS_getcpu, &cpu, nullptr, nullptr) < 0 ? -1 : static_cast<int>(cpu);
}

namespace quern {
namespace {

Mask MaskOf(pid_t thread) {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(thread, sizeof(set), &set), 0);
  return FromSet(set);
}

void SetMask(pid_t thread, const Mask& mask) {
  const cpu_set_t set = ToSet(mask);
  ASSERT_EQ(sched_setaffinity(thread, sizeof(set), &set), 0);
}

// A made-up machine, and threads on it that do one thing at a time, when they are told to.
class MadeUp {
 public:
  explicit MadeUp(int processors) {
    for (int cpu = 0; cpu < processors; ++cpu) machine_.processors.insert(cpu);
    machine = &machine_;
    made_up_processor = 0;
  }
  ~MadeUp() {
    for (Worker& worker : workers_) worker.stop = true, worker.turn = true;
    for (Worker& worker : workers_) worker.thread.join();
    machine = nullptr;
  }
  // Runs on a thread of its own that is on `processor`; the mask that it then has.
  Mask As(size_t index, int processor, const std::function<void()>& action) {
    while (workers_.size() <= index) {
      Worker& worker = workers_.emplace_back();
      worker.thread = std::thread([&worker] {
        for (worker.id = ThisThread();; worker.turn = false) {
          while (!worker.turn) std::this_thread::yield();
          if (worker.stop) return;
          made_up_processor = worker.processor;
          worker.action();
          worker.processor = made_up_processor;
        }
      });
    }
    Worker& worker = *std::next(workers_.begin(), static_cast<std::ptrdiff_t>(index));
    worker.processor = processor;
    worker.action = action;
    worker.turn = true;
    while (worker.turn) std::this_thread::yield();
    return MaskOf(worker.id);
  }
  Mask MaskOfWorker(size_t index) {
    return MaskOf(std::next(workers_.begin(), static_cast<std::ptrdiff_t>(index))->id);
  }

 private:
  struct Worker {
    std::thread thread;
    std::function<void()> action;
    std::atomic<pid_t> id{0};
    std::atomic<bool> turn{false}, stop{false};
    int processor = 0;
  };
  Machine machine_;
  std::list<Worker> workers_;
};

TEST(Placement, AWorkerMayRunWhereTheOthersDoNot) {
  MadeUp made_up(8);
  placement* places = placement_start_on(3, nullptr, 0);
  ASSERT_NE(places, nullptr);
  EXPECT_EQ(made_up.As(1, 0, [&] { placement_join(places, 1); }), (Mask{1, 2, 3, 4, 5, 6, 7}));  // now on 1
  EXPECT_EQ(made_up.As(2, 5, [&] { placement_join(places, 2); }), (Mask{2, 3, 4, 5, 6, 7}));
  // The system moves one worker to the other's.
  EXPECT_EQ(made_up.As(1, 5, [&] { placement_check(places, 1); }), (Mask{1, 2, 3, 4, 6, 7}));
  // Where nobody is, nothing changes.
  EXPECT_EQ(made_up.As(2, 7, [&] { placement_check(places, 2); }), (Mask{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(MaskOf(0), machine->processors);
  placement_stop(places);
}

TEST(Placement, WhoeverMayWakeBesideTheCallerIsMovedByIt) {
  MadeUp made_up(4);
  placement* places = placement_start_on(3, nullptr, 0);
  ASSERT_NE(places, nullptr);
  made_up.As(1, 1, [&] { placement_join(places, 1); });
  made_up.As(2, 2, [&] { placement_join(places, 2); });
  made_up_processor = 2;  // where worker 2 is and worker 1 might be
  placement_check(places, 0);
  EXPECT_EQ(made_up.MaskOfWorker(2), (Mask{0, 3}));
  EXPECT_EQ(made_up.MaskOfWorker(1), (Mask{0, 1, 3}));
  EXPECT_EQ(MaskOf(0), machine->processors);
  placement_stop(places);
}

TEST(Placement, AWorkerLeavesACallerThatCameToIt) {
  MadeUp made_up(4);
  placement* places = placement_start_on(2, nullptr, 0);
  made_up.As(1, 3, [&] { placement_join(places, 1); });
  made_up_processor = 1;
  placement_check(places, 0);
  EXPECT_EQ(made_up.As(1, 1, [&] { placement_check(places, 1); }), (Mask{0, 2, 3}));
  placement_stop(places);
}

TEST(Placement, ThreadsOfOneCoreCountAsOne) {
  const std::vector<int> cores = {0, 1, 2, 3, 0, 1, 2, 3};
  MadeUp made_up(8);
  placement* places = placement_start_on(4, cores.data(), 8);
  EXPECT_EQ(made_up.As(1, 4, [&] { placement_join(places, 1); }), (Mask{1, 2, 3, 5, 6, 7}));
  made_up_processor = 5;
  placement_check(places, 0);
  EXPECT_EQ(made_up.MaskOfWorker(1), (Mask{0, 2, 3, 4, 6, 7}));
  placement_stop(places);
  // More threads than cores: their processors.
  made_up_processor = 0;
  places = placement_start_on(5, cores.data(), 8);
  EXPECT_EQ(made_up.As(2, 4, [&] { placement_join(places, 1); }), (Mask{1, 2, 3, 4, 5, 6, 7}));
  placement_stop(places);
}

TEST(Placement, NothingIsPlacedWhereThereIsNoRoom) {
  MadeUp made_up(4);
  EXPECT_EQ(placement_start_on(1, nullptr, 0), nullptr);
  EXPECT_EQ(placement_start_on(5, nullptr, 0), nullptr);
  made_up.As(0, 0, [] {
    SetMask(0, {2});
    EXPECT_EQ(placement_start_on(2, nullptr, 0), nullptr);
  });
}

TEST(Placement, MasksAreWithinThatOfWhoeverMakesThePool) {
  MadeUp made_up(8);
  made_up.As(1, 2, [] { SetMask(0, {2, 3, 6}); });
  placement* places = placement_start_on(3, nullptr, 0);  // the caller is on 0, beside that mask
  EXPECT_EQ(made_up.As(1, 2, [&] { placement_join(places, 1); }), (Mask{2, 3, 6}));
  made_up_processor = 3;
  placement_check(places, 0);
  EXPECT_EQ(made_up.MaskOfWorker(1), (Mask{2, 6}));
  placement_stop(places);
}

TEST(Placement, AMaskThatSomebodyElseSetStays) {
  MadeUp made_up(4);
  placement* places = placement_start_on(2, nullptr, 0);
  made_up.As(1, 1, [&] { placement_join(places, 1); });
  made_up.As(1, 1, [] { SetMask(0, {0, 1}); });
  made_up_processor = 1;
  placement_check(places, 0);
  EXPECT_EQ(made_up.MaskOfWorker(1), (Mask{0, 1}));
  EXPECT_EQ(made_up.As(1, 1, [&] { placement_check(places, 1); }), (Mask{0, 1}));
  placement_stop(places);
}

TEST(Placement, CoresAreReadFromTheSystemsFiles) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "placement_cores";
  const std::vector<std::string> siblings = {"0,4\n", "1-2\n", "1-2\n", "", "0,4\n", "99\n"};
  for (size_t cpu = 0; cpu < siblings.size(); ++cpu) {
    const std::filesystem::path topology = folder / ("cpu" + std::to_string(cpu)) / "topology";
    std::filesystem::create_directories(topology);
    std::ofstream(topology / "thread_siblings_list") << siblings[cpu];
  }
  std::vector<int> cores(7, -1);
  placement_read_cores(folder.c_str(), cores.data(), 7);
  EXPECT_EQ(cores, (std::vector<int>{0, 1, 1, 3, 0, 5, 6}));
}

// On this machine: what two workers see when both are inside a run.
struct Seen {
  std::atomic<int> inside{0};
  pid_t threads[2];
  Mask masks[2];
};

void Look(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
  Seen& seen = *static_cast<Seen*>(args->buffers[0]);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    const int worker = *static_cast<int*>(scratch);
    seen.threads[worker] = ThisThread();
    seen.masks[worker] = MaskOf(0);
    for (++seen.inside; seen.inside < 2 && std::chrono::steady_clock::now() < until;) std::this_thread::yield();
  }
}

using RunList = std::function<void(const quern_dispatch&, void* const* scratch)>;

void LookFrom(const RunList& run, Seen& seen) {
  alignas(64) int numbers[2][16] = {{0}, {1}};
  void* const scratch[] = {numbers[0], numbers[1]};
  void* buffers[] = {&seen};
  const quern_args args = {buffers, nullptr};
  seen.inside = 0;
  run({Look, &args, 2, 0, nullptr, 0}, scratch);
  ASSERT_EQ(seen.inside, 2);
}

// With a pool made and used by a thread whose mask may change: pools of both kinds.
void OfEveryPool(const std::function<void(const RunList& run)>& test) {
  std::thread([&] {
    ThreadPool pool(2);
    test([&](const quern_dispatch& list, void* const* scratch) { pool.Run({&list, 1}, {scratch, 2}); });
  }).join();
  std::thread([&] {
    quern_pool* pool = quern_pool_start(2);
    ASSERT_NE(pool, nullptr);
    const quern_runner runner = quern_pool_runner(pool);
    test([&](const quern_dispatch& list, void* const* scratch) { runner.run(runner.self, &list, 1, scratch); });
    quern_pool_stop(pool);
  }).join();
}

TEST(Placement, WorkersKeepOffThePinnedCaller) {
  const Mask all = MaskOf(0);
  if (all.size() < 2) GTEST_SKIP() << "one processor";
  OfEveryPool([&](const RunList& run) {
    Seen seen;
    LookFrom(run, seen);
    EXPECT_EQ(MaskOf(0), all);
    for (const int cpu : {*all.begin(), *all.rbegin(), *all.begin()}) {
      SetMask(0, {cpu});
      LookFrom(run, seen);
      EXPECT_EQ(seen.masks[0], Mask{cpu}) << "the caller's own";
      EXPECT_FALSE(seen.masks[1].empty() || seen.masks[1].contains(cpu));
      for (const int other : seen.masks[1]) EXPECT_TRUE(all.contains(other));
    }
    // Set from outside, a mask stays.
    SetMask(seen.threads[1], {*all.begin()});
    LookFrom(run, seen);
    EXPECT_EQ(seen.masks[1], Mask{*all.begin()});
  });
}

TEST(Placement, APoolThatIsPinnedStaysThere) {
  const int first = *MaskOf(0).begin();
  std::thread([&] {
    SetMask(0, {first});
    OfEveryPool([&](const RunList& run) {
      Seen seen;
      LookFrom(run, seen);
      EXPECT_EQ(seen.masks[0], Mask{first});
      EXPECT_EQ(seen.masks[1], Mask{first});
    });
  }).join();
}

}  // namespace
}  // namespace quern
