// Names of repeated blocks, and rates beside hand-made peaks.
#include <gtest/gtest.h>

#include "profile/profile.h"
#include "profile/text_table.h"

namespace quern::profile {
namespace {

TEST(Paths, RepeatedBlocksMerge) {
  EXPECT_EQ(MergedPath("layers.12/ffn: Add"), "layers.*/ffn: Add");
  EXPECT_EQ(MergedPath("layers.3"), "layers.*");
  EXPECT_EQ(MergedPath("a.1/b.22/c"), "a.*/b.*/c");
  EXPECT_EQ(MergedPath("v1.5x/ffn.q4"), "v1.5x/ffn.q4");
  EXPECT_EQ(MergedPath(""), "");
  EXPECT_EQ(BlockOf("layers.12/attention/k_cache: Cast"), "layers.12/attention");
  EXPECT_EQ(BlockOf("output: MatMul"), "output");
  EXPECT_EQ(BlockOf(""), "");
}

TEST(Rates, TheLongestOfThreeTimesIsTheBound) {
  Profile profile;
  profile.machine.memory = {{"l2", 1000, 50}, {"dram", 0, 10}};
  profile.machine.f32_gflops = 100;
  profile.machine.int8_gops = 400;
  profile.machine.dispatch_ns = 200;
  Section section;
  section.memory = 1;
  // Two calls of 1 us; 4000 bytes a call are 400 ns at 10 bytes a nanosecond.
  Sums sums{.calls = 2, .wall = 2000, .flops = 2 * 10'000, .read = 6000, .written = 2000};
  Rates rates = profile.RatesOf(sums, section);
  EXPECT_DOUBLE_EQ(rates.roof_ns, 400);
  EXPECT_DOUBLE_EQ(rates.percent, 40);
  EXPECT_DOUBLE_EQ(rates.gbps, 4);
  EXPECT_DOUBLE_EQ(rates.gflops, 10);
  EXPECT_DOUBLE_EQ(rates.intensity, 2.5);
  EXPECT_EQ(rates.bound, Bound::kMemory);
  sums.int8_ops = 2 * 200'000;  // 500 ns beside 100 of the floats
  rates = profile.RatesOf(sums, section);
  EXPECT_DOUBLE_EQ(rates.roof_ns, 600);
  EXPECT_EQ(rates.bound, Bound::kCompute);
  profile.machine.dispatch_ns = 601;
  EXPECT_EQ(profile.RatesOf(sums, section).bound, Bound::kOverhead);
  EXPECT_EQ(profile.RatesOf({}, section).percent, 0);
}

TEST(Sums, AddUp) {
  Sums all;
  all.Add({.calls = 1, .chunks = 3, .wall = 10, .busy = 17, .least = 10, .most = 10, .read = 5});
  all.Add({});
  all.Add({.calls = 2, .chunks = 6, .wall = 9, .busy = 9, .least = 4, .most = 5, .read = 7});
  EXPECT_EQ(all.calls, 3);
  EXPECT_EQ(all.chunks, 9);
  EXPECT_EQ(all.wall, 19);
  EXPECT_EQ(all.least, 4);
  EXPECT_EQ(all.most, 10);
  EXPECT_EQ(all.read, 12);
}

TEST(TextTable, AlignsNumbersToTheRight) {
  TextTable table({"name", ">n", "note"});
  table.Add({"matmul", "7", "a"});
  table.Add({"x", "1234"});
  EXPECT_EQ(table.Text(""), "name       n  note\nmatmul     7  a\nx       1234\n");
}

}  // namespace
}  // namespace quern::profile
