// Loops cut where guards begin to hold: where, and that they compute the same.
#include "codegen/split_guards.h"

#include <gmock/gmock.h>

#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

kir::Kernel Kernel(const std::string& grid, const std::string& loop, const std::string& more = "") {
  const StatusOr<kir::Kernel> kernel = kir::ParseKernel(absl::StrCat(
      "kernel k (\n  x : f32[40, 52] in\n  z : f32[N] in\n  y : f32[40, 52] out\n) sym N in 1..99 {\n  grid ", grid,
      " {\n    ", loop, "\n    ", more, "\n  }\n}"));
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *kernel;
}

std::string Split(const kir::Kernel& kernel) {
  kir::Kernel split = kernel;
  split.body = SplitGuards(kernel);
  const Status verified = kir::Verify(split);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << kir::Print(split);
  // The bits of what the kernel computes.
  std::vector<uint8_t> results[2];
  const kir::Kernel* both[] = {&kernel, &split};
  for (int which : {0, 1}) {
    std::vector<std::vector<uint8_t>> memory(3);
    std::vector<kir::BufferBytes> buffers;
    for (std::vector<uint8_t>& bytes : memory) {
      for (int i = 0; i < 40 * 52; ++i) Append(bytes, static_cast<float>(i % 97));
      if (&bytes == &memory[1]) bytes.resize(4 * 37);
      buffers.emplace_back(bytes);
    }
    const Status run = kir::Interpret(*both[which], {{"N", 37}}, buffers);
    EXPECT_TRUE(run.ok()) << run << "\n" << kir::Print(*both[which]);
    results[which] = memory[2];
  }
  EXPECT_EQ(results[0], results[1]) << kir::Print(split);
  return kir::Print(split);
}

TEST(SplitGuards, OfRowsAndColumns) {
  const std::string split = Split(Kernel("g in 0..1",
                                         "for q in 0..40 { vec c in 0..52 { y[q, c] = (x[q - 1, c - 1] else 0.0) + "
                                         "(x[q + 2, c + 1] else 1.0) } }"));
  EXPECT_THAT(split, HasSubstr("for q in 0..1 {"));
  EXPECT_THAT(split, HasSubstr("for q in 1..38 {"));
  EXPECT_THAT(split, HasSubstr("for q in 38..40 {"));
  EXPECT_THAT(split, HasSubstr("vec c in 0..16 {"));
  EXPECT_THAT(split, HasSubstr("vec c in 16..48 {"));
  EXPECT_THAT(split, HasSubstr("vec c in 48..52 {"));
}

TEST(SplitGuards, OfRowsOfAChunk) {
  const std::string split = Split(Kernel("q0 in 0..20 by 7",
                                         "for q in q0..min(q0 + 7, 20) { vec c in 0..52 { y[q, c] = (x[q * 2 - 3, c] "
                                         "else 0.0) + (x[q * 2 + 3, c] else 1.0) } }"));
  EXPECT_THAT(split, HasSubstr("for q in q0 .. min(q0 + 7, 2) {"));
  EXPECT_THAT(split, HasSubstr("for q in max(q0, 2) .. min(q0 + 7, 19) {"));
  EXPECT_THAT(split, HasSubstr("for q in max(q0, 19) .. min(q0 + 7, 20) {"));
}

// An index that two loops have a part in: of the outer one, where it is inside whatever the inner one is at; and a loop
// whose first number is a maximum, as segments of rows have it.
TEST(SplitGuards, OfTwoLoops) {
  const std::string split =
      Split(Kernel("g in 0..1",
                   "for q in 0..40 { for c in max(0, g - q)..13 { for d in 0..8 { y[q, c * 4] = x[q, c * 4 + d - 4] "
                   "else 7.0 } } }"));
  EXPECT_THAT(split, HasSubstr("for c in max(0, g - q) .. 1 {"));
  EXPECT_THAT(split, HasSubstr("for c in max(max(0, g - q), 1) .. 13 {"));
  const std::string behind =
      Split(Kernel("g in 0..1",
                   "for q in 0..40 { for c in 0..min(13, 40 - q) { for d in 0..8 { y[q, c * 4] = x[q, c * 4 + d] "
                   "else 7.0 } } }"));
  EXPECT_THAT(behind, HasSubstr("for c in 0 .. min(40 - q, 12) {"));
}

// Guards that hold everywhere or nowhere, of extents that are symbols, loops whose ends are not known, and those with
// buffers of their own.
TEST(SplitGuards, NotOfOthers) {
  for (const char* const loop : {"for q in 1..40 { vec c in 0..52 { y[q, c] = x[q - 1, c] else 0.0 } }",
                                 "for q in 0..40 { vec c in 0..52 { y[q, c] = x[q - 40, c] else 0.0 } }",
                                 "for q in 0..40 { vec c in 0..52 { y[q, c] = z[q - 1] else 0.0 } }",
                                 "for q in 0..40 { alloc s : f32[52] scratch vec c in 0..52 { s[c] = x[q - 1, c] else "
                                 "0.0 } vec c in 0..52 { y[q, c] = s[c] } }",
                                 "for q in 0..min(N, 40) { vec c in 0..52 { y[q, c] = x[q, q * c - 1] else 0.0 } }",
                                 "for q in g..g + 20 { vec c in 0..52 { y[q, c] = x[q - 3, c] else 0.0 } }"}) {
    const kir::Kernel kernel = Kernel("g in 0..1", loop);
    EXPECT_EQ(Split(kernel), kir::Print(kernel));
  }
}

}  // namespace
}  // namespace quern::codegen
