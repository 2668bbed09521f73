// Pairs of QuantizeLinear and DequantizeLinear across what moves elements, or chooses among them:
//
//   %3 = DequantizeLinear(%0, %1, %2) : f32[4, 6]        %3 = Reshape(%0) : u8[24]
//   %4 = Reshape(%3) : f32[24]                      =>   %4 = QuantizeLinear(DequantizeLinear(%3, %1, %2), ..)
//   %5 = QuantizeLinear(%4, %1, %2) : u8[24]             which is %3
//
// DequantizeLinear moves down, across views, Concats of one form, and, with a scale above 0, Relu, Clamp between
// numbers that bytes stand for, and maximum pools. QuantizeLinear moves up across views, and maximum pools of what is
// no NaN, where nothing else reads what is in between. All of it is exact: rounding is monotone, and f32 holds a byte
// times a scale nearly enough to find the byte again.

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "ir/identity.h"
#include "ir/interpret.h"
#include "ir/linear_quantise.h"
#include "ir/monotone.h"
#include "ir/product.h"
#include "ir/spelled_out.h"
#include "ir/window.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ir::LinearForm;
using ir::Value;

constexpr int kDeepest = 64;  // of the ops that are followed to find where a value comes from

// Of bytes; 16 bits are left to floats.
std::optional<LinearForm> FormOf(const ir::Graph& graph, const ir::Node& node) {
  std::optional<LinearForm> form = ir::LinearFormOf(graph, node);
  if (!form || !ir::IsByte(form->dtype)) return std::nullopt;
  const Value floats = ir::IsQuantizeLinear(node) ? node.inputs[0] : form->scale;
  return graph.type(floats).dtype == DType::kF32 ? form : std::nullopt;
}

bool IsOne(const ir::Graph& graph, const LinearForm& form) { return graph.type(form.scale).rank() == 0; }

bool SameConstant(const ir::Graph& graph, Value a, Value b) {
  if (a == b) return true;
  const ir::Node &x = graph.node(a.node), &y = graph.node(b.node);
  return ir::IsConstant(x) && ir::IsConstant(y) && graph.type(a) == graph.type(b) && *x.data == *y.data;
}

bool SameForm(const ir::Graph& graph, const LinearForm& a, const LinearForm& b) {
  if (a.dtype != b.dtype || a.zero.has_value() != b.zero.has_value()) return false;
  return SameConstant(graph, a.scale, b.scale) && (!a.zero || SameConstant(graph, *a.zero, *b.zero)) &&
         (IsOne(graph, a) || a.axis == b.axis);
}

// Of scales, so that bytes times them are far from what is flushed to 0, and sums of products from infinity.
constexpr double kLeastScale = 1e-30, kMostScale = 1e12;

// The one scale and zero point, where they are known; the scale is above 0.
struct Numbers {
  double scale = 0, zero = 0;
};
std::optional<Numbers> NumbersOf(const ir::Graph& graph, const LinearForm& form) {
  if (!IsOne(graph, form)) return std::nullopt;
  const std::optional<double> scale = ir::ScalarConstant(graph, form.scale);
  const std::optional<double> zero = form.zero ? ir::ScalarConstant(graph, *form.zero) : 0.0;
  if (!scale || !zero || !(*scale > kLeastScale && *scale < kMostScale)) return std::nullopt;
  return Numbers{*scale, *zero};
}

// Whether every element of a Constant is between -most and most.
bool IsWithin(const ir::Graph& graph, Value value, double most) {
  const ir::Node& node = graph.node(value.node);
  if (!ir::IsConstant(node) || !IsFloat(graph.type(value).dtype)) return false;
  const int64_t elements = graph.type(value).elements().constant();
  const StatusOr<ir::RefTensor> tensor = ir::RefTensorFromBytes(graph.type(value).dtype, {elements}, *node.data);
  return tensor.ok() && std::all_of(tensor->data.begin(), tensor->data.end(),
                                    [&](double number) { return std::fabs(number) <= most; });
}

// Whether no element is a NaN: of bytes, of sums of their products, and of what keeps that.
bool IsNumbers(const ir::Graph& graph, Value value, int depth = 0) {
  const ir::Node& node = graph.node(value.node);
  if (depth > kDeepest) return false;
  const std::optional<LinearForm> form = FormOf(graph, node);
  if (form && ir::IsDequantizeLinear(node)) return IsWithin(graph, form->scale, kMostScale);
  const auto behind = [&](Value input) { return IsNumbers(graph, input, depth + 1); };
  const auto finite = [&](Value input) { return IsWithin(graph, input, FLT_MAX); };
  if (ir::IsMatMul(node) || node.op == ir::FindConvolution()) {
    const auto of_bytes = [&](Value input) { return ir::IsDequantizeLinear(graph.node(input.node)) && behind(input); };
    return of_bytes(node.inputs[0]) && of_bytes(node.inputs[1]) && (node.inputs.size() < 3 || finite(node.inputs[2]));
  }
  // An infinity that a number is added to is none of the other sign.
  if (ir::IsSum(node))
    return (behind(node.inputs[0]) && finite(node.inputs[1])) || (finite(node.inputs[0]) && behind(node.inputs[1]));
  if (ir::IsView(node) || ir::IsMaxPool(node) || ir::IsRelu(node) || ir::IsConcat(node))
    return std::all_of(node.inputs.begin(), node.inputs.end(), behind);
  return false;
}

class Propagator {
 public:
  explicit Propagator(const ir::Graph& graph)
      : graph_(graph), rewriter_(graph, "propagate_qdq", PropagateQdq), to_(rewriter_.to), sinks_(Sinks()) {}

  StatusOr<ir::Graph> Run() {
    for (int n = 0; n < rewriter_.size(); ++n) {
      QUERN_ASSIGN(const std::optional<Value> made, Rewritten(n));
      if (made)
        rewriter_.Replace({n, 0}, *made);
      else
        QUERN_RETURN_IF_ERROR(rewriter_.Copy(n));
    }
    return rewriter_.Finish();
  }

 private:
  // For each node that a QuantizeLinear moves up across: that QuantizeLinear; -1 for others.
  std::vector<int> Sinks() const {
    const std::vector<std::vector<std::pair<int, int>>> users = graph_.Users();
    std::vector<bool> is_output(graph_.nodes().size());
    for (const Value& output : graph_.outputs) is_output[output.node] = true;
    std::vector<int> sinks(graph_.nodes().size(), -1);
    for (size_t n = sinks.size(); n-- > 0;) {
      if (is_output[n] || users[n].size() != 1 || users[n][0].second != 0) continue;
      const ir::Node& node = graph_.node(static_cast<int>(n));
      const bool pools = ir::IsMaxPool(node) && IsNumbers(graph_, node.inputs[0]);
      // A part of a tensor is fewer elements to quantise than all of it.
      const bool moves = ir::IsView(node) && graph_.type(node.inputs[0]).elements() == node.results[0].elements();
      if (!pools && !moves) continue;
      const int user = users[n][0].first;
      const std::optional<LinearForm> form = FormOf(graph_, graph_.node(user));
      const bool quantises = form && ir::IsQuantizeLinear(graph_.node(user)) && NumbersOf(graph_, *form).has_value();
      sinks[n] = quantises ? user : sinks[user];
    }
    return sinks;
  }

  StatusOr<std::optional<Value>> Rewritten(int n) {
    const ir::Node& node = graph_.node(n);
    if (sinks_[n] >= 0) return Over(n, sinks_[n]);
    if (const std::optional<LinearForm> form = FormOf(graph_, node); form && ir::IsQuantizeLinear(node)) {
      const Value x = rewriter_.Now(node.inputs[0]);
      // What a chain over bytes stands for here already.
      if (to_.type(x).dtype == form->dtype) return x;
      const std::optional<LinearForm> now = Now(*form);
      const ir::Node& behind = to_.node(x.node);
      const std::optional<LinearForm> made = FormOf(to_, behind);
      if (made && ir::IsDequantizeLinear(behind) && NumbersOf(to_, *made) && SameForm(to_, *made, *now))
        return behind.inputs[0];
      return std::nullopt;
    }
    return Down(n);
  }

  LinearForm Now(LinearForm form) const {
    form.scale = rewriter_.Now(form.scale);
    if (form.zero) form.zero = rewriter_.Now(*form.zero);
    return form;
  }

  // Node n over bytes, the first of a chain over what it quantises.
  StatusOr<std::optional<Value>> Over(int n, int sink) {
    const ir::Node& node = graph_.node(n);
    Value x = rewriter_.Now(node.inputs[0]);
    if (const int before = node.inputs[0].node; sinks_[before] != sink) {
      const ir::Node& quantise = graph_.node(sink);
      LinearForm form = *FormOf(graph_, quantise);
      QUERN_ASSIGN(form.scale, to_.AddCopy(graph_.node(form.scale.node), {}));
      if (form.zero) {
        QUERN_ASSIGN(form.zero, to_.AddCopy(graph_.node(form.zero->node), {}));
      }
      const ir::Node& behind = to_.node(x.node);
      const std::optional<LinearForm> made = FormOf(to_, behind);
      if (made && ir::IsDequantizeLinear(behind) && NumbersOf(to_, *made) && SameForm(to_, *made, form)) {
        x = behind.inputs[0];
      } else {
        QUERN_ASSIGN(x, ir::MakeQuantized(rewriter_.Maker(sink), x, form));
      }
    }
    std::vector<Value> operands = rewriter_.Now(node.inputs);
    operands[0] = x;
    QUERN_ASSIGN(const Value made, to_.Add(*node.op, std::move(operands), node.attributes, rewriter_.OriginOf(n)));
    return made;
  }

  // Node n over the bytes that its operands are made of, made floats behind it; nothing where it stays.
  StatusOr<std::optional<Value>> Down(int n) {
    const ir::Node& node = graph_.node(n);
    if (node.inputs.empty() || node.results.size() != 1 || !node.bodies.empty()) return std::nullopt;
    std::vector<Value> operands = rewriter_.Now(node.inputs);
    const ir::Node& behind = to_.node(operands[0].node);
    std::optional<LinearForm> form = FormOf(to_, behind);
    if (!form || !ir::IsDequantizeLinear(behind)) return std::nullopt;
    const std::optional<Numbers> numbers = NumbersOf(to_, *form);
    const Value bytes = behind.inputs[0];
    StatusOr<Value> made = Value{};
    if (ir::IsView(node) && (IsOne(to_, *form) || ir::PermutationOf(node) != nullptr)) {
      if (!IsOne(to_, *form)) {
        const std::vector<int64_t>& perm = *ir::PermutationOf(node);
        form->axis = std::find(perm.begin(), perm.end(), form->axis) - perm.begin();
      }
      made = to_.Add(*node.op, {bytes}, node.attributes, rewriter_.OriginOf(n));
    } else if (ir::IsMaxPool(node) && numbers) {
      made = to_.Add(*node.op, {bytes}, node.attributes, rewriter_.OriginOf(n));
    } else if (ir::IsConcat(node) && IsOne(to_, *form)) {
      for (Value& operand : operands) {
        const ir::Node& other = to_.node(operand.node);
        const std::optional<LinearForm> its = FormOf(to_, other);
        if (!its || !ir::IsDequantizeLinear(other) || !SameForm(to_, *its, *form)) return std::nullopt;
        operand = other.inputs[0];
      }
      made = to_.Add(*node.op, std::move(operands), node.attributes, rewriter_.OriginOf(n));
    } else if ((ir::IsRelu(node) || ir::IsClamp(node)) && numbers) {
      QUERN_ASSIGN(const std::optional<Value> bounded, Bounded(n, bytes, form->dtype, *numbers));
      if (!bounded) return std::nullopt;
      made = *bounded;
    } else {
      return std::nullopt;
    }
    if (!made.ok()) return made.status();
    QUERN_ASSIGN(const Value floats, ir::MakeDequantized(rewriter_.Maker(n), *made, *form));
    return floats;
  }

  // The byte that stands for `number`, or the nearest end where none reaches it; nothing where it is in between.
  std::optional<double> ByteOf(double number, DType dtype, const Numbers& numbers) const {
    const auto least = static_cast<double>(ir::Lowest(dtype)), most = static_cast<double>(ir::Highest(dtype));
    const double byte = std::nearbyint(number / numbers.scale) + numbers.zero;
    const double at = std::clamp(byte, least, most);
    const auto floats = [&](double q) {
      return static_cast<double>(static_cast<float>((q - numbers.zero) * numbers.scale));
    };
    const bool outside = (at == least && number <= floats(least)) || (at == most && number >= floats(most));
    return floats(at) == number || outside ? std::optional(at) : std::nullopt;
  }

  // Relu and Clamp of bytes.
  StatusOr<std::optional<Value>> Bounded(int n, Value bytes, DType dtype, const Numbers& numbers) {
    const ir::Node& node = graph_.node(n);
    std::optional<double> low = 0.0, high = INFINITY;
    if (ir::IsClamp(node)) {
      low = ir::ScalarConstant(graph_, node.inputs[1]);
      high = ir::ScalarConstant(graph_, node.inputs[2]);
      if (!low || !high || !(*low <= *high) || !graph_.type(node.inputs[1]).dims.empty() ||
          !graph_.type(node.inputs[2]).dims.empty())
        return std::nullopt;
    }
    const std::optional<double> least = ByteOf(*low, dtype, numbers), most = ByteOf(*high, dtype, numbers);
    if (!least || !most) return std::nullopt;
    const auto number = [&](double value) {
      return to_.AddConstant({dtype, {}}, {static_cast<uint8_t>(static_cast<int>(value))}, rewriter_.OriginOf(n));
    };
    Value y = bytes;
    if (*least > static_cast<double>(ir::Lowest(dtype))) {
      QUERN_ASSIGN(const Value bound, number(*least));
      QUERN_ASSIGN(y, ir::MakeAtLeast(rewriter_.Maker(n), y, bound));
    }
    if (*most < static_cast<double>(ir::Highest(dtype))) {
      QUERN_ASSIGN(const Value bound, number(*most));
      QUERN_ASSIGN(y, ir::MakeAtMost(rewriter_.Maker(n), y, bound));
    }
    return y;
  }

  const ir::Graph& graph_;
  Rewriter rewriter_;
  ir::Graph& to_;
  const std::vector<int> sinks_;  // after what it reads
};

}  // namespace

StatusOr<ir::Graph> PropagateQdq(const ir::Graph& graph) { return Propagator(graph).Run(); }

}  // namespace quern::opt
