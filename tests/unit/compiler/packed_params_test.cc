// Parameters that programs keep packed: once for all variants, given back to whoever owned them, made again when bound
// again.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "quern/graph.h"

namespace quern {
namespace {

constexpr int64_t kK = 67, kN = 101, kMany = 23;

std::vector<float> Ramp(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i) * step);
  return values;
}

// y = silu(x w) + b: w, stored [K, N], is packed; b is read as it is. Variants for 1, 2..8 and more rows.
Graph Layer() {
  Graph graph("layer");
  graph.Symbol("ROWS", 1, 64);
  const Value x = graph.Input("x", "f32[ROWS, 67]");
  const Value product = graph.Op("MatMul", {x, graph.Param("w", "f32[67, 101]")});
  graph.Output("y", graph.Op("Add", {graph.Op("Silu", {product}), graph.Param("b", "f32[101]")}));
  return graph;
}

double Expected(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& b, int64_t i,
                int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < kK; ++k) sum += static_cast<double>(x[i * kK + k]) * w[k * kN + j];
  return sum / (1 + std::exp(-sum)) + b[j];
}

class PackedParams : public ::testing::Test {
 protected:
  void Make(const Options& options = {.threads = 2}) {
    Result<Program> made = Layer().Compile(options);
    ASSERT_TRUE(made.ok()) << made.error();
    program_ = std::make_unique<Program>(std::move(*made));
  }
  // Runs and compares with what `w` and `b` say.
  void Check(int64_t rows) {
    const std::vector<float> x = Ramp(rows * kK, 0.31f);
    std::vector<float> y(rows * kN);
    const Result<void> ran = program_->Run({In("x", x, {rows, kK})}, {Out("y", y, {rows, kN})});
    ASSERT_TRUE(ran.ok()) << ran.error();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < kN; ++j) ASSERT_NEAR(y[i * kN + j], Expected(x, w_, b_, i, j), 1e-4) << i << ", " << j;
    }
  }
  // Memory of a parameter that is gone, and says so, when it is released.
  std::span<const std::byte> Owned(const std::vector<float>& values) {
    owned_.push_back(std::make_unique<std::vector<float>>(values));
    return std::as_bytes(std::span(*owned_.back()));
  }
  std::function<void()> Release(size_t at) {
    return [this, at] {
      ASSERT_LT(at, owned_.size());
      ASSERT_NE(owned_[at], nullptr) << "released twice";
      std::fill(owned_[at]->begin(), owned_[at]->end(), std::nanf(""));  // whoever reads on gets what shows
      owned_[at].reset();
      ++released_;
    };
  }

  std::vector<float> w_ = Ramp(kK * kN, 0.7f), b_ = Ramp(kN, 1.3f);
  std::vector<std::unique_ptr<std::vector<float>>> owned_;
  int released_ = 0;
  std::unique_ptr<Program> program_;
};

TEST_F(PackedParams, AreHeldOnceForAllVariants) {
  Make();
  ASSERT_TRUE(program_->Bind("w", w_).ok());
  ASSERT_TRUE(program_->Bind("b", b_).ok());
  Check(1);
  const int64_t one = program_->counters().packed_bytes;
  EXPECT_GE(one, kK * kN * 4);
  EXPECT_LE(one, kK * 128 * 4 + 4096);  // panels of 32 columns
  Check(5);
  Check(kMany);
  EXPECT_EQ(program_->counters().variants, 3);
  EXPECT_EQ(program_->counters().packed_bytes, one);
}

TEST_F(PackedParams, AreGivenBackAndTheRestIsKept) {
  Make();
  ASSERT_TRUE(program_->Bind("w", Owned(w_), Release(0)).ok());
  ASSERT_TRUE(program_->Bind("b", Owned(b_), Release(1)).ok());
  EXPECT_EQ(released_, 0);
  Check(kMany);
  EXPECT_EQ(released_, 1);
  EXPECT_EQ(owned_[0], nullptr);
  EXPECT_NE(owned_[1], nullptr);
  EXPECT_EQ(program_->counters().variants, 3);
  Check(1);
  Check(7);
  program_.reset();
  EXPECT_EQ(released_, 2);
}

TEST_F(PackedParams, AreMadeAgainWhenBoundAgainAndOthersStay) {
  Make();
  ASSERT_TRUE(program_->Bind("w", Owned(w_), Release(0)).ok());
  ASSERT_TRUE(program_->Bind("b", Owned(b_), Release(1)).ok());
  Check(3);
  EXPECT_EQ(released_, 1);
  // What was made of w is still there, though its bytes are not.
  b_ = Ramp(kN, 0.11f);
  ASSERT_TRUE(program_->Bind("b", b_).ok());
  EXPECT_EQ(released_, 2);
  Check(3);
  Check(kMany);
  w_ = Ramp(kK * kN, 0.5f);
  ASSERT_TRUE(program_->Bind("w", Owned(w_), Release(2)).ok());
  EXPECT_EQ(released_, 2);
  Check(2);
  EXPECT_EQ(released_, 3);
}

TEST_F(PackedParams, AreReleasedAtOnceWhereTheyWereCopied) {
  Make();
  std::vector<std::byte> odd(w_.size() * 4 + 1);
  std::memcpy(odd.data() + 1, w_.data(), w_.size() * 4);
  int released = 0;
  ASSERT_TRUE(program_->Bind("w", std::span(odd).subspan(1), [&] { ++released; }).ok());
  EXPECT_EQ(released, 1);
  ASSERT_TRUE(program_->Bind("b", b_).ok());
  Check(4);
}

TEST_F(PackedParams, AreNotReleasedAfterAnError) {
  Make();
  ASSERT_FALSE(program_->Bind("v", Owned(w_), Release(0)).ok());
  ASSERT_FALSE(program_->Bind("w", Owned(b_), Release(1)).ok());
  program_.reset();
  EXPECT_EQ(released_, 0);
}

TEST_F(PackedParams, AreReadToTheEndByChecks) {
  Make({.threads = 1, .check = "ref"});
  ASSERT_TRUE(program_->Bind("w", Owned(w_), Release(0)).ok());
  ASSERT_TRUE(program_->Bind("b", b_).ok());
  Check(3);
  Check(kMany);
  EXPECT_EQ(released_, 0);
  program_.reset();
  EXPECT_EQ(released_, 1);
}

// What is made of two parameters needs both when one of them changes.
TEST_F(PackedParams, ThatWereReleasedAndAreNeededAgainAreAskedFor) {
  Graph graph("scaled");
  const Value w = graph.Op("Mul", {graph.Param("w", "f32[67, 101]"), graph.Param("s", "f32[101]")});
  graph.Output("y", graph.Op("MatMul", {graph.Input("x", "f32[9, 67]"), w}));
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> x = Ramp(9 * kK, 0.2f), s(kN, 2.0f);
  std::vector<float> y(9 * kN);
  const auto run = [&] { return program->Run({In("x", x, {9, kK})}, {Out("y", y, {9, kN})}); };
  ASSERT_TRUE(program->Bind("w", Owned(w_), Release(0)).ok());
  ASSERT_TRUE(program->Bind("s", s).ok());
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(released_, 1);
  ASSERT_TRUE(program->Bind("s", s).ok());
  const Result<void> needed = run();
  EXPECT_EQ(needed.code(), ErrorCode::kMissing);
  EXPECT_EQ(needed.error(),
            "parameter w was released when it had been packed, and is needed again: bind it (in scaled)");
  ASSERT_TRUE(program->Bind("w", w_).ok());
  ASSERT_TRUE(run().ok());
  double sum = 0;
  for (int64_t k = 0; k < kK; ++k) sum += static_cast<double>(x[k]) * w_[k * kN] * 2;
  EXPECT_NEAR(y[0], sum, 1e-4);
}

}  // namespace
}  // namespace quern
