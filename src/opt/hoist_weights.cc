// Right sides of products are put as products read them: weights once per binding and never per run.
//
// Panels of 32 columns are what many rows are multiplied by and stream as fast as rows of K for few. Weights of f32
// stored as [K, N], for which a copy is made in any case, become panels, and so do those stored as [N, K] where every
// run has more than a few rows:
//
//   %2 = MatMul(%0, %1)       =>   %2 = Reshape(%1) {shape = [768, 96, 32]}          of %1 : f32[768, 3072]
//                                  %3 = Transpose(%2) {perm = [1, 0, 2]}
//                                  %4 = MatMulPanels(%0, %3) {columns = 3072}
//
// A right side of f32, [K, N], that each run has anew becomes panels where many rows are multiplied by it: a kernel
// that fills its own panels does so for each block of rows.
//
// Weights of bf16 that activations of bf16 meet become panels of pairs where the target multiplies those and every run
// has more than a few rows:
//
//   %2 = MatMul(%0, %1)       =>   %2 = Reshape(%1) {shape = [384, 2, 96, 32]}       of %1 : bf16[768, 3072]
//                                  %3 = Transpose(%2) {perm = [2, 0, 3, 1]}
//                                  %4 = MatMulPanels(%0, %3) {columns = 3072}
//
// Weights of bytes beside bytes become panels of quads, for any number of rows:
//
//   %2 = MatMul(%0, %1)       =>   %2 = Reshape(%1) {shape = [192, 4, 96, 32]}       of %1 : i8[768, 3072]
//                                  %3 = Transpose(%2) {perm = [2, 0, 3, 1]}
//                                  %4 = MatMulPanels(%0, %3) {columns = 3072}        i32
//
// What sums of few terms read (short_sums.cc) stays as it lies.
//
// Other weights as [N, K] stay where they are, as weights of language models do, whose steps have one row. Other
// halves, and what is for blocks of threads, panels that a graph has already among it, are read as rows of K:
//
//                                  %2 = Transpose(%1) {perm = [1, 0]}
//                                  %3 = MatMul(%0, %2) {transpose_b = true}

#include <map>
#include <tuple>

#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

constexpr int64_t kFewRows = 8;     // of so many, rows of K are as fast
constexpr int64_t kFewColumns = 8;  // a panel would be empty for the most part

// Of a right side that each run makes: rows by which panels in memory gain what they cost, and sizes of which as many
// chunks are left as there are threads without cutting k.
constexpr int64_t kManyRows = 128, kManyColumns = 128, kDeepest = 4096;

enum class Form : uint8_t { kAsItLies, kRows, kPanels, kUnpacked };

Form FormOf(const ir::Graph& graph, const ir::Node& node, const std::vector<bool>& once, const HoistOptions& options) {
  if (ir::ReadsPanels(node)) {
    // What has no elements, or sums of a length that is not known, has no tiles.
    const ir::TensorType& x = graph.type(node.inputs[0]);
    const bool tiles = options.panels && x.dims.back().is_constant() && x.dims.back() != Extent(0) &&
                       x.elements().UpperBound(graph.symbols).value_or(1) > 0;
    return tiles ? Form::kAsItLies : Form::kUnpacked;
  }
  if (!ir::IsMatMul(node) || ir::IsShortSum(graph, node) || once[node.inputs[0].node]) return Form::kAsItLies;
  const ir::TensorType &x = graph.type(node.inputs[0]), &w = graph.type(node.inputs[1]);
  const ir::Node& weights = graph.node(node.inputs[1].node);
  const bool constant = once[node.inputs[1].node], kept = ir::IsParam(weights) || (constant && !ir::IsLeaf(weights));
  const bool short_floats = ir::IsShortFloat(x.dtype) && ir::IsShortFloat(w.dtype),
             bytes = ir::IsByte(x.dtype) && ir::IsByte(w.dtype);
  if ((constant && !kept) || w.rank() != 2 || (!short_floats && !bytes)) return Form::kAsItLies;
  const bool sized = w.elements().is_constant() && w.elements() != Extent(0), rows_of_k = ir::ReadsRows(node);
  const bool floats = x.dtype == DType::kF32 && w.dtype == DType::kF32,
             pairs = options.pairs && kept && x.dtype == DType::kBF16 && w.dtype == DType::kBF16;
  if ((floats || pairs || (bytes && kept)) && options.panels && sized) {
    Extent rows(1);
    for (size_t d = 0; d + 1 < x.dims.size(); ++d) rows = rows * x.dims[d];
    const int64_t least = rows.LowerBound(graph.symbols).value_or(0), columns = node.results[0].dims.back().constant(),
                  k = w.elements().constant() / columns;
    const bool many = !rows_of_k && least >= kManyRows && columns >= kManyColumns && k <= kDeepest;
    const bool pays = kept ? bytes || (!rows_of_k && !pairs) || least > kFewRows : many;
    if (columns > kFewColumns && pays && (!pairs || k % 2 == 0)) return Form::kPanels;
  }
  if (!kept) return Form::kAsItLies;
  return rows_of_k ? Form::kAsItLies : Form::kRows;
}

}  // namespace

StatusOr<ir::Graph> HoistWeights(const ir::Graph& graph, const HoistOptions& options) {
  const std::vector<bool> once = OncePerBinding(graph);
  Rewriter rewriter(graph, "hoist_weights", [&](const ir::Graph& body) { return HoistWeights(body, options); });
  std::map<std::tuple<ir::Value, Form, bool>, ir::Value> made;  // by right side, form, and whether its rows are of K
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    const Form form = FormOf(graph, node, once, options);
    if (form == Form::kAsItLies) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    const ir::MakeNode make = rewriter.Maker(n);
    const ir::Value x = rewriter.Now(node.inputs[0]), w = rewriter.Now(node.inputs[1]);
    const bool rows = form != Form::kUnpacked && ir::ReadsRows(node);
    const auto [it, fresh] = made.emplace(std::tuple(node.inputs[1], form, rows), ir::Value{});
    ir::Value product;
    if (form == Form::kPanels) {
      if (fresh) {
        QUERN_ASSIGN(it->second, ir::MakePanels(make, w, graph.type(node.inputs[1]), rows));
      }
      const int64_t columns = node.results[0].dims.back().constant();
      QUERN_ASSIGN(product, ir::MakeProductOfPanels(make, x, it->second, columns));
    } else {
      if (fresh && form == Form::kRows) {
        QUERN_ASSIGN(it->second, ir::MakeTransposed(make, w));
      } else if (form == Form::kUnpacked) {
        QUERN_ASSIGN(it->second, ir::MakeRowsOfPanels(make, w, graph.type(node.inputs[1]),
                                                      graph.type(node.inputs[0]).dims.back(), node));
      }
      QUERN_ASSIGN(product, ir::MakeProductOfRows(make, x, it->second));
    }
    rewriter.Replace({n, 0}, product);
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
