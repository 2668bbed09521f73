#include "check/evaluate.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <random>

#include "base/check.h"
#include "check/value.h"
#include "ir/counted.h"
#include "ir/op.h"
#include "kir/build.h"
#include "kir/operators.h"

namespace quern::check {
namespace {

using ir::Node;
using ir::OpKind;
using ir::RefTensor;

// Whether f32 cannot hold every value of this dtype. Halves are rounded by the oracle itself.
bool Narrows(DType from) { return ScalarBytes(from) >= 4 && from != DType::kF32; }

Error ErrorOf(const kir::ExprRef& expr) {
  struct Visitor {
    Error operator()(const kir::Apply& node) const {
      Error error = kir::Row(node.op).math ? Error::kContract : Error::kNone;
      switch (node.op) {
        case kir::Op::kAdd:
        case kir::Op::kSub:
        case kir::Op::kMul:
        case kir::Op::kDiv:
        case kir::Op::kSqrt: error = Error::kRounding; break;
        case kir::Op::kRsqrt:
        case kir::Op::kMod:
        case kir::Op::kFma: error = Error::kContract; break;
        default: break;
      }
      // An op of several rounded steps states its own contract.
      for (const kir::ExprRef& arg : node.args) {
        const Error inner = ErrorOf(arg);
        if (inner != Error::kNone) error = error == Error::kNone ? inner : Error::kContract;
      }
      return error;
    }
    Error operator()(const kir::Cast& node) const {
      return std::max(ErrorOf(node.value), Narrows(node.value->dtype) ? Error::kRounding : Error::kNone);
    }
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
  Shown(const ir::Graph& graph, const Node& node)
      : graph_(graph), node_(node), index_(node.results[0].dims.size(), kir::build::Ref("i")) {}
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

// Whether elements are numbers that round: of c64 both parts do.
bool IsReal(DType dtype) { return IsFloat(dtype) || IsComplex(dtype); }

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

bool IsFlushed(DType dtype, double value) { return value != 0 && std::fabs(value) < FlushedOf(dtype); }

// A number as f32 holds it beyond its range; doubles stand for f32 everywhere else.
double Overflowed(DType dtype, double value) {
  return dtype != DType::kF64 && std::fabs(value) > FLT_MAX ? std::copysign(INFINITY, value) : value;
}

// Random signs, 64 from one draw.
class Signs {
 public:
  explicit Signs(Perturbation perturbation) : random_(perturbation.seed), scale_(perturbation.scale) {}
  double Next() {
    if (left_ == 0) bits_ = random_(), left_ = 64;
    --left_;
    const double value = (bits_ & 1) != 0 ? scale_ : -scale_;
    bits_ >>= 1;
    return value;
  }

 private:
  std::mt19937_64 random_;
  const double scale_;
  uint64_t bits_ = 0;
  int left_ = 0;
};

using Values = std::vector<std::vector<const RefTensor*>>;  // by node and result
using Sizes = std::vector<std::vector<double>>;             // of a node's results: a row of Magnitudes

// What the nodes of one evaluation, those of bodies too, have in common.
struct Setting {
  Binding& binding;
  const ir::Feeds& feeds;
  const bool moves;
  Signs signs;
};

// `inputs`: values of the Inputs by position, for a body; null: they are fed by name. `magnitudes`: of the graph's
// values; null: they are found on the way where results move. `made` keeps what `values` points to.
Status EvaluateGraph(const ir::Graph& graph, const std::span<const RefTensor* const>* inputs,
                     const Magnitudes* magnitudes, Setting& setting, Values& values,
                     std::vector<std::vector<RefTensor>>& made);

StatusOr<std::vector<RefTensor>> EvaluateBody(const ir::Graph& body, std::span<const RefTensor* const> inputs,
                                              Setting& setting) {
  Values values;
  std::vector<std::vector<RefTensor>> made;
  QUERN_RETURN_IF_ERROR(EvaluateGraph(body, &inputs, nullptr, setting, values, made));
  std::vector<RefTensor> outputs;
  for (const ir::Value& output : body.outputs) outputs.push_back(*values[output.node][output.result]);
  return outputs;
}

// The magnitudes of the results of a node over these operands; `dims`: of its results.
StatusOr<Sizes> SizesOfResults(const Node& node, std::span<const RefTensor* const> operands,
                               const std::vector<std::vector<int64_t>>& dims, const Binding& binding) {
  Sizes made(node.results.size());
  if (node.op->magnitude == nullptr || !IsReal(node.results[0].dtype)) return made;
  std::vector<RefTensor> sizes;
  for (const std::vector<int64_t>& extents : dims) sizes.emplace_back(RefTensor{DType::kF64, extents, {}}).Allocate();
  ir::RefContext context{node, operands, binding, sizes};
  QUERN_RETURN_IF_ERROR(node.op->magnitude(context));
  for (size_t r = 0; r < sizes.size(); ++r) made[r] = std::move(sizes[r].data);
  return made;
}

// The results of `node` as its reference makes them, each moved by what the op may be off. `sizes`: the magnitudes of
// its results, where they are not their own; null when nothing moves.
Status EvaluateNode(const ir::Graph& graph, const Node& node, std::span<const RefTensor* const> given,
                    const Sizes* sizes, Setting& setting, std::vector<RefTensor>& results) {
  Signs& signs = setting.signs;
  const Error error = sizes != nullptr ? check::ErrorOf(graph, node) : Error::kNone;
  // Sums are rounded on the way: their terms move, however small the sum is beside them.
  const bool sums = error == Error::kContract && node.op->kind != OpKind::kElementwise;
  // What only moves keeps denormals; a kernel that computes may find zeros in their place.
  const bool moves = (node.op->kind == OpKind::kWrite && error == Error::kNone) || node.op->kind == OpKind::kControl ||
                     (node.op->kind == OpKind::kIndex && node.op->row_span == nullptr);
  std::vector<RefTensor> moved;
  moved.reserve(given.size());
  std::vector<const RefTensor*> operands(given.begin(), given.end());
  for (const RefTensor*& operand : operands) {
    const DType dtype = operand->dtype;
    const bool flushes =
        sizes != nullptr && !moves && IsFloat(dtype) &&
        std::any_of(operand->data.begin(), operand->data.end(), [&](double value) { return IsFlushed(dtype, value); });
    if (!flushes && !(sums && IsReal(dtype))) continue;
    moved.push_back(*operand);
    const double rounding = sums ? RoundingOf(dtype) : 0;
    for (double& value : moved.back().data) {
      value += value * signs.Next() * rounding;
      if (flushes && IsFlushed(dtype, value) && signs.Next() < 0) value = 0;
    }
    operand = &moved.back();
  }
  // Halves are rounded here, after the error of what is rounded.
  for (RefTensor& result : results) result.dtype = IsHalf(result.dtype) ? DType::kF32 : result.dtype;
  const auto run = [&](int body, std::span<const RefTensor* const> inputs) {
    return EvaluateBody(node.body(body), inputs, setting);
  };
  ir::RefContext context{node, operands, setting.binding, results, run};
  QUERN_RETURN_IF_ERROR(ir::WithOrigin(graph, node.origin, node.op->reference(context)));
  for (size_t r = 0; r < results.size(); ++r) {
    RefTensor& result = results[r];
    result.dtype = node.results[r].dtype;
    if (!IsReal(result.dtype)) continue;
    const bool pairs = IsComplex(result.dtype);
    for (size_t e = 0; e < result.data.size(); ++e) {
      double& value = result.data[e];
      const bool exact = error == Error::kRounding && static_cast<double>(static_cast<float>(value)) == value;
      if (error != Error::kNone && !exact) {
        const double size = (*sizes)[r].empty() ? 0 : (*sizes)[r][pairs ? e / 2 : e];
        const double own = pairs ? std::abs(result.Complex(static_cast<int64_t>(e / 2))) : std::fabs(value);
        value += signs.Next() * AllowedOf(node, error, result.dtype, std::max(size, own));
      }
      value = Overflowed(result.dtype, ir::RoundOnce(result.dtype, value));
    }
  }
  return absl::OkStatus();
}

// The value of an Input or Param, with its type checked.
StatusOr<const RefTensor*> Given(const Node& leaf, const RefTensor* positional, const Setting& setting) {
  const std::string& name = leaf.attributes.String("name");
  const auto fed = setting.feeds.find(name);
  const RefTensor* given = positional != nullptr ? positional : fed == setting.feeds.end() ? nullptr : &fed->second;
  if (given == nullptr) return absl::InvalidArgumentError(absl::StrFormat("no value for %s %s", leaf.op->name, name));
  QUERN_ASSIGN(const std::vector<int64_t> dims, SizesOf(leaf.results[0], setting.binding));
  if (given->dtype == leaf.results[0].dtype && given->dims == dims) return given;
  return absl::InvalidArgumentError(
      absl::StrFormat("the value for %s is not of type %s", name, leaf.results[0].ToString()));
}

Status EvaluateGraph(const ir::Graph& graph, const std::span<const RefTensor* const>* inputs,
                     const Magnitudes* magnitudes, Setting& setting, Values& values,
                     std::vector<std::vector<RefTensor>>& made_by_node) {
  values.resize(graph.nodes().size());
  made_by_node.resize(graph.nodes().size());
  // Where values only move there are as many of them; what a trip finds is not kept.
  const bool finds = !setting.moves || inputs != nullptr;
  if (finds) QUERN_RETURN_IF_ERROR(ir::BeginSizes(graph, setting.binding));
  int64_t elements = 0;
  size_t next_input = 0;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (IsInput(node) || IsParam(node)) {
      const bool positional = inputs != nullptr && IsInput(node);
      QUERN_ASSIGN(const RefTensor* const given, Given(node, positional ? (*inputs)[next_input++] : nullptr, setting));
      values[n] = {given};
      continue;
    }
    std::vector<RefTensor>& made = made_by_node[n];
    std::vector<const RefTensor*> operands;
    for (const ir::Value& input : node.inputs) operands.push_back(values[input.node][input.result]);
    if (ir::IsCounted(node) && finds)
      QUERN_RETURN_IF_ERROR(
          ir::WithOrigin(graph, node.origin, ir::BindCount(graph, node, *operands[1], setting.binding)));
    for (const ir::TensorType& type : node.results) {
      RefTensor& result = made.emplace_back(RefTensor{type.dtype, {}, {}});
      QUERN_ASSIGN(result.dims, SizesOf(type, setting.binding));
      elements += result.elements();
      if (elements > kMostElements)
        return absl::InvalidArgumentError(
            absl::StrFormat("the graph's values have more than the %d elements that a check takes", kMostElements));
      result.Allocate();
    }
    if (node.op->kind == OpKind::kLeaf) {
      QUERN_ASSIGN(made[0], ir::RefTensorFromBytes(node.results[0].dtype, made[0].dims, *node.data));
    } else if (node.op->reference == nullptr) {
      return absl::UnimplementedError(absl::StrFormat("%s has no reference", node.op->name));
    } else {
      Sizes found;
      if (setting.moves && magnitudes == nullptr) {
        std::vector<std::vector<int64_t>> dims;
        for (const RefTensor& result : made) dims.push_back(result.dims);
        QUERN_ASSIGN(found, SizesOfResults(node, operands, dims, setting.binding));
      }
      const Sizes* const sizes = !setting.moves ? nullptr : magnitudes != nullptr ? &(*magnitudes)[n] : &found;
      QUERN_RETURN_IF_ERROR(EvaluateNode(graph, node, operands, sizes, setting, made));
    }
    for (const RefTensor& result : made) values[n].push_back(&result);
  }
  return absl::OkStatus();
}

}  // namespace

Error ErrorOf(const ir::Graph& graph, const Node& node) {
  const auto is_complex = [](const ir::TensorType& type) { return IsComplex(type.dtype); };
  const bool pairs =
      std::any_of(node.results.begin(), node.results.end(), is_complex) ||
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::Value x) { return is_complex(graph.type(x)); });
  if (pairs && node.op->kind == OpKind::kElementwise) return Error::kContract;
  if (node.op->kind == OpKind::kElementwise || node.op->row_span != nullptr) {
    Shown context(graph, node);
    return ErrorOf(node.op->map(context));
  }
  // What a body returns has its errors from the body's ops.
  const bool moves_elements =
      node.op->kind == OpKind::kIndex || node.op->kind == OpKind::kControl ||
      (node.op->kind == OpKind::kWrite && (node.op->scatter == nullptr || !ir::ScatterRounds(node)));
  if (moves_elements) return Error::kNone;
  if (node.op->sort != nullptr) return Error::kNone;
  if (const ir::LineDef* line = node.op->line; line != nullptr) {
    // Picking one of the elements is exact.
    const bool picks = line->reduce == nullptr || line->reduce(node) == kir::ReduceOp::kMax ||
                       line->reduce(node) == kir::ReduceOp::kMin;
    return picks ? Error::kNone : Error::kContract;
  }
  return Error::kContract;
}

double AllowedOf(const Node& node, Error error, DType dtype, double size) {
  const ir::Contract contract = ir::ContractOf(node, dtype);
  switch (error) {
    case Error::kNone: return 0;
    case Error::kRounding: return RoundingOf(dtype) * size;
    case Error::kContract: return contract.rtol * size + contract.atol;
  }
  return 0;
}

double Evaluation::SizeAt(const Magnitudes& magnitudes, ir::Value value, int64_t element) const {
  const std::vector<double>& sizes = magnitudes[value.node][value.result];
  const RefTensor& tensor = At(value);
  if (!IsComplex(tensor.dtype)) return std::max(sizes.empty() ? 0 : sizes[element], std::fabs(tensor.data[element]));
  return std::max(sizes.empty() ? 0 : sizes[element / 2], std::abs(tensor.Complex(element / 2)));
}

StatusOr<Magnitudes> MagnitudesOf(const ir::Graph& graph, const Evaluation& evaluation) {
  Magnitudes magnitudes;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    std::vector<const RefTensor*> operands;
    for (const ir::Value& input : node.inputs) operands.push_back(&evaluation.At(input));
    std::vector<std::vector<int64_t>> dims;
    for (size_t r = 0; r < node.results.size(); ++r)
      dims.push_back(evaluation.At({static_cast<int>(n), static_cast<int>(r)}).dims);
    QUERN_ASSIGN(magnitudes.emplace_back(), SizesOfResults(node, operands, dims, evaluation.sizes()));
  }
  return magnitudes;
}

StatusOr<Evaluation> Evaluate(const ir::Graph& graph, const Binding& binding, const ir::Feeds& feeds,
                              Perturbation perturbation, const Magnitudes* magnitudes) {
  QUERN_CHECK(perturbation.scale == 0 || magnitudes != nullptr);
  Evaluation evaluation;
  evaluation.sizes_ = binding;
  Setting setting{evaluation.sizes_, feeds, perturbation.scale != 0, Signs(perturbation)};
  QUERN_RETURN_IF_ERROR(EvaluateGraph(graph, nullptr, magnitudes, setting, evaluation.values_, evaluation.made_));
  return evaluation;
}

}  // namespace quern::check
