// Which name is offered for one that does not exist.

#include "base/nearest.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

const std::vector<std::string_view> kNames = {"Abs",     "Add", "Concat",  "MatMul",
                                              "Sigmoid", "Sin", "Softmax", "Softplus"};

TEST(Nearest, OneEditAndSwapsAndCapitals) {
  EXPECT_EQ(Nearest("Softmaxx", kNames), "Softmax");
  EXPECT_EQ(Nearest("Sofmax", kNames), "Softmax");
  EXPECT_EQ(Nearest("Softmxa", kNames), "Softmax");
  EXPECT_EQ(Nearest("softmax", kNames), "Softmax");
  EXPECT_EQ(Nearest("matmull", kNames), "MatMul");
  EXPECT_EQ(Nearest("Sun", kNames), "Sin");
}

TEST(Nearest, NothingThatIsFar) {
  EXPECT_EQ(Nearest("Frobnicate", kNames), "");
  EXPECT_EQ(Nearest("Q", kNames), "");
  EXPECT_EQ(Nearest("", kNames), "");
  EXPECT_EQ(Nearest("x", {"y", ""}), "");
  EXPECT_EQ(Nearest("Softmax", {}), "");
  EXPECT_EQ(Nearest(std::string(1 << 20, 'a'), {std::string(1 << 20, 'b')}), "");
}

TEST(Nearest, TheNearestAndOfThoseTheFirst) { EXPECT_EQ(Nearest("gate_q", {"gate_ww", "gate_w", "gate_v"}), "gate_w"); }

}  // namespace
}  // namespace quern
