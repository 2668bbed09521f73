// Errors of ops are typed: code, op, operand, expected and got, for every op of the table and every way it refuses.

#include <gtest/gtest.h>

#include <random>

#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace quern::ir {
namespace {

TensorType Type(const char* text) { return *TensorType::Parse(text); }

// Operands and attributes that an op takes.
struct Good {
  const char* op;
  std::vector<const char*> operands;
  Attributes attributes = {};
};

std::vector<Extent> Sizes(std::vector<int64_t> sizes) { return {sizes.begin(), sizes.end()}; }

const Attributes kHeads = {{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}, {"head_dim", int64_t{8}}};
const Attributes kAxis = {{"axis", int64_t{1}}};
const Attributes kAxisTwo = {{"axis", int64_t{2}}};
const Attributes kPool = {{"kind", std::string("max")}, {"kernel", std::vector<int64_t>{2}}};

// Ops that are not elementwise and have no examples of their own.
const std::vector<Good>& Recipes() {
  static const auto* const recipes = new std::vector<Good>{
      {"ArgMax", {"f32[2, 3]"}, kAxis},
      {"ArgMin", {"f32[2, 3]"}, kAxis},
      {"Attention", {"f32[2, 3, 32]", "f32[2, 5, 16]", "f32[2, 5, 16]"}, kHeads},
      {"Concat", {"f32[2, 3]", "f32[2, 5]"}, kAxis},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}},
      {"ConvTranspose", {"f32[2, 3, 9]", "f32[3, 5, 2]"}},
      {"DotGeneral", {"f32[2, 3]", "f32[5, 7]"}},
      {"Expand", {"f32[1, 3]"}, {{"shape", Sizes({4, 3})}}},
      {"FusedMatMulBiasAct", {"f32[2, 3]", "f32[3, 5]", "f32[5]"}},
      {"FusedResidualRmsNorm", {"f32[2, 3]", "f32[2, 3]", "f32[3]"}},
      {"FusedSwiGLU", {"f32[2, 6]"}},
      {"Gather", {"f32[7, 3]", "i32[5]"}},
      {"GroupedMatMul", {"f32[2, 3]", "f32[7, 3, 5]", "i32[2]"}},
      {"LayerNorm", {"f32[2, 3]", "f32[3]"}},
      {"MatMul", {"f32[2, 3]", "f32[3, 5]"}},
      {"MatMulPanels", {"f32[2, 3]", "f32[2, 3, 32]"}, {{"columns", int64_t{37}}}},
      {"Narrow", {"f32[2, 5]"}, {{"axis", int64_t{1}}, {"start", Sizes({1})}, {"length", Sizes({3})}}},
      {"Pad", {"f32[2, 3]"}, {{"low", std::vector<int64_t>{0, 1}}, {"high", std::vector<int64_t>{2, 0}}}},
      {"Pool", {"f32[2, 3, 9]"}, kPool},
      {"Quantize", {"f32[2, 32]"}, {{"format", DType::kQ8_0}}},
      {"PickedMatMul", {"f32[2, 3]", "f32[7, 5, 3]", "i32[2]"}},
      {"Reduce", {"f32[2, 3]"}, {{"op", std::string("sum")}, {"axes", std::vector<int64_t>{1}}}},
      {"Reshape", {"f32[2, 3]"}, {{"shape", Sizes({3, 2})}}},
      {"Reverse", {"f32[2, 3]"}, {{"axes", std::vector<int64_t>{0}}}},
      {"RmsNorm", {"f32[2, 3]", "f32[3]"}},
      {"Rope", {"f32[5, 16]", "f32[5, 4]", "f32[5, 4]"}, {{"head_dim", int64_t{8}}, {"n_rot", int64_t{8}}}},
      {"Slice", {"f32[2, 5]"}, {{"axis", int64_t{1}}, {"start", int64_t{1}}, {"stop", int64_t{4}}}},
      {"Softmax", {"f32[2, 3]"}},
      {"Transpose", {"f32[2, 3]"}, {{"perm", std::vector<int64_t>{1, 0}}}},
      {"Update", {"f32[5, 3]", "f32[2, 3]"}, {{"axis", int64_t{0}}, {"start", Sizes({1})}}},
      {"Window", {"f32[2, 9]"}, {{"kernel", std::vector<int64_t>{2}}}},
  };
  return *recipes;
}

// Those with bodies are control_api_test.cc's and custom_fn_test.cc's; Custom is what the caller says, and
// custom_test.cc's.
bool IsMade(const OpDef& op) {
  return op.kind != OpKind::kLeaf && op.kind != OpKind::kRegion && op.bodies.empty() &&
         std::string_view(op.name) != "Custom" && std::string_view(op.name) != "Counted";  // counted_test.cc
}

// A node of every op that is taken.
std::vector<Good> EveryOp() {
  std::vector<Good> all = Recipes();
  for (const OpDef* op : Ops()) {
    for (const Example& example : op->examples) all.push_back({op->name, example.operands, example.attributes});
    if (op->kind != OpKind::kElementwise || !op->examples.empty()) continue;
    Good good{op->name, {}};
    for (const OperandDef& operand : op->operands) {
      const bool integer = operand.kind == OperandKind::kInteger || operand.kind == OperandKind::kIntegerOrBool;
      good.operands.push_back(operand.kind == OperandKind::kBool ? "bool[2, 3]" : integer ? "i32[2, 3]" : "f32[2, 3]");
    }
    all.push_back(std::move(good));
  }
  return all;
}

// Adds `op` over inputs of those types, at the origin "here".
Status Try(const OpDef& op, const std::vector<TensorType>& types, const Attributes& attributes) {
  Graph graph;
  graph.symbols = {{"S", {1, 9}}};
  std::vector<Value> inputs;
  for (size_t i = 0; i < types.size(); ++i) inputs.push_back(*graph.AddInput("x" + std::to_string(i), types[i]));
  const size_t nodes = graph.nodes().size();
  const Status status = graph.Add(op, inputs, attributes, graph.AddOrigin({"here", "test"})).status();
  EXPECT_EQ(graph.nodes().size(), nodes + (status.ok() ? 1 : 0)) << "an error leaves the graph as it was";
  if (!status.ok()) EXPECT_TRUE(graph.constraints.empty()) << status;
  return status;
}

std::vector<TensorType> Types(const std::vector<const char*>& texts) {
  std::vector<TensorType> types;
  for (const char* text : texts) types.push_back(Type(text));
  return types;
}

// The diagnostic of an error of `op` about `operand`, whole.
void ExpectError(const Status& status, const OpDef& op, DiagnosticCode code, std::string_view operand) {
  ASSERT_FALSE(status.ok()) << op.name << " " << operand;
  const std::optional<Diagnostic> diagnostic = DiagnosticOf(status);
  ASSERT_TRUE(diagnostic.has_value()) << status;
  EXPECT_EQ(diagnostic->code, code) << status;
  EXPECT_EQ(diagnostic->op, op.name) << status;
  EXPECT_EQ(diagnostic->operand, operand) << status;
  EXPECT_NE(diagnostic->expected, "") << status;
  EXPECT_NE(diagnostic->got, "") << status;
  EXPECT_EQ(diagnostic->provenance, "here") << status;
}

TEST(OpErrors, EveryOpIsTakenAsItShouldBe) {
  std::set<std::string_view> seen;
  for (const Good& good : EveryOp()) {
    seen.insert(good.op);
    const Status status = Try(*FindOp(good.op), Types(good.operands), good.attributes);
    EXPECT_TRUE(status.ok()) << good.op << ": " << status;
  }
  for (const OpDef* op : Ops()) EXPECT_TRUE(seen.contains(op->name) || !IsMade(*op)) << op->name << " has no recipe";
}

TEST(OpErrors, Counts) {
  for (const Good& good : EveryOp()) {
    const OpDef& op = *FindOp(good.op);
    if (!op.operands.empty()) ExpectError(Try(op, {}, good.attributes), op, DiagnosticCode::kInputCount, "");
    std::vector<TensorType> many = Types(good.operands);
    many.resize(op.operands.size() + 1, Type("f32[2]"));
    if (op.operands.empty() || !op.operands.back().variadic)
      ExpectError(Try(op, many, good.attributes), op, DiagnosticCode::kInputCount, "");
  }
}

TEST(OpErrors, DTypes) {
  for (const Good& good : EveryOp()) {
    const OpDef& op = *FindOp(good.op);
    for (size_t i = 0; i < good.operands.size(); ++i) {
      const OperandDef& def = op.operands[std::min(i, op.operands.size() - 1)];
      for (int d = 0; d < kDTypeCount; ++d) {
        const DType dtype = static_cast<DType>(d);
        if (Accepts(op, def, dtype)) continue;
        std::vector<TensorType> types = Types(good.operands);
        types[i].dtype = dtype;
        ExpectError(Try(op, types, good.attributes), op,
                    IsBlock(dtype) ? DiagnosticCode::kUnsupported : DiagnosticCode::kDTypeMismatch, OperandName(op, i));
      }
      // Operands that have one dtype: the second of them has another.
      if (i == 0 || def.own_dtype || op.operands[0].own_dtype) continue;
      for (const DType dtype : {DType::kF64, DType::kI64, DType::kBool}) {
        std::vector<TensorType> types = Types(good.operands);
        if (!Accepts(def.kind, dtype) || types[i].dtype == dtype) continue;
        types[i].dtype = dtype;
        ExpectError(Try(op, types, good.attributes), op, DiagnosticCode::kDTypeMismatch, OperandName(op, i));
      }
    }
  }
}

TEST(OpErrors, AttributesOfNoOp) {
  for (const Good& good : EveryOp()) {
    const OpDef& op = *FindOp(good.op);
    Attributes more = good.attributes;
    more.Set("zzzzzzzz", int64_t{1});
    const Status status = Try(op, Types(good.operands), more);
    ExpectError(status, op, DiagnosticCode::kBadAttribute, "zzzzzzzz");
    EXPECT_EQ(DiagnosticOf(status)->suggestion, "");
    for (const AttrDef& def : op.attributes) {
      if (std::string_view(def.name).size() < 3) continue;
      Attributes misspelt = good.attributes;
      misspelt.Set(std::string(def.name) + "x", int64_t{1});
      const Status near = Try(op, Types(good.operands), misspelt);
      ExpectError(near, op, DiagnosticCode::kBadAttribute, std::string(def.name) + "x");
      EXPECT_EQ(DiagnosticOf(near)->suggestion, def.name) << near;
    }
  }
}

TEST(OpErrors, AttributesOfAnotherKindOrMissing) {
  for (const Good& good : EveryOp()) {
    const OpDef& op = *FindOp(good.op);
    for (const AttrDef& def : op.attributes) {
      Attributes wrong = good.attributes;
      wrong.Set(def.name, def.kind == AttrKind::kBool ? AttrValue(int64_t{1}) : AttrValue(true));
      ExpectError(Try(op, Types(good.operands), wrong), op, DiagnosticCode::kBadAttribute, def.name);
      if (!def.choices.empty()) {
        wrong.Set(def.name, std::string("neither"));
        ExpectError(Try(op, Types(good.operands), wrong), op, DiagnosticCode::kBadAttribute, def.name);
      }
      if (def.default_value) continue;
      Attributes fewer;
      for (const auto& [name, value] : good.attributes.values()) {
        if (name != def.name) fewer.Set(name, value);
      }
      const Status status = Try(op, Types(good.operands), fewer);
      ExpectError(status, op, DiagnosticCode::kBadAttribute, def.name);
      EXPECT_EQ(DiagnosticOf(status)->got, "absent");
    }
  }
}

// What the rules of each op refuse, one row a rule.
struct Bad {
  const char* op;
  std::vector<const char*> operands;
  Attributes attributes;
  DiagnosticCode code;
  const char* operand;
};

Attributes With(Attributes attributes, const char* name, AttrValue value) {
  attributes.Set(name, std::move(value));
  return attributes;
}

Attributes Numbers(const char* name, std::vector<int64_t> numbers) { return {{name, std::move(numbers)}}; }

TEST(OpErrors, RulesOfTheOps) {
  constexpr DiagnosticCode kShape = DiagnosticCode::kShapeMismatch, kAttribute = DiagnosticCode::kBadAttribute,
                           kDType = DiagnosticCode::kDTypeMismatch, kCount = DiagnosticCode::kInputCount,
                           kNoKernel = DiagnosticCode::kUnsupported;
  const std::vector<const char*> qkv = {"f32[2, 3, 32]", "f32[2, 5, 16]", "f32[2, 5, 16]"};
  const std::vector<const char*> bc = {"f32[2, 3, 2, 7]", "f32[2, 3, 4, 5]"};
  const Attributes narrow = {{"axis", int64_t{1}}, {"start", Sizes({1})}, {"length", Sizes({3})}},
                   slice = {{"axis", int64_t{1}}, {"start", int64_t{1}}, {"stop", int64_t{4}}},
                   block = {{"heads", int64_t{2}}, {"head_dim", int64_t{4}}},
                   pad = {{"low", std::vector<int64_t>{0}}, {"high", std::vector<int64_t>{0}}},
                   reduce = {{"op", std::string("sum")}, {"axes", std::vector<int64_t>{1}}},
                   rope = {{"head_dim", int64_t{8}}, {"n_rot", int64_t{8}}},
                   update = {{"axis", int64_t{0}}, {"start", Sizes({1})}}, rows = {{"transpose_b", true}},
                   panels = {{"columns", int64_t{37}}}, custom = With(kHeads, "mask", std::string("custom")),
                   bias = With(kHeads, "mask", std::string("bias")),
                   lengths = With(kHeads, "sequences", std::string("lengths")),
                   ragged = With(kHeads, "sequences", std::string("ragged")),
                   paged = With(kHeads, "sequences", std::string("paged"));
  const std::vector<Bad> all = {
      {"Add", {"f32[3]", "f32[4]"}, {}, kShape, "b"},
      {"Eq", {"i32[2, 3]", "i32[3, 2]"}, {}, kShape, "b"},
      {"Where", {"bool[3]", "f32[4]", "f32[4]"}, {}, kShape, "b"},
      {"Where", {"bool[3]", "f32[3]", "f32[4]"}, {}, kShape, "c"},
      {"Cast", {"f32[3]"}, {{"to", DType::kQ4_K}}, kAttribute, "to"},
      {"Clamp", {"f32[2, 3]", "f32[]", "f32[2]"}, {}, kShape, "c"},
      {"Iota", {}, {{"shape", Sizes({})}}, kAttribute, "shape"},
      {"Iota", {}, {{"shape", Sizes({2, 3})}, {"axis", int64_t{2}}}, kAttribute, "axis"},
      {"Iota", {}, {{"shape", Sizes({2})}, {"dtype", DType::kI8}}, kAttribute, "dtype"},
      {"Size", {}, {{"extent", Sizes({2, 3})}}, kAttribute, "extent"},
      {"DynamicSlice", {"f32[5, 7]", "i32[2]"}, {{"sizes", Sizes({3, 8})}}, kAttribute, "sizes"},
      {"DynamicSlice", {"f32[5, 7]", "i32[2]"}, {{"sizes", Sizes({3})}}, kAttribute, "sizes"},
      {"DynamicSlice", {"f32[5, 7]", "i32[3]"}, {{"sizes", Sizes({3, 7})}}, kShape, "at"},
      {"DynamicSlice", {"f32[]", "i32[0]"}, {{"sizes", Sizes({})}}, kShape, "x"},
      {"DynamicUpdateSlice", {"f32[5, 7]", "f32[6, 7]", "i32[2]"}, {}, kShape, "update"},
      {"DynamicUpdateSlice", {"f32[5, 7]", "f32[7]", "i32[2]"}, {}, kShape, "update"},
      {"DynamicUpdateSlice", {"f32[5, 7]", "f32[5, 7]", "i32[1]"}, {}, kShape, "at"},
      {"DynamicUpdateSlice", {"f32[]", "f32[]", "i32[0]"}, {}, kShape, "x"},
      {"Tile", {"f32[5, 7]"}, Numbers("repeats", {2}), kAttribute, "repeats"},
      {"Tile", {"f32[5, 7]"}, Numbers("repeats", {2, -1}), kAttribute, "repeats"},
      {"Trilu", {"f32[7]"}, {}, kShape, "x"},
      {"OneHot", {"i32[3]", "f32[]", "f32[]"}, {{"depth", int64_t{-1}}}, kAttribute, "depth"},
      {"OneHot", {"i32[3]", "f32[]", "f32[]"}, {{"depth", int64_t{5}}, {"axis", int64_t{2}}}, kAttribute, "axis"},
      {"OneHot", {"i32[3]", "f32[1]", "f32[]"}, {{"depth", int64_t{5}}}, kShape, "on"},
      {"OneHot", {"i32[3]", "f32[]", "f32[1]"}, {{"depth", int64_t{5}}}, kShape, "off"},
      {"GatherElements", {"f32[5, 7]", "i32[5]"}, {}, kShape, "indices"},
      {"GatherElements", {"f32[5, 7]", "i32[9, 8]"}, {}, kShape, "indices"},
      {"GatherElements", {"f32[0, 7]", "i32[3, 7]"}, {}, kShape, "x"},
      {"GatherElements", {"f32[5, 7]", "i32[5, 7]"}, kAxisTwo, kAttribute, "axis"},
      {"GatherND", {"f32[5, 7]", "i32[3, 3]"}, {}, kShape, "indices"},
      {"GatherND", {"f32[5, 7]", "i32[3, S]"}, {}, kShape, "indices"},
      {"GatherND", {"f32[5, 7]", "i32[5, 1]"}, {{"batch_dims", int64_t{2}}}, kAttribute, "batch_dims"},
      {"GatherND", {"f32[5, 7]", "i32[4, 1]"}, {{"batch_dims", int64_t{1}}}, kShape, "indices"},
      {"GatherND", {"f32[0, 7]", "i32[4, 1]"}, {}, kShape, "x"},
      {"GatherND", {"f32[]", "i32[4, 1]"}, {}, kShape, "x"},
      {"ResizeNearest2x", {"f32[7]"}, {}, kShape, "x"},
      {"ReduceL1", {"f32[2, 3]"}, Numbers("axes", {1, -1}), kAttribute, "axes"},
      {"ReduceLogSumExp", {"f32[2, 3]"}, Numbers("axes", {2}), kAttribute, "axes"},
      {"LogSoftmax", {"f32[]"}, {}, kShape, "x"},
      {"Hardmax", {"f32[2, 0]"}, {}, kShape, "x"},
      {"CumProd", {"f32[2, 3]"}, kAxisTwo, kAttribute, "axis"},
      {"GroupNorm", {"f32[2, 6, 5]", "f32[6]", "f32[6]"}, {{"groups", int64_t{4}}}, kAttribute, "groups"},
      {"GroupNorm", {"f32[2, 6, 5]", "f32[6]", "f32[6]"}, {{"groups", int64_t{0}}}, kAttribute, "groups"},
      {"GroupNorm", {"f32[2, 6, 5]", "f32[5]", "f32[6]"}, {{"groups", int64_t{2}}}, kShape, "gamma"},
      {"GroupNorm", {"f32[1, 2, 1, 1, 1, 1, 1, 1]", "f32[2]", "f32[2]"}, {{"groups", int64_t{2}}}, kNoKernel, "x"},
      {"InstanceNorm", {"f32[2, 6]", "f32[6]", "f32[6]"}, {}, kShape, "x"},
      {"LayerNorm2d", {"f32[2, 6, 5]", "f32[6]", "f32[5]"}, {}, kShape, "beta"},
      {"BatchNormInference", {"f32[2, 6]", "f32[6]", "f32[6]", "f32[6]", "f32[2]"}, {}, kShape, "var"},
      {"LoraMatMul", {"f32[7]", "f32[7, 5]", "f32[7, 2]", "f32[2, 5]"}, {}, kShape, "x"},
      {"LoraMatMul", {"f32[3, 7]", "f32[6, 5]", "f32[7, 2]", "f32[2, 5]"}, {}, kShape, "w"},
      {"LoraMatMul", {"f32[3, 7]", "f32[7]", "f32[7, 2]", "f32[2, 5]"}, {}, kShape, "w"},
      {"LoraMatMul", {"f32[3, 7]", "f32[7, 5]", "f32[6, 2]", "f32[2, 5]"}, {}, kShape, "a"},
      {"LoraMatMul", {"f32[3, 7]", "f32[7, 5]", "f32[7, 2]", "f32[2, 4]"}, {}, kShape, "b"},
      {"GatedResidual", {"f32[2, 3]", "f32[2]", "f32[2, 3]"}, {}, kShape, "gate"},
      {"GatedResidual", {"f32[2, 3]", "f32[3]", "f32[3]"}, {}, kShape, "y"},
      {"AdaLayerNorm", {"f32[2, 3]", "f32[2]", "f32[3]"}, {}, kShape, "scale"},
      {"AdaLayerNorm", {"f32[2, 3]", "f32[3]", "f32[5, 2, 3]"}, {}, kShape, "shift"},
      {"AdaLayerNorm", {"f32[]", "f32[]", "f32[]"}, {}, kShape, "x"},
      {"ArgMax", {"f32[2, 3]"}, kAxisTwo, kAttribute, "axis"},
      {"ArgMax", {"f32[2, 0]"}, kAxis, kShape, "x"},
      {"ArgMin", {"f32[]"}, kAxis, kShape, "x"},
      {"Conv", {"f32[2, 3]", "f32[5, 3]"}, {}, kShape, "x"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2, 2]"}, {}, kShape, "w"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, S]"}, {}, kShape, "w"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 4, 2]"}, {}, kShape, "w"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 0]"}, {}, kShape, "w"},
      {"Conv", {"f32[2, 3, 9, 9]", "f32[5, 3, 2, 1048577]"}, {}, kShape, "w"},
      {"ConvTranspose", {"f32[2, 3, 9]", "f32[3, 5, 0]"}, {}, kShape, "w"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]", "f32[4]"}, {}, kShape, "b"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 10]"}, {}, kShape, "x"},
      {"Conv", {"f32[2, 6, 9]", "f32[5, 3, 2]"}, {{"groups", int64_t{2}}}, kAttribute, "groups"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, {{"groups", int64_t{0}}}, kAttribute, "groups"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, Numbers("strides", {0}), kAttribute, "strides"},
      {"Conv", {"i32[2, 3, 9]", "i32[5, 3, 2]"}, {}, kDType, "x"},
      {"Conv", {"u8[2, 3, 9]", "f32[5, 3, 2]"}, {}, kDType, "w"},
      {"Conv", {"f32[2, 3, 9]", "f16[5, 3, 2]"}, {}, kDType, "w"},
      {"Conv", {"u8[2, 3, 9]", "i8[5, 3, 2]", "u8[5]"}, {}, kNoKernel, "b"},
      {"Conv", {"u8[2, 3, 9]", "i8[5, 3, 2]"}, {{"fill", 256.0}}, kAttribute, "fill"},
      {"Conv", {"i8[2, 3, 9]", "i8[5, 3, 2]"}, {{"fill", 0.5}}, kAttribute, "fill"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, {{"fill", 1.0}}, kAttribute, "fill"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, Numbers("strides", {1, 1}), kAttribute, "strides"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, Numbers("dilations", {-1}), kAttribute, "dilations"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, Numbers("pads", {1}), kAttribute, "pads"},
      {"Conv", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, Numbers("pads", {0, int64_t{1} << 62}), kAttribute, "pads"},
      {"ConvTranspose", {"f32[2, 3, 9]", "f32[4, 5, 2]"}, {}, kShape, "w"},
      {"ConvTranspose", {"f32[2, 3, 9]", "f32[3, 5, 2]", "f32[3]"}, {}, kShape, "b"},
      {"ConvTranspose", {"f32[2, 3, 9]", "f32[3, 5, 2]"}, Numbers("output_padding", {1}), kAttribute, "output_padding"},
      {"ConvTranspose", {"f32[2, 3, 2]", "f32[3, 5, 2]"}, Numbers("pads", {2, 1}), kShape, "x"},
      {"ConvTranspose", {"f32[2, 3, 9]", "f32[3, 5, 2]"}, {{"groups", int64_t{2}}}, kAttribute, "groups"},
      {"Pool", {"f32[2, 9]"}, kPool, kShape, "x"},
      {"Pool", {"f32[2, 3, 9, 9]"}, kPool, kAttribute, "kernel"},
      {"Pool", {"f32[2, 3, 9]"}, With(kPool, "pads", std::vector<int64_t>{2, 0}), kAttribute, "pads"},
      {"Pool", {"f32[2, 3, S]"}, With(With(kPool, "ceil", true), "kernel", std::vector<int64_t>{1}), kNoKernel, "x"},
      {"Window", {"f32[2, 9]"}, Numbers("kernel", {}), kAttribute, "kernel"},
      {"Window", {"f32[2, 9]"}, Numbers("kernel", {2, 2, 2}), kAttribute, "kernel"},
      {"Window", {"f32[2, 9]"}, Numbers("kernel", {3, 2}), kShape, "x"},
      {"Reverse", {"f32[2, 3]"}, Numbers("axes", {2}), kAttribute, "axes"},
      {"Reverse", {"f32[2, 3]"}, Numbers("axes", {1, -1}), kAttribute, "axes"},
      {"DotGeneral", {"f32[2, 3]", "f32[3, 5]"}, Numbers("lhs_contract", {1}), kAttribute, "rhs_contract"},
      {"DotGeneral", {"f32[2, 3]", "f32[3, 5]"}, Numbers("lhs_batch", {2}), kAttribute, "lhs_batch"},
      {"DotGeneral", {"f32[2, 3]", "f32[3, 5]"}, Numbers("rhs_contract", {1, 1}), kAttribute, "rhs_contract"},
      {"DotGeneral",
       {"f32[2, 3]", "f32[4, 5]"},
       With(Numbers("lhs_contract", {1}), "rhs_contract", std::vector<int64_t>{0}),
       kShape,
       "rhs"},
      {"CumSum", {"f32[2, 3]"}, With(kAxis, "axis", int64_t{-3}), kAttribute, "axis"},
      {"CumSum", {"f32[]"}, kAxis, kShape, "x"},
      {"Attention", {"f32[3, 32]", qkv[1], qkv[2]}, kHeads, kShape, "q"},
      {"Attention", {qkv[0], "f32[2, 5, 15]", qkv[2]}, kHeads, kShape, "k"},
      {"Attention", {qkv[0], qkv[1], "f32[2, 4, 16]"}, kHeads, kShape, "v"},
      {"Attention", {qkv[0], "f32[1, 5, 16]", "f32[1, 5, 16]"}, kHeads, kShape, "k"},
      {"Attention", {"f64[2, 3, 32]", qkv[1], qkv[2]}, kHeads, kNoKernel, "k"},
      {"Attention", {"f64[2, 3, 32]", "f64[2, 5, 16]", qkv[2]}, kHeads, kNoKernel, "v"},
      {"Attention",
       {"f64[2, 3, 32]", "f64[2, 5, 16]", "f64[2, 5, 16]"},
       With(kHeads, "empty_rows", std::string("nan")),
       kNoKernel,
       "q"},
      {"Attention", {qkv[0], "f64[2, 5, 16]", "f16[2, 5, 16]"}, kHeads, kNoKernel, "k"},
      {"Attention", {qkv[0], "bf16[2, 5, 16]", "f64[2, 5, 16]"}, kHeads, kNoKernel, "v"},
      {"Attention", qkv, With(kHeads, "heads", int64_t{0}), kAttribute, "heads"},
      {"Attention", qkv, With(kHeads, "kv_heads", int64_t{3}), kAttribute, "kv_heads"},
      {"Attention", qkv, With(kHeads, "head_dim", int64_t{0}), kAttribute, "head_dim"},
      {"Attention", qkv, With(kHeads, "window", int64_t{-1}), kAttribute, "window"},
      {"Attention", qkv, custom, kCount, "mask"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "f32[2, 5]"}, kHeads, kCount, "mask"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "f32[2, 4]"}, custom, kShape, "mask"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "f32[2, 4]"}, bias, kShape, "mask"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "f32[1, 2, 4, 3, 5]"}, bias, kShape, "mask"},
      {"Attention", qkv, lengths, kCount, "sequences"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "i32[2]"}, ragged, kCount, "sequences"},
      {"Attention",
       {qkv[0], qkv[1], qkv[2], "i32[2]"},
       With(lengths, "mask", std::string("bias")),
       kCount,
       "sequences"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "i64[2]"}, lengths, kDType, "kv_len"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "i32[2, 1]"}, lengths, kShape, "kv_len"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "i32[3]"}, lengths, kShape, "q"},
      {"Attention", {qkv[0], "f32[3, 5, 16]", "f32[3, 5, 16]", "i32[2]"}, lengths, kShape, "k"},
      {"Attention", {qkv[0], qkv[1], qkv[2], "i32[3]", "i32[2]"}, ragged, kShape, "q"},
      {"Attention", {"f32[1, 3, 32]", qkv[1], qkv[2], "i32[2]", "i32[2]"}, ragged, kShape, "q_start"},
      {"Attention", {"f32[1, 3, 32]", qkv[1], qkv[2], "f32[3]", "i32[2]"}, ragged, kDType, "q_start"},
      {"Attention", {qkv[0], "f32[9, S, 16]", "f32[9, S, 16]", "i32[2]", "i32[2, 4]"}, paged, kShape, "k"},
      {"Attention", {qkv[0], "f32[0, 5, 16]", "f32[0, 5, 16]", "i32[2]", "i32[2, 4]"}, paged, kShape, "k"},
      {"Attention", {qkv[0], "f32[9, 5, 16]", "f32[9, 5, 16]", "i32[2]", "i32[3, 4]"}, paged, kShape, "blocks"},
      {"Attention", {qkv[0], "f32[9, 5, 16]", "f32[9, 5, 16]", "i32[2]", "i32[8]"}, paged, kShape, "blocks"},
      {"Concat", {"f32[2, 3]", "f32[3, 3]"}, kAxis, kShape, "x[1]"},
      {"Concat", {"f32[2, 3]", "f32[2, 3]", "f32[3]"}, kAxis, kShape, "x[2]"},
      {"Concat", {"f32[2, 3]"}, With(kAxis, "axis", int64_t{2}), kAttribute, "axis"},
      {"Concat", {"f32[]"}, kAxis, kShape, "x[0]"},
      {"Expand", {"f32[2, 3]"}, {{"shape", Sizes({4, 3})}}, kAttribute, "shape"},
      {"Expand", {"f32[2, 3]"}, {{"shape", Sizes({3})}}, kAttribute, "shape"},
      {"FusedMatMulBiasAct", {"f32[2, 3]", "f32[4, 5]", "f32[5]"}, {}, kShape, "w"},
      {"FusedMatMulBiasAct", {"f32[2, 3]", "f32[3, 5]", "f32[4]"}, {}, kShape, "b"},
      {"FusedMatMulBiasAct", {"f32[2, 3]", "f32[3, 5]", "f16[5]"}, {}, kDType, "b"},
      {"FusedMatMulBiasAct", {"f32[2, 3]", "f32[3, 5]", "f32[5]"}, {{"act", std::string("Add")}}, kAttribute, "act"},
      {"FusedResidualRmsNorm", {"f32[2, 3]", "f32[3, 3]", "f32[3]"}, {}, kShape, "residual"},
      {"FusedResidualRmsNorm", {"f32[2, 3]", "f32[2, 3]", "f32[2]"}, {}, kShape, "gamma"},
      {"FusedResidualRmsNorm", {"f32[2, 3]", "f32[2, 3]", "f32[3]", "f32[2]"}, {}, kShape, "beta"},
      {"FusedSwiGLU", {"f32[2, 5]"}, {}, kShape, "x"},
      {"FusedSwiGLU", {"f32[]"}, {}, kShape, "x"},
      {"Gather", {"f32[7, 3]", "i32[5]"}, With(kAxis, "axis", int64_t{-3}), kAttribute, "axis"},
      {"Gather", {"f32[]", "i32[5]"}, {}, kShape, "table"},
      {"Gather", {"f32[0]", "i32[5]"}, {}, kShape, "table"},
      {"Gather", {"q8_0[7, 32]", "i32[5]"}, kAxis, kAttribute, "axis"},
      {"GroupedMatMul", {"f32[3]", "f32[7, 3, 5]", "i32[2]"}, {}, kShape, "x"},
      {"GroupedMatMul", {"f32[2, 3]", "f32[3, 5]", "i32[2]"}, {}, kShape, "w"},
      {"GroupedMatMul", {"f32[2, 3]", "f32[7, 3, 5]", "i32[2]"}, rows, kShape, "w"},
      {"GroupedMatMul", {"f32[2, 3]", "f32[0, 3, 5]", "i32[2]"}, {}, kShape, "w"},
      {"GroupedMatMul", {"f32[2, 3]", "f32[7, 3, 5]", "i32[3]"}, {}, kShape, "indices"},
      {"GroupedMatMul", {"f64[2, 3]", "f32[7, 3, 5]", "i32[2]"}, {}, kDType, "w"},
      {"LayerNorm", {"f32[2, 3]", "f32[2]"}, {}, kShape, "gamma"},
      {"LayerNorm", {"f32[2, 3]", "f32[3]", "f32[1]"}, {}, kShape, "beta"},
      {"LayerNorm", {"f32[]", "f32[1]"}, {}, kShape, "x"},
      {"RmsNorm", {"f32[2, 3]", "f32[2, 3]"}, {}, kShape, "gamma"},
      {"MatMul", {"f32[3]", "f32[3, 5]"}, {}, kShape, "a"},
      {"MatMul", {"f32[2, 3]", "f32[3]"}, {}, kShape, "b"},
      {"MatMul", {"f32[2, 3]", "f32[4, 5]"}, {}, kShape, "b"},
      {"MatMul", {"f32[2, 3]", "f32[3, 5]"}, rows, kShape, "b"},
      {"MatMul", {"f32[2, 2, 3]", "f32[3, 3, 5]"}, {}, kShape, "b"},
      {"MatMul", {"f32[2, 3]", "f64[3, 5]"}, {}, kDType, "b"},
      {"MatMul", {"f16[2, 3]", "f32[3, 5]"}, {}, kDType, "b"},
      {"MatMul", {"f64[2, 3]", "f16[3, 5]"}, {}, kDType, "b"},
      {"MatMul", {"i8[2, 3]", "i32[3, 5]"}, {}, kDType, "b"},
      {"MatMul", {"i32[2, 3]", "i64[3, 5]"}, {}, kDType, "b"},
      {"MatMul", {"f32[2, 3]", "i8[3, 5]"}, {}, kDType, "b"},
      {"DotGeneral", {"u16[2, 3]", "u16[5, 3]"}, {}, kDType, "lhs"},
      {"DotGeneral", {"u8[2, 3]", "i32[5, 3]"}, {}, kDType, "rhs"},
      {"DotGeneral", {"f32[2, 3]", "f16[5, 3]"}, {}, kDType, "rhs"},
      {"MatMul", {"f32[2, 32]", "q8_0[32, 32]"}, {}, kAttribute, "transpose_b"},
      {"MatMul", {"f32[2, 3]", "f32[3, 5]"}, {{"as_bf16", true}}, kAttribute, "as_bf16"},
      {"MatMul", {"f16[2, 3]", "f16[3, 5]"}, {{"as_bf16", true}}, kAttribute, "as_bf16"},
      {"MatMul", {"f32[2, 32]", "q8_0[2, 5, 32]"}, rows, kShape, "b"},
      {"MatMul", {"f16[2, 32]", "q8_0[5, 32]"}, rows, kDType, "a"},
      {"MatMul", {"q8_0[2, 32]", "f32[5, 32]"}, rows, kDType, "b"},
      {"MatMul", {"q8_0[2, 256]", "q4_K[5, 256]"}, rows, kNoKernel, "a"},
      {"MatMul", {"q8_K[2, 256]", "q8_0[5, 256]"}, rows, kNoKernel, "a"},
      {"MatMulPanels", {"f32[3]", "f32[2, 3, 32]"}, panels, kShape, "a"},
      {"MatMulPanels", {"f32[2, 3]", "f32[1, 3, 32]"}, panels, kShape, "b"},
      {"MatMulPanels", {"f32[2, 3]", "f32[2, 4, 32]"}, panels, kShape, "b"},
      {"MatMulPanels", {"f32[2, 3]", "f32[2, 3, 16]"}, panels, kShape, "b"},
      {"MatMulPanels", {"f16[2, 3]", "f16[2, 3, 32]"}, panels, kDType, "a"},
      {"MatMulPanels", {"bf16[2, 6]", "bf16[2, 6, 32]"}, panels, kShape, "b"},
      {"MatMulPanels", {"bf16[2, 7]", "bf16[2, 3, 32, 2]"}, panels, kShape, "b"},
      {"MatMulPanels", {"bf16[2, 6]", "bf16[2, 3, 32, 3]"}, panels, kShape, "b"},
      {"MatMulPanels", {"f32[2, 3]", "f16[2, 3, 32]"}, panels, kDType, "b"},
      {"MatMulPanels", {"i8[2, 7]", "i8[2, 7, 32]"}, panels, kShape, "b"},
      {"MatMulPanels", {"u8[2, 7]", "i8[2, 1, 32, 4]"}, panels, kShape, "b"},
      {"MatMulPanels", {"u8[2, 7]", "f32[2, 2, 32, 4]"}, panels, kDType, "b"},
      {"MatMulPanels", {"i32[2, 7]", "i8[2, 2, 32, 4]"}, panels, kDType, "a"},
      {"MatMulPanels", {"f32[2, 3]", "f32[0, 3, 32]"}, With(panels, "columns", int64_t{0}), kAttribute, "columns"},
      {"Narrow", {"f32[2, 5]"}, With(narrow, "axis", int64_t{2}), kAttribute, "axis"},
      {"Narrow", {"f32[2, 5]"}, With(narrow, "start", Sizes({1, 2})), kAttribute, "start"},
      {"Narrow", {"f32[2, 5]"}, With(narrow, "start", Sizes({-1})), kAttribute, "start"},
      {"Narrow", {"f32[2, 5]"}, With(narrow, "length", Sizes({})), kAttribute, "length"},
      {"Narrow", {"f32[2, 5]"}, With(narrow, "length", Sizes({5})), kAttribute, "length"},
      {"Narrow", {"f32[2, 5]"}, With(narrow, "length", Sizes({-2})), kAttribute, "length"},
      {"Pad", {"f32[3]"}, {{"low", std::vector<int64_t>{0, 1}}, {"high", std::vector<int64_t>{1}}}, kAttribute, "low"},
      {"Pad", {"f32[3]"}, {{"low", std::vector<int64_t>{1}}, {"high", std::vector<int64_t>{}}}, kAttribute, "high"},
      {"Pad", {"f32[3]"}, {{"low", std::vector<int64_t>{1}}, {"high", std::vector<int64_t>{-4}}}, kAttribute, "high"},
      {"Pad", {"f32[3]"}, With(pad, "low", std::vector<int64_t>{-4}), kAttribute, "low"},
      {"Pad",
       {"f32[3]"},
       With(With(pad, "low", std::vector<int64_t>{3}), "mode", std::string("reflect")),
       kAttribute,
       "low"},
      {"Pad",
       {"f32[3]"},
       With(With(pad, "high", std::vector<int64_t>{4}), "mode", std::string("circular")),
       kAttribute,
       "high"},
      {"Pad",
       {"f32[0]"},
       With(With(pad, "high", std::vector<int64_t>{1}), "mode", std::string("replicate")),
       kAttribute,
       "high"},
      {"Pad",
       {"f32[3]"},
       With({{"low", std::vector<int64_t>{-1}}, {"high", std::vector<int64_t>{2}}}, "mode", std::string("reflect")),
       kAttribute,
       "high"},
      {"Quantize", {"f32[2, 32]"}, {{"format", DType::kF16}}, kAttribute, "format"},
      {"Quantize", {"f16[2, 32]"}, {{"format", DType::kQ8_0}}, kNoKernel, "x"},
      {"Quantize", {"f32[2, 33]"}, {{"format", DType::kQ8_0}}, kShape, "x"},
      {"PickedMatMul", {"f32[2, 3]", "f32[7, 5, 3]", "i32[2]"}, {{"as_bf16", true}}, kAttribute, "as_bf16"},
      {"PickedMatMul", {"f32[3]", "f32[7, 5, 3]", "i32[7]"}, {}, kShape, "x"},
      {"PickedMatMul", {"f32[2, 3]", "f32[5, 3]", "i32[7]"}, {}, kShape, "w"},
      {"PickedMatMul", {"f32[2, 3]", "f32[7, 3, 5]", "i32[7]"}, {}, kShape, "w"},
      {"PickedMatMul", {"f32[2, 3]", "f32[0, 5, 3]", "i32[0]"}, {}, kShape, "w"},
      {"PickedMatMul", {"f32[2, 3]", "f64[7, 5, 3]", "i32[7]"}, {}, kDType, "w"},
      {"PickedMatMul", {"f16[2, 3]", "f32[7, 5, 3]", "i32[7]"}, {}, kDType, "x"},
      {"PickedMatMul", {"f32[2, 3]", "f32[7, 5, 3]", "i32[7]"}, {}, kShape, "which"},
      {"PickedMatMul", {"f32[2, 3]", "f32[7, 5, 3]", "i32[2]"}, {{"by", std::string("run")}}, kShape, "which"},
      {"Reduce", {"f32[2, 3]"}, With(reduce, "axes", std::vector<int64_t>{2}), kAttribute, "axes"},
      {"Reduce", {"f32[2, 3]"}, With(reduce, "axes", std::vector<int64_t>{1, -1}), kAttribute, "axes"},
      {"Reduce", {"i32[2, 3]"}, With(reduce, "op", std::string("mean")), kDType, "x"},
      {"Reshape", {"f32[2, 3]"}, {{"shape", Sizes({4, 2})}}, kAttribute, "shape"},
      {"Reshape", {"f32[2, 3]"}, {{"shape", Sizes({4, -1})}}, kAttribute, "shape"},
      {"Reshape", {"f32[2, 3]"}, {{"shape", Sizes({-1, -1})}}, kAttribute, "shape"},
      {"Rope", {"f32[16]", "f32[5, 4]", "f32[5, 4]"}, rope, kShape, "x"},
      {"Rope", {"f32[5, 15]", "f32[5, 4]", "f32[5, 4]"}, rope, kShape, "x"},
      {"Rope", {"f32[5, 16]", "f32[4, 4]", "f32[5, 4]"}, rope, kShape, "cos"},
      {"Rope", {"f32[5, 16]", "f32[5, 4]", "f32[5, 3]"}, rope, kShape, "sin"},
      {"Rope", {"f32[5, 16]", "f32[9, 4]", "f32[9, 4]", "i64[5]"}, rope, kDType, "positions"},
      {"Rope", {"f32[5, 16]", "f32[9, 4]", "f32[9, 4]", "i32[9]"}, rope, kShape, "positions"},
      {"Rope", {"f32[5, 16]", "f32[0, 4]", "f32[0, 4]", "i32[5]"}, rope, kShape, "cos"},
      {"Rope", {"f32[5, 16]", "f32[9, 4]", "f32[8, 4]", "i32[5]"}, rope, kShape, "sin"},
      {"Rope", {"f32[5, 16]", "f32[5, 4]", "f32[5, 4]"}, With(rope, "n_rot", int64_t{3}), kAttribute, "n_rot"},
      {"Rope", {"f32[5, 16]", "f32[5, 4]", "f32[5, 4]"}, With(rope, "head_dim", int64_t{0}), kAttribute, "head_dim"},
      {"Slice", {"f32[2, 5]"}, With(slice, "axis", int64_t{5}), kAttribute, "axis"},
      {"Slice", {"f32[2, 0]"}, slice, kAttribute, "start"},
      {"Slice", {"f32[2, 5]"}, With(slice, "start", int64_t{-1}), kAttribute, "start"},
      {"Slice", {"f32[2, 5]"}, With(slice, "stop", int64_t{6}), kAttribute, "stop"},
      {"Slice", {"f32[2, 5]"}, With(slice, "stop", int64_t{0}), kAttribute, "stop"},
      {"Slice", {"f32[2, 5]"}, With(slice, "step", int64_t{0}), kAttribute, "step"},
      {"Slice", {"f32[2, 5]"}, With(slice, "step", int64_t{-1}), kAttribute, "start"},
      {"Slice",
       {"f32[2, 5]"},
       {{"axis", int64_t{1}}, {"start", int64_t{5}}, {"step", int64_t{-2}}},
       kAttribute,
       "start"},
      {"Slice", {"f32[2, 5]"}, With(slice, "axis", std::vector<int64_t>{0, 1}), kAttribute, "start"},
      {"Slice", {"f32[2, 5]"}, With(slice, "stop", Sizes({4, 4})), kAttribute, "stop"},
      {"Slice", {"f32[2, 5]"}, With(slice, "step", std::vector<int64_t>{1, 1}), kAttribute, "step"},
      {"Slice", {"f32[2, 5]"}, {{"axis", std::vector<int64_t>{1, -1}}, {"start", Sizes({1, 1})}}, kAttribute, "axis"},
      {"ScatterElements", {"f32[5, 7]", "i32[5]", "f32[5]"}, {}, kShape, "indices"},
      {"ScatterElements", {"f32[5, 7]", "i32[9, 8]", "f32[9, 8]"}, {}, kShape, "indices"},
      {"ScatterElements", {"f32[5, 7]", "i32[3, 7]", "f32[3, 6]"}, {}, kShape, "updates"},
      {"ScatterElements", {"f32[5, 7]", "i32[5, 7]", "f32[5, 7]"}, kAxisTwo, kAttribute, "axis"},
      {"ScatterElements", {"bool[5]", "i32[5]", "bool[5]"}, {{"reduction", std::string("add")}}, kDType, "x"},
      {"ScatterND", {"f32[5, 7]", "i32[3, 3]", "f32[3]"}, {}, kShape, "indices"},
      {"ScatterND", {"f32[5, 7]", "i32[3, S]", "f32[3]"}, {}, kShape, "indices"},
      {"ScatterND", {"f32[5, 7]", "i32[3, 1]", "f32[3]"}, {}, kShape, "updates"},
      {"ScatterND", {"f32[]", "i32[3, 1]", "f32[3]"}, {}, kShape, "x"},
      {"ScatterND", {"bool[5]", "i32[5, 1]", "bool[5]"}, {{"reduction", std::string("max")}}, kDType, "x"},
      {"ScatterAdd", {"f32[]", "i32[3]"}, {{"rows", Sizes({3})}}, kShape, "updates"},
      {"ScatterAdd", {"f32[5, 7]", "i32[4]"}, {{"rows", Sizes({3})}}, kShape, "indices"},
      {"ScatterAdd", {"f32[5, 7]", "i32[5]"}, {{"rows", Sizes({3, 1})}}, kAttribute, "rows"},
      {"ScatterAdd", {"f32[5, 7]", "i32[5]"}, {{"rows", Sizes({-1})}}, kAttribute, "rows"},
      {"CumMax", {"f32[2, 3]"}, kAxisTwo, kAttribute, "axis"},
      {"QMatMul", {"i8[2, 3]", "i8[4, 5]", "i32[5]"}, {}, kShape, "w"},
      {"QMatMul", {"i8[2, 3]", "i8[3, 5]", "i32[4]"}, {}, kShape, "bias"},
      {"QMatMul", {"i8[2, 3]", "i8[3, 5]", "i64[5]"}, {}, kDType, "bias"},
      {"QMatMul", {"i8[2, 3]", "i8[3, 5]", "i32[5]", "f32[4]"}, {}, kShape, "mult"},
      {"QMatMul", {"i8[2, 3]", "i8[3, 5]", "i32[5]"}, {{"x_zp", int64_t{128}}}, kAttribute, "x_zp"},
      {"QMatMul", {"i16[2, 3]", "i8[3, 5]", "i32[5]"}, {}, kDType, "x"},
      {"QConv", {"i8[2, 3, 9]", "i8[5, 2, 2]", "i32[5]"}, {}, kShape, "w"},
      {"QConv", {"i8[2, 3, 9]", "i8[5, 3, 2]", "i32[4]"}, {}, kShape, "bias"},
      {"QConv", {"i8[2, 3, 9]", "i8[5, 3, 2]", "i32[5]"}, {{"groups", int64_t{2}}}, kAttribute, "groups"},
      {"QConv", {"u8[2, 3, 9]", "i8[5, 3, 2]", "i32[5]"}, {{"out_zp", int64_t{-1}}}, kAttribute, "out_zp"},
      {"Resize",
       {"f32[2, 3]"},
       {{"axes", std::vector<int64_t>{1}}, {"sizes", std::vector<int64_t>{}}},
       kAttribute,
       "sizes"},
      {"Resize",
       {"f32[2, 3]"},
       {{"axes", std::vector<int64_t>{2}}, {"sizes", std::vector<int64_t>{5}}},
       kAttribute,
       "axes"},
      {"Resize",
       {"f32[2, 3]"},
       {{"axes", std::vector<int64_t>{1, -1}}, {"sizes", std::vector<int64_t>{5, 5}}},
       kAttribute,
       "axes"},
      {"Resize",
       {"f32[2, 0]"},
       {{"axes", std::vector<int64_t>{1}}, {"sizes", std::vector<int64_t>{5}}},
       kAttribute,
       "sizes"},
      {"Resize",
       {"f32[2, S]"},
       {{"axes", std::vector<int64_t>{1}}, {"sizes", std::vector<int64_t>{5}}},
       kNoKernel,
       "x"},
      {"Resize",
       {"i32[2, 3]"},
       {{"axes", int64_t{1}}, {"sizes", int64_t{5}}, {"mode", std::string("linear")}},
       kDType,
       "x"},
      {"ReluBackward", {"f32[2, 3]", "f32[2]"}, {}, kShape, "b"},
      {"ActivationBackward", {"f32[2, 3]", "f32[3]"}, {{"kind", std::string("tanh")}}, kShape, "dy"},
      {"LayerNormBackwardInput", {"f32[2, 3]", "f32[2]", "f32[2, 3]"}, {}, kShape, "gamma"},
      {"LayerNormBackwardInput", {"f32[2, 3]", "f32[3]", "f32[3]"}, {}, kShape, "dy"},
      {"LayerNormBackwardGamma", {"f32[2, 3]", "f32[3]"}, {}, kShape, "dy"},
      {"LayerNormBackwardBeta", {"f32[2, 3]"}, kAxisTwo, kAttribute, "axis"},
      {"RmsNormBackwardInput", {"f32[2, 3]", "f32[2]", "f32[2, 3]"}, {}, kShape, "gamma"},
      {"RmsNormBackwardGamma", {"f32[2, 3]", "f32[3]"}, {}, kShape, "dy"},
      {"CumsumBackward", {"f32[2, 3]"}, kAxisTwo, kAttribute, "axis"},
      {"GatherBackward", {"f32[5, 3]", "i32[5]"}, {{"extents", Sizes({7, 4})}}, kShape, "dy"},
      {"GatherBackward", {"f32[5, 3]", "i32[5]"}, {{"extents", Sizes({0, 3})}}, kAttribute, "extents"},
      {"GatherBackward",
       {"f32[5, 3]", "i32[5]"},
       {{"extents", Sizes({7, 3})}, {"axis", int64_t{2}}},
       kAttribute,
       "axis"},
      {"SoftmaxCrossEntropyWithLogits", {"f32[2, 3]", "i32[3]"}, {}, kShape, "labels"},
      {"SoftmaxCrossEntropyWithLogits", {"f32[2, 3]", "i8[2]"}, {}, kDType, "labels"},
      {"SoftmaxCrossEntropyWithLogits", {"f32[2]", "i32[2]"}, {}, kShape, "logits"},
      {"SoftmaxCrossEntropyWithLogitsBackward", {"f32[2, 3]", "i32[2]", "f32[3]"}, {}, kShape, "dloss"},
      {"MaxPoolBackward", {"f32[2, 3, 9]", "f32[2, 3, 6]"}, Numbers("kernel", {3}), kShape, "dy"},
      {"MaxPoolBackward", {"f32[2, 3]", "f32[2, 3]"}, Numbers("kernel", {3}), kShape, "x"},
      {"Conv2dBackwardInput", {"f32[5, 3, 2]", "f32[2, 5, 7]"}, {{"dims", Sizes({2, 3, 9})}}, kShape, "dy"},
      {"Conv2dBackwardInput", {"f32[5, 3, 2]", "f32[2, 5, 8]"}, {{"dims", Sizes({2, 4, 9})}}, kAttribute, "dims"},
      {"Conv2dBackwardWeight", {"f32[2, 3, 9]", "f32[2, 5, 7]"}, {{"dims", Sizes({5, 3, 2})}}, kShape, "dy"},
      {"Conv2dBackwardWeight", {"f32[2, 3, 9]", "f32[2, 5, 8]"}, {{"dims", Sizes({5, 2, 2})}}, kAttribute, "dims"},
      {"AttentionBackward", {"f32[2, 3, 32]", "f32[2, 5, 16]", "f32[2, 5, 16]", "f32[2, 3, 16]"}, kHeads, kShape, "dy"},
      {"AttentionBackward",
       {"f32[2, 3, 32]", "f32[2, 5, 16]", "f32[2, 5, 16]", "f32[2, 3, 32]"},
       custom,
       kCount,
       "mask"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[2]"}, {}, kShape, "scale"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[2, 3]"}, {}, kShape, "scale"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[]", "i8[1]"}, {}, kShape, "zero_point"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[]", "i32[]"}, {}, kDType, "zero_point"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[]"}, {{"to", DType::kI32}}, kAttribute, "to"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[3]"}, kAxisTwo, kAttribute, "axis"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[2, 3]"}, {{"block", int64_t{-1}}}, kAttribute, "block"},
      {"QuantizeLinear", {"f32[2, 3]", "f32[2, 3]"}, {{"block", int64_t{2}}}, kShape, "scale"},
      {"QuantizeFloat", {"f32[2, 3]", "i8[3]"}, {{"format", std::string("e4m3")}}, kDType, "scale"},
      {"QuantizeFloat", {"f32[2, 3]", "u8[2]"}, {{"format", std::string("e4m3")}}, kShape, "scale"},
      {"QuantizeFloat", {"f32[2, 3]"}, {{"format", std::string("e8m0")}}, kAttribute, "format"},
      {"DequantizeFloat", {"i8[2, 3]"}, {{"format", std::string("e4m3")}}, kDType, "x"},
      {"DequantizeFloat", {"u8[2, 3]", "i64[]"}, {{"format", std::string("e4m3")}}, kDType, "scale"},
      {"DequantizeFloat", {"u8[2, 3]", "f32[2]"}, {{"format", std::string("e4m3")}}, kShape, "scale"},
      {"DequantizeFloat", {"u8[2]"}, {{"format", std::string("e4m3")}, {"to", DType::kI32}}, kAttribute, "to"},
      {"ScaledMatMul", {"i8[2, 3]", "i8[5, 3]"}, {}, kDType, "a"},
      {"ScaledMatMul", {"u8[3]", "u8[5, 3]"}, {}, kShape, "a"},
      {"ScaledMatMul", {"u8[2, 3]", "u8[3, 5]"}, {}, kShape, "b"},
      {"ScaledMatMul", {"u8[2, 2, 3]", "u8[3, 5, 3]"}, {}, kShape, "b"},
      {"ScaledMatMul", {"u8[2, 3]", "u8[5, 3]", "i8[]"}, {}, kDType, "a_scale"},
      {"ScaledMatMul", {"u8[2, 3]", "u8[5, 3]", "f32[2]"}, {}, kShape, "a_scale"},
      {"ScaledMatMul", {"u8[2, 3]", "u8[5, 3]", "f32[]", "f32[2, 1]"}, {}, kShape, "b_scale"},
      {"ScaledMatMul", {"u8[2, 3]", "u8[5, 3]"}, {{"block", int64_t{-1}}}, kAttribute, "block"},
      {"ScaledMatMul", {"u8[2, 3]", "u8[5, 3]"}, {{"to", DType::kF64}}, kAttribute, "to"},
      {"Mamba2", {"f32[2, 3, 4]", "f32[2, 3, 4]", "f32[4]", bc[0], bc[0]}, {}, kShape, "x"},
      {"Mamba2", {bc[1], "f32[2, 3]", "f32[4]", bc[0], bc[0]}, {}, kShape, "dt"},
      {"Mamba2", {bc[1], "f32[2, 3, 4]", "f32[3]", bc[0], bc[0]}, {}, kShape, "a"},
      {"Mamba2", {bc[1], "f32[2, 3, 4]", "f32[4]", "f32[2, 3, 3, 7]", bc[0]}, {}, kShape, "b"},
      {"Mamba2", {bc[1], "f32[2, 3, 4]", "f32[4]", bc[0], "f32[2, 3, 2, 5]"}, {}, kShape, "c"},
      {"Mamba2", {bc[1], "f32[2, 3, 4]", "f32[4]", bc[0], bc[0], "f32[2]"}, {}, kShape, "d"},
      {"Mamba2", {bc[1], "f32[2, 3, 4]", "f32[4]", bc[0], bc[0], "f32[4]", "f16[2, 4, 5, 7]"}, {}, kDType, "state"},
      {"Mamba2", {bc[1], "f32[2, 3, 4]", "f32[4]", bc[0], bc[0], "f32[4]", "f32[2, 4, 7, 5]"}, {}, kShape, "state"},
      {"Mamba2", {bc[1], "f64[2, 3, 4]", "f32[4]", bc[0], bc[0]}, {}, kNoKernel, "dt"},
      {"Mamba2", {bc[1], "f32[2, 3, 4]", "f32[4]", bc[0], bc[0]}, {{"chunk", int64_t{-1}}}, kAttribute, "chunk"},
      {"DequantizeLinear", {"i8[2, 3]", "f32[2]"}, {}, kShape, "scale"},
      {"DequantizeLinear", {"i64[2, 3]", "f32[]"}, {}, kDType, "x"},
      {"DequantizeLinear", {"u32[2, 3]", "f32[]"}, {}, kDType, "x"},
      {"DequantizeLinear", {"i8[2, 3]", "f32[3]", "i8[]"}, {}, kShape, "zero_point"},
      {"FakeQuantize", {"f32[2, 3]"}, {{"bits", int64_t{3}}}, kAttribute, "bits"},
      {"FakeQuantize", {"f32[2, 3]"}, kAxisTwo, kAttribute, "axis"},
      {"FakeQuantize", {"f32[2, 3]"}, Numbers("axis", {0, 1}), kAttribute, "axis"},
      {"FakeQuantize", {"f32[2, 3]", "f32[]"}, {}, kCount, "state"},
      {"FakeQuantize", {"f32[2, 3]", "f32[2]"}, {{"scale_mode", std::string("ema")}}, kShape, "state"},
      {"FakeQuantize", {"f32[2, 3]", "f64[]"}, {{"scale_mode", std::string("fixed")}}, kDType, "state"},
      {"FakeQuantizeBackward", {"f32[2, 3]", "f32[]", "f32[3]"}, {}, kShape, "dy"},
      {"FakeQuantizeBackward", {"f32[2, 3]", "f32[2]", "f32[2, 3]"}, {}, kShape, "scale"},
      {"FakeQuantizeLSQ", {"f32[2, 3]", "f32[2]"}, kAxis, kShape, "scale"},
      {"FakeQuantizeLSQBackwardX", {"f32[2, 3]", "f32[]", "f32[2]"}, {}, kShape, "dy"},
      {"FakeQuantizeLSQBackwardScale", {"f32[2, 3]", "f64[]", "f32[2, 3]"}, {}, kDType, "scale"},
      {"FusedResidualLN", {"f32[2, 3]", "f32[2, 3]", "f32[3]"}, {{"has_bias", true}}, kCount, "has_bias"},
      {"FusedResidualLN", {"f32[2, 3]", "f32[2, 3]", "f32[2]", "f32[3]"}, {{"has_bias", true}}, kShape, "bias"},
      {"FusedResidualLN", {"f32[2, 3]", "f32[2, 3]", "f32[3]", "f32[2]"}, {{"has_bias", true}}, kShape, "gamma"},
      {"FusedResidualLN", {"f32[2, 3]", "f32[3]", "f32[3]"}, {}, kShape, "residual"},
      {"FusedConvBiasAct", {"f32[2, 3, 9]", "f32[5, 3, 2]"}, {{"act", std::string("Add")}}, kAttribute, "act"},
      {"FusedConvBiasAct", {"f32[2, 3, 9]", "f32[5, 2, 2]"}, {}, kShape, "w"},
      {"FusedAttentionBlock", {"f32[2, 3, 8]", "f32[8, 23]", "f32[8, 5]"}, block, kShape, "qkv_w"},
      {"FusedAttentionBlock", {"f32[2, 3, 8]", "f32[8, 24]", "f32[7, 5]"}, block, kShape, "out_w"},
      {"FusedAttentionBlock", {"f32[3, 8]", "f32[8, 24]", "f32[8, 5]"}, block, kShape, "x"},
      {"FusedAttentionBlock", {"f32[2, 3, 8]", "f32[8, 24]", "f32[8, 5]"}, With(block, "bias", true), kCount, "mask"},
      {"FusedAttentionBlock",
       {"f32[2, 3, 8]", "f32[8, 24]", "f32[8, 5]"},
       With(block, "kv_heads", int64_t{3}),
       kAttribute,
       "kv_heads"},
      {"FusedAttentionBlock",
       {"f32[2, 3, 8]", "f32[8, 24]", "f32[8, 5]", "f32[2, 4]"},
       With(block, "mask", std::string("custom")),
       kShape,
       "mask"},
      {"Sort", {"f32[2, 3]"}, kAxisTwo, kAttribute, "axis"},
      {"Sort", {"f32[]"}, {}, kShape, "x"},
      {"TopK", {"f32[2, 3]"}, {{"k", int64_t{4}}}, kAttribute, "k"},
      {"TopK", {"f32[2, 3]"}, {{"k", int64_t{-1}}}, kAttribute, "k"},
      {"TopK", {"f32[2, 3]"}, {{"k", int64_t{1}}, {"axis", int64_t{2}}}, kAttribute, "axis"},
      {"Reduce", {"f32[2, 3]"}, With(reduce, "op", std::string("any")), kDType, "x"},
      {"Reduce", {"bool[2, 3]"}, reduce, kDType, "x"},
      {"LayerNorm", {"f32[2, 3, 5]", "f32[5]"}, kAxis, kShape, "gamma"},
      {"LayerNorm", {"f32[2, 3]", "f32[3]"}, kAxisTwo, kAttribute, "axis"},
      {"RmsNorm", {"f32[2, 3, 5]", "f32[3, 5]", "f32[5]"}, kAxis, kShape, "beta"},
      {"Softmax", {"f32[2, 5]"}, With(kAxis, "axis", int64_t{2}), kAttribute, "axis"},
      {"Softmax", {"f32[]"}, {}, kShape, "x"},
      {"Transpose", {"f32[2, 5]"}, {{"perm", std::vector<int64_t>{0, 0}}}, kAttribute, "perm"},
      {"Update", {"f32[5, 3]", "f32[2, 4]"}, update, kShape, "update"},
      {"Update", {"f32[5, 3]", "f32[3]"}, update, kShape, "update"},
      {"Update", {"f32[5, 3]", "f32[2, 3]"}, With(update, "axis", int64_t{-3}), kAttribute, "axis"},
      {"Update", {"f32[5, 3]", "f32[2, 3]"}, With(update, "start", Sizes({4})), kAttribute, "start"},
      {"Update", {"f32[5, 3]", "f32[2, 3]"}, With(update, "start", Sizes({-1})), kAttribute, "start"},
      {"Update", {"f32[5, 3]", "f32[2, 3]"}, With(update, "start", Sizes({0, 0})), kAttribute, "start"},
      {"Update", {"f32[5, 3]", "f32[2, 3]", "i32[2]"}, update, kAttribute, "start"},
      {"Update", {"f32[5, 3]", "f32[2, 3]", "i64[2]"}, {{"axis", int64_t{0}}}, kDType, "index"},
      {"Update", {"f32[5, 3]", "f32[2, 3]", "i32[3]"}, {{"axis", int64_t{0}}}, kShape, "index"},
  };
  for (const Bad& bad : all) {
    const OpDef& op = *FindOp(bad.op);
    ExpectError(Try(op, Types(bad.operands), bad.attributes), op, bad.code, bad.operand);
  }
}

// The table above may miss a rule: whatever is given, an error says what it is about.
TEST(OpErrors, NoErrorIsUntyped) {
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  int64_t taken = 0, refused = 0;
  for (const Good& good : EveryOp()) {
    const OpDef& op = *FindOp(good.op);
    for (int round = 0; round < 300; ++round) {
      std::vector<TensorType> types = Types(good.operands);
      Attributes attributes = good.attributes;
      for (int change = below(3); change >= 0; --change) {
        TensorType none;
        TensorType& type = types.empty() ? none : types[below(static_cast<int64_t>(types.size()))];
        switch (below(5)) {
          case 0: type.dtype = static_cast<DType>(below(kDTypeCount)); break;
          case 1: type.dims.insert(type.dims.begin(), Extent(below(4))); break;
          case 2:
            if (!type.dims.empty()) type.dims.pop_back();
            break;
          case 3:
            if (!type.dims.empty())
              type.dims[below(type.rank())] = below(3) == 0 ? Extent::Symbol("S") : Extent(below(9));
            break;
          case 4: {
            if (op.attributes.empty()) break;
            const AttrDef& def = op.attributes[below(static_cast<int64_t>(op.attributes.size()))];
            switch (def.kind) {
              case AttrKind::kBool: attributes.Set(def.name, below(2) == 0); break;
              case AttrKind::kInt: attributes.Set(def.name, below(9) - 3); break;
              case AttrKind::kFloat: attributes.Set(def.name, static_cast<double>(below(9) - 3)); break;
              case AttrKind::kString:
                if (!def.choices.empty())
                  attributes.Set(def.name, std::string(def.choices[below(static_cast<int64_t>(def.choices.size()))]));
                break;
              case AttrKind::kDType: attributes.Set(def.name, static_cast<DType>(below(kDTypeCount))); break;
              case AttrKind::kInts: attributes.Set(def.name, std::vector<int64_t>(below(3), below(5) - 2)); break;
              case AttrKind::kExtents:
                attributes.Set(def.name, std::vector<Extent>(below(3), Extent(below(5) - 1)));
                break;
            }
          }
        }
      }
      const Status status = Try(op, types, attributes);
      ++(status.ok() ? taken : refused);
      if (status.ok()) continue;
      const std::optional<Diagnostic> diagnostic = DiagnosticOf(status);
      ASSERT_TRUE(diagnostic.has_value()) << status << ", seed " << kSeed;
      EXPECT_EQ(diagnostic->op, op.name) << status;
      EXPECT_TRUE(!diagnostic->operand.empty() || diagnostic->code == DiagnosticCode::kInputCount) << status;
      EXPECT_TRUE(!diagnostic->expected.empty() && !diagnostic->got.empty()) << status;
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(OpErrors, Names) {
  Graph graph;
  const Value x = *graph.AddInput("x", Type("f32[2]"));
  const Status unknown = graph.Add("Softmaxx", {x}).status();
  EXPECT_EQ(unknown.message(), "there is no block or op Softmaxx; did you mean Softmax?");
  EXPECT_EQ(DiagnosticOf(unknown)->code, DiagnosticCode::kUnknownOp);
  EXPECT_EQ(DiagnosticOf(graph.Add("Add", {x, Value{7, 0}}).status())->operand, "b");
  EXPECT_EQ(DiagnosticOf(graph.AddInput("x", Type("f32[2]")).status())->code, DiagnosticCode::kDuplicateName);
  // One name space: what is fed by name is an input or a param.
  EXPECT_EQ(DiagnosticOf(graph.AddParam("x", Type("f32[2]")).status())->code, DiagnosticCode::kDuplicateName);
  EXPECT_EQ(graph.nodes().size(), 1u);
}

TEST(OpErrors, LeavesAreNotAddedByName) {
  for (const char* name : {"Input", "Param", "Constant", "Region"}) {
    Graph graph;
    const std::optional<Diagnostic> diagnostic = DiagnosticOf(graph.Add(name, {}, {}).status());
    ASSERT_TRUE(diagnostic.has_value()) << name;
    EXPECT_EQ(diagnostic->op, name);
  }
}

}  // namespace
}  // namespace quern::ir
