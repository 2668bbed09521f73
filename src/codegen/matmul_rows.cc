// The (weight, activation) pairs of products that tile ops can write, and by which ones.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/matmul_plan.h"
#include "ir/product.h"
#include "kir/tile_op.h"

namespace quern::codegen {
namespace {

using family::RegionView;
using kir::Layout;

std::vector<MatmulRow> AllRows() {
  std::vector<MatmulRow> rows = {{DType::kF32, DType::kF32, "dot_f32", "mma_f32", Layout::kKn32, 32},
                                 {DType::kF16, DType::kF32, "dot_f16", "mma_f32", Layout::kKn32, 32},
                                 {DType::kBF16, DType::kF32, "dot_bf16", "mma_f32", Layout::kKn32, 32}};
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) {
    const DType weight = static_cast<DType>(d);
    const BlockFormat& format = FormatOf(weight);
    auto op = [&](const char* before, const char* after) {
      return kir::FindTileOp(absl::StrCat(before, format.name, after))->name;
    };
    rows.push_back({weight, DType::kF32, op("dot_", "_x"), "mma_f32", Layout::kKn32, 32});
    if (!format.activation) continue;
    rows.push_back({weight, *format.activation, op("dot_", ""), op("mma_", ""), Layout::kPanel16, 16});
  }
  return rows;
}

// Weights that lie in panels.
const MatmulRow* PanelRow(const RegionView& view, const ir::Node& node) {
  using enum DType;
  static constexpr auto kPanel = Layout::kKn32;
  static constexpr MatmulRow kRows[] = {
      {kF32, kF32, nullptr, "mma_f32", kPanel, ir::kPanelColumns},
      {kI8, kU8, nullptr, "mma_u8_quads", kPanel, ir::kPanelColumns, kI32, 4},
      {kU8, kU8, nullptr, "mma_u8_quads", kPanel, ir::kPanelColumns, kI32, 4},
      {kI8, kI8, nullptr, "mma_i8_quads", kPanel, ir::kPanelColumns, kI32, 4},
      {kU8, kI8, nullptr, "mma_i8_quads", kPanel, ir::kPanelColumns, kI32, 4},
  };
  const ir::TensorType &x = view.type(node.inputs[0]), &w = view.type(node.inputs[1]);
  const Extent& k = x.dims.back();
  if (view.facts.blocks || !k.is_constant() || k == Extent(0)) return nullptr;
  if (view.UpperBound(node.results[0].elements()) < 1) return nullptr;
  for (const MatmulRow& row : kRows) {
    if (row.weight == w.dtype && row.activation == x.dtype) return &row;
  }
  return nullptr;
}

// A product of few chunks and a long sum, of which only the form of any order has parts (split_sum.h).
bool WantsParts(const RegionView& view, const ir::Node& node) {
  constexpr int64_t kFewChunks = 8, kLongSum = 4096, kColumns = 64, kRows = 240;  // the last two: of a chunk
  if (view.facts.blocks || (view.facts.bf16_tiles && ir::MayBeAsBf16(node)) ||
      std::count_if(view.nodes().begin(), view.nodes().end(), [&](int n) { return IsProduct(view.node(n)); }) > 1)
    return false;
  const std::vector<Extent>& dims = node.results[0].dims;
  const Extent rows = ir::TensorType{DType::kF32, {dims.begin(), dims.end() - 1}}.elements();
  const int64_t least = std::max<int64_t>(1, rows.LowerBound(view.ranges).value_or(0) / kRows);
  return view.UpperBound(rows) > kFewRows && view.type(node.inputs[0]).dims.back().constant() >= kLongSum &&
         CeilDiv(dims.back().constant(), kColumns) * least < kFewChunks;
}

}  // namespace

const MatmulRow* TileRow(const RegionView& view, int root) {
  const ir::Node& node = view.node(root);
  for (const int operand : {0, 1}) {  // a number that is written out is no buffer
    if (view.IsNumber(node.inputs[operand])) return nullptr;
  }
  if (ir::ReadsPairs(view.graph, node)) return nullptr;
  if (ir::ReadsPanels(node)) return PanelRow(view, node);
  const ir::TensorType &x = view.type(node.inputs[0]), &w = view.type(node.inputs[1]);
  const bool picks = ir::PicksMatrices(node), of_rows = picks || (w.rank() == 2 && ir::ReadsRows(node));
  if (!x.dims.back().is_constant() || !w.elements().is_constant() || !of_rows || node.results[0].dtype != DType::kF32 ||
      (IsBlock(w.dtype) && !view.scope.IsParam(node.inputs[1].node)) || w.elements() == Extent(0) ||
      view.UpperBound(node.results[0].elements()) < 1) {  // a tile has elements
    return nullptr;
  }
  if (view.facts.blocks && (picks || w.dtype == DType::kBF16)) return nullptr;  // squares are made of a plain product
  // A panel would be empty for the most part.
  const bool many = view.UpperBound(node.results[0].elements()) > kFewRows * kFewColumns;
  if (!picks && !IsBlock(w.dtype) && w.dims[0].constant() <= kFewColumns && many) return nullptr;
  if (!picks && !IsBlock(w.dtype) && WantsParts(view, node)) return nullptr;
  static const std::vector<MatmulRow>* const rows = new std::vector<MatmulRow>(AllRows());
  for (const MatmulRow& row : *rows) {
    if (row.weight == w.dtype && row.activation == x.dtype) return &row;
  }
  return nullptr;
}

}  // namespace quern::codegen
