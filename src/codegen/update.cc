// The update family: a part of a tensor overwritten. A donated operand is written in place; any other is copied first,
// by a kernel of its own.

#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// Loops over `dims`, the last one as a vector loop, storing element(at) to buffer[place(at)].
void EmitStores(const RegionView& view, KernelWriter& writer, FusedExpr& expr, ir::Value value,
                const std::string& buffer, int64_t axis, const kir::ExprRef& start) {
  const std::vector<Extent>& dims = view.body.type(value).dims;
  const std::vector<Extent> outer(dims.begin(), dims.end() - 1);
  const int64_t inner = std::min<int64_t>(UpperBound(dims.back(), view.ranges), kChunkElements);
  EmitGrid(view, writer.kernel, outer, inner, [&](const kir::Index& index, kir::Block& block) {
    kir::Index at = index;
    at.push_back(kb::Ref("c"));
    kir::Block body;
    expr.ShareIn(&body);
    const kir::ExprRef element = expr.Element(value, at);
    expr.ShareIn(nullptr);
    if (start != nullptr) at[axis] = at[axis] + start;
    body.push_back(kb::WithOrigin(kb::Store(buffer, at, element), writer.Origin(value.node)));
    block.push_back(kb::Vec("c", kb::Int(0), kb::FromExtent(dims.back()), std::move(body)));
  });
}

}  // namespace

StatusOr<LoweredRegion> LowerUpdate(const RegionView& view) {
  if (view.body.outputs.size() != 1 || view.body.node(view.body.outputs[0].node).op->family != ir::Family::kUpdate) {
    return absl::UnimplementedError("an update region has the update as its only result");
  }
  const ir::Node& node = view.body.node(view.body.outputs[0].node);
  const int target = view.InputIndex(node.inputs[0]);
  const bool in_place = target >= 0 && view.IsDonated(target);
  int64_t axis = node.attributes.Int("axis");
  if (axis < 0) axis += view.body.type(node.inputs[0]).rank();
  LoweredRegion lowered;
  if (!in_place) {
    KernelWriter copy(view, "copy");
    FusedExpr expr(view.body);
    copy.ProvideInputs(expr);
    EmitStores(view, copy, expr, node.inputs[0], copy.Result(0), 0, nullptr);
    QUERN_ASSIGN(KernelUse use, copy.Finish());
    lowered.kernels.push_back(std::move(use));
  }
  KernelWriter writer(view, "update");
  FusedExpr expr(view.body);
  writer.ProvideInputs(expr);
  std::string buffer = in_place ? writer.UpdatedInput(target) : writer.Result(0);
  for (kir::Param& param : writer.kernel.params) {
    if (param.name == buffer) param.mode = kir::Mode::kInOut;
  }
  EmitStores(view, writer, expr, node.inputs[1], buffer, axis, kb::FromExtent(node.attributes.Extents("start")[0]));
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

}  // namespace quern::codegen
