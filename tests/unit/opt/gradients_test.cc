// Gradients against finite differences in double: of every op of the table that is one, for every operand that has a
// gradient, what its reference and its expansion make beside how much the loss, the sum of y dy, moves with an element.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/graph.h"
#include "ir/interpret.h"
#include "opt/passes.h"

namespace quern::opt {
namespace {

struct Row {
  const char* backward;  // the op
  // Types of the inputs, by name, with a space between; D is the float dtype.
  const char* inputs;
  // The node of the loss's y, and that of the gradients, over inputs by %name; dy is among them.
  const char *forward, *y, *gradient, *types;
  const char* of;  // the inputs that results are gradients of, in order; "-": of none
  const char* dtype = "f64";
  double low = -2, high = 2;
};

const Row kRows[] = {
    {"ReluBackward", "x D[3,7] dy D[3,7]", "Relu(%x)", "D[3,7]", "ReluBackward(%x, %dy)", "D[3,7]", "x"},
    {"ComplexNormSqBackward", "z c64[3,5] dy f32[3,5]", "ComplexNormSq(%z)", "f32[3,5]",
     "ComplexNormSqBackward(%z, %dy)", "c64[3,5]", "z"},
    {"LayerNormBackwardInput", "x D[3,7] g D[7] b D[7] dy D[3,7]", "LayerNorm(%x, %g, %b)", "D[3,7]",
     "LayerNormBackwardInput(%x, %g, %dy)", "D[3,7]", "x"},
    {"LayerNormBackwardInput", "x D[2,3,5] g D[3,5] dy D[2,3,5]", "LayerNorm(%x, %g) {axis = 1}", "D[2,3,5]",
     "LayerNormBackwardInput(%x, %g, %dy) {axis = 1}", "D[2,3,5]", "x"},
    {"LayerNormBackwardGamma", "x D[3,7] g D[7] dy D[3,7]", "LayerNorm(%x, %g)", "D[3,7]",
     "LayerNormBackwardGamma(%x, %dy)", "D[7]", "g"},
    {"LayerNormBackwardGamma", "x D[2,3,5] g D[3,5] dy D[2,3,5]", "LayerNorm(%x, %g) {axis = 1}", "D[2,3,5]",
     "LayerNormBackwardGamma(%x, %dy) {axis = 1}", "D[3,5]", "g"},
    {"LayerNormBackwardBeta", "x D[2,3,5] g D[3,5] b D[3,5] dy D[2,3,5]", "LayerNorm(%x, %g, %b) {axis = 1}",
     "D[2,3,5]", "LayerNormBackwardBeta(%dy) {axis = 1}", "D[3,5]", "b"},
    {"GroupNormBackwardInput", "x D[2,6,5] g D[6] b D[6] dy D[2,6,5]", "GroupNorm(%x, %g, %b) {groups = 3}", "D[2,6,5]",
     "GroupNormBackwardInput(%x, %g, %dy) {groups = 3}", "D[2,6,5]", "x"},
    {"GroupNormBackwardInput", "x D[2,4,3,2] g D[4] b D[4] dy D[2,4,3,2]", "GroupNorm(%x, %g, %b) {groups = 1}",
     "D[2,4,3,2]", "GroupNormBackwardInput(%x, %g, %dy) {groups = 1}", "D[2,4,3,2]", "x"},
    {"GroupNormBackwardGamma", "x D[2,6,5] g D[6] b D[6] dy D[2,6,5]", "GroupNorm(%x, %g, %b) {groups = 3}", "D[2,6,5]",
     "GroupNormBackwardGamma(%x, %dy) {groups = 3}", "D[6]", "g"},
    {"GroupNormBackwardBeta", "x D[2,6,5] g D[6] b D[6] dy D[2,6,5]", "GroupNorm(%x, %g, %b) {groups = 3}", "D[2,6,5]",
     "GroupNormBackwardBeta(%dy)", "D[6]", "b"},
    {"RmsNormBackwardInput", "x D[3,7] g D[7] dy D[3,7]", "RmsNorm(%x, %g) {eps = 0.01}", "D[3,7]",
     "RmsNormBackwardInput(%x, %g, %dy) {eps = 0.01}", "D[3,7]", "x"},
    {"RmsNormBackwardGamma", "x D[3,7] g D[7] dy D[3,7]", "RmsNorm(%x, %g)", "D[3,7]", "RmsNormBackwardGamma(%x, %dy)",
     "D[7]", "g"},
    {"CumsumBackward", "x D[3,5] dy D[3,5]", "CumSum(%x) {axis = 1}", "D[3,5]", "CumsumBackward(%dy) {axis = 1}",
     "D[3,5]", "x"},
    {"CumsumBackward", "x D[3,5] dy D[3,5]", "CumSum(%x) {axis = 0, exclusive = true, reverse = true}", "D[3,5]",
     "CumsumBackward(%dy) {axis = 0, exclusive = true, reverse = true}", "D[3,5]", "x"},
    {"RopeBackward", "x D[3,12] c D[3,2] s D[3,2] dy D[3,12]", "Rope(%x, %c, %s) {head_dim = 6, n_rot = 4}", "D[3,12]",
     "RopeBackward(%dy, %c, %s) {head_dim = 6, n_rot = 4}", "D[3,12]", "x"},
    {"RopeBackward", "x D[3,12] c D[3,2] s D[3,2] dy D[3,12]",
     "Rope(%x, %c, %s) {head_dim = 6, n_rot = 4, style = \"gptj\"}", "D[3,12]",
     "RopeBackward(%dy, %c, %s) {head_dim = 6, n_rot = 4, style = \"gptj\"}", "D[3,12]", "x"},
    {"GatherBackward", "x D[5,3] i i64[7] dy D[7,3]", "Gather(%x, %i)", "D[7,3]",
     "GatherBackward(%dy, %i) {extents = <5, 3>}", "D[5,3]", "x"},
    {"GatherBackward", "x D[2,5,3] i i32[2,3] dy D[2,2,3,3]", "Gather(%x, %i) {axis = 1}", "D[2,2,3,3]",
     "GatherBackward(%dy, %i) {axis = 1, extents = <2, 5, 3>}", "D[2,5,3]", "x"},
    {"SoftmaxCrossEntropyWithLogitsBackward", "x D[5,7] t i64[5] dy D[5]", "SoftmaxCrossEntropyWithLogits(%x, %t)",
     "D[5]", "SoftmaxCrossEntropyWithLogitsBackward(%x, %t, %dy)", "D[5,7]", "x"},
    {"SoftmaxCrossEntropyWithLogitsBackward", "x D[5,7] t i32[5] dy D[5]",
     "SoftmaxCrossEntropyWithLogits(%x, %t) {ignore = 2}", "D[5]",
     "SoftmaxCrossEntropyWithLogitsBackward(%x, %t, %dy) {ignore = 2}", "D[5,7]", "x"},
    {"SoftmaxCrossEntropyWithLogitsBackward", "x D[3,7] t D[3,7] dy D[3]", "SoftmaxCrossEntropyWithLogits(%x, %t)",
     "D[3]", "SoftmaxCrossEntropyWithLogitsBackward(%x, %t, %dy)", "D[3,7]", "x"},
    {"MaxPoolBackward", "x D[2,3,9] dy D[2,3,4]", "Pool(%x) {kind = \"max\", kernel = [3], strides = [2]}", "D[2,3,4]",
     "MaxPoolBackward(%x, %dy) {kernel = [3], strides = [2]}", "D[2,3,9]", "x"},
    {"MaxPoolBackward", "x D[1,2,7,5] dy D[1,2,4,3]",
     "Pool(%x) {kind = \"max\", kernel = [3, 2], strides = [2, 2], pads = [1, 1, 1, 0]}", "D[1,2,4,3]",
     "MaxPoolBackward(%x, %dy) {kernel = [3, 2], strides = [2, 2], pads = [1, 1, 1, 0]}", "D[1,2,7,5]", "x"},
    {"MaxPoolBackward", "x D[1,2,9] dy D[1,2,5]", "Pool(%x) {kind = \"max\", kernel = [3], dilations = [2]}",
     "D[1,2,5]", "MaxPoolBackward(%x, %dy) {kernel = [3], dilations = [2]}", "D[1,2,9]", "x"},
    {"Conv2dBackwardInput", "x D[2,3,7,5] w D[5,3,3,2] dy D[2,5,5,4]", "Conv(%x, %w)", "D[2,5,5,4]",
     "Conv2dBackwardInput(%w, %dy) {dims = <2, 3, 7, 5>}", "D[2,3,7,5]", "x"},
    {"Conv2dBackwardInput", "x D[1,4,8,5] w D[6,2,3,3] dy D[1,6,4,2]",
     "Conv(%x, %w) {groups = 2, strides = [2, 2], pads = [1, 0, 1, 0]}", "D[1,6,4,2]",
     "Conv2dBackwardInput(%w, %dy) {dims = <1, 4, 8, 5>, groups = 2, strides = [2, 2], pads = [1, 0, 1, 0]}",
     "D[1,4,8,5]", "x"},
    {"Conv2dBackwardInput", "x D[1,2,11] w D[3,2,3] dy D[1,3,7]", "Conv(%x, %w) {dilations = [2]}", "D[1,3,7]",
     "Conv2dBackwardInput(%w, %dy) {dims = <1, 2, 11>, dilations = [2]}", "D[1,2,11]", "x"},
    {"Conv2dBackwardWeight", "x D[2,3,7,5] w D[5,3,3,2] dy D[2,5,5,4]", "Conv(%x, %w)", "D[2,5,5,4]",
     "Conv2dBackwardWeight(%x, %dy) {dims = <5, 3, 3, 2>}", "D[5,3,3,2]", "w"},
    {"Conv2dBackwardWeight", "x D[1,4,8,5] w D[6,2,3,3] dy D[1,6,4,2]",
     "Conv(%x, %w) {groups = 2, strides = [2, 2], pads = [1, 0, 1, 0]}", "D[1,6,4,2]",
     "Conv2dBackwardWeight(%x, %dy) {dims = <6, 2, 3, 3>, groups = 2, strides = [2, 2], pads = [1, 0, 1, 0]}",
     "D[6,2,3,3]", "w"},
    {"AttentionBackward", "q D[2,3,16] k D[2,5,8] v D[2,5,8] dy D[2,3,16]",
     "Attention(%q, %k, %v) {heads = 4, kv_heads = 2, head_dim = 4}", "D[2,3,16]",
     "AttentionBackward(%q, %k, %v, %dy) {heads = 4, kv_heads = 2, head_dim = 4}", "D[2,3,16], D[2,5,8], D[2,5,8]",
     "q k v"},
    {"AttentionBackward", "q D[2,5,2,4] k D[2,5,1,4] v D[2,5,1,4] dy D[2,5,2,4]",
     "Attention(%q, %k, %v) {heads = 2, kv_heads = 1, head_dim = 4, layout = \"bshd\", mask = \"causal\", softcap = "
     "1.5}",
     "D[2,5,2,4]",
     "AttentionBackward(%q, %k, %v, %dy) {heads = 2, kv_heads = 1, head_dim = 4, layout = \"bshd\", mask = \"causal\", "
     "softcap = 1.5}",
     "D[2,5,2,4], D[2,5,1,4], D[2,5,1,4]", "q k v"},
    {"AttentionBackward", "q D[2,2,3,4] k D[2,2,5,4] v D[2,2,5,4] m D[2,1,5] dy D[2,2,3,4]",
     "Attention(%q, %k, %v, %m) {heads = 2, kv_heads = 2, head_dim = 4, layout = \"bhsd\", mask = \"bias\", scale = "
     "0.3}",
     "D[2,2,3,4]",
     "AttentionBackward(%q, %k, %v, %m, %dy) {heads = 2, kv_heads = 2, head_dim = 4, layout = \"bhsd\", mask = "
     "\"bias\", "
     "scale = 0.3}",
     "D[2,2,3,4], D[2,2,5,4], D[2,2,5,4], D[2,1,5]", "q k v m"},
    {"AttentionBackward", "q D[1,7,8] k D[1,7,8] v D[1,7,8] dy D[1,7,8]",
     "Attention(%q, %k, %v) {heads = 2, kv_heads = 2, head_dim = 4, mask = \"sliding\", window = 2}", "D[1,7,8]",
     "AttentionBackward(%q, %k, %v, %dy) {heads = 2, kv_heads = 2, head_dim = 4, mask = \"sliding\", window = 2}",
     "D[1,7,8], D[1,7,8], D[1,7,8]", "q k v"},
};

// The functions whose derivatives ActivationBackward knows, where they have one.
struct Function {
  const char *kind, *op;
  double low = -2.9, high = 2.9;
};
const Function kFunctions[] = {
    {"abs", "Abs"},
    {"acos", "Acos", -0.9, 0.9},
    {"acosh", "Acosh", 1.1, 4},
    {"asin", "Asin", -0.9, 0.9},
    {"asinh", "Asinh"},
    {"atan", "Atan"},
    {"atanh", "Atanh", -0.9, 0.9},
    {"ceil", "Ceil"},
    {"cos", "Cos"},
    {"cosh", "Cosh"},
    {"elu", "Elu"},
    {"erf", "Erf"},
    {"exp", "Exp"},
    {"exp2", "Exp2"},
    {"expm1", "Expm1"},
    {"floor", "Floor"},
    {"gelu", "Gelu"},
    {"gelu_approx", "GeluApprox"},
    {"hard_sigmoid", "HardSigmoid", -5, 5},
    {"hard_swish", "HardSwish", -5, 5},
    {"log", "Log", 0.1, 4},
    {"log1p", "Log1p", -0.9, 4},
    {"log2", "Log2", 0.1, 4},
    {"log_sigmoid", "LogSigmoid"},
    {"mish", "Mish"},
    {"quick_gelu", "QuickGelu"},
    {"recip", "Recip", 0.3, 4},
    {"round", "Round"},
    {"rsqrt", "Rsqrt", 0.1, 4},
    {"selu", "Selu"},
    {"sigmoid", "Sigmoid"},
    {"sign", "Sign"},
    {"silu", "Silu"},
    {"sin", "Sin"},
    {"sinh", "Sinh"},
    {"softplus", "Softplus"},
    {"softsign", "Softsign"},
    {"sqrt", "Sqrt", 0.1, 4},
    {"tan", "Tan", -1.2, 1.2},
    {"tanh", "Tanh"},
    {"trunc", "Trunc"},
};

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

class Gradients : public ::testing::Test {
 protected:
  void Check(const Row& row) {
    SCOPED_TRACE(row.gradient);
    const auto typed = [&](std::string text) { return absl::StrReplaceAll(text, {{"D", row.dtype}, {",", ", "}}); };
    const std::vector<std::string> words = Words(row.inputs);
    std::vector<std::pair<std::string, std::string>> names;
    std::string inputs;
    for (size_t i = 0; i < words.size(); i += 2) {
      names.emplace_back(absl::StrCat("%", words[i]), absl::StrCat("%", i / 2));
      absl::StrAppend(&inputs, "  %", i / 2, " = Input() {name = \"", words[i], "\"} : ", typed(words[i + 1]), "\n");
    }
    // Names are letters: of "%dy" and "%d" the longer is meant.
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    const auto graph = [&](std::string node, const std::string& types, size_t results) {
      for (const auto& [name, value] : names) {
        for (const char* behind : {",", ")"}) node = absl::StrReplaceAll(node, {{name + behind, value + behind}});
      }
      const size_t n = words.size() / 2;
      std::string text = absl::StrCat("graph g {\n", inputs, "  %", n, results > 1 ? absl::StrCat(":", results) : "",
                                      " = ", node, " : ", typed(types), "\n  return ");
      for (size_t r = 0; r < results; ++r)
        absl::StrAppend(&text, r == 0 ? "%" : ", %", n, results > 1 ? absl::StrCat(".", r) : "");
      StatusOr<ir::Graph> parsed = ir::Parse(text + "\n}");
      EXPECT_TRUE(parsed.ok()) << parsed.status() << text;
      return parsed.ok() ? *parsed : ir::Graph();
    };
    const std::vector<std::string> of = Words(row.of);
    const ir::Graph forward = graph(row.forward, row.y, 1), backward = graph(row.gradient, row.types, of.size());
    const StatusOr<ir::Graph> expanded = ExpandComposites(backward);
    ASSERT_TRUE(expanded.ok()) << expanded.status();
    ASSERT_GT(expanded->nodes().size(), 0u);

    ir::Feeds feeds;
    std::mt19937 random(7);
    std::uniform_real_distribution<double> real(row.low, row.high);
    for (const ir::Node& node : backward.nodes()) {
      if (!ir::IsInput(node)) continue;
      ir::RefTensor tensor{node.results[0].dtype, {}, {}};
      for (const Extent& dim : node.results[0].dims) tensor.dims.push_back(dim.constant());
      tensor.Allocate();
      for (double& value : tensor.data) value = real(random);
      for (int64_t& value : tensor.integers) value = static_cast<int64_t>(random() % 5);
      feeds[node.attributes.String("name")] = std::move(tensor);
    }
    const auto loss = [&] {
      const auto y = ir::Interpret(forward, {}, feeds);
      EXPECT_TRUE(y.ok()) << y.status();
      double sum = 0;
      for (size_t i = 0; i < (*y)[0].data.size(); ++i) sum += (*y)[0].data[i] * feeds["dy"].data[i];
      return sum;
    };
    ir::Feeds pairs = feeds;
    for (auto& [name, tensor] : pairs) {
      if (!IsComplex(tensor.dtype)) continue;
      tensor.dtype = DType::kF32;
      tensor.dims.push_back(2);
    }
    const auto stated = ir::Interpret(backward, {}, feeds), made = ir::Interpret(*expanded, {}, pairs);
    ASSERT_TRUE(stated.ok() && made.ok()) << stated.status() << made.status();
    for (size_t r = 0; r < of.size(); ++r) {
      if (of[r] == "-") continue;
      ir::RefTensor& x = feeds[of[r]];
      double scale = 1e-3;
      for (const double g : (*stated)[r].data) scale = std::max(scale, std::fabs(g));
      for (size_t i = 0; i < x.data.size(); ++i) {
        const double held = x.data[i], step = 1e-6;
        x.data[i] = held + step;
        const double above = loss();
        x.data[i] = held - step;
        const double slope = (above - loss()) / (2 * step);
        x.data[i] = held;
        EXPECT_NEAR((*stated)[r].data[i], slope, 1e-6 * scale) << of[r] << " " << i;
        EXPECT_NEAR((*made)[r].data[i], slope, 1e-6 * scale) << of[r] << " " << i << ", expanded";
      }
    }
  }
};

TEST_F(Gradients, AreWhatDifferencesGive) {
  for (const Row& row : kRows) Check(row);
}

TEST_F(Gradients, OfElementwiseFunctions) {
  for (const Function& function : kFunctions) {
    const std::string forward = absl::StrCat(function.op, "(%x)"),
                      backward = absl::StrCat("ActivationBackward(%x, %dy) {kind = \"", function.kind, "\"}");
    Check({.backward = "ActivationBackward",
           .inputs = "x D[3,17] dy D[3,17]",
           .forward = forward.c_str(),
           .y = "D[3,17]",
           .gradient = backward.c_str(),
           .types = "D[3,17]",
           .of = "x",
           .low = function.low,
           .high = function.high});
  }
}

// Every op that is a gradient by its name has a row, and every function that ActivationBackward knows.
TEST_F(Gradients, EveryOpHasARow) {
  for (const ir::OpDef* op : ir::Ops()) {
    const std::string name = op->name;
    if (name.find("Backward") == std::string::npos || name.starts_with("FakeQuantize")) continue;
    if (!op->bodies.empty()) continue;  // of whatever is in them: scan_backward_test.cc
    bool found = name == "ActivationBackward";
    for (const Row& row : kRows) found = found || name == row.backward;
    EXPECT_TRUE(found) << name;
  }
  for (const char* kind : ir::FindOp("ActivationBackward")->attributes[0].choices) {
    bool found = false;
    for (const Function& function : kFunctions) found = found || std::string_view(kind) == function.kind;
    EXPECT_TRUE(found) << kind;
  }
}

}  // namespace
}  // namespace quern::opt
