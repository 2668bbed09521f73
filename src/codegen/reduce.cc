// The reduce family.
//
// Row programs: every reduction is over the last axis of the same rows, stages follow one another within the row
// (softmax, norms), and rows may be quantised at the end:
//   grid i0 in 0..SEQ {
//     let r0 = sum accs 4 vec c in 0..256 { x0[i0, c] * x0[i0, c] } / 256
//     let s0 = rsqrt(r0 + 1e-5)
//     vec c in 0..256 { y0[i0, c] = x0[i0, c] * s0 * w1[c] }
//   }
// Point programs: any other reduction; each result element is one nested reduction.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/loops.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using ir::Family;
using ir::Value;

std::vector<bool> ReducedAxes(const ir::Node& node, int rank) {
  std::vector<bool> reduced(rank);
  for (const int64_t axis : node.attributes.Ints("axes")) reduced[axis < 0 ? axis + rank : axis] = true;
  return reduced;
}

kir::ReduceOp ReduceOpOf(const std::string& name) {
  if (name == "max") return kir::ReduceOp::kMax;
  if (name == "min") return kir::ReduceOp::kMin;
  if (name == "prod") return kir::ReduceOp::kProd;
  return kir::ReduceOp::kSum;
}

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// Halves are summed in f32 and stored as halves again.
kir::ExprRef Widened(const kir::ExprRef& value) {
  return IsHalf(value->dtype) ? kb::CastTo(DType::kF32, value) : value;
}

// The quotient of a mean, in the dtype of the sum.
kir::ExprRef Finished(const ir::Node& node, kir::ExprRef value, const Extent& count) {
  if (node.attributes.String("op") == "mean") value = value / kb::CastTo(value->dtype, kb::FromExtent(count));
  return kb::CastTo(node.results[0].dtype, value);
}

constexpr int kAccumulators = 4;

// Whether computing the value again costs more than reading it from scratch: a math function lies behind it.
bool IsCostly(const kir::ExprRef& expr) {
  struct Visitor {
    bool operator()(const kir::Const&) const { return false; }
    bool operator()(const kir::NameRef&) const { return false; }
    bool operator()(const kir::Load&) const { return false; }
    bool operator()(const kir::Decode&) const { return true; }
    bool operator()(const kir::Apply& node) const {
      return kir::Row(node.op).math || node.op == kir::Op::kDiv ||
             std::any_of(node.args.begin(), node.args.end(), IsCostly);
    }
    bool operator()(const kir::Cast& node) const { return IsCostly(node.value); }
    bool operator()(const kir::Bits& node) const { return IsCostly(node.value); }
    bool operator()(const kir::Reduce&) const { return true; }
  };
  return std::visit(Visitor{}, expr->node);
}

// A region whose reductions are all over the last axis of rows [outer.., C].
class RowProgram {
 public:
  explicit RowProgram(const RegionView& view) : view_(view), writer_(view, "rows"), expr_(view.body) {
    writer_.ProvideInputs(expr_);
  }

  StatusOr<LoweredRegion> Lower() {
    if (!FindRows()) return absl::UnimplementedError("the reductions of a region do not share rows");
    const int64_t inner = std::min<int64_t>(UpperBound(length_, view_.ranges), kChunkElements);
    EmitGrid(view_, writer_.kernel, outer_, inner,
             [&](const kir::Index& index, kir::Block& block) { EmitRow(index, block); });
    LoweredRegion lowered;
    QUERN_ASSIGN(KernelUse use, writer_.Finish());
    lowered.kernels.push_back(std::move(use));
    return lowered;
  }

 private:
  bool FindRows() {
    for (const ir::Node& node : view_.body.nodes()) {
      if (node.op->family != Family::kReduce && node.op->family != Family::kQuantize) continue;
      const ir::TensorType& x = view_.body.type(node.inputs[0]);
      if (x.rank() == 0) return false;
      const std::vector<Extent> outer(x.dims.begin(), x.dims.end() - 1);
      if (rank_ == 0) {
        rank_ = x.rank();
        outer_ = outer;
        length_ = x.dims.back();
      } else if (outer_ != outer || length_ != x.dims.back()) {
        return false;
      }
      if (node.op->family == Family::kReduce) {
        const std::vector<bool> reduced = ReducedAxes(node, x.rank());
        if (std::count(reduced.begin(), reduced.end(), true) != 1 || !reduced.back()) return false;
      }
    }
    if (rank_ == 0) return false;
    for (const Value& output : view_.body.outputs) {
      if (!IsRow(output) && !IsScalar(output)) return false;
    }
    return true;
  }

  // A value with one element for each row.
  bool IsScalar(Value value) const {
    const std::vector<Extent>& dims = view_.body.type(value).dims;
    if (dims == outer_ && length_ != Extent(1)) return true;
    return static_cast<int>(dims.size()) == rank_ && std::equal(outer_.begin(), outer_.end(), dims.begin()) &&
           dims.back() == Extent(1);
  }
  bool IsRow(Value value) const {
    const std::vector<Extent>& dims = view_.body.type(value).dims;
    return static_cast<int>(dims.size()) == rank_ && std::equal(outer_.begin(), outer_.end(), dims.begin()) &&
           dims.back() == length_;
  }

  kir::Index At(const kir::Index& row, const kir::ExprRef& c, Value value) const {
    kir::Index at = row;
    if (view_.body.type(value).rank() == rank_) at.push_back(IsRow(value) ? c : kb::Int(0));
    return at;
  }

  void EmitRow(const kir::Index& row, kir::Block& block) {
    // In topological order: reductions become names, values of one element a row that depend on them too; rows that are
    // costly and used by more than one later stage go to scratch.
    const auto users = view_.body.Users();
    std::set<int> outputs;
    for (const Value& output : view_.body.outputs) outputs.insert(output.node);
    for (int n = 0; n < static_cast<int>(view_.body.nodes().size()); ++n) {
      const ir::Node& node = view_.body.node(n);
      const Value value{n, 0};
      if (node.op->family == Family::kReduce) {
        EmitReduce(n, row, block);
      } else if (node.op->family == Family::kElementwise && IsScalar(value) && !IsRow(value) && DependsOnReduce(n)) {
        const std::string name = absl::StrCat("s", n);
        expr_.ShareIn(nullptr);
        const kir::ExprRef element = expr_.Element(value, At(row, kb::Int(0), value));
        block.push_back(kb::WithOrigin(kb::Let(name, element), writer_.Origin(n)));
        ProvideName(value, name, element->dtype);
      } else if (node.op->family != Family::kLeaf && node.op->family != Family::kQuantize && IsRow(value) &&
                 Stages(n, users, outputs) > 1) {
        expr_.ShareIn(nullptr);
        const kir::ExprRef probe = expr_.Element(value, At(row, kb::Ref("c"), value));
        if (IsCostly(probe)) KeepRow(value, row, block);
      }
    }
    EmitResults(row, block);
  }

  // How many separate passes over the row read node n: reductions behind it, and the final pass.
  int Stages(int n, const std::vector<std::vector<std::pair<int, int>>>& users, const std::set<int>& outputs) const {
    std::set<int> passes;
    std::vector<int> open = {n};
    std::set<int> seen;
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      if (outputs.contains(at)) passes.insert(-1);
      for (const auto& [user, operand] : users[at]) {
        const Family family = view_.body.node(user).op->family;
        if (family == Family::kReduce)
          passes.insert(user);
        else if (family == Family::kQuantize)
          passes.insert(-1);
        else if (seen.insert(user).second)
          open.push_back(user);
      }
    }
    return static_cast<int>(passes.size());
  }

  bool DependsOnReduce(int n) const {
    for (const Value& input : view_.body.node(n).inputs) {
      if (view_.body.node(input.node).op->family == Family::kReduce || DependsOnReduce(input.node)) return true;
    }
    return false;
  }

  void ProvideName(Value value, const std::string& name, DType dtype) {
    expr_.Provide(value, [name, dtype](const kir::Index&, const kir::ExprRef&) { return kb::Ref(name, dtype); });
  }

  void EmitReduce(int n, const kir::Index& row, kir::Block& block) {
    const ir::Node& node = view_.body.node(n);
    const Value x = node.inputs[0];
    const std::string c = absl::StrCat("c", n);
    expr_.ShareIn(nullptr);
    kir::ExprRef body = Widened(expr_.Element(x, At(row, kb::Ref(c), x)));
    const kir::ReduceOp op = ReduceOpOf(node.attributes.String("op"));
    if (IsFloat(body->dtype)) body = kb::Contract(body);
    const kir::ExprRef sum = kb::ReduceVec(op, kAccumulators, c, kb::Int(0), kb::FromExtent(length_), body);
    const std::string name = absl::StrCat("r", n);
    block.push_back(kb::WithOrigin(
        kb::Let(name, Finished(node, IsFloat(sum->dtype) ? kb::Contract(sum) : sum, length_)), writer_.Origin(n)));
    ProvideName({n, 0}, name, node.results[0].dtype);
  }

  void KeepRow(Value value, const kir::Index& row, kir::Block& block) {
    const DType dtype = view_.body.type(value).dtype;
    const std::string name = absl::StrCat("row", value.node), c = absl::StrCat("c", value.node);
    block.push_back(kb::Alloc(name, {dtype, {length_}, kir::Layout::kRow}));
    kir::Block body;
    expr_.ShareIn(&body);
    const kir::ExprRef element = expr_.Element(value, At(row, kb::Ref(c), value));
    body.push_back(kb::Store(name, {kb::Ref(c)}, element));
    expr_.ShareIn(nullptr);
    block.push_back(
        kb::WithOrigin(kb::Vec(c, kb::Int(0), kb::FromExtent(length_), std::move(body)), writer_.Origin(value.node)));
    expr_.Provide(
        value, [name, dtype](const kir::Index& at, const kir::ExprRef&) { return kb::At(name, dtype, {at.back()}); });
  }

  void EmitResults(const kir::Index& row, kir::Block& block) {
    kir::Block body;  // one pass over the row for all full results
    kir::Block packs;
    expr_.ShareIn(&body);
    std::set<Value> kept;
    for (size_t o = 0; o < view_.body.outputs.size(); ++o) {
      const Value output = view_.body.outputs[o];
      const ir::Node& node = view_.body.node(output.node);
      if (node.op->family == Family::kQuantize) {
        // The encoder reads a dense row of f32.
        const Value x = node.inputs[0];
        const std::string name = absl::StrCat("q", x.node);
        if (kept.insert(x).second) {
          block.push_back(kb::Alloc(name, {DType::kF32, {Extent(1), length_}, kir::Layout::kRow}));
          body.push_back(
              kb::WithOrigin(kb::Store(name, {kb::Int(0), kb::Ref("c")}, expr_.Element(x, At(row, kb::Ref("c"), x))),
                             writer_.Origin(x.node)));
        }
        std::vector<kir::SliceDim> place;
        for (const kir::ExprRef& index : row) place.push_back(kb::Range(index, kb::Int(1)));
        // All but the last of the row indices are points: the slice is [1, C].
        for (size_t d = 0; d + 1 < place.size(); ++d) place[d] = kb::Point(row[d]);
        place.push_back(kb::All());
        kir::Slice source = kb::Whole(name, 2);
        if (row.empty()) source.dims = {kb::Point(kb::Int(0)), kb::All()};
        packs.push_back(kb::WithOrigin(
            kb::Pack(kb::SliceOf(writer_.Result(static_cast<int>(o)), std::move(place)), std::move(source)),
            writer_.Origin(output.node)));
      } else if (IsRow(output)) {
        const kir::ExprRef element = expr_.Element(output, At(row, kb::Ref("c"), output));
        body.push_back(
            kb::WithOrigin(kb::Store(writer_.Result(static_cast<int>(o)), At(row, kb::Ref("c"), output), element),
                           writer_.Origin(output.node)));
      }
    }
    expr_.ShareIn(nullptr);
    for (size_t o = 0; o < view_.body.outputs.size(); ++o) {
      const Value output = view_.body.outputs[o];
      if (IsRow(output)) continue;
      const kir::Index at = At(row, kb::Int(0), output);
      block.push_back(kb::Store(writer_.Result(static_cast<int>(o)), at, expr_.Element(output, at)));
    }
    if (!body.empty()) block.push_back(kb::Vec("c", kb::Int(0), kb::FromExtent(length_), std::move(body)));
    block.insert(block.end(), packs.begin(), packs.end());
  }

  const RegionView& view_;
  KernelWriter writer_;
  FusedExpr expr_;
  int rank_ = 0;
  std::vector<Extent> outer_;
  Extent length_;
};

// Reductions over any axes: a nest of reductions for each result element.
StatusOr<LoweredRegion> LowerPoints(const RegionView& view) {
  KernelWriter writer(view, "points");
  FusedExpr expr(view.body);
  writer.ProvideInputs(expr);
  QUERN_ASSIGN(const std::vector<Extent> dims, SharedExtents(view, "reduction"));
  bool innermost_reduced = false;
  for (int n = 0; n < static_cast<int>(view.body.nodes().size()); ++n) {
    const ir::Node& node = view.body.node(n);
    if (node.op->family == Family::kQuantize) return absl::UnimplementedError("a quantised row needs a row program");
    if (node.op->family != Family::kReduce) continue;
    const ir::TensorType& x = view.body.type(node.inputs[0]);
    const std::vector<bool> reduced = ReducedAxes(node, x.rank());
    if (!reduced.empty() && reduced.back()) innermost_reduced = true;
    const bool keep = node.attributes.Bool("keep_dim");
    expr.Provide({n, 0}, [&expr, &node, n, x, reduced, keep](const kir::Index& at, const kir::ExprRef&) {
      kir::Index index;
      Extent count(1);
      for (size_t d = 0, r = 0; d < reduced.size(); ++d) {
        if (reduced[d]) {
          index.push_back(kb::Ref(absl::StrCat("k", n, "_", d)));
          count = count * x.dims[d];
          if (keep) ++r;
        } else {
          index.push_back(at[r++]);
        }
      }
      kir::ExprRef value = Widened(expr.InnerElement(node.inputs[0], index));
      const kir::ReduceOp op = ReduceOpOf(node.attributes.String("op"));
      bool vec = !reduced.empty() && reduced.back();  // only the last axis has unit stride
      for (size_t d = reduced.size(); d-- > 0;) {
        if (!reduced[d]) continue;
        const std::string k = absl::StrCat("k", n, "_", d);
        value = vec ? kb::ReduceVec(op, kAccumulators, k, kb::Int(0), kb::FromExtent(x.dims[d]), value)
                    : kb::ReduceFor(op, k, kb::Int(0), kb::FromExtent(x.dims[d]), value);
        vec = false;
      }
      return Finished(node, value, count);
    });
  }
  EmitReducedResults(view, writer, expr, dims, /*by_rows=*/!innermost_reduced && !dims.empty());
  writer.kernel.sequential = false;
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

}  // namespace

StatusOr<LoweredRegion> LowerReduce(const RegionView& view) {
  StatusOr<LoweredRegion> rows = RowProgram(view).Lower();
  if (rows.ok() || !absl::IsUnimplemented(rows.status())) return rows;
  return LowerPoints(view);
}

}  // namespace quern::codegen
