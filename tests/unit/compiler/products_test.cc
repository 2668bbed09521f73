// Products whose operands lie in any order: panels that loops fill, in one block of k or several, of every batch form
// and float type.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

// What stands for $a, $b and $y in the text, with its right side in both layouts: [.., K, N] and [.., N, K].
void ExpectProduct(const std::string& symbols, const std::string& a, const std::string& batch, const std::string& k,
                   const std::string& n, const std::string& y, const std::vector<Binding>& bindings) {
  for (const bool transposed : {false, true}) {
    const std::string b = absl::StrCat(batch, transposed ? n : k, ", ", transposed ? k : n);
    ExpectRight(
        absl::StrReplaceAll(
            R"(graph g$s {
  %0 = Input() {name = "a"} : f32[$a]
  %1 = Input() {name = "b"} : f32[$b]
  %2 = Input() {name = "bias"} : f32[$n]
  %3 = MatMul(%0, %1) {transpose_b = $t} : f32[$y]
  %4 = Add(%3, %2) : f32[$y]
  %5 = Silu(%4) : f32[$y]
  return %5
})",
            {{"$s", symbols}, {"$a", a}, {"$b", b}, {"$n", n}, {"$y", y}, {"$t", transposed ? "true" : "false"}}),
        bindings);
  }
}

TEST(Products, OfTwoInputs) {
  ExpectProduct("", "9, 7", "", "7", "8", "9, 8", {{}});
  ExpectProduct("", "97, 31", "", "31", "33", "97, 33", {{}});
  ExpectProduct("", "211, 67", "", "67", "128", "211, 128", {{}});
  ExpectProduct("", "13, 1", "", "1", "64", "13, 64", {{}});
}

TEST(Products, OfFewRows) {
  ExpectProduct("", "1, 67", "", "67", "31", "1, 31", {{}});
  ExpectProduct("", "1, 3", "", "3", "300", "1, 300", {{}});
  ExpectProduct("", "8, 64", "", "64", "1031", "8, 1031", {{}});
  ExpectProduct("", "3, 5, 37", "3, ", "37", "64", "3, 5, 64", {{}});
  ExpectProduct(" sym S in 0..8", "S, 37", "", "37", "67", "S, 67", {{{"S", 0}}, {{"S", 1}}, {{"S", 7}}});
  ExpectProduct(" sym S in 0..99", "3, S", "", "S", "67", "3, 67", {{{"S", 0}}, {{"S", 1}}, {{"S", 97}}});
}

TEST(Products, OfFewColumns) {
  ExpectProduct("", "67, 131", "", "131", "1", "67, 1", {{}});
  ExpectProduct("", "131, 5", "", "5", "7", "131, 7", {{}});
  ExpectProduct("", "3, 67, 64", "3, ", "64", "8", "3, 67, 8", {{}});
  ExpectProduct(" sym S in 0..99", "S, S", "", "S", "3", "S, 3", {{{"S", 0}}, {{"S", 1}}, {{"S", 97}}});
  ExpectProduct(" sym S in 0..8", "97, 31", "", "31", "S", "97, S", {{{"S", 0}}, {{"S", 1}}, {{"S", 7}}});
}

// Batches beside one right side are rows of one matrix, unless something else is read that is not by rows.
TEST(Products, OfRowsOfAllBatches) {
  for (const char* const other :
       {"2, 3, 5, 37", "2, 3, 5, 1", "1, 1, 1, 37", "37", "1", "5, 37", "3, 5, 37", "3, 1, 37"}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : f32[2, 3, 5, 17]
  %1 = Input() {name = "b"} : f32[17, 37]
  %2 = Input() {name = "other"} : f32[$o]
  %3 = MatMul(%0, %1) {transpose_b = false} : f32[2, 3, 5, 37]
  %4 = Abs(%2) : f32[$o]
  %5 = Sub(%3, %4) : f32[2, 3, 5, 37]
  return %5, %3
})",
                                    {{"$o", other}}),
                {{}});
  }
}

TEST(Products, OfALongK) {
  ExpectProduct("", "23, 1024", "", "1024", "37", "23, 37", {{}});
  ExpectProduct("", "23, 1025", "", "1025", "64", "23, 64", {{}});
  ExpectProduct("", "109, 1537", "", "1537", "41", "109, 41", {{}});
}

TEST(Products, OfBatches) {
  ExpectProduct("", "3, 17, 29", "3, ", "29", "43", "3, 17, 43", {{}});
  ExpectProduct("", "2, 3, 11, 13", "2, 3, ", "13", "19", "2, 3, 11, 19", {{}});
  // One side for all of the other's.
  ExpectProduct("", "5, 17, 29", "", "29", "43", "5, 17, 43", {{}});
  ExpectProduct("", "17, 29", "5, ", "29", "43", "5, 17, 43", {{}});
  ExpectProduct("", "2, 1, 11, 13", "1, 3, ", "13", "19", "2, 3, 11, 19", {{}});
  ExpectProduct("", "1, 3, 11, 13", "2, 1, 1, ", "13", "19", "2, 1, 3, 11, 19", {{}});
}

TEST(Products, OfSizesKnownAtTheRun) {
  const std::vector<Binding> rows = {{{"S", 1}}, {{"S", 9}}, {{"S", 193}}};
  ExpectProduct(" sym S in 1..1048576", "S, 31", "", "31", "37", "S, 37", rows);
  ExpectProduct(" sym S in 0..4096", "37, S", "", "S", "37", "37, 37", {{{"S", 0}}, {{"S", 1}}, {{"S", 1031}}});
  ExpectProduct(" sym S in 1..4096", "37, 31", "", "31", "S", "37, S", rows);
  ExpectProduct(" sym S in 0..64", "S, 5, S", "S, ", "S", "S", "S, 5, S", {{{"S", 0}}, {{"S", 11}}, {{"S", 33}}});
}

// Both layouts of the right side in each float type that goes with the left side's.
TEST(Products, OfHalves) {
  for (const char* const type : {"f16", "bf16"}) {
    for (const bool transposed : {false, true}) {
      for (const char* const k : {"67", "1031"}) {
        ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : $t[3, 101, $k]
  %1 = Input() {name = "b"} : $t[$b]
  %2 = MatMul(%0, %1) {transpose_b = $f} : $t[3, 101, 37]
  return %2
})",
                                        {{"$t", type},
                                         {"$k", k},
                                         {"$b", transposed ? absl::StrCat("37, ", k) : absl::StrCat(k, ", 37")},
                                         {"$f", transposed ? "true" : "false"}}),
                    {{}});
      }
    }
  }
}

// The sum of an element is not the business of other rows, however many there are and wherever they lie.
TEST(Products, RowsHaveTheirOwnBits) {
  for (const char* const k : {"67", "1031"}) {
    const StatusOr<Planned> planned = Plan(absl::StrReplaceAll(R"(graph g sym S in 1..300 {
  %0 = Input() {name = "b"} : f32[$k, 37]
  %1 = Input() {name = "a"} : f32[S, $k]
  %2 = MatMul(%1, %0) {transpose_b = false} : f32[S, 37]
  return %2
})",
                                                               {{"$k", k}}));
    ASSERT_TRUE(planned.ok()) << planned.status();
    const auto all = RunPlanned(*planned, {{"S", 299}});
    ASSERT_TRUE(all.ok()) << all.status();
    for (const int64_t rows : {1, 9, 97, 193}) {
      const auto some = RunPlanned(*planned, {{"S", rows}});
      ASSERT_TRUE(some.ok()) << some.status();
      EXPECT_TRUE(std::equal((*some)[0].begin(), (*some)[0].end(), (*all)[0].begin())) << rows << " rows, k " << k;
    }
  }
}

}  // namespace
}  // namespace quern
