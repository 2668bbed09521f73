// Values that are no numbers: the first op that makes one is named, and what is intended is left alone.
#include <cmath>
#include <cstring>
#include <limits>

#include "unit/check/watched_graph.h"

namespace quern::testing {
namespace {

using check::Kind;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<uint8_t> Bytes(const std::vector<float>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Nan, InAWeightIsNamedWhereItIsReadFirst) {
  std::vector<float> norm(13, 1);
  norm[6] = kNan;
  WatchedGraph graph(R"(graph g {
  %0 = Input() {name = "x"} : f32[3, 13]
  %1 = Param() {name = "norm.weight"} : f32[13]
  %2 = Exp(%0) : f32[3, 13]  @"before"
  %3 = Mul(%2, %1) : f32[3, 13]  @"layers.0/norm"
  %4 = Tanh(%3) : f32[3, 13]  @"after"
  return %4
})",
                     {}, {{"norm.weight", Bytes(norm)}});
  const WatchedRun run = graph.Run(Kind::kNan);
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  EXPECT_EQ(run.finding->op, "Mul") << run.finding->ToString();
  EXPECT_EQ(run.finding->block, "layers.0/norm");
  EXPECT_EQ(run.finding->index, std::vector<int64_t>{6});
  EXPECT_NE(run.finding->note.find("parameter norm.weight holds it"), std::string::npos) << run.finding->note;
}

TEST(Nan, OfAnExpThatOverflows) {
  std::vector<float> x(26, 1);
  x[17] = 100;
  WatchedGraph graph(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 13]
  %1 = Neg(%0) : f32[2, 13]  @"a"
  %2 = Neg(%1) : f32[2, 13]  @"b"
  %3 = Exp(%2) : f32[2, 13]  @"layers.1/exp"
  %4 = Mul(%3, %0) : f32[2, 13]  @"c"
  return %4
})",
                     {}, {{"x", Bytes(x)}});
  const std::string folder = FreshFolder("exp");
  const WatchedRun run = graph.Run(Kind::kNan, {}, folder);
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  EXPECT_EQ(run.finding->op, "Exp") << run.finding->ToString();
  EXPECT_EQ(run.finding->block, "layers.1/exp");
  EXPECT_EQ(run.finding->index, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(run.finding->got, INFINITY);
  ASSERT_EQ(run.finding->operands.size(), 1u);
  EXPECT_NE(run.finding->operands[0].find("[1, 4] = 100"), std::string::npos) << run.finding->operands[0];
  // The values are to blame, not the kernel: the reproduction fails again.
  const auto again = graph.ReplayHealthy(*run.finding);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->op, "Exp");
  EXPECT_EQ(again->index, run.finding->index);
}

TEST(Nan, OfTheLogOfANegative) {
  std::vector<float> x(7, 2);
  x[3] = -1;
  WatchedGraph graph(R"(graph g {
  %0 = Input() {name = "x"} : f32[7]
  %1 = Log(%0) : f32[7]  @"entropy"
  %2 = Add(%1, %0) : f32[7]  @"sum"
  return %2
})",
                     {}, {{"x", Bytes(x)}});
  const WatchedRun run = graph.Run(Kind::kNan);
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  EXPECT_EQ(run.finding->op, "Log") << run.finding->ToString();
  EXPECT_EQ(run.finding->index, std::vector<int64_t>{3});
  EXPECT_TRUE(std::isnan(run.finding->got));
  // The interpreter has the NaN too: against it there is nothing to say.
  EXPECT_TRUE(graph.Run(Kind::kRef).status.ok());
}

// Scores with a mask of 0 and -inf added, a softmax over them.
constexpr std::string_view kMasked = R"(graph g {
  %0 = Input() {name = "scores"} : f32[5, 7]
  %1 = Input() {name = "mask"} : f32[5, 7]
  %2 = Add(%0, %1) : f32[5, 7]  @"masked"
  %3 = Reduce(%2) {axes = [1], keep_dim = true, op = "max"} : f32[5, 1]  @"softmax/max"
  %4 = Sub(%2, %3) : f32[5, 7]  @"softmax/sub"
  %5 = Exp(%4) : f32[5, 7]  @"softmax/exp"
  %6 = Reduce(%5) {axes = [1], keep_dim = true, op = "sum"} : f32[5, 1]  @"softmax/sum"
  %7 = Div(%5, %6) : f32[5, 7]  @"softmax/div"
  return %2, %7
})";

std::vector<float> CausalMask() {
  std::vector<float> mask(35);
  for (int i = 0; i < 35; ++i) mask[i] = i % 7 > i / 7 ? -kInf : 0;
  return mask;
}

TEST(Nan, ACausalMaskIsIntended) {
  WatchedGraph graph(kMasked, {}, {{"mask", Bytes(CausalMask())}});
  const WatchedRun run = graph.Run(Kind::kNan);
  EXPECT_TRUE(run.status.ok()) << run.status;
}

TEST(Nan, ARowThatIsMaskedWhollyIsNot) {
  std::vector<float> mask = CausalMask();
  std::fill(mask.begin() + 14, mask.begin() + 21, -kInf);
  WatchedGraph graph(kMasked, {}, {{"mask", Bytes(mask)}});
  const WatchedRun run = graph.Run(Kind::kNan);
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  EXPECT_EQ(run.finding->op, "Sub") << run.finding->ToString();  // -inf - -inf
  EXPECT_EQ(run.finding->index[0], 2);
}

TEST(Nan, AnInfinityBesideAMaskIsFound) {
  std::vector<float> scores(35, 1);
  scores[9] = kInf;  // an input may be infinite
  WatchedGraph given(kMasked, {}, {{"mask", Bytes(std::vector<float>(35))}, {"scores", Bytes(scores)}});
  const WatchedRun run = given.Run(Kind::kNan);
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  EXPECT_EQ(run.finding->op, "Sub") << run.finding->ToString();  // but not taken from itself
}

TEST(Nan, OfAKernelAloneIsItsOwn) {
  WatchedGraph graph(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 13]
  %1 = Tanh(%0) : f32[2, 13]  @"layers.2/act"
  return %1
})");
  const WatchedRun run = graph.Run(Kind::kNan, {{"layers.2/act", 5, kNan}});
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  EXPECT_EQ(run.finding->op, "Tanh") << run.finding->ToString();
  EXPECT_EQ(run.finding->index, (std::vector<int64_t>{0, 5}));
  EXPECT_NE(run.finding->note.find("the kernel alone"), std::string::npos);
}

}  // namespace
}  // namespace quern::testing
