// What is read across its rows, and short rows: Transposes alone and fused, of every float type and of integers, by
// squares and their rests.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

void ExpectTurned(const std::string& symbols, const std::string& type, const std::string& from, const std::string& perm,
                  const std::string& to, const std::vector<Binding>& bindings) {
  ExpectRight(absl::StrReplaceAll(R"(graph g$s {
  %0 = Input() {name = "x"} : $t[$from]
  %1 = Transpose(%0) {perm = [$perm]} : $t[$to]
  return %1
})",
                                  {{"$s", symbols}, {"$t", type}, {"$from", from}, {"$perm", perm}, {"$to", to}}),
              bindings);
  // Beside what lies in order, and twice.
  ExpectRight(absl::StrReplaceAll(R"(graph g$s {
  %0 = Input() {name = "x"} : $t[$from]
  %1 = Input() {name = "y"} : $t[$to]
  %2 = Transpose(%0) {perm = [$perm]} : $t[$to]
  %3 = Sub(%2, %1) : $t[$to]
  %4 = Abs(%0) : $t[$from]
  %5 = Transpose(%4) {perm = [$perm]} : $t[$to]
  %6 = Max(%3, %5) : $t[$to]
  return %6, %3
})",
                                  {{"$s", symbols}, {"$t", type}, {"$from", from}, {"$perm", perm}, {"$to", to}}),
              bindings);
}

TEST(Turned, Matrices) {
  for (const char* const type : {"f32", "f16", "bf16", "i32", "f64"}) {
    ExpectTurned("", type, "8, 8", "1, 0", "8, 8", {{}});
    ExpectTurned("", type, "33, 67", "1, 0", "67, 33", {{}});
    ExpectTurned("", type, "128, 31", "1, 0", "31, 128", {{}});
    ExpectTurned("", type, "256, 64", "1, 0", "64, 256", {{}});
    ExpectTurned("", type, "131, 7", "1, 0", "7, 131", {{}});
    ExpectTurned("", type, "523, 130", "1, 0", "130, 523", {{}});  // more than one rectangle along either side
  }
}

TEST(Turned, OtherAxesStay) {
  ExpectTurned("", "f32", "3, 37, 41", "0, 2, 1", "3, 41, 37", {{}});
  ExpectTurned("", "f32", "37, 3, 41", "2, 1, 0", "41, 3, 37", {{}});
  ExpectTurned("", "f32", "2, 3, 17, 19", "0, 3, 1, 2", "2, 19, 3, 17", {{}});
  ExpectTurned("", "f32", "2, 17, 3, 19", "3, 0, 2, 1", "19, 2, 3, 17", {{}});
  ExpectTurned("", "f32", "2, 17, 3, 19", "0, 2, 1, 3", "2, 3, 17, 19", {{}});
  for (const char* const type : {"f16", "i32", "f64"}) {
    ExpectTurned("", type, "2, 24, 9, 10", "0, 2, 3, 1", "2, 9, 10, 24", {{}});  // channels last, and back
    ExpectTurned("", type, "2, 9, 10, 24", "0, 3, 1, 2", "2, 24, 9, 10", {{}});
  }
}

TEST(Turned, SizesKnownAtTheRun) {
  const std::vector<Binding> sizes = {{{"S", 0}}, {{"S", 1}}, {{"S", 31}}, {{"S", 33}}, {{"S", 129}}};
  ExpectTurned(" sym S in 0..1048576", "f32", "S, 37", "1, 0", "37, S", sizes);
  ExpectTurned(" sym S in 0..1048576", "f32", "37, S", "1, 0", "S, 37", sizes);
  ExpectTurned(" sym S in 0..4096", "f16", "S, 3, S", "2, 1, 0", "S, 3, S", sizes);
}

// Where a part of it is read.
TEST(Turned, Slices) {
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[67, 71]
  %1 = Slice(%0) {axis = 0, start = 5, step = 1, stop = 45} : f32[40, 71]
  %2 = Slice(%1) {axis = 1, start = 3, step = 1, stop = 64} : f32[40, 61]
  %3 = Transpose(%2) {perm = [1, 0]} : f32[61, 40]
  %4 = Slice(%0) {axis = 1, start = 1, step = 2, stop = 71} : f32[67, 35]
  %5 = Transpose(%4) {perm = [1, 0]} : f32[35, 67]
  return %3, %5
})",
              {{}});
}

const char* const kTypes[] = {"f32", "f16", "bf16", "f64", "i8", "u8", "i32", "bool"};

// Rows of few elements become few long rows, and back.
TEST(Turned, FewAndMany) {
  for (const char* const type : kTypes) {
    for (const char* const few : {"2", "3", "4", "5", "7", "8", "15"}) {
      for (const char* const many : {"17", "61", "131"}) {
        const std::string planes = absl::StrCat("2, ", few, ", ", many), pixels = absl::StrCat("2, ", many, ", ", few);
        ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : $t[$from]
  %1 = Transpose(%0) {perm = [0, 2, 1]} : $t[$to]
  return %1
})",
                                        {{"$t", type}, {"$from", planes}, {"$to", pixels}}),
                    {{}});
        ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : $t[$from]
  %1 = Transpose(%0) {perm = [0, 2, 1]} : $t[$to]
  return %1
})",
                                        {{"$t", type}, {"$from", pixels}, {"$to", planes}}),
                    {{}});
      }
    }
  }
  for (const char* const type : {"f32", "f16", "i32", "f64"}) {
    ExpectTurned("", type, "3, 2, 37", "0, 2, 1", "3, 37, 2", {{}});
    ExpectTurned("", type, "2, 5, 64", "1, 2, 0", "5, 64, 2", {{}});
    ExpectTurned("", type, "3, 4099", "1, 0", "4099, 3", {{}});  // more than one rectangle
    ExpectTurned("", type, "4099, 3", "1, 0", "3, 4099", {{}});
    ExpectTurned("", type, "7, 4, 16", "0, 2, 1", "7, 16, 4", {{}});
    ExpectTurned("", type, "5, 19, 6", "2, 0, 1", "6, 5, 19", {{}});
  }
  const std::vector<Binding> sizes = {{{"S", 1}}, {{"S", 17}}, {{"S", 128}}};
  ExpectTurned(" sym S in 1..300", "f32", "2, 3, S", "1, 2, 0", "3, S, 2", sizes);
  ExpectTurned(" sym S in 1..300", "f32", "S, 2, 3", "2, 0, 1", "3, S, 2", sizes);
  ExpectTurned(" sym S in 2..15", "f32", "37, S", "1, 0", "S, 37", {{{"S", 2}}, {{"S", 15}}});
}

// What image networks begin and end with, and pixels that stay pixels.
TEST(Turned, PixelsAndPlanes) {
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : u8[2, 13, 29, 3]
  %1 = Cast(%0) {to = f32} : f32[2, 13, 29, 3]
  %2 = Param() {name = "mean"} : f32[3]
  %3 = Param() {name = "scale"} : f32[3]
  %4 = Sub(%1, %2) : f32[2, 13, 29, 3]
  %5 = Mul(%4, %3) : f32[2, 13, 29, 3]
  %6 = Transpose(%5) {perm = [0, 3, 1, 2]} : f32[2, 3, 13, 29]
  return %6
})",
              {{}});
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 3, 13, 29]
  %1 = Transpose(%0) {perm = [0, 2, 3, 1]} : f32[2, 13, 29, 3]
  %2 = Param() {name = "scale"} : f32[3]
  %3 = Mul(%1, %2) : f32[2, 13, 29, 3]
  %4 = Cast(%3) {to = u8} : u8[2, 13, 29, 3]
  return %4, %3
})",
              {{}});
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f16[2, 1367, 5]
  %1 = Param() {name = "scale"} : f16[5]
  %2 = Param() {name = "rows"} : f16[1367, 1]
  %3 = Mul(%0, %1) : f16[2, 1367, 5]
  %4 = Add(%3, %2) : f16[2, 1367, 5]
  return %4
})",
              {{}});
}

// Short rows that are picked or lie in parts, which vectors along another axis would gather.
TEST(Turned, ShortRowsAsTheyAre) {
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[53, 6]
  %1 = Input() {name = "at", below = 53} : i32[37]
  %2 = Gather(%0, %1) {axis = 0} : f32[37, 6]
  %3 = Param() {name = "w"} : f32[6]
  %4 = Mul(%2, %3) : f32[37, 6]
  %5 = Slice(%0) {axis = 0, start = 1, step = 2, stop = 53} : f32[26, 6]
  %6 = Mul(%5, %3) : f32[26, 6]
  return %4, %6
})",
              {{}});
}

}  // namespace
}  // namespace quern
