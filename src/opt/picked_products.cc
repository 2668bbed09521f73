// Rows that are each multiplied by a matrix of their own choice are products that read these where they lie. Many rows
// are sorted by it, so that the rows of one matrix are a run:
//
//   %4 = Gather(%1, %2)                                  %9 = Gather(%0, order)
//   %5 = MatMul(%3, %4) {transpose_b = true}     =>      %10 = PickedMatMul(%9, %1, starts) {by = "run"}
//                                                        %5 = Gather(%10, inverse)
//
// Products by one choice share their order, and what is computed between them element by element stays in it: the two
// Gathers between the parts of an expert go. Rows that meet a block format are quantised as those of other products are
// (quantise_activations, which knows no picked matrices).

#include <algorithm>
#include <map>
#include <optional>

#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ir::Value;

// So many rows at least are sorted: fewer are as quick by themselves.
constexpr int64_t kRows = 17;
// What lies between two products of an expert is short; what is longer is sorted once more.
constexpr int kSteps = 64;

class PickedProducts {
 public:
  PickedProducts(const ir::Graph& graph, const QuantiseOptions& options, Rewriter& rewriter)
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
    std::map<std::pair<Value, DType>, Value> left;
  };

  Extent Rows(int n) const;  // of product n, of all batches
  const std::vector<Extent>& Dims(Value value) const { return graph_.type(value).dims; }
  bool KeepsRows(const ir::Node& node, const Value& input) const;
  StatusOr<Value> Sorted(Order& order, Value value);
  StatusOr<Order*> OrderOf(int n, const ir::Node& picks);
  StatusOr<Value> Left(int n, Value rows, DType table, std::map<std::pair<Value, DType>, Value>& known);

  const ir::Graph& graph_;
  const QuantiseOptions& options_;
  Rewriter& rewriter_;
  std::map<std::pair<Value, int64_t>, Order> orders_;  // by choice, and the number of matrices
  std::map<std::pair<Value, DType>, Value> left_;      // of rows as they stand
};

const ir::Node* PickedProducts::Picks(int n) const {
  const ir::Node& node = graph_.node(n);
  if (!ir::IsMatMul(node) || !ir::ReadsRows(node)) return nullptr;
  const ir::Node& picks = graph_.node(node.inputs[1].node);
  if (!ir::PicksSlices(graph_, picks)) return nullptr;
  const ir::TensorType &x = graph_.type(node.inputs[0]), &table = graph_.type(picks.inputs[0]);
  const bool weights = IsBlock(table.dtype) || ir::IsShortFloat(table.dtype);
  if (x.rank() != 3 || x.dtype != DType::kF32 || table.rank() != 3 || !weights) return nullptr;
  if (!x.dims[2].is_constant() || !table.elements().is_constant() || table.elements().constant() < 1) return nullptr;
  if (x.dims[0] != Dims(picks.inputs[1])[0] || node.results[0].dtype != DType::kF32) return nullptr;
  if (IsBlock(table.dtype) && !ir::IsParam(graph_.node(picks.inputs[0].node))) return nullptr;
  // Numbers are written out, and a tile has elements.
  const bool tiles = x.dims[2].constant() > 1 && Rows(n).UpperBound(graph_.symbols).value_or(1) > 0;
  return tiles ? &picks : nullptr;
}

Extent PickedProducts::Rows(int n) const {
  const std::vector<Extent>& dims = Dims(graph_.node(n).inputs[0]);
  return dims[0] * dims[1];
}

StatusOr<PickedProducts::Order*> PickedProducts::OrderOf(int n, const ir::Node& picks) {
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
bool PickedProducts::KeepsRows(const ir::Node& node, const Value& input) const {
  const std::vector<Extent>&from = Dims(input), &to = node.results[0].dims;
  if (from.empty() || to.empty() || from[0] != to[0]) return false;
  return ir::IsReshape(graph_, node) || (node.op->kind == ir::OpKind::kElementwise && from.size() == to.size());
}

void PickedProducts::Pass(int n) {
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

StatusOr<Value> PickedProducts::Sorted(Order& order, Value value) {
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

// The left side of product n made of `value`, its operand or the rows of that in an order: rows of k, quantised where
// they meet such weights. `known`: by operand and format.
StatusOr<Value> PickedProducts::Left(int n, Value value, DType table, std::map<std::pair<Value, DType>, Value>& known) {
  const Value x = graph_.node(n).inputs[0];
  const Extent& k = Dims(x)[2];
  std::optional<DType> format = options_.exact ? std::nullopt : ir::ActivationFormat(table);
  if (format && k.constant() % Row(*format).block_elements != 0) format = std::nullopt;
  const auto [left, fresh] = known.try_emplace({x, format.value_or(DType::kF32)});
  if (!fresh) return left->second;
  QUERN_ASSIGN(left->second, ir::MakeReshaped(rewriter_.Maker(n), value, {Rows(n), k}));
  if (!format) return left->second;
  QUERN_ASSIGN(left->second, ir::MakeQuantised(rewriter_.Maker(n), left->second, *format));
  return left->second;
}

StatusOr<Value> PickedProducts::Make(int n, const ir::Node& picks) {
  const ir::Node& node = graph_.node(n);
  const ir::MakeNode make = rewriter_.Maker(n);
  const Value x = node.inputs[0], y{n, 0}, which = picks.inputs[1], table = rewriter_.Now(picks.inputs[0]);
  const DType weights = graph_.type(picks.inputs[0]).dtype;
  const Extent rows = Rows(n);
  const bool one_each = Dims(x)[1] == Extent(1), as_bf16 = ir::MayBeAsBf16(node);
  if (!one_each || rows.LowerBound(graph_.symbols).value_or(0) < kRows) {
    QUERN_ASSIGN(const Value left, Left(n, rewriter_.Now(x), weights, left_));
    Value each = rewriter_.Now(which);
    if (!one_each) {  // each row of a batch by the matrix of the batch
      QUERN_ASSIGN(each, ir::MakeRepeated(make, each, Dims(which)[0], Dims(x)[1]));
    }
    QUERN_ASSIGN(const Value product, ir::MakePickedProduct(make, left, table, each, /*runs=*/false, as_bf16));
    return ir::MakeReshaped(make, product, Dims(y));
  }
  QUERN_ASSIGN(Order* const order, OrderOf(n, picks));
  QUERN_ASSIGN(const Value sorted, Sorted(*order, x));
  QUERN_ASSIGN(const Value left, Left(n, sorted, weights, order->left));
  QUERN_ASSIGN(const Value product,
               ir::MakePickedProduct(make, left, table, order->runs.starts, /*runs=*/true, as_bf16));
  QUERN_ASSIGN(order->sorted[y], ir::MakeReshaped(make, product, Dims(y)));
  order->steps[y] = 0;
  return ir::MakePicked(make, order->sorted[y], order->runs.inverse);
}

}  // namespace

StatusOr<ir::Graph> MakePickedProducts(const ir::Graph& graph, const QuantiseOptions& options) {
  Rewriter rewriter(graph, "picked_products", [&](const ir::Graph& body) { return MakePickedProducts(body, options); });
  PickedProducts products(graph, options, rewriter);
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
