// Products of any shapes and dtypes: the sum over k inside loops over the result.
#include "absl/strings/str_cat.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "codegen/product_kernel.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

// The sum over k of element `at` of the product.
kir::ExprRef Sum(const RegionView& view, FusedExpr& expr, int n, const kir::Index& at) {
  const ir::Node& node = view.node(n);
  const ir::TensorType &a = view.type(node.inputs[0]), &b = view.type(node.inputs[1]);
  const std::string name = absl::StrCat("k", n);
  const kir::ExprRef k = kb::Ref(name);
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
  const DType result = node.results[0].dtype;
  const kir::ExprRef product =
      kb::Term(Factor(expr.Element(node.inputs[0], at_a), result) * Factor(expr.Element(node.inputs[1], at_b), result));
  const kir::ExprRef count = kb::FromExtent(a.dims.back());
  const kir::ExprRef sum = nk ? kb::SumVec(4, name, kb::Int(0), count, product)
                              : kb::ReduceFor(kir::ReduceOp::kSum, name, kb::Int(0), count, product);
  return kb::CastTo(result, sum);
}

}  // namespace

StatusOr<LoweredRegion> LowerPlainMatmul(const RegionView& view) {
  constexpr int64_t kElementsOfPoint = 256, kElementsOfRow = 4096;  // about, and of work rather than of results
  KernelWriter writer(view, "matmul");
  FusedExpr expr(view.graph);
  writer.ProvideInputs(expr);
  bool transposed = true;
  for (const int n : view.nodes()) {
    if (!IsProduct(view.node(n))) continue;
    transposed = view.node(n).attributes.Bool("transpose_b");
    expr.Provide({n, 0},
                 [&view, &expr, n](const kir::Index& at, const kir::ExprRef&) { return Sum(view, expr, n, at); });
  }
  auto store = [&](const kir::Index& at, kir::Block& block) {
    for (size_t o = 0; o < view.results().size(); ++o) {
      const ir::Value result = view.results()[o];
      block.push_back(kb::WithOrigin(kb::Store(writer.Result(static_cast<int>(o)), at, expr.Element(result, at)),
                                     writer.Origin(result.node)));
    }
  };
  const std::vector<Extent>& dims = view.type(view.results()[0]).dims;
  if (transposed) {
    // The unit stride is along the reduction: each element is alone, its sum a vector.
    EmitGrid(view, writer.kernel, dims, kElementsOfPoint, store);
  } else {
    const std::vector<Extent> outer(dims.begin(), dims.end() - 1);
    EmitGrid(view, writer.kernel, outer, kElementsOfRow, [&](kir::Index at, kir::Block& block) {
      at.push_back(kb::Ref("c"));
      kir::Block body;
      store(at, body);
      block.push_back(kb::Vec("c", kb::Int(0), kb::FromExtent(dims.back()), std::move(body)));
    });
  }
  return writer.FinishRegion();
}

}  // namespace quern::codegen
