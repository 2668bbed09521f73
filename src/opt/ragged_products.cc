// Many rows that are each multiplied by a matrix of their own choice are sorted by it, so that the rows of one matrix
// are a run, and a product:
//
//   %4 = Gather(%1, %2)                                  %9 = Gather(%0, order)
//   %5 = MatMul(%3, %4) {transpose_b = true}     =>      %10 = RaggedMatMul(%9, %1, starts)
//                                                        %5 = Gather(%10, inverse)
//
// Products by one choice share their order, and what is computed between them element by element stays in it: the two
// Gathers between the parts of an expert go. Rows that meet a block format are quantised as those of other products are
// (quantise_activations, which sees rows one at a time only).

#include <algorithm>
#include <map>
#include <optional>

#include "base/block_format.h"
#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ir::Value;

// So many rows at least: fewer are as quick by themselves.
constexpr int64_t kRows = 17;
// What lies between two products of an expert is short; what is longer is sorted once more.
constexpr int kSteps = 64;

class RaggedProducts {
 public:
  RaggedProducts(const ir::Graph& graph, const QuantiseOptions& options, Rewriter& rewriter)
      : graph_(graph), options_(options), rewriter_(rewriter) {}

  // What picks the matrices of product n, or nothing where it is no such product.
  const ir::Node* Picks(int n) const;
  // Node n is none: it may be made of some.
  void Pass(int n);
  // The product in node n's place.
  StatusOr<Value> Make(int n, const ir::Node& picks);

 private:
  // Rows in the order of one choice of matrices.
  struct Order {
    ir::RowRuns runs;
    std::map<Value, int> steps;     // from a product in this order to what is made of it row by row
    std::map<Value, Value> sorted;  // new values with their rows in this order, by old one
    std::map<std::pair<Value, DType>, Value> quantised;
  };

  const std::vector<Extent>& Dims(Value value) const { return graph_.type(value).dims; }
  bool KeepsRows(const ir::Node& node, const Value& input) const;
  StatusOr<Value> Sorted(Order& order, Value value);
  StatusOr<Order*> OrderOf(int n, const ir::Node& picks);

  const ir::Graph& graph_;
  const QuantiseOptions& options_;
  Rewriter& rewriter_;
  std::map<std::pair<Value, int64_t>, Order> orders_;  // by choice, and the number of matrices
};

const ir::Node* RaggedProducts::Picks(int n) const {
  const ir::Node& node = graph_.node(n);
  if (!ir::IsMatMul(node) || !ir::ReadsRows(node)) return nullptr;
  const ir::Node& picks = graph_.node(node.inputs[1].node);
  if (!ir::PicksSlices(graph_, picks)) return nullptr;
  const ir::TensorType &x = graph_.type(node.inputs[0]), &table = graph_.type(picks.inputs[0]);
  const bool weights = IsBlock(table.dtype) ? FormatOf(table.dtype).is_weight : ir::IsShortFloat(table.dtype);
  const bool fits = x.rank() == 3 && x.dtype == DType::kF32 && table.rank() == 3 && weights && x.dims[1] == Extent(1) &&
                    x.dims[0] == Dims(picks.inputs[1])[0] && x.dims[2].is_constant() &&
                    table.elements().is_constant() && node.results[0].dtype == DType::kF32;
  if (!fits || (IsBlock(table.dtype) && !ir::IsParam(graph_.node(picks.inputs[0].node)))) return nullptr;
  return x.dims[0].LowerBound(graph_.symbols).value_or(0) >= kRows ? &picks : nullptr;
}

StatusOr<RaggedProducts::Order*> RaggedProducts::OrderOf(int n, const ir::Node& picks) {
  const Value which = picks.inputs[1];
  const int64_t matrices = Dims(picks.inputs[0])[0].constant();
  const auto [at, fresh] = orders_.try_emplace({which, matrices});
  if (fresh) {
    QUERN_ASSIGN(at->second.runs,
                 ir::MakeRowRuns(rewriter_.Maker(n), rewriter_.Now(which), graph_.type(which), matrices));
  }
  return &at->second;
}

// Whether node n has a row for each of operand `input`'s, made of that alone.
bool RaggedProducts::KeepsRows(const ir::Node& node, const Value& input) const {
  const std::vector<Extent>&from = Dims(input), &to = node.results[0].dims;
  if (from.empty() || to.empty() || from[0] != to[0]) return false;
  return ir::IsReshape(graph_, node) || (node.op->kind == ir::OpKind::kElementwise && from.size() == to.size());
}

void RaggedProducts::Pass(int n) {
  const ir::Node& node = graph_.node(n);
  for (auto& [choice, order] : orders_) {
    for (const Value& input : node.inputs) {
      const auto behind = order.steps.find(input);
      if (behind == order.steps.end() || behind->second == kSteps || !KeepsRows(node, input)) continue;
      int& steps = order.steps[{n, 0}];
      steps = std::max(steps, behind->second + 1);
    }
  }
}

StatusOr<Value> RaggedProducts::Sorted(Order& order, Value value) {
  if (const auto known = order.sorted.find(value); known != order.sorted.end()) return known->second;
  Value made;
  if (order.steps.contains(value)) {
    const ir::Node& node = graph_.node(value.node);
    std::vector<Value> inputs;
    for (const Value& input : node.inputs) {
      inputs.push_back(rewriter_.Now(input));
      if (!KeepsRows(node, input)) continue;
      QUERN_ASSIGN(inputs.back(), Sorted(order, input));
    }
    QUERN_ASSIGN(made, rewriter_.to.Add(*node.op, std::move(inputs), node.attributes, rewriter_.OriginOf(value.node)));
  } else {
    QUERN_ASSIGN(made, ir::MakePicked(rewriter_.Maker(value.node), rewriter_.Now(value), order.runs.order));
  }
  order.sorted[value] = made;
  return made;
}

StatusOr<Value> RaggedProducts::Make(int n, const ir::Node& picks) {
  const ir::Node& node = graph_.node(n);
  const ir::MakeNode make = rewriter_.Maker(n);
  const Value x = node.inputs[0];
  const DType table = graph_.type(picks.inputs[0]).dtype;
  const Extent &rows = Dims(x)[0], &k = Dims(x)[2];
  QUERN_ASSIGN(Order* const order, OrderOf(n, picks));
  std::optional<DType> format = options_.exact ? std::nullopt : ir::ActivationFormat(table);
  if (format && k.constant() % Row(*format).block_elements != 0) format = std::nullopt;
  const auto [left, fresh] = order->quantised.try_emplace({x, format.value_or(DType::kF32)});
  if (fresh) {
    QUERN_ASSIGN(Value sorted, Sorted(*order, x));
    QUERN_ASSIGN(sorted, ir::MakeReshaped(make, sorted, {rows, k}));
    left->second = sorted;
  }
  if (fresh && format) {
    QUERN_ASSIGN(left->second, ir::MakeQuantised(make, left->second, *format));
  }
  QUERN_ASSIGN(const Value product,
               ir::MakeRaggedProduct(make, left->second, rewriter_.Now(picks.inputs[0]), order->runs.starts));
  QUERN_ASSIGN(const Value sorted, ir::MakeReshaped(make, product, node.results[0].dims));
  const Value y{n, 0};
  order->sorted[y] = sorted;
  order->steps[y] = 0;
  return ir::MakePicked(make, sorted, order->runs.inverse);
}

}  // namespace

StatusOr<ir::Graph> MakeRaggedProducts(const ir::Graph& graph, const QuantiseOptions& options) {
  Rewriter rewriter(graph, "ragged_products", [&](const ir::Graph& body) { return MakeRaggedProducts(body, options); });
  RaggedProducts products(graph, options, rewriter);
  bool changed = false;
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node* const picks = products.Picks(n);
    if (picks == nullptr) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      products.Pass(n);
      continue;
    }
    changed = true;
    QUERN_ASSIGN(const Value product, products.Make(n, *picks));
    rewriter.Replace({n, 0}, product);
  }
  QUERN_ASSIGN(ir::Graph made, rewriter.Finish());
  if (!changed) return made;
  return Dce(made);
}

}  // namespace quern::opt
