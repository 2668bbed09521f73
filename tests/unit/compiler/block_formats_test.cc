// Block formats through the public interface, as inputs, parameters and outputs of every op and block: what is taken
// runs and is right, everything else is refused when it is added, by name, and nothing ends the process.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/dtype.h"
#include "hir/block.h"
#include "ir/op.h"
#include "kir/random_buffer.h"
#include "quern/graph.h"
#include "support/block_formats.h"

namespace quern {
namespace {

std::vector<const char*> FormatNames() {
  std::vector<const char*> names;
  for (const DType format : AllFormats()) names.push_back(Row(format).name);
  return names;
}

struct Recipe {
  const char* name;
  std::vector<const char*> operands;  // types, rows of whole blocks where they have any
  std::vector<Attribute> attributes = {};
};

const std::vector<Attribute> kHeads = {{"heads", 4}, {"kv_heads", 4}, {"head_dim", 64}};

// Nodes over f32 (indices: i32), one for every op that is not elementwise and has no examples of its own, and every
// block.
const std::vector<Recipe>& OpRecipes() {
  static const auto* const recipes = new std::vector<Recipe>{
      {"ArgMax", {"f32[5, 256]"}, {{"axis", 0}}},
      {"ArgMin", {"f32[5, 256]"}, {{"axis", 0}}},
      {"Attention", {"f32[1, 3, 256]", "f32[1, 5, 256]", "f32[1, 5, 256]"}, kHeads},
      {"Concat", {"f32[5, 256]", "f32[5, 256]"}, {{"axis", 0}}},
      {"Conv", {"f32[2, 3, 256]", "f32[5, 3, 256]"}},
      {"ConvTranspose", {"f32[2, 3, 256]", "f32[3, 5, 256]"}},
      {"DotGeneral", {"f32[5, 256]", "f32[3, 256]"}},
      {"Expand", {"f32[1, 256]"}, {{"shape", std::vector<int64_t>{5, 256}}}},
      {"FusedMatMulBiasAct", {"f32[5, 256]", "f32[256, 256]", "f32[256]"}, {{"transpose_b", true}}},
      {"FusedResidualRmsNorm", {"f32[5, 256]", "f32[5, 256]", "f32[256]"}},
      {"FusedSwiGLU", {"f32[5, 512]"}},
      {"Gather", {"f32[5, 256]", "i32[3]"}},
      {"GroupedMatMul", {"f32[5, 256]", "f32[3, 7, 256]", "i32[5]"}, {{"transpose_b", true}}},
      {"LayerNorm", {"f32[5, 256]", "f32[256]"}},
      {"MatMul", {"f32[5, 256]", "f32[256, 256]"}, {{"transpose_b", true}}},
      {"MatMulPanels", {"f32[5, 256]", "f32[2, 256, 32]"}, {{"columns", 37}}},
      {"Narrow", {"f32[5, 256]"}, {{"axis", 0}, {"start", 1}, {"length", 3}}},
      {"Pad", {"f32[5, 256]"}, {{"low", std::vector<int64_t>{1, 0}}, {"high", std::vector<int64_t>{1, 0}}}},
      {"Pool", {"f32[2, 3, 256]"}, {{"kind", "max"}, {"kernel", std::vector<int64_t>{2}}}},
      {"Quantize", {"f32[5, 256]"}, {{"format", "q8_0"}}},
      {"PickedMatMul", {"f32[5, 256]", "f32[3, 7, 256]", "i32[5]"}},
      {"Reduce", {"f32[5, 256]"}, {{"op", "sum"}, {"axes", std::vector<int64_t>{1}}}},
      {"Reshape", {"f32[5, 256]"}, {{"shape", std::vector<int64_t>{1, 5, 256}}}},
      {"Reverse", {"f32[5, 256]"}, {{"axes", std::vector<int64_t>{0}}}},
      {"RmsNorm", {"f32[5, 256]", "f32[256]"}},
      {"Rope", {"f32[5, 256]", "f32[5, 256]", "f32[5, 256]"}, {{"head_dim", 256}, {"n_rot", 256}}},
      {"Slice", {"f32[5, 256]"}, {{"axis", 0}, {"start", 1}, {"stop", 4}}},
      {"Softmax", {"f32[5, 256]"}},
      {"Transpose", {"f32[256, 256]"}, {{"perm", std::vector<int64_t>{1, 0}}}},
      {"Update", {"f32[5, 256]", "f32[2, 256]"}, {{"axis", 0}, {"start", 1}}},
      {"Window", {"f32[5, 256]"}, {{"kernel", std::vector<int64_t>{2}}}},
  };
  return *recipes;
}

const std::vector<Recipe>& BlockRecipes() {
  static const auto* const recipes = new std::vector<Recipe>{
      {"Attention", {"f32[1, 3, 256]", "f32[1, 5, 256]", "f32[1, 5, 256]"}, kHeads},
      {"AxialRope2d", {"f32[1, 6, 256]"}, {{"end_x", 3}, {"end_y", 2}, {"head_dim", 64}, {"heads", 4}}},
      {"DepthwiseConv1dCausal", {"f32[1, 5, 256]", "f32[256, 1, 1, 2]", "f32[1, 1, 256]"}},
      {"DequantMatMul", {"f32[5, 256]", "q8_0[256, 256]"}},
      {"GatedDeltaNet",
       {"f32[1, 3, 256, 256]", "f32[1, 3, 256, 256]", "f32[1, 3, 256, 256]", "f32[1, 3, 256]", "f32[1, 3, 256]"}},
      {"Gru", {"f32[1, 3, 256]", "f32[1, 768, 256]", "f32[1, 1, 768, 256]"}, {{"hidden", 256}}},
      {"Linear", {"f32[5, 256]", "f32[256, 256]", "f32[256]"}, {{"bias", true}, {"weight_layout", "nk"}}},
      {"LinearFused", {"f32[5, 256]", "f32[256, 256]", "f32[256]"}, {{"weight_layout", "nk"}}},
      {"Lstm", {"f32[1, 3, 256]", "f32[1, 1024, 256]", "f32[1, 1, 1024, 256]"}, {{"hidden", 256}}},
      {"Qwen35MtpHead",
       {"f32[1, 3, 256]", "i32[1, 3]",     "f32[3, 256]",   "f32[3, 256]",   "i32[1]",        "f32[5, 256]",
        "f32[256]",       "f32[256]",      "f32[256]",      "f32[256]",      "f32[256, 512]", "f32[256]",
        "f32[256]",       "f32[512, 256]", "f32[256, 256]", "f32[256, 256]", "f32[256]",      "f32[256]",
        "f32[256]",       "f32[256]",      "f32[256, 256]", "f32[256]",      "f32[256]",      "f32[256, 256]",
        "f32[256, 256]",  "f32[256, 256]", "f32[256]",      "f32[256]",      "f32[256, 256]"},
       {{"heads", 1}, {"head_dim", 256}, {"weight_layout", "nk"}}},
      {"ResidualRmsNorm", {"f32[5, 256]", "f32[5, 256]", "f32[256]"}},
      {"RmsNorm", {"f32[5, 256]", "f32[256]"}},
      {"RoPE", {"f32[5, 256]", "f32[5, 256]", "f32[5, 256]"}, {{"head_dim", 256}}},
      {"SelectiveScan", {"f32[1, 3, 256]", "f32[1, 3, 256]", "f32[256, 256]", "f32[1, 3, 256]", "f32[1, 3, 256]"}},
      {"SharedLinearPair", {"f32[5, 256]", "f32[256, 256]", "f32[256, 256]"}, {{"weight_layout", "nk"}}},
      {"SwiGLU", {"f32[5, 256]", "f32[256, 256]", "f32[256, 256]", "f32[256, 256]"}, {{"weight_layout", "nk"}}},
  };
  return *recipes;
}

// The first example of an op, with rows of whole blocks. What has one refuses block formats before it looks at extents.
Recipe OfExample(const ir::OpDef& op) {
  static auto* const texts = new std::vector<std::unique_ptr<std::string>>;
  Recipe recipe{op.name, {}};
  for (const char* text : op.examples[0].operands) {
    ir::TensorType type = *ir::TensorType::Parse(text);
    if (IsFloat(type.dtype)) type.dims.empty() ? type.dims.push_back(256) : void(type.dims.back() = 256);
    recipe.operands.push_back(texts->emplace_back(std::make_unique<std::string>(type.ToString()))->c_str());
  }
  return recipe;
}

std::string DimsOf(std::string_view type) { return std::string(type.substr(type.find('['))); }

// Memory for a type of constant sizes.
std::vector<uint8_t> Memory(const std::string& type, std::mt19937_64& random) {
  const ir::TensorType parsed = *ir::TensorType::Parse(type);
  const kir::Layout layout = IsBlock(parsed.dtype) ? kir::Layout::kBlocks : kir::Layout::kRow;
  return *kir::RandomBuffer({parsed.dtype, parsed.dims, layout}, {}, random);
}

// A graph with one node, whose operand `which` is a parameter of that format; everything else is an input.
struct Made {
  Graph graph;
  std::vector<std::vector<uint8_t>> memory;
  std::vector<ConstTensor> inputs;
  std::vector<std::string> names;
  Value result;
};

template <typename Add>
void Make(Made& made, const std::vector<const char*>& types, size_t which, const char* format, const Add& add) {
  std::mt19937_64 random(7);
  std::vector<Value> values;
  made.memory.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) made.names.push_back(absl::StrCat("x", i));
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string type = i == which ? format + DimsOf(types[i]) : types[i];
    const std::vector<uint8_t>& bytes = made.memory.emplace_back(Memory(type, random));
    const ir::TensorType parsed = *ir::TensorType::Parse(type);
    if (IsBlock(parsed.dtype)) {
      values.push_back(made.graph.Param(made.names[i], type, std::as_bytes(std::span(bytes))));
      continue;
    }
    values.push_back(made.graph.Input(made.names[i], type));
    std::vector<int64_t> shape;
    for (const Extent& dim : parsed.dims) shape.push_back(dim.constant());
    made.inputs.push_back({made.names[i], bytes.data(), bytes.size(), nullptr, shape});
  }
  made.result = add(made.graph, values);
}

// Runs what was taken beside the oracle, or asks that it was refused at `operand`. Returns whether it was taken.
bool Expect(Made& made, std::string_view node, std::string_view operand) {
  const Result<void> status = made.graph.status();
  if (!status.ok()) {
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(ErrorCode::kUnsupported)) << status.error();
    EXPECT_EQ(status.details().op, node) << status.error();
    EXPECT_EQ(status.details().operand, operand) << status.error();
    EXPECT_NE(status.details().got, "") << status.error();
    EXPECT_NE(status.details().where, "") << status.error();
    return false;
  }
  const std::string type = made.graph.TypeOf(made.result);
  made.graph.Output("y", made.result);
  for (const bool exact : {false, true}) {
    Result<Program> program = made.graph.Compile({.threads = 1, .exact = exact, .check = "ref", .check_folder = ""});
    EXPECT_TRUE(program.ok()) << program.error();
    if (!program.ok()) continue;
    const ir::TensorType parsed = *ir::TensorType::Parse(type);
    std::vector<int64_t> shape;
    for (const Extent& dim : parsed.dims) shape.push_back(dim.constant());
    std::vector<uint8_t> y(parsed.elements().constant() * ScalarBytes(parsed.dtype));
    const Result<void> ran = program->Run(made.inputs, {{"y", y.data(), y.size(), nullptr, shape}});
    EXPECT_TRUE(ran.ok()) << ran.error();
  }
  return true;
}

TEST(BlockFormats, ParametersOfEveryOp) {
  std::vector<Recipe> recipes = OpRecipes();
  std::set<std::string> seen, told;
  for (const Recipe& recipe : recipes) told.insert(recipe.name);
  for (const ir::OpDef* op : ir::Ops()) {
    if (!op->examples.empty() && !told.contains(op->name)) recipes.push_back(OfExample(*op));
    if (op->kind != ir::OpKind::kElementwise || !op->examples.empty()) continue;
    Recipe recipe{op->name, {}};
    for (const ir::OperandDef& operand : op->operands) {
      const bool integer = !ir::Accepts(operand.kind, DType::kF32);
      recipe.operands.push_back(operand.kind == ir::OperandKind::kBool ? "bool[5, 256]"
                                : integer                              ? "i32[5, 256]"
                                                                       : "f32[5, 256]");
    }
    recipes.push_back(recipe);
  }
  std::set<std::string> taken;
  for (const Recipe& recipe : recipes) {
    seen.insert(recipe.name);
    const ir::OpDef& op = *ir::FindOp(recipe.name);
    for (size_t i = 0; i < recipe.operands.size(); ++i) {
      if (!DimsOf(recipe.operands[i]).ends_with("256]") && !DimsOf(recipe.operands[i]).ends_with("512]")) continue;
      for (const char* format : FormatNames()) {
        SCOPED_TRACE(absl::StrCat(recipe.name, " with operand ", i, " of ", format));
        Made made;
        Make(made, recipe.operands, i, format, [&](Graph& graph, const std::vector<Value>& values) {
          return graph.Op(recipe.name, values, recipe.attributes);
        });
        const std::string operand = ir::OperandName(op, i);
        if (Expect(made, recipe.name, operand)) taken.insert(absl::StrCat(recipe.name, " ", operand, " ", format));
      }
    }
  }
  for (const ir::OpDef* op : ir::Ops()) {
    // Those with bodies have tests of their own, and so have Custom and Counted, which names a symbol of its graph's.
    const std::string_view name = op->name;
    const bool elsewhere = !op->bodies.empty() || name == "Custom" || name == "Counted";
    if (op->kind != ir::OpKind::kLeaf && op->kind != ir::OpKind::kRegion && !elsewhere)
      EXPECT_TRUE(seen.contains(op->name)) << op->name << " has no recipe";
  }
  std::set<std::string> expected;
  for (const char* format : FormatNames()) {
    for (const char* operand : {"FusedMatMulBiasAct w ", "MatMul b "}) expected.insert(absl::StrCat(operand, format));
    for (const char* operand : {"Gather table ", "GroupedMatMul w ", "PickedMatMul w "})
      expected.insert(absl::StrCat(operand, format));
  }
  EXPECT_EQ(taken, expected);
}

TEST(BlockFormats, ParametersOfEveryBlock) {
  std::set<std::string> seen, taken;
  for (const Recipe& recipe : BlockRecipes()) {
    seen.insert(recipe.name);
    const hir::BlockDef& block = *hir::FindBlock(recipe.name);
    for (size_t i = 0; i < recipe.operands.size(); ++i) {
      if (!DimsOf(recipe.operands[i]).ends_with("256]")) continue;
      for (const char* format : FormatNames()) {
        SCOPED_TRACE(absl::StrCat(recipe.name, " with operand ", i, " of ", format));
        Made made;
        Make(made, recipe.operands, i, format, [&](Graph& graph, const std::vector<Value>& values) {
          return graph.Block(recipe.name, values, recipe.attributes);
        });
        if (Expect(made, recipe.name, block.operands[i].name))
          taken.insert(absl::StrCat(recipe.name, " ", block.operands[i].name, " ", format));
      }
    }
  }
  for (const hir::BlockDef* block : hir::Blocks()) {
    const std::string_view name = block->name;
    if (block->needs == nullptr && name != "LlamaDecoderBlock" && name != "TransformerBlock")
      EXPECT_TRUE(seen.contains(block->name)) << name << " has no recipe";
  }
  std::set<std::string> expected;
  for (const char* format : FormatNames()) {
    for (const char* operand : {"DequantMatMul packed ", "Linear w ", "LinearFused w ", "SharedLinearPair w1 ",
                                "SharedLinearPair w2 ", "SwiGLU down ", "SwiGLU gate ", "SwiGLU up "})
      expected.insert(absl::StrCat(operand, format));
    for (const char* operand : {"q_gate_w ", "k_w ", "v_w ", "o_w ", "gate_w ", "up_w ", "down_w ", "lm_head "})
      expected.insert(absl::StrCat("Qwen35MtpHead ", operand, format));
    expected.insert(absl::StrCat("Qwen35MtpHead embed ", format));
  }
  EXPECT_EQ(taken, expected);
}

TEST(BlockFormats, InputsAreRefused) {
  for (const char* format : FormatNames()) {
    Graph graph;
    const Value w = graph.Input("w", absl::StrCat(format, "[5, 256]"));
    graph.Output("y", graph.Op("MatMul", {graph.Input("x", "f32[3, 256]"), w}, {{"transpose_b", true}}));
    const Result<void> status = graph.status();
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(ErrorCode::kUnsupported)) << format;
    EXPECT_EQ(status.details().op, "Input");
    EXPECT_EQ(status.details().operand, "w");
    EXPECT_EQ(status.error(),
              absl::StrCat("Input: w is ", format, "[5, 256], which is not supported: any scalar dtype is (in w)"));
    EXPECT_FALSE(graph.Compile().ok());
  }
}

TEST(BlockFormats, OutputsAreRefused) {
  for (const char* format : FormatNames()) {
    for (const bool carried : {false, true}) {
      Graph graph;
      const Value w = graph.Param("w", absl::StrCat(format, "[5, 256]"));
      carried ? graph.Carry("w", w) : graph.Output("y", w);
      EXPECT_EQ(static_cast<int>(graph.status().code()), static_cast<int>(ErrorCode::kUnsupported)) << format;
      EXPECT_EQ(graph.status().details().operand, carried ? "w" : "y");
      EXPECT_FALSE(graph.Compile().ok());
    }
  }
  Graph graph;
  graph.Output("y", graph.Op("Quantize", {graph.Input("x", "f32[3, 256]")}, {{"format", "q8_K"}}));
  EXPECT_EQ(static_cast<int>(graph.status().code()), static_cast<int>(ErrorCode::kUnsupported));
}

// What Quantize gives is planar and no weight; a parameter is rows of blocks and no activation.
TEST(BlockFormats, TheTwoFormsDoNotMix) {
  for (const char* format : {"q8_0", "q8_K"}) {
    Graph graph;
    const Value q = graph.Op("Quantize", {graph.Input("x", "f32[3, 256]")}, {{"format", format}});
    graph.Op("MatMul", {graph.Input("y", "f32[3, 256]"), q}, {{"transpose_b", true}}, "head");
    EXPECT_EQ(static_cast<int>(graph.status().code()), static_cast<int>(ErrorCode::kUnsupported));
    EXPECT_EQ(graph.status().details().operand, "b");
    EXPECT_EQ(graph.status().details().where, "head");
  }
}

// The same from text, which may say anything.
TEST(BlockFormats, Text) {
  const std::string param = "  %0 = Param() {name = \"w\"} : q4_K[5, 256]\n",
                    input = "  %0 = Input() {name = \"w\"} : q4_K[5, 256]\n",
                    x = "  %1 = Input() {name = \"x\"} : f32[3, 256]\n";
  for (const std::string& body :
       {input + x + "  %2 = MatMul(%1, %0) {transpose_b = true} : f32[3, 5]\n  return %2\n",
        input + "  %1 = Eq(%0, %0) : bool[5, 256]\n  return %1\n", input + "  return %0\n", param + "  return %0\n",
        param + "  %1 = Narrow(%0) {axis = 0, start = <1>, length = <3>} : q4_K[3, 256]\n  return %1\n",
        param + "  %1 = Reshape(%0) {shape = <5, 1, 256>} : q4_K[5, 1, 256]\n  return %1\n",
        param + "  %1 = Slice(%0) {axis = 0, start = 1, step = 1, stop = 3} : q4_K[2, 256]\n  return %1\n",
        param + "  %1 = Transpose(%0) {perm = [1, 0]} : q4_K[256, 5]\n  return %1\n",
        std::string(
            "  %0 = Param() {name = \"w\"} : q8_K[5, 256]\n  %1 = MatMul(%0, %0) {transpose_b = true} : f32[5, 5]\n"
            "  return %1\n")}) {
    const Result<Graph> graph = Graph::Parse("graph g {\n" + body + "}\n");
    ASSERT_FALSE(graph.ok()) << body;
    EXPECT_EQ(static_cast<int>(graph.code()), static_cast<int>(ErrorCode::kUnsupported)) << body << graph.error();
    EXPECT_NE(graph.details().op, "") << graph.error();
    EXPECT_NE(graph.details().operand, "") << graph.error();
  }
}

}  // namespace
}  // namespace quern
