// Maps: dimensions that are one, joins piece by piece.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The kernels of the one region of a graph.
std::string KernelText(std::string_view text) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const StatusOr<ir::Graph> fused = opt::FuseRegions(*graph, {.families = Families()});
  EXPECT_TRUE(fused.ok()) << fused.status();
  std::string kernels;
  for (const ir::Node& node : fused->nodes()) {
    if (node.bodies.empty()) continue;
    const auto lowered = LowerRegion(family::MemoryOf(*fused), node, fused->symbols, {});
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    if (!lowered.ok()) continue;
    for (const family::KernelUse& use : lowered->kernels) kernels += kir::Print(use.kernel);
  }
  return kernels;
}

// Dimensions that every operand has or lacks together are one loop: all of [1, N], rows of [B, S, C] beside [C].
TEST(Map, DimensionsThatNobodyNeedsApartAreOne) {
  EXPECT_THAT(KernelText(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 3, 5, 7]
  %1 = Exp(%0) : f32[1, 3, 5, 7]
  return %1
})"),
              HasSubstr("x0 : f32[105] in"));
  const std::string kernel = KernelText(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[3, S, 5, 7]
  %1 = Input() {name = "b"} : f32[5, 7]
  %2 = Add(%0, %1) : f32[3, S, 5, 7]
  return %2
})");
  EXPECT_THAT(kernel, HasSubstr("x0 : f32[3*S, 35] in"));
  EXPECT_THAT(kernel, HasSubstr("x1 : f32[35] in"));
}

TEST(Map, ReshapesBetween) {
  CheckFused(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 6, 5]
  %1 = Exp(%0) : f32[S, 6, 5]
  %2 = Reshape(%1) {shape = <S, 2, 15>} : f32[S, 2, 15]
  %3 = Input() {name = "y"} : f32[2, 1]
  %4 = Mul(%2, %3) : f32[S, 2, 15]
  return %4
})",
             {{"S", 5}});
  // 6 x 5 and 5 x 6 have no axes in common.
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[6, 5]
  %1 = Exp(%0) : f32[6, 5]
  %2 = Reshape(%1) {shape = <5, 6>} : f32[5, 6]
  %3 = Input() {name = "y"} : f32[6]
  %4 = Mul(%2, %3) : f32[5, 6]
  return %4
})",
             {});
}

TEST(Map, JoinsAlongEveryAxis) {
  for (const int axis : {0, 1, 2}) {
    SCOPED_TRACE(axis);
    const int64_t other[] = {3, 7, 37};
    std::string x = "f32[", y = "f32[", z = "f32[";
    for (int d = 0; d < 3; ++d) {
      absl::StrAppend(&x, d == 0 ? "" : ", ", other[d]);
      absl::StrAppend(&y, d == 0 ? "" : ", ", d == axis ? 2 : other[d]);
      absl::StrAppend(&z, d == 0 ? "" : ", ", d == axis ? other[d] + 2 + other[d] : other[d]);
    }
    const std::string text =
        absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : ", x, "]\n  %1 = Input() {name = \"y\"} : ", y,
                     "]\n  %2 = Tanh(%1) : ", y, "]\n  %3 = Concat(%0, %2, %0) {axis = ", axis, "} : ", z,
                     "]\n  %4 = Input() {name = \"b\"} : ", z, "]\n  %5 = Mul(%3, %4) : ", z, "]\n  return %5\n}");
    CheckFused(text, {});
    EXPECT_THAT(KernelText(text), Not(HasSubstr("select"))) << "an element asks which piece it is in";
    EXPECT_THAT(KernelText(text), Not(HasSubstr("else")));
  }
}

// A value that is a piece of a join and made something else of: the two have other elements.
TEST(Map, PieceOfAJoinBesideIt) {
  const std::string kernels = KernelText(R"(graph g {
  %0 = Input() {name = "x"} : f32[7, 3]
  %1 = Input() {name = "y"} : f32[3, 3]
  %2 = Transpose(%0) {perm = [1, 0]} : f32[3, 7]
  %3 = Concat(%1, %2) {axis = 1} : f32[3, 10]
  %4 = Silu(%2) : f32[3, 7]
  return %3, %4
})");
  EXPECT_THAT(kernels, HasSubstr("y1 : f32[3, 7] out"));
  EXPECT_THAT(kernels, HasSubstr("y0 : f32[3, 10] out"));
}

// What stays beside each other through a Transpose is one loop, and what is elementwise around it follows.
TEST(Map, TurnedNeighboursAreOne) {
  const char* image = R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 14, 13, 37]
  %1 = Transpose(%0) {perm = [0, 3, 1, 2]} : f32[1, 37, 14, 13]
  return %1
})";
  EXPECT_THAT(KernelText(image), HasSubstr("x0 : f32[182, 37] in"));
  EXPECT_THAT(KernelText(image), HasSubstr("y0 : f32[37, 182] out"));
  CheckFused(image, {});
  // Rectangles of much the same length: 784 of at most 256 are four of 208 or fewer.
  const char* larger = R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 28, 28, 64]
  %1 = Transpose(%0) {perm = [0, 3, 1, 2]} : f32[2, 64, 28, 28]
  return %1
})";
  EXPECT_THAT(KernelText(larger), HasSubstr("l0 in 0..784 by 208"));
  CheckFused(larger, {});
  const char* around = R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 3, 5, 17]
  %1 = Input() {name = "b"} : f32[17]
  %2 = Add(%0, %1) : f32[S, 3, 5, 17]
  %3 = Transpose(%2) {perm = [0, 3, 1, 2]} : f32[S, 17, 3, 5]
  %4 = Input() {name = "c"} : f32[17, 1, 1]
  %5 = Mul(%3, %4) : f32[S, 17, 3, 5]
  return %5
})";
  EXPECT_THAT(KernelText(around), HasSubstr("x0 : f32[S, 15, 17] in"));
  CheckFused(around, {{"S", 3}});
  // Pieces of a join, one of which is turned.
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 4, 5, 17]
  %1 = Transpose(%0) {perm = [0, 3, 1, 2]} : f32[1, 17, 4, 5]
  %2 = Input() {name = "y"} : f32[1, 3, 4, 5]
  %3 = Concat(%1, %2) {axis = 1} : f32[1, 20, 4, 5]
  return %3
})",
             {});
}

// A square beside its own transpose would have each axis twice: the one is read through the other's indices.
TEST(Map, BesideItsOwnTranspose) {
  for (const char* order : {"%3, %1", "%1, %3"}) {
    SCOPED_TRACE(order);
    CheckFused(absl::StrCat(R"(graph g {
  %0 = Input() {name = "x"} : f32[19, 19]
  %1 = Exp(%0) : f32[19, 19]
  %2 = Transpose(%0) {perm = [1, 0]} : f32[19, 19]
  %3 = Neg(%2) : f32[19, 19]
  %4 = Add()",
                            order, R"() : f32[19, 19]
  return %4
})"),
               {});
  }
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[6, 5]
  %1 = Transpose(%0) {perm = [1, 0]} : f32[5, 6]
  %2 = Reshape(%0) {shape = <5, 6>} : f32[5, 6]
  %3 = Add(%1, %2) : f32[5, 6]
  return %3
})",
             {});
}

// Of rows that are moved the loop with fewer of them is the inner one, unless all are near.
TEST(Map, MovedRowsGoByFewStreams) {
  const auto heads = [](int rows, int heads) {
    return absl::StrFormat(R"(graph g {
  %%0 = Input() {name = "x"} : f32[%d, %d, 83]
  %%1 = Transpose(%%0) {perm = [1, 0, 2]} : f32[%d, %d, 83]
  return %%1
})",
                           rows, heads, heads, rows);
  };
  EXPECT_THAT(KernelText(heads(300, 11)), HasSubstr("y0[i1, i0, c] = x0[i0, i1, c]"));
  EXPECT_THAT(KernelText(heads(11, 300)), HasSubstr("y0[i0, i1, c] = x0[i1, i0, c]"));
  EXPECT_THAT(KernelText(heads(128, 11)), HasSubstr("y0[i0, i1, c] = x0[i1, i0, c]"));
  CheckFused(heads(300, 11), {});
  CheckFused(heads(11, 300), {});
}

TEST(Map, JoinOfSymbolicSizes) {
  CheckFused(R"(graph g sym A in 0..9, B in 0..40000 {
  %0 = Input() {name = "x"} : f32[A, 3, 2]
  %1 = Input() {name = "y"} : f32[B, 3, 2]
  %2 = Concat(%0, %1) {axis = 0} : f32[A + B, 3, 2]
  return %2
})",
             {{"A", 4}, {"B", 9000}});
}

TEST(Map, PadsOnEverySide) {
  const std::string text = R"(graph g {
  %0 = Input() {name = "x"} : f32[3, 5, 7]
  %1 = Transpose(%0) {perm = [0, 2, 1]} : f32[3, 7, 5]
  %2 = Pad(%1) {high = [1, 0, 2], low = [0, 3, 1], value = 3.0} : f32[4, 10, 8]
  %3 = Neg(%2) : f32[4, 10, 8]
  return %3
})";
  CheckFused(text, {});
  EXPECT_THAT(KernelText(text), Not(HasSubstr("else")));
}

}  // namespace
}  // namespace quern::codegen
