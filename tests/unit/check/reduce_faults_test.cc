// Faults planted in graphs of some size: what reducing leaves shows the same op with the same kind of finding, in a few
// nodes. Wrong constants and wrong shapes are put into the kernels of different families as they are compiled; NaNs are
// made by values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "check/reduce.h"
#include "check/replay.h"
#include "check/value.h"
#include "compiler/checking.h"
#include "compiler/model.h"
#include "kir/build.h"
#include "kir/rewrite.h"
#include "support/random_graph.h"

namespace quern::testing {
namespace {

using check::Kind;
using check::Reproduction;
using kir::ExprRef;
using kir::Replace;

struct FaultCase {
  const char* name;
  Kind kind;
  const char* text;
  Binding sizes;
  const char* signature;  // that the whole has, and what is left
  // What is done to every expression of the kernels of this family; null: the values are to blame.
  const char* family = "";
  Replace fault = nullptr;
  bool (*takes)(const kir::Kernel& kernel) = [](const kir::Kernel&) { return true; };
  // Of some input, elements that make the fault.
  const char* input = "";
  float value = 0;
};

// The literal that another stands in the place of.
Replace Literal(double from, double to) {
  return [=](const ExprRef& node) -> ExprRef {
    const auto* literal = std::get_if<kir::Const>(&node->node);
    if (literal == nullptr || !IsFloat(node->dtype) || std::fabs(literal->real - from) > 1e-6 * std::fabs(from))
      return nullptr;
    return kir::MakeReal(to, node->dtype);
  };
}

// One operator in the place of another.
Replace Operator(kir::Op from, kir::Op to) {
  return [=](const ExprRef& node) -> ExprRef {
    const auto* apply = std::get_if<kir::Apply>(&node->node);
    return apply != nullptr && apply->op == from ? kir::MakeApply(to, apply->args) : nullptr;
  };
}

// Reductions that leave out their last index.
ExprRef WithoutLast(const ExprRef& node) {
  const auto* reduce = std::get_if<kir::Reduce>(&node->node);
  if (reduce == nullptr) return nullptr;
  kir::Reduce shorter = *reduce;
  shorter.high = kir::MakeApply(kir::Op::kSub, {reduce->high, kir::MakeInteger(1, DType::kI64)});
  return std::make_shared<const kir::Expr>(kir::Expr{std::move(shorter), node->dtype});
}

// Loads of x[i, j, c] read x[j, i, c]; of [n, n, k] alone that stays inside.
ExprRef Swapped(const ExprRef& node) {
  const auto* load = std::get_if<kir::Load>(&node->node);
  if (load == nullptr || load->index.size() != 3) return nullptr;
  return std::make_shared<const kir::Expr>(kir::Expr{
      kir::Load{load->buffer, {load->index[1], load->index[0], load->index[2]}, load->otherwise}, node->dtype});
}
bool IsSquare(const kir::Kernel& kernel) {
  return std::all_of(kernel.params.begin(), kernel.params.end(), [](const kir::Param& param) {
    return param.type.dims.size() != 3 || param.type.dims[0] == param.type.dims[1];
  });
}

// An offset that is one too small.
Replace Offset(int64_t from) {
  return [=](const ExprRef& node) -> ExprRef {
    return kir::KnownInteger(node) == from ? kir::MakeInteger(from - 1, node->dtype) : nullptr;
  };
}

constexpr float kInf = std::numeric_limits<float>::infinity();

const FaultCase kCases[] = {
    {"ConstantOfAMap",
     Kind::kRef,
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 24]
  %1 = Param() {name = "w"} : f32[24]
  %2 = Mul(%0, %1) : f32[S, 24]  @"a/scale"
  %3 = GeluApprox(%2) : f32[S, 24]  @"a/act"
  %4 = Add(%3, %0) : f32[S, 24]  @"a/sum"
  %5 = Tanh(%4) : f32[S, 24]  @"b/act"
  %6 = Exp(%5) : f32[S, 24]  @"b/exp"
  %7 = Reduce(%6) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"b/total"
  %8 = Div(%6, %7) : f32[S, 24]  @"b/part"
  return %8, %5
})",
     {{"S", 11}},
     "GeluApprox is outside of its contract",
     "",
     Literal(0.071354814, 0.09)},
    {"ConstantOfAnActivation",
     Kind::kRef,
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 17]
  %1 = Exp(%0) : f32[S, 17]  @"a"
  %2 = QuickGelu(%0) : f32[S, 17]  @"b"
  %3 = Mul(%1, %2) : f32[S, 17]  @"c"
  %4 = Tanh(%3) : f32[S, 17]  @"d"
  %5 = Reduce(%4) {axes = [1], keep_dim = true, op = "max"} : f32[S, 1]  @"e"
  %6 = Sub(%4, %5) : f32[S, 17]  @"f"
  return %6
})",
     {{"S", 7}},
     "QuickGelu is outside of its contract",
     "",
     Literal(1.702, 1.5)},
    {"OperatorOfLines",
     Kind::kRef,
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Param() {name = "g"} : f32[37]
  %2 = RmsNorm(%0, %1) : f32[S, 37]  @"norm"
  %3 = Softmax(%2) {axis = 1} : f32[S, 37]  @"softmax"
  %4 = Mul(%3, %0) : f32[S, 37]  @"weighted"
  %5 = Reduce(%4) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"sum"
  %6 = Tanh(%5) : f32[S, 1]  @"act"
  return %6, %3
})",
     {{"S", 9}},
     "Exp is outside of its contract",
     "",
     Operator(kir::Op::kExp, kir::Op::kExp2)},
    {"ShapeOfAReduction",
     Kind::kRef,
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 29]
  %1 = Mul(%0, %0) : f32[S, 29]  @"square"
  %2 = Reduce(%1) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"sum"
  %3 = Sqrt(%2) : f32[S, 1]  @"root"
  %4 = Add(%0, %3) : f32[S, 29]  @"shifted"
  %5 = Sin(%4) : f32[S, 29]  @"sine"
  %6 = Exp(%5) : f32[S, 29]  @"exp"
  return %6, %3
})",
     {{"S", 5}},
     "Reduce is outside of its contract",
     "",
     WithoutLast},
    {"SumsOfAProduct",
     Kind::kRef,
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 64]
  %1 = Param() {name = "w"} : f32[48, 64]
  %2 = Param() {name = "b"} : f32[48]
  %3 = Param() {name = "v"} : f32[64, 48]
  %4 = Tanh(%0) : f32[S, 64]  @"in"
  %5 = MatMul(%4, %1) {transpose_b = true} : f32[S, 48]  @"up"
  %6 = Add(%5, %2) : f32[S, 48]  @"bias"
  %7 = Silu(%6) : f32[S, 48]  @"act"
  %8 = MatMul(%7, %3) {transpose_b = true} : f32[S, 64]  @"down"
  %9 = Add(%8, %0) : f32[S, 64]  @"residual"
  return %9
})",
     {{"S", 9}},
     "MatMul is outside of its contract",
     "matmul",
     Literal(0, 0.5)},
    {"ScaleOfAttention",
     Kind::kRef,
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[1, S, 32]
  %1 = Input() {name = "k"} : f32[1, S, 16]
  %2 = Input() {name = "v"} : f32[1, S, 16]
  %3 = Tanh(%0) : f32[1, S, 32]  @"q"
  %4 = Sin(%2) : f32[1, S, 16]  @"values"
  %5 = Attention(%3, %1, %4) {head_dim = 8, heads = 4, kv_heads = 2, layout = "packed", mask = "causal"} : f32[1, S, 32]
      @"attention"
  %6 = Add(%5, %0) : f32[1, S, 32]  @"residual"
  %7 = Exp(%6) : f32[1, S, 32]  @"exp"
  return %7
})",
     {{"S", 11}},
     "Attention is outside of its contract",
     "attention",
     Literal(0.35355339059327373, 0.5)},
    {"PlaceOfAnUpdate",
     Kind::kRef,
     R"(graph g sym S in 1..8 {
  %0 = Input() {name = "cache"} : f32[24, 16]
  %1 = Input() {name = "x"} : f32[S, 16]
  %2 = Exp(%1) : f32[S, 16]  @"rows"
  %3 = Neg(%2) : f32[S, 16]  @"negative"
  %4 = Update(%0, %3) {axis = 0, start = <5>} : f32[24, 16]  @"cache"
  %5 = Tanh(%4) : f32[24, 16]  @"read"
  %6 = Mul(%5, %5) : f32[24, 16]  @"square"
  return %4, %6
  donate "cache" -> 0
})",
     {{"S", 3}},
     "Update is outside of its contract",
     "update",
     Offset(5)},
    {"OrderOfATranspose",
     Kind::kRef,
     R"(graph g {
  %0 = Input() {name = "x"} : f32[7, 7, 5]
  %1 = Exp(%0) : f32[7, 7, 5]  @"exp"
  %2 = Reduce(%1) {axes = [2], keep_dim = true, op = "sum"} : f32[7, 7, 1]  @"sum"
  %3 = Div(%1, %2) : f32[7, 7, 5]  @"part"
  %4 = Transpose(%3) {perm = [1, 0, 2]} : f32[7, 7, 5]  @"turned"
  %5 = Tanh(%4) : f32[7, 7, 5]  @"act"
  %6 = Reduce(%5) {axes = [2], keep_dim = true, op = "max"} : f32[7, 7, 1]  @"max"
  return %6, %5
})",
     {},
     "Transpose is outside of its contract",
     "",
     Swapped,
     IsSquare},
    {"PlaceOfASlice",
     Kind::kRef,
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 31]
  %1 = Tanh(%0) : f32[S, 31]  @"act"
  %2 = Reduce(%1) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"sum"
  %3 = Sub(%1, %2) : f32[S, 31]  @"centred"
  %4 = Slice(%3) {axis = 1, start = 7, step = 1, stop = 18} : f32[S, 11]  @"part"
  %5 = Exp(%4) : f32[S, 11]  @"exp"
  %6 = Mul(%5, %4) : f32[S, 11]  @"product"
  return %6
})",
     {{"S", 5}},
     "Slice is outside of its contract",
     "",
     Offset(7)},
    {"NanOfALog",
     Kind::kNan,
     R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 24]
  %1 = Input() {name = "y"} : f32[S, 24]
  %2 = Exp(%0) : f32[S, 24]  @"exp"
  %3 = Mul(%2, %1) : f32[S, 24]  @"weighted"
  %4 = Reduce(%3) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"sum"
  %5 = Sub(%3, %4) : f32[S, 24]  @"centred"
  %6 = Log(%5) : f32[S, 24]  @"log"
  %7 = Tanh(%6) : f32[S, 24]  @"act"
  %8 = Add(%7, %0) : f32[S, 24]  @"residual"
  %9 = Softmax(%8) {axis = 1} : f32[S, 24]  @"softmax"
  return %9, %4
})",
     {{"S", 13}},
     "Log makes a NaN of negative"},
    {"NanOfADivision",
     Kind::kNan,
     R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 19]
  %1 = Input() {name = "y"} : f32[S, 19]
  %2 = Relu(%0) : f32[S, 19]  @"relu"
  %3 = Mul(%2, %1) : f32[S, 19]  @"weighted"
  %4 = Tanh(%3) : f32[S, 19]  @"act"
  %5 = Div(%4, %2) : f32[S, 19]  @"ratio"
  %6 = Reduce(%5) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"sum"
  %7 = Sub(%5, %6) : f32[S, 19]  @"centred"
  %8 = Exp(%7) : f32[S, 19]  @"exp"
  return %8
})",
     {{"S", 9}},
     "Div makes a NaN of zero and zero"},
    {"NanOfASoftmax",
     Kind::kNan,
     R"(graph g sym S in 1..64 {
  %0 = Input() {name = "scores"} : f32[S, 7]
  %1 = Input() {name = "mask"} : f32[S, 7]
  %2 = Tanh(%0) : f32[S, 7]  @"bounded"
  %3 = Add(%2, %1) : f32[S, 7]  @"masked"
  %4 = Softmax(%3) {axis = 1} : f32[S, 7]  @"softmax"
  %5 = Mul(%4, %0) : f32[S, 7]  @"weighted"
  %6 = Reduce(%5) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"sum"
  %7 = Log(%6) : f32[S, 1]  @"log"
  return %7
})",
     {{"S", 9}},
     "Sub makes a NaN of -inf and -inf",
     "",
     nullptr,
     [](const kir::Kernel&) { return true; },
     "mask",
     -kInf},
};

// Graphs are compiled with a fault in their kernels, and run.
class Faulty {
 public:
  explicit Faulty(const FaultCase& fault) : fault_(fault), pipeline_(*compiler::PipelineOptionsOf({})) {
    cache_ = std::make_shared<KernelCache>(*jit::Engine::Create({.threads = 1}));
    pool_ = std::make_shared<ThreadPool>(1);
  }

  // What is found; "" when nothing is.
  std::string Signature(const Reproduction& reproduction) const {
    StatusOr<check::Planned> planned = compiler::PlanReproduction(reproduction, pipeline_);
    if (!planned.ok()) return std::string(planned.status().message());
    planned->edit_plan = [this](lir::Plan& plan) { Plant(plan); };
    Plant(planned->plan);
    ExecutableOptions options;
    options.cache = cache_;
    options.pool = pool_;
    const auto finding = check::Replay(reproduction, *planned, std::move(options));
    if (!finding.ok()) return std::string(finding.status().message());
    return *finding ? (*finding)->Signature() : "";
  }

 private:
  void Plant(lir::Plan& plan) const {
    if (fault_.fault == nullptr) return;
    for (kir::Kernel& kernel : plan.kernels) {
      if (absl::StrContains(kernel.name, fault_.family) && fault_.takes(kernel))
        kernel.body = kir::Rewrite(kernel.body, fault_.fault);
    }
  }

  const FaultCase& fault_;
  compiler::PipelineOptions pipeline_;
  std::shared_ptr<KernelCache> cache_;
  std::shared_ptr<ThreadPool> pool_;
};

class Reduced : public ::testing::TestWithParam<FaultCase> {};

TEST_P(Reduced, KeepsTheOpAndTheKindOfTheFinding) {
  const FaultCase& fault = GetParam();
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Reproduction start;
  StatusOr<ir::Graph> graph = ir::Parse(fault.text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  start.graph = *std::move(graph);
  start.sizes = fault.sizes;
  start.kind = fault.kind;
  start.bytes = RandomBytes(start.graph, start.sizes, kSeed);
  if (fault.value != 0) {
    // One row of 7, and nothing of the others.
    std::vector<uint8_t>& bytes = start.bytes.at(fault.input);
    std::fill(bytes.begin(), bytes.end(), 0);
    for (size_t i = 14; i < 21; ++i) std::memcpy(bytes.data() + i * sizeof(float), &fault.value, sizeof(float));
  }
  ASSERT_TRUE(check::Check(start).ok()) << check::Check(start);
  const Faulty faulty(fault);
  ASSERT_EQ(faulty.Signature(start), fault.signature);
  const Reproduction reduced =
      check::Reduce(start, [&](const Reproduction& smaller) { return faulty.Signature(smaller) == fault.signature; },
                    {.attempts = 400});
  EXPECT_EQ(faulty.Signature(reduced), fault.signature) << ir::Print(reduced.graph);
  EXPECT_LE(reduced.graph.nodes().size(), 5u) << ir::Print(reduced.graph);
  for (const auto& [name, bytes] : reduced.bytes) {
    const ir::Node* leaf = nullptr;
    for (const ir::Node& node : reduced.graph.nodes()) {
      if (ir::IsLeaf(node) && !ir::IsConstant(node) && node.attributes.String("name") == name) leaf = &node;
    }
    ASSERT_NE(leaf, nullptr);
    if (IsFloat(leaf->results[0].dtype)) EXPECT_FALSE(check::Specials(leaf->results[0].dtype, bytes).nan) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Reduced, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace quern::testing
