#include "support/graph_oracle.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "ir/op.h"
#include "kir/build.h"
#include "kir/operators.h"

namespace quern::testing {
namespace {

using ir::Family;
using ir::Node;
using ir::RefTensor;

constexpr int kRuns = 6, kMoreRuns = 150;
constexpr double kRounding = 0x1p-23;  // of f32, twice over

// How far an op's kernel may be from its reference.
enum class Error { kNone, kRounding, kContract };

// Whether f32 cannot hold every value of this dtype. Halves are rounded by the oracle itself.
bool Narrows(DType from) { return ScalarBytes(from) >= 4 && from != DType::kF32; }

Error ErrorOf(const kir::ExprRef& expr) {
  struct Visitor {
    Error operator()(const kir::Apply& node) const {
      Error error = kir::Row(node.op).math ? Error::kContract : Error::kNone;
      switch (node.op) {
        case kir::Op::kAdd: case kir::Op::kSub: case kir::Op::kMul: case kir::Op::kDiv: case kir::Op::kSqrt:
          error = Error::kRounding;
          break;
        case kir::Op::kRsqrt: case kir::Op::kMod: case kir::Op::kFma:
          error = Error::kContract;
          break;
        default: break;
      }
      // An op of several rounded steps states its own contract.
      for (const kir::ExprRef& arg : node.args) {
        const Error inner = ErrorOf(arg);
        if (inner != Error::kNone) error = error == Error::kNone ? inner : Error::kContract;
      }
      return error;
    }
    Error operator()(const kir::Cast& node) const { return std::max(ErrorOf(node.value), Narrows(node.value->dtype) ? Error::kRounding : Error::kNone); }
    Error operator()(const kir::Bits& node) const { return ErrorOf(node.value); }
    Error operator()(const kir::Const&) const { return Error::kNone; }
    Error operator()(const kir::NameRef&) const { return Error::kNone; }
    Error operator()(const kir::Load&) const { return Error::kNone; }
    Error operator()(const kir::Reduce&) const { return Error::kContract; }
    Error operator()(const kir::Decode&) const { return Error::kNone; }
  };
  return std::visit(Visitor{}, expr->node);
}

// Operands as loads, for looking at an op's expression.
class Shown : public ir::MapContext {
 public:
  Shown(const ir::Graph& graph, const Node& node) : graph_(graph), node_(node), index_(node.results[0].dims.size(), kir::build::Ref("i")) {}
  const Node& node() const override { return node_; }
  const ir::TensorType& operand_type(int operand) const override { return graph_.type(node_.inputs[operand]); }
  const ir::TensorType& result_type() const override { return node_.results[0]; }
  const kir::Index& index() const override { return index_; }
  kir::ExprRef Operand(int operand, kir::Index at, kir::ExprRef) override {
    return kir::build::At("x", operand_type(operand).dtype, std::move(at));
  }

 private:
  const ir::Graph& graph_;
  const Node& node_;
  kir::Index index_;
};

Error ErrorOf(const ir::Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  if (node.op->family == Family::kElementwise || op == "Rope") {
    Shown context(graph, node);
    return ErrorOf(node.op->map(context));
  }
  if (node.op->family == Family::kIndex || node.op->family == Family::kUpdate) return Error::kNone;
  if (op == "Reduce") {
    const std::string& kind = node.attributes.String("op");
    return kind == "max" || kind == "min" ? Error::kNone : Error::kContract;
  }
  return Error::kContract;
}

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// A number as f32 holds it beyond its range; doubles stand for f32 everywhere else.
double Overflowed(DType dtype, double value) {
  return dtype != DType::kF64 && std::fabs(value) > FLT_MAX ? std::copysign(INFINITY, value) : value;
}

}  // namespace

GraphOracle::GraphOracle(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds, uint64_t seed)
    : graph_(graph), binding_(binding), feeds_(feeds), seed_(seed) {}

StatusOr<GraphOracle> GraphOracle::Create(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds, uint64_t seed) {
  GraphOracle oracle(graph, binding, feeds, seed);
  QUERN_ASSIGN(oracle.expected_, oracle.Evaluate(0, 0));
  for (const RefTensor& tensor : oracle.expected_) {
    oracle.ranges_.push_back({tensor.data, tensor.data, std::vector<bool>(tensor.data.size())});
  }
  QUERN_RETURN_IF_ERROR(oracle.Widen(kRuns, 1));
  return oracle;
}

// Every result is moved by `scale` times what its op may be off, up or down at random.
StatusOr<std::vector<RefTensor>> GraphOracle::Evaluate(uint64_t run, double scale) const {
  std::mt19937_64 random(seed_ * 1000003 + run);
  uint64_t bits = 0;
  int left = 0;
  auto sign = [&] {
    if (left == 0) bits = random(), left = 64;
    --left;
    const double value = (bits & 1) != 0 ? scale : -scale;
    bits >>= 1;
    return value;
  };
  std::vector<std::vector<RefTensor>> values(graph_.nodes().size());
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    for (const ir::TensorType& type : node.results) {
      RefTensor& result = values[n].emplace_back(RefTensor{type.dtype, {}, {}});
      for (const Extent& dim : type.dims) {
        QUERN_ASSIGN(const int64_t size, dim.Evaluate(binding_));
        result.dims.push_back(size);
      }
      result.data.resize(result.elements());
    }
    if (std::string_view(node.op->name) == "Constant") {
      QUERN_ASSIGN(values[n][0], ir::RefTensorFromBytes(node.results[0].dtype, values[n][0].dims, *node.data));
      continue;
    }
    if (node.op->family == Family::kLeaf) {
      values[n][0] = feeds_.find(node.attributes.String("name"))->second;
      continue;
    }
    const Error error = scale == 0 ? Error::kNone : ErrorOf(graph_, node);
    // Sums are rounded on the way: their terms move, however small the sum is beside them.
    const bool sums = error == Error::kContract && node.op->family != Family::kElementwise;
    std::vector<RefTensor> moved;
    moved.reserve(node.inputs.size());
    std::vector<const RefTensor*> operands;
    for (const ir::Value& input : node.inputs) {
      operands.push_back(&values[input.node][input.result]);
      if (!sums || !IsFloat(operands.back()->dtype)) continue;
      moved.push_back(*operands.back());
      for (double& value : moved.back().data) value += value * sign() * kRounding;
      operands.back() = &moved.back();
    }
    // Halves are rounded here, after the error of what is rounded.
    for (RefTensor& result : values[n]) result.dtype = IsHalf(result.dtype) ? DType::kF32 : result.dtype;
    ir::RefContext context{node, operands, binding_, values[n]};
    QUERN_RETURN_IF_ERROR(node.op->reference(context));
    for (size_t r = 0; r < values[n].size(); ++r) {
      RefTensor& result = values[n][r];
      result.dtype = node.results[r].dtype;
      if (!IsFloat(result.dtype)) continue;
      for (double& value : result.data) {
        const bool exact = error == Error::kRounding && static_cast<double>(static_cast<float>(value)) == value;
        if (error == Error::kContract) value += sign() * (std::fabs(value) * node.op->rtol + node.op->atol);
        else if (error == Error::kRounding && !exact) value += sign() * std::fabs(value) * kRounding;
        value = Overflowed(result.dtype, ir::RoundTo(result.dtype, value));
      }
    }
  }
  std::vector<RefTensor> outputs;
  for (const ir::Value& output : graph_.outputs) outputs.push_back(values[output.node][output.result]);
  return outputs;
}

Status GraphOracle::Widen(int runs, double scale) {
  for (int i = 0; i < runs; ++i) {
    QUERN_ASSIGN(const std::vector<RefTensor> moved, Evaluate(++runs_, scale));
    for (size_t o = 0; o < moved.size(); ++o) {
      Range& range = ranges_[o];
      for (size_t e = 0; e < moved[o].data.size(); ++e) {
        const double value = moved[o].data[e], wanted = expected_[o].data[e];
        const bool same = value == wanted || (std::isnan(value) && std::isnan(wanted));
        if (!same && !(std::isfinite(value) && std::isfinite(wanted))) range.wild[e] = true;
        if (value < range.low[e]) range.low[e] = value;
        if (value > range.high[e]) range.high[e] = value;
      }
    }
  }
  return absl::OkStatus();
}

bool GraphOracle::Allows(int output, size_t element, double got) const {
  const double wanted = expected_[output].data[element];
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return true;
  const Range& range = ranges_[output];
  if (range.wild[element]) return true;
  if (!std::isfinite(wanted) || !std::isfinite(got)) return false;
  const Node& node = graph_.node(graph_.outputs[output].node);
  double allowed = 3 * std::max(range.high[element] - wanted, wanted - range.low[element]);
  if (IsFloat(expected_[output].dtype)) {
    const Error error = ErrorOf(graph_, node);
    if (error == Error::kContract) allowed += node.op->rtol * std::fabs(wanted) + node.op->atol;
    else if (error == Error::kRounding) allowed += kRounding * std::fabs(wanted);
    allowed += FLT_MIN;  // denormals are flushed
  }
  return std::fabs(got - wanted) <= allowed;
}

std::string GraphOracle::FirstDifference(int output, const RefTensor& got) {
  const RefTensor& wanted = expected_[output];
  if (got.dtype != wanted.dtype || got.dims != wanted.dims) return "another type";
  for (size_t e = 0; e < got.data.size(); ++e) {
    if (Allows(output, e, got.data[e])) continue;
    if (!widened_) {
      widened_ = true;
      if (const Status status = Widen(kMoreRuns, 2); !status.ok()) return std::string(status.message());
    }
    if (Allows(output, e, got.data[e])) {
      ++doubted_;
      continue;
    }
    return absl::StrFormat("output %d element %u is %.9g, not %.9g (%.9g to %.9g)", output, e, got.data[e], wanted.data[e],
                           ranges_[output].low[e], ranges_[output].high[e]);
  }
  return "";
}

}  // namespace quern::testing
