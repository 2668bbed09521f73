// What is read across its rows: Transposes alone and fused, of every float type and of integers, by squares and their
// rests.
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
  }
}

TEST(Turned, OtherAxesStay) {
  ExpectTurned("", "f32", "3, 37, 41", "0, 2, 1", "3, 41, 37", {{}});
  ExpectTurned("", "f32", "37, 3, 41", "2, 1, 0", "41, 3, 37", {{}});
  ExpectTurned("", "f32", "2, 3, 17, 19", "0, 3, 1, 2", "2, 19, 3, 17", {{}});
  ExpectTurned("", "f32", "2, 17, 3, 19", "3, 0, 2, 1", "19, 2, 3, 17", {{}});
  ExpectTurned("", "f32", "2, 17, 3, 19", "0, 2, 1, 3", "2, 3, 17, 19", {{}});
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

}  // namespace
}  // namespace quern
