// Functions of one byte as tables.
#include <gtest/gtest.h>

#include "opt/passes.h"
#include "pass_text.h"

namespace quern::opt {
namespace {

constexpr const char* kBegin = R"(graph g {
  %0 = Input() {name = "x"} : u8[64, 32]
  %1 = Constant() hex cdcccc3d : f32[]
)";
// x in steps of a tenth, through a function, and to the nearest byte again.
std::string Through(const std::string& function) {
  return std::string(kBegin) + R"(  %2 = Cast(%0) {to = f32} : f32[64, 32]
  %3 = Mul(%2, %1) : f32[64, 32]
  %4 = )" +
         function + R"( : f32[64, 32]
  %5 = Div(%4, %1) : f32[64, 32]
  %6 = Round(%5) : f32[64, 32]
  %7 = Cast(%6) {to = u8} : u8[64, 32]
  return %7
}
)";
}

TEST(ByteTables, OfAFunctionWithMath) {
  EXPECT_EQ(After(ByteTables, Through("Silu(%3)")),
            std::string(kBegin) + R"(  %2 = Iota() {axis = 0, dtype = i32, shape = <256>} : i32[256]
  %3 = Cast(%2) {to = u8} : u8[256]
  %4 = Cast(%3) {to = f32} : f32[256]
  %5 = Mul(%4, %1) : f32[256]
  %6 = Silu(%5) : f32[256]
  %7 = Div(%6, %1) : f32[256]
  %8 = Round(%7) : f32[256]
  %9 = Cast(%8) {to = u8} : u8[256]
  %10 = Cast(%0) {to = i32} : i32[64, 32]
  %11 = Gather(%9, %10) {axis = 0} : u8[64, 32]
  return %11
}
)");
}

// Without math it is as quick as it stands.
TEST(ByteTables, NotOfArithmetic) { ExpectUnchanged(ByteTables, Through("Relu(%3)")); }

// A byte on the way is looked through: both tables are of x, and where only the last has a reader it is alone.
TEST(ByteTables, BytesOnTheWay) {
  EXPECT_EQ(After(ByteTables, R"(graph g {
  %0 = Input() {name = "x"} : u8[64, 32]
  %1 = Constant() hex cdcccc3d : f32[1, 1]
  %2 = Cast(%0) {to = f32} : f32[64, 32]
  %3 = Sigmoid(%2) : f32[64, 32]
  %4 = Cast(%3) {to = i8} : i8[64, 32]
  %5 = Cast(%4) {to = f32} : f32[64, 32]
  %6 = Mul(%5, %2) : f32[64, 32]
  %7 = Add(%6, %1) : f32[64, 32]
  %8 = Cast(%7) {to = u8} : u8[64, 32]
  return %8
}
)"),
            R"(graph g {
  %0 = Input() {name = "x"} : u8[64, 32]
  %1 = Constant() hex cdcccc3d : f32[1, 1]
  %2 = Iota() {axis = 0, dtype = i32, shape = <256>} : i32[256]
  %3 = Cast(%2) {to = u8} : u8[256]
  %4 = Cast(%3) {to = f32} : f32[256]
  %5 = Sigmoid(%4) : f32[256]
  %6 = Cast(%5) {to = i8} : i8[256]
  %7 = Cast(%6) {to = f32} : f32[256]
  %8 = Mul(%7, %4) : f32[256]
  %9 = Add(%8, %1) : f32[1, 256]
  %10 = Cast(%9) {to = u8} : u8[1, 256]
  %11 = Reshape(%10) {shape = <256>} : u8[256]
  %12 = Cast(%0) {to = i32} : i32[64, 32]
  %13 = Gather(%11, %12) {axis = 0} : u8[64, 32]
  return %13
}
)");
}

// Two bytes, a number for each column, other extents, few elements, and floats that stay floats have none.
TEST(ByteTables, OfOneByteAlone) {
  const auto graph = [](const std::string& other, const std::string& function, const std::string& result) {
    return R"(graph g {
  %0 = Input() {name = "x"} : u8[64, 32]
  %1 = )" + other +
           R"(
  %2 = Cast(%0) {to = f32} : f32[64, 32]
  %3 = Exp(%2) : f32[64, 32]
  %4 = Cast(%1) {to = f32} : f32)" +
           other.substr(other.find('[')) + R"(
  %5 = Mul(%3, %4) : f32[64, 32]
  )" + function +
           R"(
  return )" +
           result + R"(
}
)";
  };
  const std::string to_byte = "%6 = Cast(%5) {to = u8} : u8[64, 32]";
  ExpectUnchanged(ByteTables, graph("Input() {name = \"y\"} : u8[64, 32]", to_byte, "%6"));
  ExpectUnchanged(ByteTables, graph("Input() {name = \"y\"} : u8[1, 32]", to_byte, "%6"));
  ExpectUnchanged(ByteTables, graph("Param() {name = \"y\"} : u8[32]", to_byte, "%6"));
  ExpectUnchanged(ByteTables, graph("Param() {name = \"y\"} : u8[1]", "%6 = Neg(%5) : f32[64, 32]", "%6"));
  EXPECT_NE(After(ByteTables, graph("Param() {name = \"y\"} : u8[1]", to_byte, "%6")).find("Gather"),
            std::string::npos);
  ExpectUnchanged(ByteTables, R"(graph g {
  %0 = Input() {name = "x"} : u8[64, 32]
  %1 = Constant() hex cdcccc3d : f32[1, 1, 1]
  %2 = Cast(%0) {to = f32} : f32[64, 32]
  %3 = Exp(%2) : f32[64, 32]
  %4 = Mul(%3, %1) : f32[1, 64, 32]
  %5 = Cast(%4) {to = u8} : u8[1, 64, 32]
  return %5
}
)");
  ExpectUnchanged(ByteTables, R"(graph g {
  %0 = Input() {name = "x"} : u8[31, 33]
  %1 = Cast(%0) {to = f32} : f32[31, 33]
  %2 = Exp(%1) : f32[31, 33]
  %3 = Cast(%2) {to = u8} : u8[31, 33]
  return %3
}
)");
}

}  // namespace
}  // namespace quern::opt
