// Products whose operands lie in any order: panels that loops fill, in one block of k or several, of every batch form
// and float type.
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

// What stands for $a, $b and $y in the text, with its right side in both layouts: [.., K, N] and [.., N, K].
void ExpectProduct(const std::string& symbols, const std::string& a, const std::string& batch, const std::string& k,
                   const std::string& n, const std::string& y, const std::vector<Binding>& bindings,
                   const std::string& type = "f32") {
  for (const bool transposed : {false, true}) {
    const std::string b = absl::StrCat(batch, transposed ? n : k, ", ", transposed ? k : n);
    ExpectRight(absl::StrReplaceAll(
                    R"(graph g$s {
  %0 = Input() {name = "a"} : $e[$a]
  %1 = Input() {name = "b"} : $e[$b]
  %2 = Input() {name = "bias"} : $e[$n]
  %3 = MatMul(%0, %1) {transpose_b = $t} : $e[$y]
  %4 = Add(%3, %2) : $e[$y]
  %5 = Silu(%4) : $e[$y]
  return %5
})",
                    {{"$s", symbols},
                     {"$a", a},
                     {"$b", b},
                     {"$n", n},
                     {"$y", y},
                     {"$e", type},
                     {"$t", transposed ? "true" : "false"}}),
                bindings);
  }
}

TEST(Products, OfTwoInputs) {
  ExpectProduct("", "9, 7", "", "7", "8", "9, 8", {{}});
  ExpectProduct("", "97, 31", "", "31", "33", "97, 33", {{}});
  ExpectProduct("", "211, 67", "", "67", "128", "211, 128", {{}});
  ExpectProduct("", "13, 1", "", "1", "64", "13, 64", {{}});
  ExpectProduct("", "97, 67", "", "67", "49", "97, 49", {{}});
  ExpectProduct("", "3, 213, 1037", "3, ", "1037", "36", "3, 213, 36", {{}});
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

// Bytes in any pair give i32; wider integers wrap. A cast to f32 and a factor follow, as where models are quantised.
TEST(Products, OfIntegers) {
  const char* const kPairs[][3] = {{"i8", "i8", "i32"}, {"u8", "i8", "i32"},   {"i8", "u8", "i32"},
                                   {"u8", "u8", "i32"}, {"i32", "i32", "i32"}, {"i64", "i64", "i64"}};
  const char* const kSizes[][3] = {{"1", "67", "31"},     {"9", "7", "8"},   {"13", "1", "64"}, {"97", "259", "37"},
                                   {"211", "1031", "64"}, {"9", "33", "97"}, {"5", "0", "3"}};
  for (const auto& [a, b, y] : kPairs) {
    for (const auto& [m, k, n] : kSizes) {
      for (const bool transposed : {false, true}) {
        ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : $a[3, $m, $k]
  %1 = Input() {name = "b"} : $b[$r]
  %2 = MatMul(%0, %1) {transpose_b = $t} : $y[3, $m, $n]
  %3 = Cast(%2) {to = f32} : f32[3, $m, $n]
  %4 = Input() {name = "scale"} : f32[$n]
  %5 = Mul(%3, %4) : f32[3, $m, $n]
  return %5, %2
})",
                                        {{"$a", a},
                                         {"$b", b},
                                         {"$y", y},
                                         {"$m", m},
                                         {"$k", k},
                                         {"$n", n},
                                         {"$r", transposed ? absl::StrCat(n, ", ", k) : absl::StrCat(k, ", ", n)},
                                         {"$t", transposed ? "true" : "false"}}),
                    {{}});
      }
    }
  }
  ExpectRight(R"(graph g sym S in 0..999 {
  %0 = Input() {name = "a"} : u8[S, 5, 7]
  %1 = Input() {name = "b"} : i8[11, 7, S]
  %2 = DotGeneral(%0, %1) {lhs_contract = [2, 0], rhs_contract = [1, 2]} : i32[5, 11]
  %3 = DotGeneral(%0, %1) {lhs_batch = [0], rhs_batch = [2], lhs_contract = [2], rhs_contract = [1]} : i32[S, 5, 11]
  %4 = DotGeneral(%0, %1) {lhs_contract = [0], rhs_contract = [2]} : i32[5, 7, 11, 7]
  return %2, %3, %4
})",
              {{{"S", 0}}, {{"S", 1}}, {{"S", 97}}, {{"S", 613}}});
}

// Where every product is as large as one can be, no sum of them is rounded.
TEST(Products, OfTheLargestBytes) {
  const char* const kLargest[][3] = {{"u8", "Max", "ff"}, {"i8", "Min", "80"}, {"i8", "Max", "7f"}};
  for (const auto& [a, a_op, a_most] : kLargest) {
    for (const auto& [b, b_op, b_most] : kLargest) {
      for (const bool transposed : {false, true}) {
        ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : $a[23, 2053]
  %1 = Constant() hex $p : $a[]
  %2 = $f(%0, %1) : $a[23, 2053]
  %3 = Input() {name = "b"} : $b[$r]
  %4 = Constant() hex $q : $b[]
  %5 = $g(%3, %4) : $b[$r]
  %6 = MatMul(%2, %5) {transpose_b = $t} : i32[23, 67]
  return %6
})",
                                        {{"$a", a},
                                         {"$p", a_most},
                                         {"$f", a_op},
                                         {"$b", b},
                                         {"$q", b_most},
                                         {"$g", b_op},
                                         {"$r", transposed ? "67, 2053" : "2053, 67"},
                                         {"$t", transposed ? "true" : "false"}}),
                    {{}});
      }
    }
  }
}

// A right side that is computed on the way, of blocks of k that do not fill words; one with k next to each other.
TEST(Products, OfWindowsInWords) {
  for (const auto& [a, b, y] : {std::array{"bf16", "bf16", "bf16"}, {"u8", "i8", "i32"}, {"i8", "i8", "i32"}}) {
    for (const char* const channels : {"2", "228", "456"}) {
      const int64_t k = std::stoi(channels) * 9;
      ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "w"} : $a[37, $k]
  %1 = Input() {name = "x"} : $b[$c, 9, 10]
  %2 = Window(%1) {kernel = [3, 3], pads = [1, 1, 0, 0]} : $b[$c, 3, 3, 8, 9]
  %3 = Reshape(%2) {shape = <$k, 72>} : $b[$k, 72]
  %4 = MatMul(%0, %3) {transpose_b = false} : $y[37, 72]
  return %4
})",
                                      {{"$a", a}, {"$b", b}, {"$y", y}, {"$c", channels}, {"$k", absl::StrCat(k)}}),
                  {{}});
    }
  }
}

// Numbers that are written out into kernels are no buffers.
TEST(Products, OfNumbers) {
  for (const char* const rows : {"1", "5", "13", "99"}) {
    for (const char* const transposed : {"false", "true"}) {
      ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : f32[$m, 1]
  %1 = Constant() hex 000020c1 : f32[1, 1]
  %2 = MatMul(%0, %1) {transpose_b = $t} : f32[$m, 1]
  %3 = Tanh(%2) : f32[$m, 1]
  %4 = Input() {name = "b"} : f32[1, $m]
  %5 = MatMul(%1, %4) {transpose_b = false} : f32[1, $m]
  %6 = Input() {name = "c"} : f32[2, 1, $m]
  %7 = Reverse(%6) {axes = [2]} : f32[2, 1, $m]
  %8 = MatMul(%1, %7) {transpose_b = false} : f32[2, 1, $m]
  return %3, %5, %8
})",
                                      {{"$m", rows}, {"$t", transposed}}),
                  {{}});
    }
  }
}

// As the right side and once more, where what it is beside has other rows.
TEST(Products, OfARightSideThatIsReadTwice) {
  ExpectRight(R"(graph g {
  %0 = Input() {name = "a"} : f32[8, 16, 16]
  %1 = Input() {name = "b"} : f32[16, 37]
  %2 = MatMul(%0, %1) {transpose_b = false} : f32[8, 16, 37]
  %3 = Add(%2, %1) : f32[8, 16, 37]
  return %3
})",
              {{}});
  ExpectRight(R"(graph g sym S in 1..99 {
  %0 = Input() {name = "a"} : f32[3, S, S]
  %1 = MatMul(%0, %0) {transpose_b = false} : f32[3, S, S]
  %2 = Transpose(%0) {perm = [0, 2, 1]} : f32[3, S, S]
  %3 = Add(%1, %2) : f32[3, S, S]
  %4 = MatMul(%0, %0) {transpose_b = true} : f32[3, S, S]
  %5 = Mul(%4, %0) : f32[3, S, S]
  return %3, %5
})",
              {{{"S", 1}}, {{"S", 37}}});
}

TEST(Products, OfALongK) {
  ExpectProduct("", "23, 1024", "", "1024", "37", "23, 37", {{}});
  ExpectProduct("", "23, 1025", "", "1025", "64", "23, 64", {{}});
  ExpectProduct("", "109, 1537", "", "1537", "41", "109, 41", {{}});
}

// Panels of doubles; few rows and few columns of them; k in several blocks; symbols.
TEST(Products, OfDoubles) {
  const auto expect = [](const std::string& symbols, const std::string& a, const std::string& batch,
                         const std::string& k, const std::string& n, const std::string& y,
                         const std::vector<Binding>& bindings = {{}}) {
    ExpectProduct(symbols, a, batch, k, n, y, bindings, "f64");
  };
  expect("", "9, 7", "", "7", "8", "9, 8");
  expect("", "97, 31", "", "31", "33", "97, 33");
  expect("", "211, 67", "", "67", "128", "211, 128");
  expect("", "97, 67", "", "67", "49", "97, 49");
  expect("", "109, 1537", "", "1537", "41", "109, 41");
  expect("", "3, 213, 1037", "3, ", "1037", "36", "3, 213, 36");
  for (const int rows : {1, 2, 3, 4, 5, 8}) {
    const std::string m = absl::StrCat(rows);
    expect("", m + ", 67", "", "67", "331", m + ", 331");
    expect("", "131, 67", "", "67", m, "131, " + m);
  }
  const std::vector<Binding> sizes = {{{"S", 1}}, {{"S", 9}}, {{"S", 193}}};
  expect(" sym S in 0..4096", "S, 31", "", "31", "37", "S, 37", sizes);
  expect(" sym S in 0..4096", "37, S", "", "S", "37", "37, 37", sizes);
  expect(" sym S in 0..4096", "37, 31", "", "31", "S", "37, S", sizes);
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

// A right side that is made on the way: elements moved, joined, looked up, cast and padded; many rows, few and one.
TEST(Products, OfAComputedSideSide) {
  for (const char* const rows : {"1", "5", "37"}) {
    for (const char* const right : {
             "%2 = Pad(%1) {low = [0, 1, 3], high = [0, 2, 0], value = 0.5} : f32[2, 17, 67]",
             "%2 = Concat(%1, %1) {axis = 1} : f32[2, 28, 64]",
             "%2 = Transpose(%1) {perm = [0, 2, 1]} : f32[2, 64, 14]",
             "%2 = Slice(%1) {axis = 2, start = 3, step = 2} : f32[2, 14, 31]",
             "%2 = Reverse(%1) {axes = [1, 2]} : f32[2, 14, 64]",
             "%2 = Reshape(%1) {shape = <2, 7, 128>} : f32[2, 7, 128]",
             "%2 = Narrow(%1) {axis = 1, start = <3>, length = <9>} : f32[2, 9, 64]",
         }) {
      const std::string type = std::string(right).substr(std::string(right).rfind('['));  // "[2, K, N]"
      const std::vector<std::string> dims = absl::StrSplit(type.substr(1, type.size() - 2), ", ");
      ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : f32[2, $m, $k]
  %1 = Input() {name = "b"} : f32[2, 14, 64]
  $r
  %3 = MatMul(%0, %2) {transpose_b = false} : f32[2, $m, $n]
  %4 = Reshape(%3) {shape = <2, $m, $n, 1>} : f32[2, $m, $n, 1]
  %5 = Relu(%4) : f32[2, $m, $n, 1]
  return %5
})",
                                      {{"$m", rows}, {"$k", dims[1]}, {"$n", dims[2]}, {"$r", right}}),
                  {{}});
    }
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "a"} : f32[$m, 19]
  %1 = Input() {name = "b"} : f16[23, 37]
  %2 = Input() {name = "ids"} : i32[19]
  %3 = Gather(%1, %2) {axis = 0} : f16[19, 37]
  %4 = Cast(%3) {to = f32} : f32[19, 37]
  %5 = MatMul(%0, %4) {transpose_b = false} : f32[$m, 37]
  return %5
})",
                                    {{"$m", rows}}),
                {{}});
  }
}

// The sum of an element is not the business of other rows, however many there are and wherever they lie.
TEST(Products, RowsHaveTheirOwnBits) {
  for (const char* const type : {"f32", "bf16"}) {
    for (const char* const k : {"67", "1031", "2051"}) {
      const StatusOr<Planned> planned = Plan(absl::StrReplaceAll(R"(graph g sym S in 1..300 {
  %0 = Input() {name = "b"} : $t[$k, 37]
  %1 = Input() {name = "a"} : $t[S, $k]
  %2 = MatMul(%1, %0) {transpose_b = false} : $t[S, 37]
  return %2
})",
                                                                 {{"$t", type}, {"$k", k}}));
      ASSERT_TRUE(planned.ok()) << planned.status();
      const auto all = RunPlanned(*planned, {{"S", 299}});
      ASSERT_TRUE(all.ok()) << all.status();
      for (const int64_t rows : {1, 9, 97, 193}) {
        const auto some = RunPlanned(*planned, {{"S", rows}});
        ASSERT_TRUE(some.ok()) << some.status();
        EXPECT_TRUE(std::equal((*some)[0].begin(), (*some)[0].end(), (*all)[0].begin()))
            << rows << " rows of " << type << ", k " << k;
      }
    }
  }
}

// Of bf16 by bf16: one panel and many, k even, odd and cut into blocks, few rows of both layouts, sizes that are known
// at the run, batches, and what follows the product.
TEST(Products, OfPairs) {
  struct Case {
    const char *symbols, *a, *b, *y;
    std::vector<Binding> bindings;
  };
  const Case cases[] = {
      {"", "9, 1", "$1, 64", "9, 64", {{}}},
      {"", "13, 64", "$64, 96", "13, 96", {{}}},
      {"", "29, 2051", "$2051, 40", "29, 40", {{}}},
      {"", "13, 67", "$67, 35", "13, 35", {{}}},  // columns behind the last whole vector
      {"", "29, 2051", "$2051, 51", "29, 51", {{}}},
      {"", "1, 67", "$67, 131", "1, 131", {{}}},
      {"", "8, 770", "$770, 64", "8, 64", {{}}},
      {"", "3, 5, 33", "3, $33, 31", "3, 5, 31", {{}}},
      {"", "2, 3, 11, 13", "1, 3, $13, 19", "2, 3, 11, 19", {{}}},
      {"", "67, 131", "$131, 3", "67, 3", {{}}},
      {" sym S in 1..1000", "S, 31", "$31, 37", "S, 37", {{{"S", 1}}, {{"S", 9}}, {{"S", 193}}}},
      {" sym S in 0..4096", "37, S", "$S, 37", "37, 37", {{{"S", 0}}, {{"S", 1}}, {{"S", 1031}}, {{"S", 1032}}}},
      {" sym S in 1..8", "S, 37", "$37, S", "S, S", {{{"S", 1}}, {{"S", 7}}}},
  };
  for (const Case& test : cases) {
    for (const bool transposed : {false, true}) {
      std::string b = test.b;
      const size_t at = b.find('$'), comma = b.find(", ", at);
      const std::string k = b.substr(at + 1, comma - at - 1), n = b.substr(comma + 2);
      b = absl::StrCat(b.substr(0, at), transposed ? n : k, ", ", transposed ? k : n);
      ExpectRight(
          absl::StrReplaceAll(
              R"(graph g$s {
  %0 = Input() {name = "a"} : bf16[$a]
  %1 = Input() {name = "b"} : bf16[$b]
  %2 = MatMul(%0, %1) {transpose_b = $t} : bf16[$y]
  %3 = Cast(%2) {to = f32} : f32[$y]
  %4 = Tanh(%3) : f32[$y]
  return %4
})",
              {{"$s", test.symbols}, {"$a", test.a}, {"$b", b}, {"$y", test.y}, {"$t", transposed ? "true" : "false"}}),
          test.bindings);
    }
  }
}

// Each row by the matrix that it names, and batches of rows; indices from the end and outside.
TEST(Products, OfPickedWeights) {
  for (const auto& [x, w] :
       {std::pair("f32", "f32"), {"f32", "f16"}, {"f32", "bf16"}, {"bf16", "bf16"}, {"f64", "f64"}}) {
    for (const bool transposed : {false, true}) {
      for (const char* const rows : {"1", "11", "53"}) {
        ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : $x[$m, 37]
  %1 = Param() {name = "w"} : $w[5, $d]
  %2 = Input() {name = "i"} : i32[$m]
  %3 = GroupedMatMul(%0, %1, %2) {transpose_b = $t} : $x[$m, 67]
  %4 = Cast(%3) {to = f32} : f32[$m, 67]
  %5 = Tanh(%4) : f32[$m, 67]
  return %5
})",
                                        {{"$x", x},
                                         {"$w", w},
                                         {"$m", rows},
                                         {"$d", transposed ? "67, 37" : "37, 67"},
                                         {"$t", transposed ? "true" : "false"}}),
                    {{}});
      }
      ExpectRight(absl::StrReplaceAll(
                      R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : $x[S, 3, 13, 37]
  %1 = Input() {name = "w"} : $x[5, 3, $d]
  %2 = Input() {name = "i"} : i64[S]
  %3 = Gather(%1, %2) {axis = 0} : $x[S, 3, $d]
  %4 = MatMul(%0, %3) {transpose_b = $t} : $x[S, 3, 13, 67]
  return %4
})",
                      {{"$x", x}, {"$d", transposed ? "67, 37" : "37, 67"}, {"$t", transposed ? "true" : "false"}}),
                  {{{"S", 1}}, {{"S", 7}}});
    }
  }
}

// Rows of blocks that are picked are multiplied where they lie, few and many, batches of several rows too.
TEST(Products, OfPickedBlocks) {
  for (const char* const rows : {"11, 1", "11, 5", "1, 1", "2, 1", "1, 7", "53, 1", "2, 97"}) {
    for (const char* const format : {"q8_0", "q4_K"}) {
      ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[$r, 256]
  %1 = Param() {name = "w"} : $w[5, 37, 256]
  %2 = Input() {name = "i"} : i32[$b]
  %3 = Gather(%1, %2) {axis = 0} : f32[$b, 37, 256]
  %4 = MatMul(%0, %3) {transpose_b = true} : f32[$r, 37]
  return %4
})",
                                      {{"$r", rows}, {"$w", format}, {"$b", *absl::StrSplit(rows, ", ").begin()}}),
                  {{}});
    }
  }
}

// Rows that name their matrix, and runs of rows of any length, none and more than a tile's too, whatever the starts
// hold; two products that share them.
TEST(Products, OfRowsThatPickMatrices) {
  for (const char* const w : {"f32", "f16", "bf16", "q8_0", "q4_K"}) {
    for (const auto& [starts, by] : {std::pair("i32", "run"), {"i64", "run"}, {"i32", "row"}}) {
      ExpectRight(absl::StrReplaceAll(
                      R"(graph g sym S in 0..300 {
  %0 = Input() {name = "x"} : f32[S, 256]
  %1 = Param() {name = "w"} : $w[5, 37, 256]
  %2 = Param() {name = "v"} : $w[5, 67, 256]
  %3 = Input() {name = "starts"} : $i[$e]
  %4 = PickedMatMul(%0, %1, %3) {by = "$y"} : f32[S, 37]
  %5 = PickedMatMul(%0, %2, %3) {by = "$y"} : f32[S, 67]
  %6 = Silu(%5) : f32[S, 67]
  return %4, %6
})",
                      {{"$w", w}, {"$i", starts}, {"$e", std::string_view(by) == "row" ? "S" : "5"}, {"$y", by}}),
                  {{{"S", 0}}, {{"S", 1}}, {{"S", 7}}, {{"S", 97}}, {{"S", 300}}});
    }
  }
  // Quantised rows.
  for (const auto& [w, x] : {std::pair("q8_0", "q8_0"), {"q4_K", "q8_K"}, {"q6_K", "q8_K"}, {"iq4_nl", "q8_0"}}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[101, 512]
  %1 = Param() {name = "w"} : $w[3, 96, 512]
  %2 = Input() {name = "starts"} : i32[3]
  %3 = Quantize(%0) {format = $x} : $x[101, 512]
  %4 = PickedMatMul(%3, %1, %2) {by = "run"} : f32[101, 96]
  %5 = Input() {name = "each"} : i32[101]
  %6 = PickedMatMul(%3, %1, %5) : f32[101, 96]
  return %4, %6
})",
                                    {{"$w", w}, {"$x", x}}),
                {{}});
  }
}

// f32 beside bf16 that lies in both layouts, of few rows and of many.
TEST(Products, OfFloatsByBF16) {
  for (const char* const rows : {"1", "5", "8", "9", "101"}) {
    for (const bool transposed : {false, true}) {
      ExpectRight(absl::StrReplaceAll(
                      R"(graph g {
  %0 = Input() {name = "a"} : f32[$m, 67]
  %1 = Param() {name = "b"} : bf16[$b]
  %2 = MatMul(%0, %1) {transpose_b = $t} : f32[$m, 96]
  return %2
})",
                      {{"$m", rows}, {"$b", transposed ? "96, 67" : "67, 96"}, {"$t", transposed ? "true" : "false"}}),
                  {{}});
    }
  }
}

}  // namespace
}  // namespace quern
