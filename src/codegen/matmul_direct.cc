// Products with a right side that is computed on the way, without panels: each element of the result is the sum over
// the axes of k where columns run, for few rows (a depthwise convolution has one), other types than floats and bytes,
// and blocks of threads.
//
//   grid i1 in 0..32, q0 in 0..112 by 36 {
//     for q in q0 .. min(q0 + 36, 112) {
//       vec c in 0..112 { y0[i1, q * 112 + c] = x1[i1, 0] * (x0[i1, q - 1, c - 1] else 0) + .. }
//     }
//   }
#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/computed_side.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kTerms = 32;          // of a sum that is written out
constexpr int64_t kElements = 1 << 12;  // of a chunk, about
constexpr int64_t kProducts = 1 << 16;  // multiplications of a chunk, about

// The sum over the axes of k from `axis` on of products at `at`, of which the first are filled in. `first` is k there.
class Sum {
 public:
  Sum(ProductKernel& kernel, ComputedSide& right) : kernel_(kernel), right_(right) {
    Extent all(1);
    for (const Extent& extent : right.k()) all = all * extent;
    written_out_ = all.is_constant() && all.constant() > 0 && all.constant() <= kTerms;  // a sum of nothing is a loop
  }

  kir::ExprRef At(const kir::ExprRef& row, const ComputedSide::Segment& segment, const kir::ExprRef& c) {
    terms_ = [&, row](const kir::Index& at, const kir::ExprRef& k) {
      return kb::Term(kernel_.Left(row, k) * right_.Element(segment, c, at));
    };
    sum_ = nullptr;
    const kir::ExprRef sum = Over(0, {}, kb::Int(0));
    return written_out_ ? sum_ : sum;
  }

 private:
  kir::ExprRef Over(size_t axis, const kir::Index& at, const kir::ExprRef& k) {
    if (axis == right_.k().size()) {
      const kir::ExprRef term = terms_(at, k);
      if (written_out_) sum_ = sum_ == nullptr ? term : kb::Term(sum_ + term);
      return term;
    }
    const Extent& extent = right_.k()[axis];
    const auto next = [&](const kir::ExprRef& here) {
      kir::Index longer = at;
      longer.push_back(here);
      return Over(axis + 1, longer, k * kb::FromExtent(extent) + here);
    };
    if (written_out_) {
      for (int64_t i = 0; i < extent.constant(); ++i) next(kb::Int(i));
      return nullptr;
    }
    const std::string name = absl::StrCat("d", axis);
    return kb::ReduceFor(kir::ReduceOp::kSum, name, kb::Int(0), kb::FromExtent(extent), next(kb::Ref(name)));
  }

  ProductKernel& kernel_;
  ComputedSide& right_;
  bool written_out_ = false;
  std::function<kir::ExprRef(const kir::Index&, const kir::ExprRef&)> terms_;
  kir::ExprRef sum_;
};

}  // namespace

StatusOr<LoweredRegion> LowerDirect(const ProductSpace& space) {
  ProductKernel kernel(space);
  ComputedSide right(kernel);
  Sum sum(kernel, right);
  const RegionView& view = space.view();
  const kir::ExprRef r = kb::Ref("r"), c = kb::Ref("c"), q = kb::Ref("q"), zero = kb::Int(0);
  const auto over = [&](const ComputedSide::Segment& segment) -> kir::Block {
    return {kb::For(
        "r", zero, kb::FromExtent(space.rows()),
        {kb::Vec("c", segment.low, segment.high, kernel.Results(r, segment.start + c, sum.At(r, segment, c)))})};
  };
  const int64_t products = BoundedElements({space.k(), space.rows()}, view.ranges);
  // About how many columns make a chunk worth sharing out.
  const int64_t enough = std::clamp<int64_t>(kProducts / std::clamp<int64_t>(products, 1, kProducts), 64, kElements);
  if (right.across().size() < 2 && view.UpperBound(space.columns()) > kElements) {
    const int64_t width = CeilDiv(enough, 64) * 64;
    const kir::ExprRef n0 = kb::Ref("n0");
    return kernel.Finish({{"n0", zero, kb::FromExtent(space.columns()), width}},
                         right.Across(n0, Live(space.columns(), n0, width), over));
  }
  if (right.across().empty()) return kernel.Finish({{"q", zero, kb::Int(1), 1}}, over({zero, kb::Int(1), zero, {}}));
  Extent rows(1);
  for (size_t d = 0; d + 1 < right.across().size(); ++d) rows = rows * right.across()[d];
  const int64_t step = std::max<int64_t>(1, enough / std::max<int64_t>(1, view.UpperBound(right.across().back())));
  const kir::ExprRef q0 = kb::Ref("q0"), end = kb::FromExtent(rows);
  if (!space.batch_axes().empty() && view.UpperBound(rows) <= step)
    return kernel.Finish({}, {kb::For("q", zero, end, over(right.Row(q)))});
  return kernel.Finish({{"q0", zero, end, step}},
                       {kb::For("q", q0, kb::Min(q0 + static_cast<double>(step), end), over(right.Row(q)))});
}

}  // namespace quern::codegen
