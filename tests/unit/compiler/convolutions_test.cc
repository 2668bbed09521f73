// Convolutions, pools and contractions of any dimensions against the double interpreter: strides, dilations, groups,
// and pads that differ from side to side, with what is fused behind them, at sizes that are known at the run too.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

// [N, C, s..] as [N, s.., C].
std::string Last(const std::string& dims) {
  std::vector<std::string> parts = absl::StrSplit(dims, ", ");
  std::rotate(parts.begin() + 1, parts.begin() + 2, parts.end());
  return absl::StrJoin(parts, ", ");
}

std::string WithLast(const std::string& attributes) {
  return absl::StrCat(attributes, attributes.empty() ? "" : ", ", "channels_last = true");
}

// y = Silu(Conv(x, w, b) + r), and the convolution itself.
void ExpectConvAsGiven(const std::string& x, const std::string& w, const std::string& attributes, const std::string& y,
                       const std::string& type = "f32", const std::string& symbols = "",
                       const std::vector<Binding>& bindings = {{}}) {
  SCOPED_TRACE(absl::StrCat(x, " by ", w, " {", attributes, "}"));
  const std::string m = w.substr(0, w.find(','));
  ExpectRight(absl::StrReplaceAll(
                  R"(graph g$s {
  %0 = Input() {name = "x"} : $t[$x]
  %1 = Param() {name = "w"} : $t[$w]
  %2 = Param() {name = "b"} : $t[$m]
  %3 = Input() {name = "r"} : $t[$y]
  %4 = Conv(%0, %1, %2) {$a} : $t[$y]
  %5 = Add(%4, %3) : $t[$y]
  %6 = Silu(%5) : $t[$y]
  return %6, %4
})",
                  {{"$s", symbols}, {"$t", type}, {"$x", x}, {"$w", w}, {"$m", m}, {"$y", y}, {"$a", attributes}}),
              bindings);
}

// With channels first and last.
void ExpectConv(const std::string& x, const std::string& w, const std::string& attributes, const std::string& y,
                const std::string& type = "f32", const std::string& symbols = "",
                const std::vector<Binding>& bindings = {{}}) {
  ExpectConvAsGiven(x, w, attributes, y, type, symbols, bindings);
  ExpectConvAsGiven(Last(x), w, WithLast(attributes), Last(y), type, symbols, bindings);
}

TEST(Convolutions, OfTwoDimensions) {
  ExpectConv("2, 3, 11, 13", "17, 3, 3, 3", "", "2, 17, 9, 11");
  ExpectConv("2, 3, 11, 13", "17, 3, 3, 3", "pads = [1, 1, 1, 1]", "2, 17, 11, 13");
  ExpectConv("1, 5, 29, 31", "13, 5, 2, 4", "pads = [0, 1, 2, 3], strides = [2, 3]", "1, 13, 15, 11");
  ExpectConv("3, 7, 17, 19", "11, 7, 3, 2", "dilations = [3, 2], pads = [2, 0, 1, 4]", "3, 11, 14, 21");
  ExpectConv("2, 5, 7, 37", "9, 5, 1, 1", "", "2, 9, 7, 37");
  ExpectConv("2, 5, 7, 37", "9, 5, 1, 1", "strides = [2, 2]", "2, 9, 4, 19");
  ExpectConv("1, 131, 5, 5", "10, 131, 3, 3", "pads = [1, 1, 1, 1]", "1, 10, 5, 5");
  // Columns that fill the first of two panels, to the last.
  ExpectConv("2, 3, 8, 12", "17, 3, 3, 3", "pads = [1, 1, 1, 1]", "2, 17, 8, 12");
  // A column or a few behind whole vectors of them, in one block of k and in several.
  ExpectConv("2, 5, 7, 7", "17, 5, 3, 3", "pads = [1, 1, 1, 1]", "2, 17, 7, 7");
  ExpectConv("1, 131, 7, 7", "217, 131, 3, 3", "pads = [1, 1, 1, 1]", "1, 217, 7, 7");
  ExpectConv("1, 1100, 6, 6", "70, 1100, 1, 1", "", "1, 70, 6, 6");
  ExpectConv("1, 5, 6, 3", "9, 5, 3, 3", "pads = [1, 1, 1, 1]", "1, 9, 6, 3");
  ExpectConv("2, 7, 5, 10", "13, 7, 2, 3", "pads = [0, 1, 1, 1]", "2, 13, 5, 10");
  // Rows of a window that are a block of k each.
  ExpectConv("1, 3, 25, 26", "9, 3, 23, 23", "", "1, 9, 3, 4");
  // Rows long enough for parts that reach nowhere outside.
  ExpectConv("1, 3, 5, 79", "9, 3, 3, 3", "pads = [1, 1, 1, 1]", "1, 9, 5, 79");
  // Places that see padding alone.
  ExpectConv("1, 2, 3, 3", "9, 2, 1, 2", "pads = [2, 3, 2, 3], strides = [1, 2]", "1, 9, 7, 4");
}

// Windows that are copied and multiplied in blocks of k: parts of a row, rows of the kernel, of two lengths, for
// several blocks of rows and few, and products that share their image.
TEST(Convolutions, OfLongWindows) {
  ExpectConvAsGiven("2, 5, 7, 523", "5, 523, 1, 3", WithLast("pads = [0, 1, 0, 1]"), "2, 5, 7, 5");
  ExpectConvAsGiven("1, 6, 7, 67", "3, 67, 5, 5", WithLast("pads = [4, 4, 4, 4], dilations = [2, 2]"), "1, 6, 7, 3");
  ExpectConvAsGiven("1, 7, 7, 200", "3, 200, 3, 3", WithLast("pads = [1, 1, 1, 1], strides = [2, 2]"), "1, 4, 4, 3");
  ExpectConvAsGiven("1, 3, 3, 801", "33, 801, 2, 1", WithLast("pads = [1, 0, 0, 0]"), "1, 3, 3, 33");
  ExpectConvAsGiven("1, 3, 7, 257", "9, 257, 3, 7", WithLast("pads = [1, 6, 1, 0], strides = [3, 1]"), "1, 1, 7, 9");
  ExpectConvAsGiven("1, 31, 601", "3, 601, 3", WithLast(""), "1, 29, 3");
  ExpectConvAsGiven("B, S, 3, 523", "5, 523, 1, 3", WithLast("pads = [0, 1, 0, 1]"), "B, S, 3, 5", "f32",
                    " sym B in 1.., S in 1..", {{{"B", 1}, {"S", 2}}, {{"B", 3}, {"S", 11}}});
  // Weights that come with the run are packed block by block; of others there are panels.
  for (const char* const weights : {"Param", "Input"}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 3, 5, 523]
  %1 = $p() {name = "v"} : f32[64, 523, 1, 3]
  %2 = $p() {name = "w"} : f32[32, 523, 1, 3]
  %3 = Conv(%0, %1) {channels_last = true} : f32[1, 3, 3, 64]
  %4 = Conv(%0, %2) {channels_last = true} : f32[1, 3, 3, 32]
  %5 = Conv(%0, %2) {channels_last = true} : f32[1, 3, 3, 32]
  %6 = Mul(%4, %5) : f32[1, 3, 3, 32]
  return %3, %6
})",
                                    {{"$p", weights}}),
                {{}});
  }
}

// Windows that share the lines of their image: what is copied are lines, with rows of a place each, or of a whole run.
TEST(Convolutions, OfLines) {
  const auto expect = [](const std::string& x, const std::string& w, const std::string& attributes,
                         const std::string& y,
                         const std::string& type = "f32") { ExpectConvAsGiven(x, w, WithLast(attributes), y, type); };
  // Several blocks of lines, the last of them shorter; columns that no panel divides; images of a batch.
  expect("2, 37, 13, 65", "40, 65, 2, 3", "pads = [1, 1, 0, 1]", "2, 37, 13, 40");
  expect("2, 9, 10, 131", "65, 131, 3, 2", "pads = [2, 1, 0, 1]", "2, 9, 11, 65");
  expect("2, 7, 12, 67", "9, 67, 4, 2", "", "2, 4, 11, 9");
  expect("2, 7, 12, 67", "64, 67, 4, 2", "", "2, 4, 11, 64");  // two panels together
  for (const char* const type : {"f16", "bf16"})
    expect("1, 5, 11, 67", "9, 67, 3, 3", "pads = [1, 1, 1, 1]", "1, 5, 11, 9", type);
  // Lines so short that they are copied at levels with many registers alone.
  expect("2, 5, 7, 67", "9, 67, 3, 3", "pads = [1, 1, 1, 1]", "2, 5, 7, 9");
  expect("2, 5, 8, 67", "9, 67, 3, 3", "pads = [1, 1, 1, 1]", "2, 5, 8, 9");
  // Windows further apart than their places: parts of a row in the last tap, in either direction.
  expect("1, 11, 21, 67", "9, 67, 3, 3", "pads = [1, 1, 1, 1], strides = [2, 2]", "1, 6, 11, 9");
  expect("2, 4, 35, 67", "9, 67, 3, 5", "pads = [1, 2, 1, 0], strides = [1, 3]", "2, 4, 11, 9");
  expect("1, 16, 13, 65", "9, 65, 7, 3", "strides = [3, 1]", "1, 4, 11, 9");
  expect("1, 11, 13, 67", "9, 67, 1, 5", "strides = [2, 1]", "1, 6, 9, 9");
  // Lines of the image that are further apart.
  expect("1, 7, 9, 67", "9, 67, 3, 3", "pads = [2, 1, 2, 1], dilations = [2, 1]", "1, 7, 9, 9");
  // One line of results, of several of the image; no line.
  expect("2, 3, 37, 67", "9, 67, 3, 3", "pads = [0, 1, 0, 1]", "2, 1, 37, 9");
  expect("2, 67, 67", "9, 67, 5", "pads = [2, 2]", "2, 67, 9");
  expect("1, 901, 67", "9, 67, 4", "strides = [2]", "1, 449, 9");
  // Lines that are too long for a block.
  expect("1, 3, 101, 257", "9, 257, 3, 2", "pads = [1, 0, 1, 1]", "1, 3, 101, 9");
  expect("2, 2, 201, 257", "9, 257, 2, 3", "pads = [0, 1, 1, 1], strides = [1, 2]", "2, 2, 101, 9");
  // Rows of whole runs, where channels are few.
  expect("2, 5, 19, 17", "33, 17, 3, 3", "pads = [1, 1, 1, 1]", "2, 5, 19, 33");
  expect("1, 7, 21, 31", "9, 31, 5, 5", "pads = [2, 2, 2, 2], strides = [2, 2]", "1, 4, 11, 9");
  // Planes of three dimensions.
  expect("2, 2, 3, 11, 67", "9, 67, 3, 3, 3", "pads = [1, 1, 1, 1, 1, 1]", "2, 2, 3, 11, 9");
  expect("1, 7, 3, 13, 19", "9, 19, 2, 3, 3", "pads = [0, 1, 1, 1, 1, 1], strides = [2, 1, 1], dilations = [2, 1, 1]",
         "1, 3, 3, 13, 9");
  expect("1, 3, 4, 11, 67", "9, 67, 3, 3, 3", "pads = [1, 1, 1, 2, 1, 1]", "1, 4, 4, 11, 9");
  // Lines and planes that see padding alone, ahead and behind; steps that pass some of it.
  expect("2, 3, 11, 67", "9, 67, 2, 3", "pads = [3, 1, 4, 1]", "2, 9, 11, 9");
  expect("1, 5, 11, 67", "9, 67, 4, 3", "pads = [5, 1, 4, 1], strides = [3, 1]", "1, 4, 11, 9");
  expect("1, 4, 11, 67", "9, 67, 3, 3", "pads = [5, 1, 3, 1], dilations = [3, 1]", "1, 6, 11, 9");
  expect("1, 2, 3, 11, 67", "9, 67, 3, 1, 3", "pads = [3, 1, 1, 3, 0, 1]", "1, 6, 4, 11, 9");
  // More weights than the second cache keeps: in several blocks of lines, of one line of the kernel.
  expect("1, 3, 7, 457", "33, 457, 3, 3", "pads = [1, 1, 1, 1]", "1, 3, 7, 33");
  expect("1, 1, 60, 521", "9, 521, 2, 4", "pads = [0, 1, 1, 0]", "1, 1, 58, 9");
  expect("1, 4, 7, 457", "33, 457, 3, 3", "pads = [3, 1, 2, 1], strides = [2, 1]", "1, 4, 7, 33");
  expect("1, 5, 7, 457", "33, 457, 3, 3", "pads = [2, 1, 2, 1], dilations = [2, 1]", "1, 5, 7, 33");
  expect("1, 67, 521", "9, 521, 8", "", "1, 60, 9");
  // Products that share them, side by side and in one result.
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 5, 13, 67]
  %1 = Param() {name = "v"} : f32[64, 67, 3, 3]
  %2 = Param() {name = "w"} : f32[32, 67, 3, 3]
  %3 = Param() {name = "u"} : f32[32, 67, 3, 3]
  %4 = Conv(%0, %1) {channels_last = true} : f32[2, 3, 11, 64]
  %5 = Conv(%0, %2) {channels_last = true} : f32[2, 3, 11, 32]
  %6 = Conv(%0, %3) {channels_last = true} : f32[2, 3, 11, 32]
  %7 = Mul(%5, %6) : f32[2, 3, 11, 32]
  return %4, %7
})",
              {{}});
  // Padding that is not 0.
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 13, 737]
  %1 = Param() {name = "w"} : f32[33, 536]
  %2 = Window(%0) {kernel = [4, 134], strides = [1, 67], pads = [2, 0, 1, 0], value = 3.0} : f32[1, 4, 134, 13, 10]
  %3 = Transpose(%2) {perm = [0, 3, 4, 1, 2]} : f32[1, 13, 10, 4, 134]
  %4 = Reshape(%3) {shape = <130, 536>} : f32[130, 536]
  %5 = MatMul(%4, %1) {transpose_b = true} : f32[130, 33]
  return %5
})",
              {{}});
  // Axes that are as long as each other, the other way round.
  for (const char* const perm : {"0, 3, 4, 1, 2", "0, 4, 3, 1, 2"}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 13, 737]
  %1 = Param() {name = "w"} : f32[33, 536]
  %2 = Window(%0) {kernel = [4, 134], strides = [1, 67]} : f32[1, 4, 134, 10, 10]
  %3 = Transpose(%2) {perm = [$perm]} : f32[1, 10, 10, 4, 134]
  %4 = Reshape(%3) {shape = <100, 536>} : f32[100, 536]
  %5 = MatMul(%4, %1) {transpose_b = true} : f32[100, 33]
  return %5
})",
                                    {{"$perm", perm}}),
                {{}});
  }
}

// Rows of windows whose products are quantised for the next one: in chunks of columns that are all there.
TEST(Convolutions, ThatAreQuantised) {
  for (const char* const channels : {"60", "180"}) {
    ExpectRight(
        absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 10, 7 * $c]
  %1 = Param() {name = "w"} : f32[160, 9 * $c]
  %2 = Window(%0) {dilations = [1, 1], $k, value = 0.0} : f32[1, 3, 3 * $c, 10, 7]
  %3 = Transpose(%2) {perm = [0, 3, 4, 1, 2]} : f32[1, 10, 7, 3, 3 * $c]
  %4 = Reshape(%3) {shape = <70, 9 * $c>} : f32[70, 9 * $c]
  %5 = MatMul(%4, %1) {transpose_b = true} : f32[70, 160]
  %6 = Param() {name = "v"} : q8_0[33, 160]
  %7 = MatMul(%5, %6) {transpose_b = true} : f32[70, 33]
  return %7
})",
                            {{"$k", absl::StrCat("kernel = [3, ", 3 * std::stoi(channels), "], pads = [1, ", channels,
                                                 ", 1, ", channels, "], strides = [1, ", channels, "]")},
                             {"3 * $c", absl::StrCat(3 * std::stoi(channels))},
                             {"9 * $c", absl::StrCat(9 * std::stoi(channels))},
                             {"7 * $c", absl::StrCat(7 * std::stoi(channels))},
                             {"$c", channels}}),
        {{}});
  }
}

// Of bytes, with padding that is a number: windows of whole words and not, in one piece and in blocks of k, points,
// groups, a channel by itself, and those of any signs.
TEST(Convolutions, OfBytes) {
  struct Case {
    const char *x, *w, *attributes, *y;
  };
  const Case cases[] = {
      {"2, 5, 9, 11", "37, 5, 3, 3", "pads = [1, 1, 1, 1]", "2, 37, 9, 11"},
      {"1, 64, 13, 8", "33, 64, 3, 2", "pads = [1, 0, 1, 1], strides = [2, 1]", "1, 33, 7, 8"},
      {"2, 33, 7, 9", "65, 33, 1, 1", "", "2, 65, 7, 9"},
      {"1, 1031, 5, 4", "40, 1031, 3, 3", "pads = [1, 1, 1, 1]", "1, 40, 5, 4"},
      {"1, 12, 8, 7", "8, 3, 3, 3", "groups = 4, pads = [1, 1, 1, 1]", "1, 8, 8, 7"},
      {"1, 35, 12, 11", "35, 1, 3, 3", "groups = 35, pads = [1, 1, 1, 1]", "1, 35, 12, 11"},
      {"1, 3, 31, 29", "3, 1, 17, 17", "groups = 3, pads = [8, 8, 8, 8]", "1, 3, 31, 29"},
      {"2, 18, 57", "33, 18, 5", "dilations = [2], pads = [4, 3]", "2, 33, 56"},
      {"1, 4, 5, 6, 7", "9, 4, 2, 3, 2", "pads = [0, 1, 1, 1, 1, 0]", "1, 9, 5, 6, 7"},
  };
  for (const Case& test : cases) {
    for (const auto& [x_type, w_type, fill] :
         {std::tuple("u8", "i8", "128.0"), std::tuple("i8", "i8", "-7.0"), std::tuple("u8", "u8", "0.0")}) {
      for (const bool last : {false, true}) {
        const std::string attributes =
            absl::StrCat(test.attributes, *test.attributes == 0 ? "" : ", ", "fill = ", fill);
        ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : $1[$x]
  %1 = Param() {name = "w"} : $2[$w]
  %2 = Conv(%0, %1) {$a} : i32[$y]
  %3 = Cast(%2) {to = f32} : f32[$y]
  return %3, %2
})",
                                        {{"$1", x_type},
                                         {"$2", w_type},
                                         {"$x", last ? Last(test.x) : test.x},
                                         {"$w", test.w},
                                         {"$y", last ? Last(test.y) : test.y},
                                         {"$a", last ? WithLast(attributes) : attributes}}),
                    {{}});
      }
    }
  }
}

// The image is read as rows too, and a product of windows shares its region with nothing that does.
TEST(Convolutions, OfAnImageThatOthersReadToo) {
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 9, 7, 37]
  %1 = Param() {name = "w"} : f32[37, 37, 3, 3]
  %2 = Param() {name = "b"} : f32[37]
  %3 = Conv(%0, %1, %2) {pads = [1, 1, 1, 1], channels_last = true} : f32[2, 9, 7, 37]
  %4 = Add(%3, %0) : f32[2, 9, 7, 37]
  %5 = Relu(%4) : f32[2, 9, 7, 37]
  %6 = Conv(%5, %1) {pads = [1, 1, 1, 1], channels_last = true} : f32[2, 9, 7, 37]
  return %5, %6
})",
              {{}});
}

// The image is a residual, and windows are those of two convolutions and of a pool.
TEST(Convolutions, OfAnImageThatIsAResidual) {
  for (const char* const groups : {"1", "4", "12"}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 12, 9, 19]
  %1 = Param() {name = "w"} : f32[12, $k, 3, 3]
  %2 = Param() {name = "v"} : f32[12, $k, 3, 3]
  %3 = Conv(%0, %1) {groups = $g, pads = [1, 1, 1, 1]} : f32[2, 12, 9, 19]
  %4 = Add(%3, %0) : f32[2, 12, 9, 19]
  %5 = Conv(%0, %2) {groups = $g, pads = [1, 1, 1, 1]} : f32[2, 12, 9, 19]
  %6 = Mul(%4, %5) : f32[2, 12, 9, 19]
  %7 = Pool(%0) {kind = "mean", kernel = [3, 3], pads = [1, 1, 1, 1]} : f32[2, 12, 9, 19]
  %8 = Add(%6, %7) : f32[2, 12, 9, 19]
  return %8
})",
                                    {{"$g", groups}, {"$k", std::to_string(12 / std::stoi(groups))}}),
                {{}});
  }
}

// Two of one image share its rows; a product of what is turned has none of them.
TEST(Convolutions, OfOneImage) {
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 9, 7, 5]
  %1 = Param() {name = "v"} : f32[64, 5, 3, 3]
  %2 = Param() {name = "w"} : f32[32, 5, 3, 3]
  %3 = Conv(%0, %1) {pads = [1, 1, 1, 1], channels_last = true} : f32[2, 9, 7, 64]
  %4 = Conv(%0, %2) {pads = [1, 1, 1, 1], channels_last = true} : f32[2, 9, 7, 32]
  return %3, %4
})",
              {{}});
  ExpectRight(R"(graph g {
  %0 = Input() {name = "x"} : f32[4, 7]
  %1 = Transpose(%0) {perm = [1, 0]} : f32[7, 4]
  %2 = Param() {name = "v"} : f32[4, 32]
  %3 = Param() {name = "w"} : f32[4, 32]
  %4 = MatMul(%1, %2) {transpose_b = false} : f32[7, 32]
  %5 = MatMul(%1, %3) {transpose_b = false} : f32[7, 32]
  return %4, %5
})",
              {{}});
}

// Of weights that come with the run, and of an image that is computed right before.
TEST(Convolutions, OfInputs) {
  for (const char* const rows : {"9, 7", "2, 3"}) {
    ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, $s, 5]
  %1 = Input() {name = "w"} : f32[41, 5, 3, 3]
  %2 = Silu(%0) : f32[1, $s, 5]
  %3 = Conv(%2, %1) {pads = [1, 1, 1, 1], channels_last = true} : f32[1, $s, 41]
  return %3
})",
                                    {{"$s", rows}}),
                {{}});
  }
}

TEST(Convolutions, OfGroups) {
  ExpectConv("2, 6, 9, 10", "33, 2, 3, 3", "groups = 3, pads = [1, 1, 1, 1]", "2, 33, 9, 10");
  ExpectConv("2, 13, 23, 21", "13, 1, 3, 3", "groups = 13, pads = [1, 1, 1, 1]", "2, 13, 23, 21");
  ExpectConv("1, 5, 23, 37", "10, 1, 5, 5", "groups = 5, pads = [2, 2, 2, 2], strides = [2, 2]", "1, 10, 12, 19");
  ExpectConv("2, 3, 7, 111", "3, 1, 3, 3", "groups = 3, pads = [1, 1, 1, 1]", "2, 3, 7, 111");
  ExpectConv("1, 3, 9, 131", "3, 1, 3, 5", "groups = 3, pads = [1, 3, 0, 2], strides = [1, 2]", "1, 3, 8, 66");
  ExpectConv("1, 4, 9, 9", "8, 2, 7, 7", "groups = 2, pads = [3, 3, 3, 3]", "1, 8, 9, 9");
  // Lines that are computed together, four, three and two at a time, and those that are not.
  ExpectConv("2, 3, 12, 19", "3, 1, 3, 3", "groups = 3, pads = [1, 1, 1, 1]", "2, 3, 12, 19");
  ExpectConv("1, 2, 15, 37", "4, 1, 5, 3", "groups = 2, pads = [2, 1, 2, 1], dilations = [1, 2]", "1, 4, 15, 35");
  ExpectConv("1, 3, 14, 21", "3, 1, 7, 7", "groups = 3, pads = [2, 3, 4, 3]", "1, 3, 14, 21");
  ExpectConv("1, 3, 12, 21", "3, 1, 3, 3", "groups = 3, pads = [2, 1, 2, 1], dilations = [2, 1]", "1, 3, 12, 21");
  ExpectConv("1, 6, 8, 29", "3, 2, 3, 3", "groups = 3, pads = [1, 1, 1, 1]", "1, 3, 8, 29", "f64");
  ExpectConv("1, 3, 12, W", "3, 1, 3, 3", "groups = 3, pads = [1, 1, 1, 1]", "1, 3, 12, W", "f32", " sym W in 2..70",
             {{{"W", 2}}, {{"W", 37}}});
  // Lines of several chunks; kernels whose lines are written out, and whose taps are not.
  ExpectConv("1, 3, 57, 61", "3, 1, 5, 5", "groups = 3, pads = [2, 2, 2, 2]", "1, 3, 57, 61");
  ExpectConv("1, 3, 31, 53", "6, 1, 7, 7", "groups = 3, pads = [3, 3, 3, 3]", "1, 6, 31, 53");
  ExpectConv("1, 2, 29, 33", "2, 1, 11, 13", "groups = 2, pads = [5, 6, 5, 6]", "1, 2, 29, 33");
  ExpectConv("1, 2, 5, 83", "2, 1, 1, 67", "groups = 2, pads = [0, 33, 0, 33]", "1, 2, 5, 83");
}

// One channel a group, by rows: those of places in the middle read without looking, and windows beside each other share
// their loads where they are two elements apart. Rows around the lengths of vectors and their halves.
TEST(Convolutions, OfEachChannel) {
  const auto expect = [](int height, int width, int kernel, int stride, int dilation, std::array<int, 4> pads,
                         const char* type = "f32") {
    const auto places = [&](int size, int low, int high) {
      return (size + low + high - dilation * (kernel - 1) - 1) / stride + 1;
    };
    ExpectConvAsGiven(
        absl::StrFormat("2, 3, %d, %d", height, width), absl::StrFormat("3, 1, %d, %d", kernel, kernel),
        absl::StrFormat("groups = 3, pads = [%s], strides = [%d, %d], dilations = [%d, %d]", absl::StrJoin(pads, ", "),
                        stride, stride, dilation, dilation),
        absl::StrFormat("2, 3, %d, %d", places(height, pads[0], pads[2]), places(width, pads[1], pads[3])), type);
  };
  for (const int width : {1, 6, 7, 13, 14, 15, 16, 17, 31, 32, 33, 56, 63, 65}) expect(5, width, 3, 2, 1, {1, 1, 1, 1});
  for (const int width : {3, 7, 8, 9, 16, 23, 37}) expect(7, width, 3, 1, 1, {1, 1, 1, 1});
  for (const int width : {14, 37, 67}) {
    expect(9, width, 3, 2, 1, {0, 0, 1, 1});  // as frameworks pad that count from the end
    expect(9, width, 3, 2, 1, {2, 3, 0, 1});
    expect(9, width, 3, 2, 2, {2, 2, 2, 2});
    expect(9, width, 3, 3, 1, {1, 1, 1, 1});
    expect(9, width, 5, 2, 1, {2, 2, 2, 2});
    expect(9, width, 2, 2, 1, {0, 0, 0, 0});
  }
  for (const char* const type : {"f16", "bf16", "f64"}) {
    expect(7, 29, 3, 2, 1, {1, 1, 1, 1}, type);
    expect(7, 14, 3, 2, 1, {0, 1, 1, 0}, type);
  }
  // More rows than a chunk has.
  expect(131, 133, 3, 2, 1, {1, 1, 1, 1});
  expect(83, 97, 3, 1, 1, {1, 1, 1, 1});
  // Two channels a group, two results of each, a line, and rows in three dimensions.
  ExpectConv("2, 6, 9, 29", "3, 2, 3, 3", "groups = 3, pads = [1, 1, 1, 1], strides = [2, 2]", "2, 3, 5, 15");
  ExpectConv("1, 3, 9, 29", "6, 1, 3, 3", "groups = 3, pads = [1, 1, 1, 1], strides = [2, 2]", "1, 6, 5, 15");
  ExpectConv("2, 3, 101", "3, 1, 5", "groups = 3, pads = [2, 2], strides = [2]", "2, 3, 51");
  ExpectConv("1, 3, 5, 7, 15", "3, 1, 3, 3, 3", "groups = 3, pads = [1, 1, 1, 1, 1, 1], strides = [2, 2, 2]",
             "1, 3, 3, 4, 8");
  // Lines of planes, some at a time: as many as divide them, planes ahead of the image and behind it, flat kernels.
  for (const char* const type : {"f32", "f64"}) {
    ExpectConv("2, 3, 5, 8, 15", "3, 1, 3, 3, 3", "groups = 3, pads = [1, 1, 1, 1, 1, 1]", "2, 3, 5, 8, 15", type);
    ExpectConv("1, 3, 5, 9, 37", "3, 1, 3, 2, 3", "groups = 3, pads = [3, 1, 1, 2, 0, 1]", "1, 3, 8, 9, 37", type);
  }
  ExpectConv("1, 3, 5, 8, 15", "3, 1, 1, 3, 3", "groups = 3, pads = [0, 1, 1, 0, 1, 1]", "1, 3, 5, 8, 15");
  ExpectConv("1, 3, 5, 8, 15", "3, 1, 3, 3, 1", "groups = 3, pads = [1, 1, 0, 1, 1, 0]", "1, 3, 5, 8, 15");
  ExpectConv("1, 3, 3, 8, 15", "3, 1, 3, 3, 3", "groups = 3, pads = [0, 1, 1, 0, 1, 1]", "1, 3, 1, 8, 15");
  ExpectConv("1, 3, 5, 9, 15", "3, 1, 3, 3, 3",
             "groups = 3, pads = [1, 1, 1, 1, 1, 1], strides = [1, 2, 1], dilations = [2, 1, 1]", "1, 3, 3, 5, 15");
  // Sizes that are known at the run.
  ExpectConv("1, 3, H, 15", "3, 1, 3, 3", "groups = 3, pads = [1, 1, 1, 1], strides = [2, 2]",
             "1, 3, floor((H - 1) / 2) + 1, 8", "f32", " sym H in 1..", {{{"H", 1}}, {{"H", 2}}, {{"H", 37}}});
  ExpectConv("B, 3, 9, W", "3, 1, 3, 3", "groups = 3, pads = [1, 1, 1, 1], strides = [2, 2]",
             "B, 3, 5, floor((W - 1) / 2) + 1", "f32", " sym B in 1.., W in 1..",
             {{{"B", 1}, {"W", 1}}, {{"B", 2}, {"W", 14}}, {{"B", 3}, {"W", 67}}});
}

TEST(Convolutions, OfOneAndThreeDimensions) {
  ExpectConv("2, 17, 101", "23, 17, 3", "pads = [1, 1], strides = [2]", "2, 23, 51");
  ExpectConv("1, 1, 400", "11, 1, 10", "strides = [5]", "1, 11, 79");
  ExpectConv("1, 600, 37", "9, 600, 3", "pads = [2, 0]", "1, 9, 37");
  ExpectConv("2, 3, 5, 7, 11", "13, 3, 2, 3, 3", "pads = [1, 1, 1, 0, 1, 1]", "2, 13, 5, 7, 11");
  ExpectConv("1, 2, 6, 9, 7", "9, 2, 3, 3, 3", "strides = [2, 1, 2], dilations = [1, 2, 1]", "1, 9, 2, 5, 3");
}

TEST(Convolutions, OfOtherTypes) {
  for (const char* const type : {"f16", "bf16", "f64"}) {
    ExpectConv("2, 3, 11, 13", "17, 3, 3, 3", "pads = [1, 1, 1, 1]", "2, 17, 11, 13", type);
    ExpectConv("2, 13, 11, 13", "13, 1, 3, 3", "groups = 13, pads = [1, 1, 1, 1]", "2, 13, 11, 13", type);
    ExpectConv("2, 67, 7, 7", "37, 67, 3, 3", "pads = [1, 1, 1, 1], strides = [2, 1]", "2, 37, 4, 7", type);
    ExpectConv("1, 12, 29", "18, 6, 3", "groups = 2, pads = [1, 1]", "1, 18, 29", type);
  }
}

TEST(Convolutions, OfSizesKnownAtTheRun) {
  const std::vector<Binding> sizes = {{{"N", 1}, {"S", 3}}, {{"N", 2}, {"S", 8}}, {{"N", 3}, {"S", 37}}};
  ExpectConv("N, 3, S, S + 2", "17, 3, 3, 3", "pads = [1, 1, 1, 1]", "N, 17, S, S + 2", "f32",
             " sym N in 1..4, S in 3..64", sizes);
  ExpectConv("N, 3, S", "17, 3, 4", "pads = [1, 2], strides = [2]", "N, 17, floor((S + 1) / 2)", "f32",
             " sym N in 1..4, S in 3..64", sizes);
  // An image of more rows than the windows read, with halves on the way.
  ExpectConv("1, 10, S + 12, 11", "18, 5, 4, 1", "groups = 2, strides = [2, 2]", "1, 18, ceil((S + 1) / 2) + 4, 6",
             "bf16", " sym S in 1..32", {{{"S", 1}}, {{"S", 2}}, {{"S", 31}}});
  // Of sizes that it may have, an arena that is as large as the run's.
  ExpectConv("B, 2, S + 32", "8, 2, 64", "", "B, 8, S - 31", "f32", " sym B in 1..4, S in 1..1048576",
             {{{"B", 1}, {"S", 32}}, {{"B", 3}, {"S", 101}}});
}

// `op` of x alone, or of x and a parameter w.
void ExpectOp(const std::string& op, const std::string& x, const std::string& w, const std::string& attributes,
              const std::string& y, const std::string& type = "f32", const std::string& symbols = "",
              const std::vector<Binding>& bindings = {{}}) {
  SCOPED_TRACE(absl::StrCat(op, " ", x, " by ", w, " {", attributes, "}"));
  ExpectRight(absl::StrReplaceAll(
                  w.empty() ? R"(graph g$s {
  %0 = Input() {name = "x"} : $t[$x]
  %1 = $o(%0) {$a} : $t[$y]
  %2 = Abs(%1) : $t[$y]
  return %2
})"
                            : R"(graph g$s {
  %0 = Input() {name = "x"} : $t[$x]
  %1 = Input() {name = "w"} : $t[$w]
  %2 = $o(%0, %1) {$a} : $t[$y]
  %3 = Abs(%2) : $t[$y]
  return %3
})",
                  {{"$s", symbols}, {"$t", type}, {"$o", op}, {"$x", x}, {"$w", w}, {"$y", y}, {"$a", attributes}}),
              bindings);
}

TEST(Convolutions, Transposed) {
  const auto expect = [](const std::string& x, const std::string& w, const std::string& attributes,
                         const std::string& y) { ExpectOp("ConvTranspose", x, w, attributes, y); };
  expect("2, 3, 5, 7", "3, 11, 3, 3", "", "2, 11, 7, 9");
  expect("2, 3, 5, 7", "3, 11, 2, 2", "strides = [2, 2]", "2, 11, 10, 14");
  expect("1, 4, 7, 5", "4, 9, 4, 3", "strides = [2, 3], pads = [1, 0, 2, 1], output_padding = [1, 2]", "1, 9, 14, 16");
  expect("1, 6, 9, 8", "6, 5, 3, 4", "groups = 3, strides = [2, 2], pads = [1, 1, 1, 2]", "1, 15, 17, 15");
  expect("2, 3, 6, 5", "3, 4, 3, 2", "dilations = [2, 3], pads = [1, 2, 3, 1]", "2, 4, 6, 5");
  expect("1, 3, 6, 5", "3, 4, 3, 2", "dilations = [2, 3], strides = [3, 2], pads = [1, 2, 3, 1]", "1, 4, 16, 9");
  expect("1, 3, 5", "3, 9, 2", "strides = [4], output_padding = [3]", "1, 9, 21");
  expect("1, 2, 3, 4, 5", "2, 3, 2, 3, 2", "strides = [2, 1, 2], pads = [0, 1, 1, 1, 1, 0]", "1, 3, 5, 4, 9");
  // Small images, whose results by what the stride leaves are a convolution each.
  expect("2, 3, 5, 7", "3, 11, 4, 4", "strides = [2, 2], pads = [1, 1, 1, 1]", "2, 11, 10, 14");
  expect("1, 3, 5, 7", "3, 11, 3, 4", "strides = [2, 3], pads = [1, 0, 0, 1]", "1, 11, 10, 21");
  expect("1, 3, 4, 5", "3, 11, 5, 3", "strides = [2, 1], pads = [2, 1, 2, 1], output_padding = [1, 0]", "1, 11, 8, 5");
  expect("2, 3, 7", "3, 9, 9", "strides = [3], pads = [2, 4]", "2, 9, 21");
  expect("1, 3, 3, 2, 4", "3, 5, 4, 4, 4", "strides = [2, 2, 2], pads = [1, 1, 1, 1, 1, 1]", "1, 5, 6, 4, 8");
  expect("1, 3, 5, 7", "3, 11, 4, 4", "strides = [2, 2], pads = [1, 1, 0, 1]", "1, 11, 11, 14");
  ExpectOp("ConvTranspose", "2, 3, 5, 7", "3, 11, 4, 4", "strides = [2, 2], pads = [1, 1, 1, 1]", "2, 11, 10, 14",
           "f16");
  // More padding than the kernel reaches.
  expect("1, 3, 17", "3, 9, 3", "pads = [4, 3]", "1, 9, 12");
  ExpectOp("ConvTranspose", "N, 3, S", "3, 9, 5", "strides = [2], pads = [1, 2]", "N, 9, 2*S", "f32",
           " sym N in 1..3, S in 1..99", {{{"N", 1}, {"S", 1}}, {{"N", 2}, {"S", 37}}});
  // Sums of nothing.
  ExpectOp("Conv", "1, 5, 7, 0", "3, 0, 2, 2", "channels_last = true", "1, 4, 6, 3");
  ExpectOp("ConvTranspose", "1, 0, S", "0, 3, 5", "groups = 2, strides = [3], pads = [1, 2], output_padding = [1]",
           "1, 6, 3*S", "f32", " sym S in 1..9", {{{"S", 1}}, {{"S", 7}}});
  ExpectOp("ConvTranspose", "2, 3, 5, 7", "3, 11, 2, 3", "strides = [2, 2]", "2, 11, 10, 15", "f16");
}

TEST(Convolutions, Pools) {
  for (const char* const kind : {"kind = \"max\"", "kind = \"mean\"", "kind = \"mean\", count_include_pad = true"}) {
    const auto expect = [&](const std::string& x, const std::string& attributes, const std::string& y) {
      ExpectOp("Pool", x, "", absl::StrCat(kind, ", ", attributes), y);
      ExpectOp("Pool", Last(x), "", WithLast(absl::StrCat(kind, ", ", attributes)), Last(y));
    };
    expect("2, 3, 11, 13", "kernel = [2, 2], strides = [2, 2]", "2, 3, 5, 6");
    expect("2, 3, 11, 13", "kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]", "2, 3, 6, 7");
    expect("1, 2, 10, 9", "kernel = [3, 2], strides = [2, 3], pads = [1, 0, 2, 1], ceil = true", "1, 2, 6, 3");
    expect("1, 2, 7, 7", "kernel = [7, 7]", "1, 2, 1, 1");
    expect("1, 2, 21, 61", "kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]", "1, 2, 11, 31");
    // Dimensions one after the other.
    expect("2, 3, 17, 19", "kernel = [5, 7], pads = [1, 3, 2, 4]", "2, 3, 16, 20");
    expect("1, 2, 31, 23", "kernel = [9, 11], strides = [2, 1], pads = [4, 0, 3, 5], dilations = [1, 2], ceil = true",
           "1, 2, 16, 8");
    expect("1, 2, 11, 13, 7", "kernel = [5, 3, 5], pads = [2, 1, 0, 1, 1, 3]", "1, 2, 10, 13, 6");
    expect("1, 5, 37", "kernel = [5], dilations = [2], pads = [3, 4]", "1, 5, 36");
    expect("1, 2, 5, 6, 7", "kernel = [2, 3, 2], pads = [1, 1, 0, 0, 1, 1]", "1, 2, 5, 6, 7");
    ExpectOp("Pool", "N, 3, S, S", "", absl::StrCat(kind, ", kernel = [3, 3], pads = [1, 1, 1, 1]"), "N, 3, S, S",
             "f32", " sym N in 1..3, S in 2..40", {{{"N", 1}, {"S", 2}}, {{"N", 3}, {"S", 19}}});
  }
}

TEST(Convolutions, ContractionsOfAnyDimensions) {
  const auto expect = [](const std::string& a, const std::string& b, const std::string& attributes,
                         const std::string& y) { ExpectOp("DotGeneral", a, b, attributes, y); };
  expect("13, 17", "17, 11", "lhs_contract = [1], rhs_contract = [0]", "13, 11");
  expect("13, 17", "11, 17", "lhs_contract = [1], rhs_contract = [1]", "13, 11");
  expect("17, 13", "11, 17", "lhs_contract = [0], rhs_contract = [1]", "13, 11");
  expect("2, 37, 3, 7", "2, 31, 3, 7", "lhs_contract = [3], rhs_contract = [3], lhs_batch = [0, 2], rhs_batch = [0, 2]",
         "2, 3, 37, 31");
  expect("5, 3, 2, 7", "7, 2, 5, 11", "lhs_contract = [0, 3], rhs_contract = [2, 0], lhs_batch = [2], rhs_batch = [1]",
         "2, 3, 11");
  expect("5, 3", "4, 7", "", "5, 3, 4, 7");
  expect("5, 3", "5, 3", "lhs_contract = [0, 1], rhs_contract = [0, 1]", "");
  expect("5, 3", "5, 3", "lhs_batch = [1, 0], rhs_batch = [1, 0]", "3, 5");
  expect("3, 0", "0, 4", "lhs_contract = [1], rhs_contract = [0]", "3, 4");
}

}  // namespace
}  // namespace quern
