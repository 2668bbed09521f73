// Which images are turned, as text in and text out.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "opt/passes.h"

namespace quern::opt {
namespace {

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// The graph after the pass; it verifies, and has the outputs that it had.
std::string After(const std::string& text, FusionReport* report = nullptr) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return "";
  const StatusOr<ir::Graph> turned = ChannelsLast(*graph, {}, report);
  EXPECT_TRUE(turned.ok()) << turned.status();
  if (!turned.ok()) return "";
  EXPECT_TRUE(ir::Verify(*turned).ok()) << ir::Verify(*turned);
  for (size_t o = 0; o < graph->outputs.size(); ++o)
    EXPECT_EQ(turned->type(turned->outputs[o]).dims, graph->type(graph->outputs[o]).dims);
  return ir::Print(*turned);
}

// Three convolutions, with what is between them, whose last result goes through `end`.
std::string Three(const std::string& middle, const std::string& end) {
  return absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 17, 9, 11]
  %1 = Param() {name = "w"} : f32[17, 17, 3, 3]
  %2 = Param() {name = "b"} : f32[17]
  %3 = Param() {name = "s"} : f32[17, 1, 1]
  %4 = Conv(%0, %1, %2) {pads = [1, 1, 1, 1]} : f32[2, 17, 9, 11]
  %5 = $m : f32[2, 17, 9, 11]
  %6 = Conv(%5, %1, %2) {pads = [1, 1, 1, 1]} : f32[2, 17, 9, 11]
  %7 = Add(%6, %4) : f32[2, 17, 9, 11]
  %8 = Conv(%7, %1) {pads = [1, 1, 1, 1]} : f32[2, 17, 9, 11]
  %9 = $e
  return %9
})",
                             {{"$m", middle}, {"$e", end}});
}

TEST(ChannelsLast, OfImagesThatConvolutionsShare) {
  FusionReport report;
  const std::string text = After(Three("Mul(%4, %3)", "Relu(%8) : f32[2, 17, 9, 11]"), &report);
  EXPECT_EQ(Count(text, "channels_last = true"), 3) << text;
  EXPECT_EQ(Count(text, "Transpose("), 2) << text;               // the image that comes in, and the one that goes out
  EXPECT_EQ(Count(text, "{shape = <1, 1, 1, 17>}"), 1) << text;  // a factor by channel
  EXPECT_EQ(report.ToString(), "layout: 3 of 3 convolutions with channels last, 2 images turned\n");
}

TEST(ChannelsLast, ToTheEndOfWhatIsAnImage) {
  const std::string text = After(Three("Silu(%4)", R"(Reduce(%8) {axes = [2, 3], op = "mean"} : f32[2, 17])"));
  EXPECT_EQ(Count(text, "Transpose("), 1) << text;
  EXPECT_EQ(Count(text, "axes = [1, 2]"), 1) << text;
  // One axis of an image is left in another order.
  const std::string part = After(Three("Silu(%4)", R"(Reduce(%8) {axes = [3], op = "mean"} : f32[2, 17, 9])"));
  EXPECT_EQ(Count(part, "Transpose("), 2) << part;
  EXPECT_EQ(Count(part, "axes = [3]"), 1) << part;
}

TEST(ChannelsLast, ThroughJoinsAndPools) {
  const std::string pooled =
      After(Three(R"(Pool(%4) {kind = "max", kernel = [3, 3], pads = [1, 1, 1, 1]})", "Relu(%8) : f32[2, 17, 9, 11]"));
  EXPECT_EQ(Count(pooled, "channels_last = true"), 4) << pooled;
  EXPECT_EQ(Count(pooled, "Transpose("), 2) << pooled;
  const std::string joined = After(Three("Silu(%4)", "Concat(%8, %0, %4) {axis = 1} : f32[2, 51, 9, 11]"));
  EXPECT_EQ(Count(joined, "axis = 3"), 1) << joined;
  EXPECT_EQ(Count(joined, "Transpose("), 2) << joined;
  // Parts of images: of channels, of places.
  const std::string narrow =
      After(Three("Silu(%4)", "Narrow(%8) {axis = 1, start = <3>, length = <7>} : f32[2, 7, 9, 11]"));
  EXPECT_EQ(Count(narrow, "axis = 3"), 1) << narrow;
  EXPECT_EQ(Count(narrow, "Transpose("), 2) << narrow;
  const std::string slice = After(
      Three("Silu(%4)", "Slice(%8) {axis = [-3, 3], start = <1, 2>, stop = <17, 9>, step = [2, 3]} : f32[2, 8, 9, 3]"));
  EXPECT_EQ(Count(slice, "axis = [3, 2]"), 1) << slice;
  EXPECT_EQ(Count(slice, "Transpose("), 2) << slice;
}

// One convolution of f32[$x] by f32[$w], which gives f32[$y], after the pass.
std::string One(const std::string& x, const std::string& w, const std::string& y, const std::string& symbols = "",
                const std::string& more = "") {
  const bool solid = Count(w, ",") == 4;
  return After(absl::StrReplaceAll(
      R"(graph g$s {
  %0 = Input() {name = "x"} : f32[$x]
  %1 = Param() {name = "w"} : f32[$w]
  %2 = Conv(%0, %1) {pads = [$p]$a} : f32[$y]
  return %2
})",
      {{"$s", symbols},
       {"$a", more},
       {"$x", x},
       {"$w", w},
       {"$y", y},
       {"$p", solid ? "1, 1, 1, 1, 1, 1" : "1, 1, 1, 1"}}));
}

TEST(ChannelsLast, OfOneWithMoreWeightsThanImage) {
  const std::string text = One("1, 67, 7, 5", "71, 67, 3, 3", "1, 71, 7, 5");
  EXPECT_EQ(Count(text, "channels_last = true"), 1) << text;
  EXPECT_EQ(Count(text, "Transpose("), 2) << text;
  for (const std::string& kept :
       {One("1, 67, 17, 19", "71, 67, 3, 3", "1, 71, 17, 19"), One("1, 17, 3, 5", "71, 17, 3, 3", "1, 71, 3, 5"),
        One("B, 67, 7, 5", "71, 67, 3, 3", "B, 71, 7, 5", " sym B in 1..")})
    EXPECT_EQ(Count(kept, "Transpose("), 0) << kept;
}

// Of 27 places of a kernel an image is turned once, not gathered 27 times; places that fill panels badly are rows.
TEST(ChannelsLast, OfOneWhoseChannelsCostMoreThanTurning) {
  const auto transposes = [](const std::string& x, const std::string& w, const std::string& y,
                             const std::string& more = "") { return Count(One(x, w, y, "", more), "Transpose("); };
  EXPECT_EQ(transposes("1, 33, 7, 15, 17", "32, 33, 3, 3, 3", "1, 32, 7, 15, 17"), 2);
  EXPECT_EQ(transposes("1, 33, 7, 15, 17", "33, 33, 3, 3, 3", "1, 33, 7, 15, 17"), 0);  // a panel of one output
  EXPECT_EQ(transposes("1, 33, 7, 15, 17", "96, 33, 3, 3, 3", "1, 96, 7, 15, 17"), 2);  // more outputs
  EXPECT_EQ(transposes("1, 33, 99, 97", "32, 33, 3, 3", "1, 32, 99, 97"), 2);           // 9 places
  EXPECT_EQ(transposes("1, 33, 99, 97", "64, 33, 3, 3", "1, 64, 99, 97"), 0);           // and an image that is larger
  EXPECT_EQ(transposes("1, 9, 7, 15, 17", "32, 9, 3, 3, 3", "1, 32, 7, 15, 17"), 0);    // short windows
  const char* const apart = ", strides = [2, 2]";
  EXPECT_EQ(transposes("1, 512, 26, 26", "1024, 512, 1, 1", "1, 1024, 14, 14", apart), 2);  // 196 places, 224 columns
  EXPECT_EQ(transposes("1, 512, 30, 30", "1024, 512, 1, 1", "1, 1024, 16, 16", apart), 0);  // 256, 256
  EXPECT_EQ(transposes("0, 33, 7, 15, 17", "32, 33, 3, 3, 3", "0, 32, 7, 15, 17"), 2);      // no image
  EXPECT_EQ(transposes("1, 33, 7, 15, 17", "0, 33, 3, 3, 3", "1, 0, 7, 15, 17"), 0);
  EXPECT_EQ(transposes("2, 65, 56, 56", "64, 65, 3, 3", "2, 64, 28, 28", apart), 0);
}

TEST(ChannelsLast, NotWhereItDoesNotPay) {
  // Two that meet, and one of weights that come with the run; one in groups.
  for (const char* const w : {R"(Input() {name = "w"} : f32[17, 17, 3, 3])", "Conv"}) {
    const bool groups = std::string(w) == "Conv";
    std::string text = Three("Relu(%4)", "Relu(%8) : f32[2, 17, 9, 11]");
    if (groups) {
      text =
          absl::StrReplaceAll(text, {{"[17, 17, 3, 3]", "[18, 9, 3, 3]"}, {"17", "18"}, {"pads", "groups = 2, pads"}});
    } else {
      text = absl::StrReplaceAll(text, {{R"(Param() {name = "w"} : f32[17, 17, 3, 3])", w}});
    }
    FusionReport report;
    const std::string after = After(text, &report);
    EXPECT_EQ(Count(after, "channels_last = true"), 0) << after;
    EXPECT_EQ(Count(after, "Transpose("), 0) << after;
    EXPECT_EQ(report.ToString(), "layout: 0 of 3 convolutions with channels last, 0 images turned\n");
  }
}

// One convolution of bytes, whose image takes little time to turn, with the quantisation beside it; not one of each
// channel by itself.
TEST(ChannelsLast, OneConvolutionOfBytes) {
  const auto after = [](const char* w, const char* groups) {
    return After(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 34, 9, 11]
  %1 = Param() {name = "w"} : i8[$w, 3, 3]
  %2 = Param() {name = "s"} : f32[34]
  %3 = Constant() hex cdcc4c3d : f32[]
  %4 = QuantizeLinear(%0, %2) {axis = 1, to = u8} : u8[2, 34, 9, 11]
  %5 = Conv(%4, %1) {fill = 7.0, groups = $g, pads = [1, 1, 1, 1]} : i32[2, 34, 9, 11]
  %6 = Cast(%5) {to = f32} : f32[2, 34, 9, 11]
  %7 = Mul(%6, %3) : f32[2, 34, 9, 11]
  return %7
}
)",
                                     {{"$w", w}, {"$g", groups}}));
  };
  const std::string dense = after("34, 34", "1");
  EXPECT_EQ(Count(dense, "Transpose"), 2) << dense;
  EXPECT_EQ(Count(dense, "QuantizeLinear(%4, %2) {axis = 3, block = 0, to = u8} : u8[2, 9, 11, 34]"), 1) << dense;
  EXPECT_EQ(Count(dense, "channels_last = true, dilations = [], fill = 7.0"), 1) << dense;
  EXPECT_EQ(Count(after("34, 1", "34"), "Transpose"), 0);
}

}  // namespace
}  // namespace quern::opt
