// Peaks are plausible, quick to measure, kept, and damaged files of them are measured anew.
#include "profile/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/cpu/target.h"

namespace quern::profile {
namespace {

namespace fs = std::filesystem;

class MachineTest : public testing::Test {
 protected:
  MachineTest() : folder_(fs::temp_directory_path() / ("quern_machine_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~MachineTest() override { fs::remove_all(folder_); }

  Machine Get(const std::string& folder, bool fresh = false,
              const std::string& level = cpu::HostTargets().back()->name) {
    const StatusOr<Machine> machine = MachineOf(level, pool_, {.folder = folder, .fresh = fresh});
    EXPECT_TRUE(machine.ok()) << machine.status();
    return machine.ok() ? *machine : Machine{};
  }
  fs::path File() {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder_)) found = entry.path();
    return found;
  }

  fs::path folder_;
  ThreadPool pool_{2};
};

TEST_F(MachineTest, PeaksArePlausible) {
  for (const cpu::Target* target : cpu::HostTargets()) {
    const Machine machine = Get("", false, target->name);
    EXPECT_EQ(machine.level, target->name);
    EXPECT_EQ(machine.threads, 2);
    EXPECT_FALSE(machine.stored);
    // A tenth of a lane's multiply-add a nanosecond is below any machine; a thousand times the lanes above.
    EXPECT_GT(machine.f32_gflops, 0.1 * target->lanes);
    EXPECT_LT(machine.f32_gflops, 1000.0 * target->lanes);
    EXPECT_GT(machine.bf16_gflops, 0.1 * target->lanes);
    EXPECT_GT(machine.int8_gops, 0.1 * target->lanes);
    EXPECT_GT(machine.dispatch_ns, 10);
    EXPECT_LT(machine.dispatch_ns, 1e7);
    ASSERT_GE(machine.memory.size(), 2u);
    EXPECT_EQ(machine.memory.front().name, "l2");
    EXPECT_EQ(machine.memory.back().name, "dram");
    EXPECT_EQ(machine.memory.back().bytes, 0);
    for (const MemoryLevel& level : machine.memory) EXPECT_GT(level.gbps, 0.05) << level.name;
    EXPECT_GT(machine.dram_gbps_one, 0.05);
  }
}

TEST_F(MachineTest, WorkingSetsHaveALevel) {
  Machine machine;
  machine.memory = {{"l2", 1000, 9}, {"l3", 5000, 5}, {"dram", 0, 1}};
  EXPECT_EQ(machine.LevelFor(0), 0);
  EXPECT_EQ(machine.LevelFor(1000), 0);
  EXPECT_EQ(machine.LevelFor(1001), 1);
  EXPECT_EQ(machine.LevelFor(5001), 2);
}

TEST_F(MachineTest, TextReadsBack) {
  const Machine machine = Get("");
  const StatusOr<Machine> again = ParseMachine(MachineText(machine));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(MachineText(*again), MachineText(machine));
}

TEST_F(MachineTest, IsKeptAndMeasuredAnewOnRequest) {
  Machine first = Get(folder_);
  // A machine that is slow to give memory the first time has it the next.
  for (int i = 0; i < 5 && !fs::exists(folder_); ++i) first = Get(folder_);
  if (!fs::exists(folder_))
    GTEST_SKIP() << "only " << first.dram_bytes << " bytes could be filled in time: nothing is kept";
  const Machine second = Get(folder_);
  EXPECT_TRUE(second.stored);
  EXPECT_EQ(second.f32_gflops, first.f32_gflops);
  EXPECT_FALSE(Get(folder_, true).stored);
}

TEST_F(MachineTest, FilesThatAreDamagedAreMeasuredAnew) {
  Machine machine = Get("");
  machine.dram_bytes = int64_t{1} << 30;
  fs::create_directories(folder_);
  const std::string good = MachineText(machine);
  for (const std::string& bad : {std::string(), std::string("{"), std::string("[]"), std::string("{\"cpu\": 3}"),
                                 good.substr(0, good.size() / 2),
                                 std::string("{\"cpu\":\"x\",\"level\":\"y\",\"threads\":2,\"memory\":[],\"f32_"
                                             "gflops\":1,\"int8_gops\":1,\"dispatch_ns\":1,"
                                             "\"dram_gbps_one_thread\":1}")}) {
    EXPECT_FALSE(ParseMachine(bad).ok()) << bad;
  }
  // A peak of nothing, and one below it.
  for (const char* value : {"0", "-3", "\"fast\"", "null"}) {
    std::string text = good;
    const size_t at = text.find("\"f32_gflops\": ") + 14;
    text.replace(at, text.find(',', at) - at, value);
    EXPECT_FALSE(ParseMachine(text).ok()) << text;
  }
}

// Measured while the machine was busy: such a file is not believed, and mended.
TEST_F(MachineTest, PeaksThatCannotBeAreMeasuredAnew) {
  Machine good = Get(folder_);
  for (int i = 0; i < 5 && !fs::exists(folder_); ++i) good = Get(folder_);
  if (!fs::exists(folder_)) GTEST_SKIP() << "memory could not be filled in time: nothing is kept";
  EXPECT_TRUE(good.Consistent());
  const auto write = [&](const Machine& machine) { std::ofstream(File()) << MachineText(machine); };
  Machine poisoned = good;
  poisoned.dram_gbps_one = 38.7;
  poisoned.memory.back().gbps = 5.64;
  EXPECT_FALSE(poisoned.Consistent());
  write(poisoned);
  const Machine mended = Get(folder_);
  EXPECT_FALSE(mended.stored);
  EXPECT_TRUE(mended.Consistent());
  EXPECT_GE(mended.memory.back().gbps, 38.7);
  EXPECT_TRUE(Get(folder_).stored);
  // What is nearer and slower is not believed either.
  poisoned = good;
  poisoned.memory.front().gbps = 0.01;
  write(poisoned);
  EXPECT_FALSE(Get(folder_).stored);
  // The best of two measurements.
  Machine low = good;
  low.f32_gflops = 0.001, low.dispatch_ns = 1e6;
  write(low);
  const Machine merged = Get(folder_, true);
  EXPECT_GT(merged.f32_gflops, 0.01);
  EXPECT_LT(merged.dispatch_ns, 1e6);
  EXPECT_EQ(merged.rounds, good.rounds + 1);
  // A month later it is another machine, in either direction.
  Machine old = good;
  old.measured -= int64_t{31} * 24 * 3600;
  old.f32_gflops = 1e9;
  write(old);
  const Machine anew = Get(folder_);
  EXPECT_FALSE(anew.stored);
  EXPECT_LT(anew.f32_gflops, 1e9);
  EXPECT_EQ(anew.rounds, 1);
}

// A system that is slow to give memory leaves the probe with a buffer that a cache may hold, and without the far level.
TEST(Machine, MergesTheBestOfEach) {
  Machine whole;
  whole.memory = {{"l2", 1000, 9}, {"l3", 5000, 5}, {"l3 far", 9000, 4}, {"dram", 0, 1}};
  whole.dram_bytes = int64_t{256} << 20, whole.dram_gbps_one = 1, whole.f32_gflops = 100;
  Machine part;
  part.memory = {{"l2", 1000, 10}, {"l3", 5000, 4}, {"dram", 0, 5}};
  part.dram_bytes = int64_t{64} << 20, part.dram_gbps_one = 5, part.f32_gflops = 90;
  const auto speeds = [](const Machine& machine) {
    std::vector<double> all = {machine.dram_gbps_one, machine.f32_gflops};
    for (const MemoryLevel& level : machine.memory) all.push_back(level.gbps);
    return all;
  };
  for (const bool part_first : {false, true}) {
    Machine merged = part_first ? part : whole;
    merged.Merge(part_first ? whole : part);
    EXPECT_EQ(speeds(merged), (std::vector<double>{1, 100, 10, 5, 4, 1})) << part_first;
    EXPECT_EQ(merged.dram_bytes, int64_t{256} << 20);
    EXPECT_EQ(merged.rounds, 2);
  }
  // Both larger than caches: what one had time for is as good as the other's.
  Machine shorter = whole;
  shorter.dram_bytes = int64_t{144} << 20, shorter.dram_gbps_one = 3, shorter.memory[3].gbps = 4;
  for (const bool shorter_first : {false, true}) {
    Machine merged = shorter_first ? shorter : whole;
    merged.Merge(shorter_first ? whole : shorter);
    EXPECT_EQ(speeds(merged), (std::vector<double>{3, 100, 9, 5, 4, 4})) << shorter_first;
  }
  // As much of it filled: a level of another size is another level, of the later one.
  Machine later = whole;
  later.memory[1] = {"l3", 6000, 3};
  later.memory[3].gbps = 2;
  whole.Merge(later);
  EXPECT_EQ(speeds(whole), (std::vector<double>{1, 100, 9, 3, 4, 2}));
}

TEST_F(MachineTest, AFolderThatCannotBeMadeIsNoError) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "in the way";
  const Machine machine = Get(folder_ / "file" / "below");
  EXPECT_GT(machine.f32_gflops, 0);
  EXPECT_FALSE(machine.stored);
}

}  // namespace
}  // namespace quern::profile
