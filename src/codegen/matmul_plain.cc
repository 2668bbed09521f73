// Products of any shapes and dtypes: the sum over k inside loops over the result.
#include "absl/strings/str_cat.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

StatusOr<LoweredRegion> LowerPlainMatmul(const RegionView& view) {
  KernelWriter writer(view, "matmul");
  FusedExpr expr(view.body);
  writer.ProvideInputs(expr);
  QUERN_ASSIGN(const std::vector<Extent> dims, SharedExtents(view, "plain matmul region"));
  bool transposed = true;
  for (int n = 0; n < static_cast<int>(view.body.nodes().size()); ++n) {
    const ir::Node& node = view.body.node(n);
    if (node.op->family == ir::Family::kQuantize || node.op->family == ir::Family::kUpdate) {
      return absl::UnimplementedError("a plain matmul region ends in elementwise ops");
    }
    if (node.op->family != ir::Family::kMatmul) continue;
    transposed = node.attributes.Bool("transpose_b");
    expr.Provide({n, 0}, [&view, &expr, &node, n](const kir::Index& at, const kir::ExprRef&) {
      const ir::TensorType &a = view.body.type(node.inputs[0]), &b = view.body.type(node.inputs[1]);
      const kir::ExprRef k = kb::Ref(absl::StrCat("k", n));
      const size_t rank = at.size();
      auto batch = [&](const ir::TensorType& type) {
        kir::Index index;
        const size_t leading = type.dims.size() - 2;
        for (size_t d = 0; d < leading; ++d)
          index.push_back(type.dims[d] == Extent(1) ? kb::Int(0) : at[rank - 2 - leading + d]);
        return index;
      };
      kir::Index at_a = batch(a), at_b = batch(b);
      at_a.push_back(at[rank - 2]);
      at_a.push_back(k);
      const bool nk = node.attributes.Bool("transpose_b");
      at_b.push_back(nk ? at[rank - 1] : k);
      at_b.push_back(nk ? k : at[rank - 1]);
      auto widened = [](kir::ExprRef value) {
        const bool half = value->dtype == DType::kF16 || value->dtype == DType::kBF16;
        return half ? kb::CastTo(DType::kF32, value) : value;
      };
      const kir::ExprRef product =
          kb::Contract(widened(expr.Element(node.inputs[0], at_a)) * widened(expr.Element(node.inputs[1], at_b)));
      const std::string name = absl::StrCat("k", n);
      const kir::ExprRef count = kb::FromExtent(a.dims.back());
      const kir::ExprRef sum = nk ? kb::SumVec(4, name, kb::Int(0), count, product)
                                  : kb::ReduceFor(kir::ReduceOp::kSum, name, kb::Int(0), count, product);
      return kb::CastTo(node.results[0].dtype, kb::Contract(sum));
    });
  }
  // A transposed right side has the unit stride along the reduction.
  EmitReducedResults(view, writer, expr, dims, /*by_rows=*/!transposed);
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

}  // namespace quern::codegen
