// Products with a right side that is computed on the way, without panels: each element of the result is the sum over
// the axes of k where columns run, for few rows (a depthwise convolution has one), other types than floats and bytes,
// and blocks of threads.
//
//   grid i1 in 0..32, q0 in 0..112 by 36 {
//     for q in q0 .. min(q0 + 36, 112) {
//       vec c in 0..112 { y0[i1, q * 112 + c] = x1[i1, 0] * (x0[i1, q - 1, c - 1] else 0) + .. }
//     }
//   }
//
// Lines of windows that overlap are computed several at a time (line_sums.h).
#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/computed_side.h"
#include "codegen/line_sums.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kTerms = 64;          // of a sum that is written out
constexpr int64_t kElements = 1 << 12;  // of a chunk, about
constexpr int64_t kProducts = 1 << 16;  // multiplications of a chunk, about
constexpr int64_t kLines = 4;           // that are computed at a time
constexpr int64_t kTermsOfLines = 200;  // of all of those: more take long to compile
constexpr int64_t kTermsOfPlanes = 60;  // the same in three dimensions, where loops are cut in more parts

// The sum over the axes of k of products: loops over the first of them, terms written out over the last ones, as many
// as make few enough.
class Sum {
 public:
  Sum(ProductKernel& kernel, ComputedSide& right) : kernel_(kernel), right_(right), loops_(right.k().size()) {
    for (; loops_ > 0; --loops_) {
      const Extent& extent = right.k()[loops_ - 1];
      if (!extent.is_constant() || extent.constant() < 1 || extent.constant() * written_ > kTerms) break;
      written_ *= extent.constant();
    }
  }

  kir::ExprRef At(const kir::ExprRef& row, const ComputedSide::Segment& segment, const kir::ExprRef& c) {
    term_ = [&, row](const kir::Index& at, const kir::ExprRef& k) {
      return kb::Term(kernel_.Left(row, k) * right_.Element(segment, c, at));
    };
    return Over(0, {}, kb::Int(0));
  }

  // How many lines of results are worth computing at a time: as many as divide them.
  int64_t LinesTogether(const Extent& lines) const {
    const std::vector<Extent>& k = right_.k();
    if (loops_ > 0 || k.size() < 2 || k.size() > 3 || !lines.is_constant()) return 1;
    const int64_t high = k[k.size() - 2].constant(), most = k.size() == 2 ? kTermsOfLines : kTermsOfPlanes;
    for (int64_t together = kLines; high > 1 && together > 1; --together) {
      if (lines.constant() % together == 0 && together * written_ <= most) return together;
    }
    return 1;
  }

  // Of the lines that are these segments. Precondition: LinesTogether() is more than one.
  std::vector<kir::ExprRef> OfLines(const kir::ExprRef& row, const std::vector<ComputedSide::Segment>& lines,
                                    const kir::ExprRef& c, kir::Block& block) {
    std::vector<LineTerm> terms;
    for (int line = 0; line < static_cast<int>(lines.size()); ++line) {
      for (int64_t k = 0; k < written_; ++k) {
        const std::vector<int64_t> at = Places(k);
        kir::Index index;
        for (const int64_t place : at) index.push_back(kb::Int(place));
        const size_t d = at.size() - 2;
        const int64_t plane = d == 0 ? 0 : at[d - 1],
                      place = plane * (kLines + right_.k()[d].constant()) + line + at[d];
        terms.push_back({place, line, kernel_.Left(row, kb::Int(k)), right_.Element(lines[line], c, index)});
      }
    }
    return SumLines(terms, static_cast<int>(lines.size()), block);
  }

 private:
  // Where term k of sums that are written out whole is on the axes.
  std::vector<int64_t> Places(int64_t k) const {
    std::vector<int64_t> at(right_.k().size());
    for (size_t d = at.size(); d-- > 0;) {
      const int64_t extent = right_.k()[d].constant();
      at[d] = k % extent;
      k /= extent;
    }
    return at;
  }

  // Over the axes from `axis` on, at `at` of those before it, which is element k of them all together.
  kir::ExprRef Over(size_t axis, const kir::Index& at, const kir::ExprRef& k) {
    if (axis == right_.k().size()) return term_(at, k);
    const Extent& extent = right_.k()[axis];
    const auto next = [&](const kir::ExprRef& here) {
      kir::Index longer = at;
      longer.push_back(here);
      return Over(axis + 1, longer, k * kb::FromExtent(extent) + here);
    };
    if (axis < loops_) {
      const std::string name = absl::StrCat("d", axis);
      return kb::ReduceFor(kir::ReduceOp::kSum, name, kb::Int(0), kb::FromExtent(extent), next(kb::Ref(name)));
    }
    kir::ExprRef sum = next(kb::Int(0));
    for (int64_t i = 1; i < extent.constant(); ++i) sum = kb::Term(sum + next(kb::Int(static_cast<double>(i))));
    return sum;
  }

  ProductKernel& kernel_;
  ComputedSide& right_;
  size_t loops_;
  int64_t written_ = 1;  // terms of a sum that are written out
  std::function<kir::ExprRef(const kir::Index&, const kir::ExprRef&)> term_;
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
  Extent lines(1);
  for (size_t d = 0; d + 1 < right.across().size(); ++d) lines = lines * right.across()[d];
  const size_t outer = right.across().size() - 1;
  const int64_t together = outer == 1 || outer == 2 ? sum.LinesTogether(right.across()[outer - 1]) : 1;
  const bool planes = together > 1 && outer == 2;  // whose lines have a loop of their own
  // Those of a step.
  const auto of_lines = [&]() -> kir::Block {
    if (together == 1) return over(right.Row(q));
    std::vector<ComputedSide::Segment> segments;
    for (int64_t line = 0; line < together; ++line) {
      const kir::ExprRef at = q * static_cast<double>(together) + static_cast<double>(line);
      segments.push_back(right.Row(planes ? kir::Index{kb::Ref("p"), at} : kir::Index{at}));
    }
    kir::Block body;
    const std::vector<kir::ExprRef> sums = sum.OfLines(r, segments, c, body);
    for (int64_t line = 0; line < together; ++line) {
      for (kir::StmtRef& stored : kernel.Results(r, segments[line].start + c, sums[line]))
        body.push_back(std::move(stored));
    }
    return {kb::For("r", zero, kb::FromExtent(space.rows()),
                    {kb::Vec("c", segments[0].low, segments[0].high, std::move(body))})};
  };
  const int64_t columns = view.UpperBound(right.across().back()),
                step = std::max<int64_t>(1, enough / std::max<int64_t>(1, columns * together));
  if (planes) {
    const int64_t each = right.across()[1].constant(), some = std::max<int64_t>(1, step * together / each);
    const kir::ExprRef p0 = kb::Ref("p0"), all = kb::FromExtent(right.across()[0]);
    kir::Block of_plane = {kb::For("q", zero, kb::Int(each / together), of_lines())};
    return kernel.Finish({{"p0", zero, all, some}},
                         {kb::For("p", p0, kb::Min(p0 + static_cast<double>(some), all), std::move(of_plane))});
  }
  const Extent steps = together == 1 ? lines : Extent(lines.constant() / together);
  const kir::ExprRef q0 = kb::Ref("q0"), end = kb::FromExtent(steps);
  if (!space.batch_axes().empty() && view.UpperBound(steps) <= step)
    return kernel.Finish({}, {kb::For("q", zero, end, of_lines())});
  return kernel.Finish({{"q0", zero, end, step}},
                       {kb::For("q", q0, kb::Min(q0 + static_cast<double>(step), end), of_lines())});
}

}  // namespace quern::codegen
