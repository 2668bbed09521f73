// Which floats are made of bytes again, and that fusion then has bytes between regions.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/region.h"
#include "unit/opt/pass_text.h"

namespace quern::opt {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What DequantizeLinear is, with a zero point and a scale for each column, for two elementwise readers and one that is
// none.
TEST(RepeatDequantised, ForEachElementwiseReader) {
  EXPECT_EQ(After(RepeatDequantised, R"(graph g {
  %0 = Input() {name = "x"} : u8[4, 6]
  %1 = Param() {name = "s"} : f32[6]
  %2 = Constant() hex 07000000 : i32[]
  %3 = Cast(%0) {to = i32} : i32[4, 6]
  %4 = Sub(%3, %2) : i32[4, 6]
  %5 = Cast(%4) {to = f32} : f32[4, 6]
  %6 = Mul(%5, %1) : f32[4, 6]
  %7 = Relu(%6) : f32[4, 6]
  %8 = Silu(%6) : f32[4, 6]
  %9 = Softmax(%6) {axis = -1} : f32[4, 6]
  return %7, %8, %9
}
)"),
            R"(graph g {
  %0 = Input() {name = "x"} : u8[4, 6]
  %1 = Param() {name = "s"} : f32[6]
  %2 = Constant() hex 07000000 : i32[]
  %3 = Cast(%0) {to = i32} : i32[4, 6]
  %4 = Sub(%3, %2) : i32[4, 6]
  %5 = Cast(%4) {to = f32} : f32[4, 6]
  %6 = Mul(%5, %1) : f32[4, 6]
  %7 = Relu(%6) : f32[4, 6]
  %8 = Cast(%0) {to = i32} : i32[4, 6]
  %9 = Sub(%8, %2) : i32[4, 6]
  %10 = Cast(%9) {to = f32} : f32[4, 6]
  %11 = Mul(%10, %1) : f32[4, 6]
  %12 = Silu(%11) : f32[4, 6]
  %13 = Softmax(%11) {axis = -1} : f32[4, 6]
  return %7, %12, %13
}
)");
}

// Not what is made of wider numbers, of two values of the run, of weights, or of bytes that are broadcast.
TEST(RepeatDequantised, NotOfOthers) {
  const std::pair<const char*, const char*> others[] = {
      {"Input() {name = \"x\"} : i16[4, 6]", "Input() {name = \"s\"} : f32[]"},
      {"Input() {name = \"x\"} : u8[4, 6]", "Input() {name = \"s\"} : f32[4, 6]"},
      {"Param() {name = \"x\"} : u8[4, 6]", "Param() {name = \"s\"} : f32[]"},
      {"Input() {name = \"x\"} : u8[1, 6]", "Param() {name = \"s\"} : f32[4, 1]"},
  };
  for (const auto& [x, s] : others) {
    const std::string dims = std::string(x).substr(std::string(x).find('['));
    ExpectUnchanged(RepeatDequantised, absl::StrReplaceAll(R"(graph g {
  %0 = $x
  %1 = $s
  %2 = Cast(%0) {to = f32} : f32$d
  %3 = Mul(%2, %1) : f32[4, 6]
  %4 = Relu(%3) : f32[4, 6]
  %5 = Silu(%3) : f32[4, 6]
  return %4, %5
}
)",
                                                           {{"$x", x}, {"$s", s}, {"$d", dims}}));
  }
}

// A convolution's bytes that the next one reads, and a sum behind that as floats: no floats go to memory.
TEST(RepeatDequantised, BytesAreBetweenRegions) {
  ir::Graph graph = Parsed(R"(graph g {
  %0 = Input() {name = "x"} : f32[40, 64]
  %1 = Input() {name = "w"} : f32[64, 64]
  %2 = Constant() hex cdcc4c3d : f32[]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[40, 64]
  %4 = Round(%3) : f32[40, 64]
  %5 = Cast(%4) {to = u8} : u8[40, 64]
  %6 = Cast(%5) {to = f32} : f32[40, 64]
  %7 = Mul(%6, %2) : f32[40, 64]
  %8 = Reduce(%0) {axes = [1], keep_dim = true, op = "max"} : f32[40, 1]
  %9 = Sub(%0, %8) : f32[40, 64]
  %10 = MatMul(%9, %1) {transpose_b = true} : f32[40, 64]
  %11 = Add(%10, %7) : f32[40, 64]
  return %11
}
)");
  for (const bool read_too : {false, true}) {
    if (read_too) graph.outputs.push_back({5, 0});
    const StatusOr<ir::Graph> fused = FuseRegions(graph, {.families = codegen::Families()});
    ASSERT_TRUE(fused.ok()) << fused.status();
    const std::string text = ir::Print(*fused);
    EXPECT_THAT(text, HasSubstr("u8[40, 64]"));
    for (const ir::Node& node : fused->nodes()) {
      if (!ir::IsRegion(node)) continue;
      const std::string body = ir::Print(node.body());
      if (body.find("Round") != std::string::npos) EXPECT_THAT(body, Not(HasSubstr("= Mul("))) << text;
    }
  }
}

}  // namespace
}  // namespace quern::opt
