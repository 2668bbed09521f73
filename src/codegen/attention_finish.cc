// What follows the attention: runs of keys merged, then elementwise ops and quantisation, on whole rows.
#include "codegen/attention_kernels.h"

namespace quern::codegen {

using namespace kir::build::operators;

Status AttentionKernels::EmitFinish(bool merge) {
  const bool by_head = view_.facts.blocks.has_value();
  KernelWriter writer(view_, "attention_finish");
  if (merge) DeclareRuns(writer);
  FusedExpr expr(view_.graph);
  writer.ProvideInputs(expr);
  const int64_t width = shape_.heads * shape_.head_dim;
  const ExprRef r = kb::Ref("r"), b = Batch(), h = kb::Ref("h"), c = kb::Ref("c");
  const std::string from = writer.Temporary(0, lowered_.temporaries[0], false);
  const ExprRef place = h * static_cast<double>(shape_.head_dim) + c;
  kir::Block block, head;
  ExprRef merged;  // an element of the attention
  if (merge) {
    const ExprRef s = kb::Ref("s"), runs = kb::Ref("RUNS");
    const double kv_heads = static_cast<double>(shape_.kv_heads), group = static_cast<double>(group_);
    auto part = [&](const ExprRef& element) {
      return kb::At(from, DType::kF32, {b, r, s * kv_heads + h / group, h % group, element});
    };
    const ExprRef largest = part(kb::Int(shape_.head_dim)), sum = part(kb::Int(shape_.head_dim + 1));
    head.push_back(kb::Let("top", kb::ReduceFor(kir::ReduceOp::kMax, "s", kb::Int(0), runs, largest)));
    // Runs without any allowed key have m = -inf; a row without any has top = -inf, and then every sum is 0, to be
    // multiplied by what such a row gives.
    const ExprRef top = kb::Ref("top", DType::kF32);
    const ExprRef weight =
        kb::Select(kb::Call(Op::kEq, {largest, kb::Num(-INFINITY)}), kb::Num(0), kb::Call(Op::kExp, {largest - top}));
    head.push_back(kb::Let("total", kb::ReduceFor(kir::ReduceOp::kSum, "s", kb::Int(0), runs, weight * sum)));
    const ExprRef total = kb::Ref("total", DType::kF32);
    head.push_back(kb::Let("inverse", kb::Select(kb::Call(Op::kEq, {total, kb::Num(0)}), of_nothing_, 1.0 / total)));
    const ExprRef share = weight * kb::Ref("inverse", DType::kF32);
    if (by_head) {
      merged = kb::ReduceFor(kir::ReduceOp::kSum, "s", kb::Int(0), runs, part(c) * share);
    } else {
      block.push_back(kb::Alloc("row", {DType::kF32, {Extent(width)}, kir::Layout::kRow}));
      head.push_back(kb::Vec("c", kb::Int(0), kb::Int(shape_.head_dim), {kb::Store("row", {place}, kb::Num(0))}));
      kir::Block run;
      run.push_back(kb::Let("weight", share));
      run.push_back(kb::Vec(
          "c", kb::Int(0), kb::Int(shape_.head_dim),
          {kb::Store("row", {place}, kb::At("row", DType::kF32, {place}) + part(c) * kb::Ref("weight", DType::kF32))}));
      head.push_back(kb::For("s", kb::Int(0), runs, std::move(run)));
      head = {kb::For("h", kb::Int(0), kb::Int(shape_.heads), std::move(head))};
      merged = kb::At("row", DType::kF32, {place});
    }
    for (const kir::StmtRef& stmt : head) block.push_back(kb::WithOrigin(stmt, writer.Origin(root_)));
  }
  expr.Provide({root_, 0}, [&](const kir::Index&, const ExprRef&) {
    return kb::CastTo(q_dtype_, merge ? merged : kb::At(from, DType::kF32, {b, r, h, c}));
  });
  const bool packed = shape_.layout == AttentionShape::Layout::kPacked;
  kir::Block body, packs;
  for (size_t o = 0; o < view_.results().size(); ++o) {
    const Value output = view_.results()[o];
    const ir::Node& node = view_.node(output.node);
    const bool quantised = node.op->kind == ir::OpKind::kPack;
    const Value value = view_.BeforeReshapes(quantised ? node.inputs[0] : output);
    const ExprRef element = expr.Element(value, packed ? kir::Index{b, r, place} : ElementAt(b, r, h, c));
    const std::string name = writer.Result(static_cast<int>(o));
    if (quantised) {
      const std::string hidden = absl::StrCat("q", o);
      block.push_back(kb::Alloc(hidden, {DType::kF32, {Extent(1), Extent(width)}, kir::Layout::kRow}));
      body.push_back(kb::WithOrigin(kb::Store(hidden, {kb::Int(0), place}, kb::CastTo(DType::kF32, element)),
                                    writer.Origin(value.node)));
      for (kir::Param& param : writer.kernel.params) {
        if (param.name == name) param.type.dims = {batch_, queries_, Extent(width)};
      }
      packs.push_back(kb::WithOrigin(
          kb::Pack(kb::SliceOf(name, {kb::Point(b), kb::Range(r, kb::Int(1)), kb::All()}), kb::Whole(hidden, 2)),
          writer.Origin(output.node)));
    } else {
      DeclareResult(writer, name);
      body.push_back(kb::WithOrigin(kb::Store(name, ElementAt(b, r, h, c), element), writer.Origin(value.node)));
    }
  }
  const kir::StmtRef elements = kb::Vec("c", kb::Int(0), kb::Int(shape_.head_dim), std::move(body));
  block.push_back(by_head ? elements : kb::For("h", kb::Int(0), kb::Int(shape_.heads), {elements}));
  block.insert(block.end(), packs.begin(), packs.end());
  writer.kernel.grid = WithBatch({{"r", kb::Int(0), kb::FromExtent(queries_), 1}});
  if (by_head) writer.kernel.grid.push_back({"h", kb::Int(0), kb::Int(shape_.heads), 1});
  writer.kernel.body = std::move(block);
  writer.kernel.sequential = BoundedElements({batch_, queries_, Extent(width)}, view_.ranges) <= kSequentialElements;
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered_.kernels.push_back(std::move(use));
  return absl::OkStatus();
}

}  // namespace quern::codegen
