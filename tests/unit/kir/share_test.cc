// Values that are used several times get names: where, which do not, and that the meaning stays.
#include "kir/share.h"

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kir/build.h"
#include "kir/canonical.h"
#include "kir/cost.h"
#include "kir/intern.h"
#include "kir/interpret.h"

namespace quern::kir {
namespace {

namespace kb = build;
using namespace build::operators;
using testing::HasSubstr;
using testing::Not;

Kernel Parsed(const std::string& text) {
  StatusOr<Kernel> kernel = ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << text;
  const Status verified = kernel.ok() ? Verify(*kernel) : kernel.status();
  EXPECT_TRUE(verified.ok()) << verified << "\n" << text;
  return kernel.ok() ? *std::move(kernel) : Kernel{};
}

// With values shared: it verifies, reads back, and has nothing left to share.
Kernel SharedKernel(const Kernel& kernel) {
  Kernel shared = ShareValues(kernel);
  const Status verified = Verify(shared);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << Print(shared);
  const StatusOr<Kernel> again = ParseKernel(Print(shared));
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << Print(shared);
  if (again.ok()) {
    EXPECT_TRUE(Same(shared, *again)) << Print(shared);
    EXPECT_EQ(Print(ShareValues(*again), {.normalise_names = true}), Print(shared, {.normalise_names = true}));
  }
  return shared;
}

std::string KernelText(const std::string& body) {
  return absl::StrCat(R"(kernel k (
    x : f32[M, 64] in
    n : i64[M] in
    y : f32[M, 64] out
    z : f32[M, 64] inout
  ) sym M in 1..512 { grid r in 0..M {)",
                      body, "} }");
}

// The lines of the body, without indentation.
std::string BodyOf(const Kernel& kernel) {
  std::string text;
  bool inside = false;
  for (const auto line : absl::StrSplit(Print(kernel), '\n')) {
    const std::string trimmed(line.substr(std::min(line.size(), line.find_first_not_of(' '))));
    if (inside) absl::StrAppend(&text, trimmed, "\n");
    inside = inside || trimmed.starts_with("grid ");
  }
  return text.substr(0, text.size() - 5);  // the ends of the grid and the kernel
}

std::string SharedBody(const std::string& body) { return BodyOf(SharedKernel(Parsed(KernelText(body)))); }
// What stays as it is, but for the way it is written.
void ExpectUnchanged(const std::string& body) {
  const Kernel kernel = Parsed(KernelText(body));
  EXPECT_EQ(BodyOf(SharedKernel(kernel)), BodyOf(kernel));
}

TEST(Share, NamesWhatIsUsedTwice) {
  EXPECT_EQ(SharedBody("y[r, 0] = tanh(x[r, 0]) * tanh(x[r, 0])"), "let v0 = tanh(x[r, 0])\ny[r, 0] = v0 * v0\n");
  EXPECT_EQ(SharedBody("y[r, 0] = exp(x[r, 0] + 1) * (exp(x[r, 0] + 1) - x[r, 1])"),
            "let v0 = exp(x[r, 0] + 1.0)\ny[r, 0] = v0 * (v0 - x[r, 1])\n");
  // the larger value first, then what else is used of its parts
  EXPECT_EQ(SharedBody("y[r, 0] = exp(tanh(x[r, 0])) * exp(tanh(x[r, 0])) + tanh(x[r, 0])"),
            "let v0 = tanh(x[r, 0])\nlet v1 = exp(v0)\ny[r, 0] = v1 * v1 + v0\n");
  EXPECT_EQ(SharedBody("y[r, 0] = contract(x[r, 0] * x[r, 1]) + exact(x[r, 0] * x[r, 1])"),
            "y[r, 0] = contract(x[r, 0] * x[r, 1]) + x[r, 0] * x[r, 1]\n");
}

TEST(Share, WritesShortOnesAgain) {
  ExpectUnchanged("y[r, 0] = x[r, 0] * x[r, 0]");
  ExpectUnchanged("for c in 0..60 { y[r, c + 1] = x[r, c + 1] + z[r, c + 1] z[r, c + 1] = x[min(r, 3), c + 1 + 2] }");
  EXPECT_EQ(SharedBody("y[r, 0] = x[r, 0] * x[r, 0] + x[r, 0]"), "let v0 = x[r, 0]\ny[r, 0] = v0 * v0 + v0\n");
  EXPECT_EQ(SharedBody("y[r, 0] = x[r / 2, 0] + z[r / 2, 0]"), "let v0 = r / 2\ny[r, 0] = x[v0, 0] + z[v0, 0]\n");
  EXPECT_EQ(SharedBody("let i = max(min(n[r], M - 1), 0) + max(min(n[r], M - 1), 0) * 0"),
            "let v0 = max(min(n[r], M - 1), 0)\nlet i = v0 + v0 * 0\n");
}

TEST(Share, InReductions) {
  EXPECT_EQ(SharedBody("y[r, 0] = sum accs 4 vec c in 0..64 { tanh(x[r, c]) * tanh(x[r, c]) }"),
            "y[r, 0] = sum accs 4 vec c in 0..64 { let v0 = tanh(x[r, c]); v0 * v0 }\n");
  // What two of them use stands before both, but not what both call by one name.
  EXPECT_EQ(SharedBody("y[r, 0] = (sum for c in 0..64 { tanh(x[r, 0]) * exp(x[r, c]) }) + "
                       "max for c in 0..64 { tanh(x[r, 0]) * exp(x[r, c]) * exp(x[r, c]) }"),
            "let v0 = tanh(x[r, 0])\n"
            "y[r, 0] = sum for c in 0..64 { v0 * exp(x[r, c]) } + "
            "max for c in 0..64 { let v1 = exp(x[r, c]); v0 * v1 * v1 }\n");
  // Equal ones are one.
  EXPECT_EQ(SharedBody("y[r, 0] = exp(sum for c in 0..64 { x[r, c] }) y[r, 1] = 2 * sum for c in 0..64 { x[r, c] }"),
            "let v0 = sum for c in 0..64 { x[r, c] }\ny[r, 0] = exp(v0)\ny[r, 1] = 2.0 * v0\n");
  // Of nested ones, where all uses are.
  EXPECT_EQ(
      SharedBody("y[r, 0] = sum for c in 0..64 { sum for d in 0..4 { exp(x[r, c]) * exp(x[r, c]) * exp(x[r, d]) } }"),
      "y[r, 0] = sum for c in 0..64 { sum for d in 0..4 { let v0 = exp(x[r, c]); v0 * v0 * exp(x[r, d]) } }\n");
  EXPECT_EQ(
      SharedBody("y[r, 0] = sum for c in 0..64 { exp(x[r, c]) * sum for d in 0..4 { exp(x[r, c]) * exp(x[r, d]) } }"),
      "y[r, 0] = sum for c in 0..64 { let v0 = exp(x[r, c]); v0 * sum for d in 0..4 { v0 * exp(x[r, d]) } }\n");
  EXPECT_EQ(SharedBody("y[r, 0] = sum for c in 0 .. 4 + n[r] * 0 { 1.0 } * cast<f32>(4 + n[r] * 0)"),
            "let v0 = 4 + n[r] * 0\ny[r, 0] = sum for c in 0..v0 { 1.0 } * cast<f32>(v0)\n");
}

// A reduction's lets keep their names, unless they are no longer worth one.
TEST(Share, LetsOfReductions) {
  ExpectUnchanged("y[r, 0] = sum for c in 0..64 { let t = tanh(x[r, c]); let u = exp(t) + t; u * u }");
  EXPECT_EQ(SharedBody("y[r, 0] = sum for c in 0..64 { let t = tanh(x[r, c]); let u = exp(tanh(x[r, c])) + t; u * u }"),
            "y[r, 0] = sum for c in 0..64 { let t = tanh(x[r, c]); let u = exp(t) + t; u * u }\n");
  EXPECT_EQ(SharedBody("y[r, 0] = sum for c in 0..64 { let t = tanh(x[r, c]); let i = c; let u = 1.0; t + x[r, i] }"),
            "y[r, 0] = sum for c in 0..64 { tanh(x[r, c]) + x[r, c] }\n");
  EXPECT_EQ(SharedBody("y[r, 0] = sum for c in 0..64 { let t = tanh(x[r, 0]); t * t } + tanh(x[r, 0])"),
            "let v0 = tanh(x[r, 0])\ny[r, 0] = sum for c in 0..64 { v0 * v0 } + v0\n");
}

TEST(Share, AcrossStatements) {
  EXPECT_EQ(SharedBody("y[r, 0] = exp(x[r, 0]) y[r, 1] = 1 y[r, 2] = exp(x[r, 0])"),
            "let v0 = exp(x[r, 0])\ny[r, 0] = v0\ny[r, 1] = 1.0\ny[r, 2] = v0\n");
  // not over a change of what it reads
  ExpectUnchanged("y[r, 0] = exp(z[r, 0]) z[r, 0] = 1.0 y[r, 2] = exp(z[r, 0])");
  ExpectUnchanged("y[r, 0] = exp(z[r, 0]) for c in 0..3 { if c < 2 { z[r, c] = 1.0 } } y[r, 2] = exp(z[r, 0])");
  ExpectUnchanged("var t : f32 = 1.0 y[r, 0] = exp(t) t := 2.0 y[r, 1] = exp(t)");
  // names that are declared twice are two
  ExpectUnchanged("for c in 0..3 { y[r, c] = exp(x[r, c]) } for c in 3..6 { y[r, c] = exp(x[r, c]) }");
  EXPECT_EQ(SharedBody("y[r, 0] = exp(z[r, 0]) + exp(x[r, 0]) z[r, 0] = 1 y[r, 2] = exp(z[r, 0]) + exp(x[r, 0])"),
            "let v0 = exp(x[r, 0])\ny[r, 0] = exp(z[r, 0]) + v0\nz[r, 0] = 1.0\ny[r, 2] = exp(z[r, 0]) + v0\n");
}

TEST(Share, KnowsTheNamesInScope) {
  EXPECT_EQ(SharedBody("let a = exp(x[r, 0]) y[r, 0] = exp(x[r, 0]) * a let b = exp(x[r, 0])"),
            "let a = exp(x[r, 0])\ny[r, 0] = a * a\nlet b = a\n");
  EXPECT_EQ(SharedBody("y[r, 0] = exp(x[r, 0]) let a = exp(x[r, 0])"),
            "let v0 = exp(x[r, 0])\ny[r, 0] = v0\nlet a = v0\n");
  EXPECT_EQ(SharedBody("let a = exp(x[r, 0]) vec c in 0..64 { y[r, c] = exp(x[r, 0]) + x[r, c] }"),
            "let a = exp(x[r, 0])\nvec c in 0..64 {\ny[r, c] = a + x[r, c]\n}\n");
  ExpectUnchanged("let a = exp(z[r, 0]) for c in 0..64 { y[r, c] = exp(z[r, 0]) z[r, c] = a }");
  ExpectUnchanged("if r < 3 { let a = exp(x[r, 0]) y[r, 0] = a } y[r, 1] = exp(x[r, 0])");
  // names that stand for nothing new
  ExpectUnchanged("let a = r let b = x[a, 0] y[r, 0] = x[r, 0]");
}

// Nothing leaves the branch where it stood, nor loses the condition that proves it.
TEST(Share, StaysWhereItIsProved) {
  EXPECT_EQ(SharedBody("if r >= 3 { y[r, 0] = exp(x[r - 3, 0]) * exp(x[r - 3, 0]) } else { y[r, 0] = exp(x[r, 1]) }"),
            "if 3 <= r {\nlet v0 = exp(x[r - 3, 0])\ny[r, 0] = v0 * v0\n} else {\ny[r, 0] = exp(x[r, 1])\n}\n");
  ExpectUnchanged("if r >= 3 { y[r, 0] = exp(x[r - 3, 0]) } if r >= 3 { y[r, 1] = exp(x[r - 3, 0]) }");
  // conditions are not named: their comparisons are facts
  ExpectUnchanged(
      "let i = n[r] * 3 if (0 <= i) & (i < M) { y[r, 0] = x[i, 0] } "
      "if (0 <= i) & (i < M) { y[r, 1] = x[i, 1] } y[r, 2] = select((0 <= i) & (i < M), x[r, 1], 0.0)");
  EXPECT_EQ(SharedBody("if (0 <= n[r] / 3) & (n[r] / 3 < M) { y[r, 0] = 1 }"),
            "let v0 = n[r] / 3\nif (0 <= v0) & (v0 < M) {\ny[r, 0] = 1.0\n}\n");
  // what the outside knows of an integer may not do inside of a branch
  EXPECT_THAT(SharedBody("let i = (r - 5) / 4 if r >= 5 { y[r, 0] = x[(r - 5) / 4, 0] }"),
              HasSubstr("x[(r - 5) / 4, 0]"));
  // `else` and select are no guards: what stands there is proved alone
  EXPECT_EQ(SharedBody("y[r, 0] = select(r < 9, exp(x[r, 1]), 0.0) + select(r < 9, 1.0, exp(x[r, 1]))"),
            "let v0 = exp(x[r, 1])\ny[r, 0] = select(r < 9, v0, 0.0) + select(r < 9, 1.0, v0)\n");
  EXPECT_EQ(SharedBody("y[r, 0] = exp(x[n[r], 0] else 0) * exp(x[n[r], 0] else 0)"),
            "let v0 = exp(x[n[r], 0] else 0.0)\ny[r, 0] = v0 * v0\n");
}

TEST(Share, DivisorsStayGuarded) {
  const std::string divisor = "select(n[r] / 2 == 0, 1, n[r] / 2)";
  EXPECT_EQ(SharedBody(absl::StrCat("let a = r / ", divisor, " let b = r % ", divisor, " let c = ", divisor)),
            "let v0 = n[r] / 2\nlet a = r / select(v0 == 0, 1, v0)\nlet b = r % select(v0 == 0, 1, v0)\n"
            "let c = select(v0 == 0, 1, v0)\n");
  // A quotient of its own is a value like any other, in its branch.
  EXPECT_EQ(SharedBody("let d = n[r] if d > 0 { y[r, 0] = x[r, min(r / d, 63)] + x[r, min(r / d, 63)] }"),
            "let d = n[r]\nif 0 < d {\nlet v0 = x[r, min(r / d, 63)]\ny[r, 0] = v0 + v0\n}\n");
}

// Where an input and the output in its place are accessed must read the same.
TEST(Share, KeepsIndicesOfSharedMemory) {
  const Kernel kernel = Parsed(R"(kernel k (
    x : f32[M, 64] in
    w : f32[M, 64] in
    y : f32[M, 64] out inplace x
  ) sym M in 1..512 {
    grid r in 0..M {
      vec c in 0..64 {
        let a = w[r, c / 2 * 2 + c % 2] + w[r, c / 2]
        if r < 5 {
          y[r, c / 2 * 2 + c % 2] = x[r, c / 2 * 2 + c % 2] * a
        }
      }
    }
  })");
  EXPECT_THAT(Print(SharedKernel(kernel)), HasSubstr("y[r, c / 2 * 2 + c % 2] = x[r, c / 2 * 2 + c % 2] * a"));
}

TEST(Share, NamesAreFree) {
  const std::string body = SharedBody("let v0 = 1.0 for v1 in 0..2 { y[r, v1] = exp(x[r, v1]) * exp(x[r, v1]) * v0 }");
  EXPECT_THAT(body, HasSubstr("let v2 = exp(x[r, v1])"));
  const Block block = {
      kb::Store("y", {kb::Ref("r")},
                kb::Call(Op::kExp, {kb::Ref("a", DType::kF32)}) * kb::Call(Op::kExp, {kb::Ref("a", DType::kF32)}))};
  EXPECT_EQ(std::get<Let>(ShareValues(block)[0]->node).name, "v0");
  EXPECT_EQ(std::get<Let>(ShareValues(block, {"v0", "v1"})[0]->node).name, "v2");
}

TEST(Share, KeepsOrigins) {
  const Kernel kernel = SharedKernel(Parsed(KernelText("y[r, 0] = exp(x[r, 0]) * exp(x[r, 0])   @[here]")));
  EXPECT_EQ(BodyOf(kernel), "let v0 = exp(x[r, 0])   @[here]\ny[r, 0] = v0 * v0   @[here]\n");
}

// Threads see what others have stored, after a barrier; fetches hold copies alone.
TEST(Share, BlocksOfThreads) {
  const Kernel kernel = Parsed(R"(kernel k (
    x : f32[M, 64] in
    y : f32[M, 64] out
  ) sym M in 1..512 {
    grid r in 0..M {
      alloc s : f32[64] shared
      thread t in 0..64 @ block {
        s[t] = exp(x[r, 63 - t]) * exp(x[r, 63 - t])
        barrier
        var a : f32 = exp(s[63 - t])
        barrier
        s[t] = a
        barrier
        y[r, t] = exp(s[63 - t])
      }
      barrier
      pipeline k in 0..64 by 32 stages 2 {
        fetch {
          copy s[k / 32 * 32 : +32] = x[r, k / 32 * 32 : +32]
        }
        use {
        }
      }
    }
  })");
  const std::string text = Print(SharedKernel(kernel));
  EXPECT_THAT(text, HasSubstr("let v0 = exp(x[r, 63 - t])\n      s[t] = v0 * v0\n"));
  EXPECT_THAT(text, HasSubstr("var a : f32 = exp(s[63 - t])"));
  EXPECT_THAT(text, HasSubstr("y[r, t] = exp(s[63 - t])"));
  EXPECT_THAT(text, HasSubstr("copy s[k / 32 * 32 : +32] = x[r, k / 32 * 32 : +32]"));
}

// Tiles inside of a map are read by their name.
TEST(Share, ElementsOfTiles) {
  EXPECT_EQ(SharedBody("tile t : f32[2, 4] = exp(x[r, 0]) map (i, j) in t [2, 4] "
                       "{ t[i, j] = exp(t) * exp(t) + exp(x[r, 0]) y[r, i * 4 + j] = exp(t) }"),
            "tile t : f32[2, 4] = exp(x[r, 0])\nmap (i, j) in t [2, 4] {\nlet v0 = exp(t)\n"
            "t[i, j] = v0 * v0 + exp(x[r, 0])\ny[r, i * 4 + j] = exp(t)\n}\n");
}

// A chain of nodes that use their argument three times: 3^30 as a tree.
ExprRef Chain(ExprRef value, int length) {
  for (int i = 0; i < length; ++i) value = value * value * 0.5 + value * 0.25;
  return value;
}
double ChainOf(double value, int length) {
  for (int i = 0; i < length; ++i) value = value * value * 0.5 + value * 0.25;
  return value;
}

Kernel ChainKernel(int length, bool reduces) {
  const ExprRef r = kb::Ref("r"), c = kb::Ref("c");
  Kernel kernel = Parsed("kernel k (x : f32[3, 8] in\n y : f32[3, 8] out\n) { grid r in 0..3 { } }");
  const ExprRef value = Chain(kb::At("x", DType::kF32, {r, c}), length);
  kernel.body = reduces ? Block{kb::Store("y", {r, kb::Int(0)}, kb::SumVec(4, "c", kb::Int(0), kb::Int(8), value))}
                        : Block{kb::Vec("c", kb::Int(0), kb::Int(8), {kb::Store("y", {r, c}, value)})};
  return kernel;
}

TEST(Share, ChainsAreLinear) {
  for (const bool reduces : {false, true}) {
    for (const int length : {30, 1000}) {
      SCOPED_TRACE(absl::StrCat(length, reduces ? " in a reduction" : " in a loop"));
      const auto start = std::chrono::steady_clock::now();
      const Kernel kernel = ShareValues(ChainKernel(length, reduces));
      const std::string text = Print(kernel);
      EXPECT_LT(text.size(), 120u * static_cast<size_t>(length) + 400);
      const Status verified = Verify(kernel);
      ASSERT_TRUE(verified.ok()) << verified;
      EXPECT_TRUE(Same(*ParseKernel(text), kernel));
      EXPECT_EQ(Print(*ParseKernel(Print(kernel, {.normalise_names = true}))),
                Print(kernel, {.normalise_names = true}));
      const StatusOr<KernelCost> cost = CostOf(kernel, {});
      ASSERT_TRUE(cost.ok()) << cost.status();
      EXPECT_EQ(cost->flops, 3 * 8 * (4.0 * length + (reduces ? 1 : 0)));
      std::vector<float> x(24), y(24, -1);
      for (size_t i = 0; i < 24; ++i) x[i] = static_cast<float>(i) / 16 - 0.5f;
      const BufferBytes buffers[] = {{reinterpret_cast<uint8_t*>(x.data()), 96},
                                     {reinterpret_cast<uint8_t*>(y.data()), 96}};
      const Status run = Interpret(kernel, {}, buffers);
      ASSERT_TRUE(run.ok()) << run;
      double sum = 0;
      for (size_t i = 0; i < 8; ++i) sum += ChainOf(x[i], length);
      EXPECT_EQ(y[0], static_cast<float>(reduces ? sum : ChainOf(x[0], length)));
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      EXPECT_LT(seconds, length <= 30 ? 1.0 : 10.0) << "milliseconds, with room for a machine under load";
    }
  }
}

// One that shares nothing is cut where it would nest too deeply to be read.
TEST(Share, DeepExpressionsAreCut) {
  Kernel kernel = Parsed("kernel k (x : f32[3] in\n y : f32[3] out\n) { grid r in 0..3 { } }");
  ExprRef value = kb::At("x", DType::kF32, {kb::Ref("r")});
  for (int i = 0; i < 5000; ++i) value = kb::Call(Op::kAtan, {value});
  kernel.body = {kb::Store("y", {kb::Ref("r")}, value)};
  const Kernel shared = SharedKernel(kernel);
  EXPECT_EQ(shared.body.size(), 1 + 5000u / 31);
}

// Equal nodes that were made apart are found, however many trees they stand for.
TEST(Intern, EqualNodesHaveOneNumber) {
  Interner nodes;
  const ExprRef x = kb::At("x", DType::kF32, {kb::Ref("i")});
  const int one = nodes.Number(Chain(x, 200));
  EXPECT_EQ(nodes.Number(Chain(kb::At("x", DType::kF32, {kb::Ref("i")}), 200)), one);
  EXPECT_EQ(nodes.size(), one + 1) << "the second made no node";
  EXPECT_NE(nodes.Number(Chain(x, 199)), one);
  EXPECT_NE(nodes.Number(kb::Num(0.0)), nodes.Number(kb::Num(-0.0)));
  EXPECT_NE(nodes.Number(kb::Int(1)), nodes.Number(kb::Int(1, DType::kI32)));
  EXPECT_NE(nodes.Number(kb::At("x", DType::kF32, {kb::Ref("i")}, x)), nodes.Number(x));
  EXPECT_NE(nodes.Number(kb::Contract(x * x)), nodes.Number(x * x));
  EXPECT_EQ(nodes.Number(nullptr), -1);
}

}  // namespace
}  // namespace quern::kir
