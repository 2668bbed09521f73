// The map family: every result element is an expression of input elements.
//
//   grid i0 in 0..SEQ {
//     vec c in 0..256 { y0[i0, c] = x0[i0, c] * sigmoid(x0[i0, c]) * w1[c] }
//   }

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/loops.h"
#include "ir/shape.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// Whether all values are read and written at one flat index: elementwise ops on operands of the result's extents or on
// single elements.
bool IsFlat(const RegionView& view) {
  const std::vector<Extent>& dims = view.body.type(view.body.outputs[0]).dims;
  for (const ir::Node& node : view.body.nodes()) {
    if (node.op->family != ir::Family::kElementwise && node.op->family != ir::Family::kLeaf) return false;
    for (const ir::TensorType& type : node.results) {
      if (type.dims != dims && type.elements() != Extent(1)) return false;
      if (IsBlock(type.dtype)) return false;
    }
  }
  return true;
}

kir::BufferType Flattened(const kir::BufferType& type, const Extent& elements) {
  kir::BufferType flat = type;
  flat.dims = {Extent(1)};
  for (const Extent& dim : type.dims) flat.dims[0] = flat.dims[0] * dim;
  if (flat.dims[0] != elements) flat.dims[0] = Extent(1);
  return flat;
}

StatusOr<LoweredRegion> LowerFlat(const RegionView& view) {
  KernelWriter writer(view, "map");
  FusedExpr expr(view.body);
  const Extent elements = view.body.type(view.body.outputs[0]).elements();
  for (size_t i = 0; i < view.inputs.size(); ++i) {
    const ir::TensorType& type = view.body.node(view.inputs[i]).results[0];
    const bool single = type.elements() == Extent(1) && elements != Extent(1);
    // Whatever index an op asks for: all of them mean the one flat index (an extent of 1 is asked for at 0).
    expr.Provide({view.inputs[i], 0}, [&writer, i, single, dtype = type.dtype](const kir::Index&, const kir::ExprRef&) {
      return kb::At(writer.Input(static_cast<int>(i)), dtype, {single ? kb::Int(0) : kb::Ref("i")});
    });
  }
  const int64_t bound = UpperBound(elements, view.ranges);
  const kir::ExprRef start = kb::Ref("c0"), end = kb::FromExtent(elements), i = kb::Ref("i");
  kir::Block body;
  expr.ShareIn(&body);
  for (size_t o = 0; o < view.body.outputs.size(); ++o) {
    const ir::Value output = view.body.outputs[o];
    const kir::Index at(view.body.type(output).rank(), i);  // of the right length; the sources above do not look at it
    const kir::ExprRef value = expr.Element(output, at);
    body.push_back(
        kb::WithOrigin(kb::Store(writer.Result(static_cast<int>(o)), {i}, value), writer.Origin(output.node)));
  }
  writer.kernel.grid = {{"c0", kb::Int(0), end, kChunkElements}};
  writer.kernel.body = {
      kb::Vec("i", start, kb::Min(start + static_cast<double>(kChunkElements), end), std::move(body))};
  writer.kernel.sequential = bound <= kSequentialElements;
  for (kir::Param& param : writer.kernel.params) param.type = Flattened(param.type, elements);
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

// A Gather of rows of a block-format table decodes whole rows: the row goes to scratch once and is read from there.
// The first such node of the region, or -1.
int BlockRowGather(const RegionView& view) {
  for (size_t n = 0; n < view.body.nodes().size(); ++n) {
    const ir::Node& node = view.body.nodes()[n];
    if (std::string_view(node.op->name) != "Gather" || !IsBlock(view.body.type(node.inputs[0]).dtype)) continue;
    if (view.body.type(node.inputs[0]).rank() == 2 &&
        node.results[0].dims == view.body.type(view.body.outputs[0]).dims) {
      return static_cast<int>(n);
    }
  }
  return -1;
}

}  // namespace

StatusOr<LoweredRegion> LowerMap(const RegionView& view) {
  if (IsFlat(view)) return LowerFlat(view);
  KernelWriter writer(view, "map");
  FusedExpr expr(view.body);
  writer.ProvideInputs(expr);
  QUERN_ASSIGN(const std::vector<Extent> dims, SharedExtents(view, "map region"));
  if (dims.empty()) {
    EmitGrid(view, writer.kernel, {}, 1,
             [&](const kir::Index& at, kir::Block& block) { StoreResults(view, writer, expr, at, block); });
  } else {
    const std::vector<Extent> outer(dims.begin(), dims.end() - 1);
    const int64_t inner = std::min<int64_t>(UpperBound(dims.back(), view.ranges), kChunkElements);
    const int gather = BlockRowGather(view);
    EmitGrid(view, writer.kernel, outer, inner, [&](const kir::Index& index, kir::Block& block) {
      if (gather >= 0) {
        const ir::Node& node = view.body.node(gather);
        const int table = view.InputIndex(node.inputs[0]);
        const Extent rows = view.body.type(node.inputs[0]).dims[0];
        const kir::ExprRef id = kb::CastTo(DType::kI64, expr.Element(node.inputs[1], index));
        block.push_back(kb::Let("id", ir::IndexInside(id, kb::FromExtent(rows))));
        block.push_back(kb::Alloc("row", {DType::kF32, {Extent(1), dims.back()}, kir::Layout::kRow}));
        block.push_back(kb::WithOrigin(
            kb::Pack(kb::Whole("row", 2),
                     kb::SliceOf(writer.Input(table), {kb::Range(kb::Ref("id"), kb::Int(1)), kb::All()})),
            writer.Origin(gather)));
        expr.Provide({gather, 0}, [](const kir::Index& at, const kir::ExprRef&) {
          return kb::At("row", DType::kF32, {kb::Int(0), at.back()});
        });
      }
      StoreRows(view, writer, expr, index, dims.back(), block);
    });
  }
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

}  // namespace quern::codegen
