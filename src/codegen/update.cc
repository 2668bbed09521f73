// The update family: a part of a tensor overwritten. A donated operand is written in place; any other is copied first,
// by a kernel of its own.

#include "codegen/families.h"
#include "codegen/loops.h"
#include "codegen/scatter.h"
#include "family/work.h"
#include "ir/shape.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

// Loops over `dims`, the last one as a vector loop, storing element(at) to buffer[place(at)].
void EmitStores(const RegionView& view, KernelWriter& writer, FusedExpr& expr, ir::Value value,
                const std::string& buffer, int64_t axis, const kir::ExprRef& start) {
  const std::vector<Extent>& dims = view.type(value).dims;
  const std::vector<Extent> outer(dims.begin(), dims.end() - 1);
  const int64_t inner = std::min<int64_t>(view.UpperBound(dims.back()), kChunkElements);
  EmitGrid(view, writer.kernel, outer, inner, [&](const kir::Index& index, kir::Block& block) {
    kir::Index at = index;
    at.push_back(kb::Ref("c"));
    kir::Block body;
    const kir::ExprRef element = expr.Element(value, at);
    at[axis] = at[axis] + start;
    body.push_back(kb::WithOrigin(kb::Store(buffer, at, element), writer.Origin(value.node)));
    block.push_back(kb::Vec("c", kb::Int(0), kb::FromExtent(dims.back()), std::move(body)));
  });
}

// Element r of `value` along `axis`, stored at index[r] of the `size` that the buffer has, if it is one. Rows follow
// each other, so that the last of those with one place is what stays; chunks share out the other dimensions.
//   for r in 0..R { let at = cast<i64>(index[r]); if (0 <= at) & (at < size) { vec c in 0..C { y[at, c] = x[r, c] } } }
void EmitIndexedStores(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const ir::Node& node,
                       int64_t axis, const std::string& buffer) {
  const ir::Value value = node.inputs[1];
  const std::vector<Extent>& dims = view.type(value).dims;
  const int64_t last = static_cast<int64_t>(dims.size()) - 1;
  std::vector<Extent> outer;  // all but the rows and what is a vector loop
  for (int64_t d = 0; d < last; ++d) {
    if (d != axis) outer.push_back(dims[d]);
  }
  if (outer.empty()) outer.emplace_back(1);
  const int64_t inner = std::min<int64_t>(
      BoundedElements({dims[axis], axis == last ? Extent(1) : dims[last]}, view.ranges), kChunkElements);
  EmitGrid(view, writer.kernel, outer, inner, [&](const kir::Index& index, kir::Block& block) {
    const kir::ExprRef r = kb::Ref("r"), at = kb::Ref("at"),
                       size = kb::FromExtent(view.type(node.inputs[0]).dims[axis]);
    kir::Index from;
    for (int64_t d = 0, o = 0; d <= last; ++d) from.push_back(d == axis ? r : d == last ? kb::Ref("c") : index[o++]);
    kir::Index to = from;
    to[axis] = at;
    kir::Block store = {kb::WithOrigin(kb::Store(buffer, to, expr.Element(value, from)), writer.Origin(value.node))};
    if (axis != last) store = {kb::Vec("c", kb::Int(0), kb::FromExtent(dims[last]), std::move(store))};
    const kir::ExprRef inside =
        kb::Call(kir::Op::kAnd, {kb::Call(kir::Op::kLe, {kb::Int(0), at}), kb::Call(kir::Op::kLt, {at, size})});
    block.push_back(kb::For(
        "r", kb::Int(0), kb::FromExtent(dims[axis]),
        {kb::Let("at", kb::CastTo(DType::kI64, expr.Element(node.inputs[2], {r}))), kb::If(inside, std::move(store))}));
  });
}

// `update` stored from where the operand `at` says, moved so that it fits. Starts are data, so that nothing but a whole
// dimension, of which the start is 0, can be shared out: the others are loops of one chunk, the last one a vector loop.
//   let from0 = max(0, min(cast<i64>(at[0]), 64 - 1))
//   for j0 in 0..1 { vec c in 0..C { y[j0 + from0, h, c] = update[j0, h, c] } }
void EmitMovedStores(const RegionView& view, KernelWriter& writer, FusedExpr& expr, const ir::Node& node,
                     const std::string& buffer) {
  const ir::Value value = node.inputs[1];
  const std::vector<Extent>&dims = view.type(value).dims, &whole = view.type(node.inputs[0]).dims;
  const size_t last = dims.size() - 1;
  std::vector<Extent> outer, inside;  // dimensions but the last: shared out, and loops of a chunk
  for (size_t d = 0; d < last; ++d) (dims[d] == whole[d] ? outer : inside).push_back(dims[d]);
  inside.push_back(dims[last]);
  if (outer.empty()) outer.emplace_back(1);
  const int64_t inner = std::min<int64_t>(BoundedElements(inside, view.ranges), kChunkElements);
  EmitGrid(view, writer.kernel, outer, inner, [&](const kir::Index& index, kir::Block& block) {
    kir::Index from, to;
    for (size_t d = 0, o = 0; d <= last; ++d) {
      from.push_back(d == last ? kb::Ref("c") : dims[d] == whole[d] ? index[o++] : kb::Ref(absl::StrCat("j", d)));
      to.push_back(from[d]);
      if (dims[d] == whole[d]) continue;
      const std::string start = absl::StrCat("from", d);
      const kir::ExprRef at = kb::CastTo(DType::kI64, expr.Element(node.inputs[2], {kb::Int(static_cast<int64_t>(d))}));
      block.push_back(kb::Let(start, ir::StartInside(at, whole[d], dims[d])));
      to[d] = to[d] + kb::Ref(start);
    }
    kir::Block body = {kb::WithOrigin(kb::Store(buffer, to, expr.Element(value, from)), writer.Origin(value.node))};
    // Threads of a block each load the start for themselves, so nothing shows that they agree on it.
    const bool alone = view.facts.blocks && dims[last] != whole[last];
    const kir::ExprRef end = kb::FromExtent(dims[last]);
    body = {alone ? kb::For("c", kb::Int(0), end, std::move(body)) : kb::Vec("c", kb::Int(0), end, std::move(body))};
    for (size_t d = last; d-- > 0;) {
      if (dims[d] != whole[d])
        body = {kb::For(absl::StrCat("j", d), kb::Int(0), kb::FromExtent(dims[d]), std::move(body))};
    }
    for (kir::StmtRef& stmt : body) block.push_back(std::move(stmt));
  });
}

// Where rows of a tensor that others gather from are written in place, chunks of the kernel write while others read.
Status ReadsNoWrittenMemory(const RegionView& view, int update) {
  for (const int n : view.nodes()) {
    for (const ir::Value& input : view.node(n).inputs) {
      if (n != update && !view.Has(input.node) && view.scope.IsWritable(input.node))
        return family::No("%s reads memory that is written in place", view.Describe(n));
    }
  }
  return absl::OkStatus();
}

}  // namespace

family::Matched MatchUpdate(const RegionView& view) {
  int update = -1;
  for (const int n : view.nodes()) {
    const ir::OpKind kind = view.node(n).op->kind;
    if (kind == ir::OpKind::kWrite && update < 0)
      update = n;
    else if (kind != ir::OpKind::kElementwise && kind != ir::OpKind::kIndex)
      return family::No("%s cannot be part of an update", view.Describe(n));
  }
  for (const ir::Value& result : view.results()) {
    if (result.node != update)
      return family::No("%s is used outside the region of the update", view.Describe(result.node));
  }
  const ir::Node& write = view.node(update);
  if (write.op->scatter != nullptr) {
    // Elements that meet would have to be added by one thread of a block, which no schedule sees to.
    if (view.facts.blocks) return family::No("%s writes at places that are data", view.Describe(update));
    // Indices are walked by every chunk.
    if (view.Has(write.inputs[1].node)) return family::No("indices of %s lie in memory", view.Describe(update));
  }
  // What is copied first may be computed on the way, as zeros are.
  if (const int target = write.inputs[0].node; view.Has(target)) {
    const bool alone = write.op->scatter != nullptr && view.users(target).size() == 1 && !view.IsReadOutside(target) &&
                       view.node(target).op->kind == ir::OpKind::kIndex &&
                       !ir::IsReshape(view.graph, view.node(target));
    if (!alone) return family::No("the tensor being updated lies in memory");
  }
  if (write.op->scatter == nullptr && write.inputs.size() > 2 && view.scope.IsWritable(write.inputs[0].node))
    QUERN_RETURN_IF_ERROR(ReadsNoWrittenMemory(view, update));
  QUERN_RETURN_IF_ERROR(family::NoWorkTwice(view, std::vector<bool>(view.nodes().size())));
  return family::Matched(std::make_unique<RegionPlan>());
}

StatusOr<LoweredRegion> LowerUpdate(const RegionView& view, const RegionPlan&) {
  const ir::Node& node = view.node(view.results()[0].node);
  const ir::Value written = node.inputs[0];
  const bool in_place = view.scope.IsWritable(written.node);
  LoweredRegion lowered;
  if (!in_place) {
    KernelWriter copy(view, "copy");
    FusedExpr expr(view.graph);
    copy.ProvideInputs(expr);
    EmitElements(view, copy.kernel, view.type(written).dims, {{}},
                 [&](size_t, const kir::Index& index, kir::Block& block) {
                   const kir::StmtRef store = kb::Store(copy.Result(0), index, expr.Element(written, index));
                   block.push_back(kb::WithOrigin(store, copy.Origin(written.node)));
                 });
    QUERN_ASSIGN(KernelUse use, copy.Finish());
    lowered.kernels.push_back(std::move(use));
  }
  KernelWriter writer(view, "update");
  FusedExpr expr(view.graph);
  writer.ProvideInputs(expr);
  std::string buffer = in_place ? writer.UpdatedInput(view.InputIndex(written)) : writer.Result(0);
  for (kir::Param& param : writer.kernel.params) {
    if (param.name == buffer) param.mode = kir::Mode::kInOut;
  }
  if (node.op->scatter != nullptr) {
    EmitScatter(view, writer, expr, node, buffer);
  } else if (ir::IsDynamicUpdate(node)) {
    EmitMovedStores(view, writer, expr, node, buffer);
  } else {
    const int64_t axis = ir::FromStart(node.attributes.Int("axis"), view.type(written).dims.size());
    if (node.inputs.size() > 2)
      EmitIndexedStores(view, writer, expr, node, axis, buffer);
    else
      EmitStores(view, writer, expr, node.inputs[1], buffer, axis, kb::FromExtent(node.attributes.Extents("start")[0]));
  }
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

}  // namespace quern::codegen
