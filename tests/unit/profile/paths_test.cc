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
  profile.machine.bf16_gflops = 200;
  profile.machine.int8_gops = 400;
  profile.machine.dispatch_ns = 200;
  Section section;
  section.memory = 1;
  // Two calls of 1 us; 4000 bytes a call are 400 ns at 10 bytes a nanosecond.
  Sums sums{.calls = 2, .wall = 2000, .typical = 2000, .flops = 2 * 10'000, .read = 6000, .written = 2000};
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
  sums.bf16_ops = 2 * 60'000;  // and 300
  rates = profile.RatesOf(sums, section);
  EXPECT_DOUBLE_EQ(rates.roof_ns, 900);
  EXPECT_DOUBLE_EQ(rates.gflops, 270);
  sums.bf16_ops = 0;
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
  EXPECT_EQ(table.Text(), "  name       n  note\n  matmul     7  a\n  x       1234\n");
}

TEST(TextTable, FitsATerminal) {
  TextTable table({"name", ">n", "note", ">last"});
  table.Add({"layers.0.ffn_norm.matmul.q4_K", "7", "a note of some length", "3"});
  // As much as has to go, from the note first; its end is kept.
  const auto widest = [](const std::string& text) {
    size_t most = 0;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) most = std::max(most, text.find('\n', at) - at);
    return most;
  };
  for (const size_t columns : {100u, 60u, 57u, 50u, 42u, 30u, 20u}) {
    const std::string text = table.Text(columns);
    EXPECT_LE(widest(text), columns) << text;
    EXPECT_NE(text.find("ul.q4_K"), std::string::npos) << text;
  }
  EXPECT_EQ(table.Text(64), table.Text());
  EXPECT_NE(table.Text(60).find("..e of some length"), std::string::npos) << table.Text(60);
  EXPECT_NE(table.Text(60).find("layers.0"), std::string::npos);
  EXPECT_EQ(table.Text(30).find("last"), std::string::npos) << table.Text(30);
  // No character of several bytes is cut.
  TextTable words({"name"});
  words.Add({"\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4"});
  EXPECT_NE(words.Text(17).find("..\u00e4"), std::string::npos) << words.Text(17);
}

TEST(Sums, TheMedianIsNotOneCallsDoing) {
  Sums sums;
  for (const int64_t wall : {7, 84'000, 8, 7, 9}) {
    sums.Add({.calls = 1, .wall = wall, .least = wall, .most = wall, .walls = {wall}});
  }
  EXPECT_EQ(sums.Median(), 8);
  EXPECT_EQ(sums.least, 7);
  EXPECT_TRUE(sums.Disturbed());
  EXPECT_EQ(Sums().Median(), 0);
  EXPECT_FALSE(Sums().Disturbed());
  // Rates are of typical calls.
  Profile profile;
  profile.machine.memory = {{"dram", 0, 10}};
  sums.read = 5 * 40;
  sums.typical = sums.Median() * sums.calls;
  EXPECT_DOUBLE_EQ(profile.RatesOf(sums, {}).gbps, 5);
  EXPECT_DOUBLE_EQ(profile.RatesOf(sums, {}).percent, 50);
}

TEST(Profile, AKernelThatIsFasterThanTheMachineShowsThePeaksAreLow) {
  Profile profile;
  profile.machine.memory = {{"l2", 1000, 40}, {"dram", 0, 5}};
  profile.machine.f32_gflops = profile.machine.int8_gops = 1;
  Section& section = profile.sections.emplace_back();
  section.memory = 1;
  Kernel& kernel = section.kernels.emplace_back();
  kernel.sums = {.calls = 1, .typical = 100, .read = 2000};
  EXPECT_TRUE(profile.AbovePeaks());  // 20 bytes a nanosecond
  kernel.sums.typical = 380;
  EXPECT_FALSE(profile.AbovePeaks());
  // What a nearer memory may hold is no sign.
  kernel.sums = {.calls = 1, .typical = 10, .read = 900};
  EXPECT_FALSE(profile.AbovePeaks());
  kernel.sums = {.calls = 1, .typical = 10, .flops = 20};
  EXPECT_TRUE(profile.AbovePeaks());
}

}  // namespace
}  // namespace quern::profile
