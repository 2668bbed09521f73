// Gradients of a Scan: what the interpreter makes of them beside finite differences in double, and what kernels make.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/interpret.h"
#include "unit/compiler/expect_right.h"

namespace quern::testing {
namespace {

// h <- tanh(h w + x), a count of steps beside it, y = h x and, of integers, twice the count.
constexpr const char* kBody = R"( body graph body {
    %0 = Input() {name = "h"} : D[3]
    %1 = Input() {name = "i"} : i64[]
    %2 = Input() {name = "x"} : D[3]
    %3 = Input() {name = "w"} : D[3]
    %4 = Mul(%0, %3) : D[3]
    %5 = Add(%4, %2) : D[3]
    %6 = Tanh(%5) : D[3]
    %7 = Add(%1, %1) : i64[]
    %8 = Mul(%6, %2) : D[3]
    return %6, %7, %8, %1
  })";
// Of h, i, x, w; the next h and i, y and the integer; dh, dy.
constexpr const char* kVjp = R"( vjp graph vjp {
    %0 = Input() {name = "h"} : D[3]
    %1 = Input() {name = "i"} : i64[]
    %2 = Input() {name = "x"} : D[3]
    %3 = Input() {name = "w"} : D[3]
    %4 = Input() {name = "next"} : D[3]
    %5 = Input() {name = "ni"} : i64[]
    %6 = Input() {name = "y"} : D[3]
    %7 = Input() {name = "count"} : i64[]
    %8 = Input() {name = "dh"} : D[3]
    %9 = Input() {name = "dy"} : D[3]
    %10 = Mul(%9, %2) : D[3]
    %11 = Add(%8, %10) : D[3]
    %12 = Mul(%4, %4) : D[3]
    %13 = Mul(%11, %12) : D[3]
    %14 = Sub(%11, %13) : D[3]
    %15 = Mul(%14, %3) : D[3]
    %16 = Mul(%9, %4) : D[3]
    %17 = Add(%14, %16) : D[3]
    %18 = Mul(%14, %0) : D[3]
    return %15, %17, %18
  })";

struct Form {
  int length;
  bool reverse;
  int checkpoints;
};
const Form kForms[] = {{5, false, 0}, {5, true, 0},  {7, false, 3}, {7, true, 3},  {7, false, 2},
                       {4, true, 4},  {1, false, 1}, {3, true, 9},  {0, false, 0}, {0, true, 2}};

std::string Text(const Form& form, const std::string& dtype, bool gradients, bool xs = false,
                 const std::string& sym = "") {
  const std::string n = sym.empty() ? absl::StrCat(form.length) : sym, row = "D[3]", rows = "D[" + n + ", 3]";
  std::string text = absl::StrCat("graph g", sym.empty() ? "" : " sym S in 1..64", " {\n");
  int at = 0;
  for (const auto& [name, type] : std::vector<std::pair<std::string, std::string>>{
           {"h", row}, {"i", "i64[]"}, {"x", rows}, {"w", row}, {"dh", row}, {"dy", rows}})
    absl::StrAppend(&text, "  %", at++, " = Input() {name = \"", name, "\"} : ", type, "\n");
  const std::string attributes =
      absl::StrCat("{carries = 2, length = <", n, ">, reverse = ", form.reverse ? "true" : "false", ", xs = 1");
  if (gradients) {
    absl::StrAppend(&text, "  %6", xs ? "" : ":3", " = ScanBackward", xs ? "Xs" : "", "(%0, %1, %2, %3, %4, %5) ",
                    attributes, ", checkpoints = ", form.checkpoints,
                    "} : ", xs ? rows : absl::StrCat(row, ", ", rows, ", ", row), kBody, kVjp,
                    xs ? "\n  return %6\n}\n" : "\n  return %6.0, %6.1, %6.2\n}\n");
  } else {
    absl::StrAppend(&text, "  %6:4 = Scan(%0, %1, %2, %3) ", attributes, "} : ", row, ", i64[], ", rows, ", i64[", n,
                    "]", kBody, "\n  return %6.0, %6.2\n}\n");
  }
  for (size_t d = text.find("D["); d != std::string::npos; d = text.find("D[", d + 1)) text.replace(d, 1, dtype);
  return text;
}

std::vector<ir::RefTensor> Made(const std::string& text, const ir::Feeds& feeds) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  if (!graph.ok()) return {};
  StatusOr<std::vector<ir::RefTensor>> made = ir::Interpret(*graph, {}, feeds);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : std::vector<ir::RefTensor>();
}

TEST(ScanBackward, IsWhatFiniteDifferencesAre) {
  std::mt19937_64 random(3);
  for (const Form& form : kForms) {
    SCOPED_TRACE(absl::StrCat(form.length, " ", form.reverse, " ", form.checkpoints));
    ir::Feeds feeds;
    const auto feed = [&](const char* name, std::vector<int64_t> dims) {
      ir::RefTensor tensor{DType::kF64, std::move(dims), {}};
      tensor.Allocate();
      for (double& value : tensor.data) value = std::uniform_real_distribution<double>(-1, 1)(random);
      feeds[name] = std::move(tensor);
    };
    feed("h", {3}), feed("x", {form.length, 3}), feed("w", {3}), feed("dh", {3}), feed("dy", {form.length, 3});
    feeds["i"] = ir::RefTensor{DType::kI64, {}, {}, {1}};
    const std::vector<ir::RefTensor> gradients = Made(Text(form, "f64", true), feeds);
    ASSERT_EQ(gradients.size(), 3u);
    const std::vector<ir::RefTensor> of_xs = Made(Text(form, "f64", true, /*xs=*/true), feeds);
    ASSERT_EQ(of_xs.size(), 1u);
    EXPECT_EQ(of_xs[0].data, gradients[1].data);
    const auto loss = [&] {
      const std::vector<ir::RefTensor> made = Made(Text(form, "f64", false), feeds);
      double sum = 0;
      for (size_t e = 0; e < 3; ++e) sum += made[0].data[e] * feeds["dh"].data[e];
      for (size_t e = 0; e < made[1].data.size(); ++e) sum += made[1].data[e] * feeds["dy"].data[e];
      return sum;
    };
    const char* names[] = {"h", "x", "w"};
    for (int g = 0; g < 3; ++g) {
      std::vector<double>& values = feeds[names[g]].data;
      for (size_t e = 0; e < values.size(); ++e) {
        const double value = values[e], step = 1e-6;
        values[e] = value + step;
        const double above = loss();
        values[e] = value - step;
        const double below = loss();
        values[e] = value;
        EXPECT_NEAR(gradients[g].data[e], (above - below) / (2 * step), 1e-7) << names[g] << " " << e;
      }
    }
  }
}

TEST(ScanBackward, KernelsMakeTheSame) {
  for (const Form& form : kForms) {
    ExpectRight(Text(form, "f32", true), {{}});
    ExpectRight(Text(form, "f32", true, /*xs=*/true), {{}});
  }
  for (const bool reverse : {false, true}) {
    ExpectRight(Text({0, reverse, 0}, "f32", true, false, "S"), {{{"S", 1}}, {{"S", 6}}});
    ExpectRight(Text({0, reverse, 0}, "f64", true, true, "S"), {{{"S", 5}}});
  }
  ExpectRight(Text({3, false, 2}, "f16", true), {{}});
}

TEST(ScanBackward, Errors) {
  std::string text = Text({4, false, 0}, "f32", true, false, "S");
  text.replace(text.find("checkpoints = 0"), 15, "checkpoints = 2");
  const StatusOr<ir::Graph> symbols = ir::Parse(text);
  ASSERT_FALSE(symbols.ok());
  EXPECT_NE(std::string(symbols.status().message()).find("checkpoints"), std::string::npos) << symbols.status();
  text = Text({4, false, 0}, "f32", true);
  text.replace(text.find("%4, %5)"), 7, "%4)");
  const StatusOr<ir::Graph> few = ir::Parse(text);
  ASSERT_FALSE(few.ok());
  EXPECT_NE(std::string(few.status().message()).find("gradients of results"), std::string::npos) << few.status();
  text = Text({4, false, 0}, "f32", true);
  text.replace(text.find("return %15, %17, %18"), 20, "return %15, %17");
  const StatusOr<ir::Graph> lacks = ir::Parse(text);
  ASSERT_FALSE(lacks.ok());
  EXPECT_NE(std::string(lacks.status().message()).find("vjp's number of outputs"), std::string::npos) << lacks.status();
}

}  // namespace
}  // namespace quern::testing
