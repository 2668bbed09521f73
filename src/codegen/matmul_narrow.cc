// Products with few rows or few columns, of operands that lie in any order, on a CPU: the large side streams by once.
//
// Few rows of [K, N], floats or bytes: columns go by in wide runs, added to sums in scratch in the order of k.
//   grid n0 in 0..2048 by 256 {
//     alloc acc : f32[1, 256]
//     for k in 0..2048 by 4 { vec c in 0..256 { acc[0, c] = acc[0, c] + x0[0, k] * x1[k, n0 + c] + .. } }
//     for r in 0..1 { vec c in 0..256 { y0[r, n0 + c] = acc[r, c] } }
//   }
// Some rows are added to together, so that what is read of the large side serves all of them.
//
// Few columns: rows are what the dot tile streams; the columns, transposed in scratch, are what it multiplies by. Few
// rows of [N, K]: the same with the sides exchanged.
//   grid m0 in 0..4096 by 64 {
//     alloc px : f32[1, 2048]
//     vec xk in 0..2048 { px[0, xk] = x1[xk, 0] }
//     tile t : f32[1, 64] = 0
//     dot_f32 t += x0[m0 : +64, :], px   ahead 8192
//     map (j, i) in t [1, 64] { y0[m0 + i, j] = t }
//   }
#include <algorithm>

#include "base/divide.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "codegen/split_sum.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kWideColumns = 256;  // of a chunk: runs of 1 KiB
constexpr int64_t kTerms = 4;          // of a sum between loading and storing it
constexpr int64_t kRowsTogether = 4;   // that registers hold beside so many elements of the large side

// The tile that multiplies rows of `streamed` by rows of `by`.
const char* DotOf(DType streamed, DType by) {
  if (by == DType::kBF16) return "dot_bf16_pairs";
  return streamed == DType::kF32 ? "dot_f32" : streamed == DType::kF16 ? "dot_f16" : "dot_bf16";
}

}  // namespace

StatusOr<LoweredRegion> LowerFewRows(const ProductSpace& space) {
  const RegionView& view = space.view();
  ProductKernel kernel(space);
  const DType type = space.SumType();
  // Narrower where that leaves too few chunks, down to two lines of each row.
  const int64_t columns = view.UpperBound(space.columns());
  int64_t width = kWideColumns;
  while (width > 32 && CeilDiv(columns, width) < kChunksWanted / 8) width /= 2;
  const SplitSum split(space, type, width, /*rows=*/kFewRows, kTerms);
  const kir::ExprRef r = kb::Ref("r"), c = kb::Ref("c"), k = kb::Ref("k"), n0 = kb::Ref("n0"), zero = kb::Int(0),
                     rows = kb::FromExtent(space.rows()),
                     live = kb::Min(kb::FromExtent(space.columns()) - n0, kb::Int(width)),
                     sum = kb::At("acc", type, {r, c});
  const auto each = [&](kir::Block body) {
    return kb::For("r", zero, rows, {kb::Vec("c", zero, live, std::move(body))});
  };
  // One order of additions, however many terms a trip takes.
  const auto add = [&](const kir::ExprRef& first, int64_t terms) -> kir::Block {
    const auto row = [&](const kir::ExprRef& m) {
      kir::ExprRef value = kb::At("acc", type, {m, c});
      for (int64_t t = 0; t < terms; ++t) {
        const kir::ExprRef at = (split.splits() ? first + k : k) + static_cast<double>(t);
        value = kb::Term(value + kb::Term(kernel.Left(m, at) * kernel.Right(at, n0 + c)));
      }
      return kernel.Of(kb::Store("acc", {m, c}, value));
    };
    if (!space.rows().is_constant()) return {each({row(r)})};
    kir::Block groups;
    const int64_t all = space.rows().constant(), together = all == 0 ? 1 : EvenPart(all, kRowsTogether);
    for (int64_t m = 0; m < all; m += together) {
      kir::Block stores;
      for (int64_t i = m; i < std::min(all, m + together); ++i) stores.push_back(row(kb::Int(i)));
      groups.push_back(kb::Vec("c", zero, live, std::move(stores)));
    }
    return groups;
  };
  kir::Block chunk = {
      kb::Alloc("acc", {type, {Extent(view.UpperBound(space.rows())), Extent(width)}, kir::Layout::kRow}),
      each({kb::Store("acc", {r, c}, IsFloat(type) ? kb::Num(0, type) : kb::Int(0, type))})};
  const kir::Block sums = split.Over([&](const kir::ExprRef& first, const Extent& count) {
    const int64_t whole = count.is_constant() ? count.constant() / kTerms * kTerms : 0;
    kir::Block loops;
    if (whole > 0) loops.push_back(kb::For("k", zero, kb::Int(whole), add(first, kTerms), kTerms));
    if (count != Extent(whole)) loops.push_back(kb::For("k", kb::Int(whole), kb::FromExtent(count), add(first, 1)));
    return loops;
  });
  chunk.insert(chunk.end(), sums.begin(), sums.end());
  chunk.push_back(each(split.Finish(kernel, r, n0 + c, sum)));
  return split.Lower(kernel, {{"n0", zero, kb::FromExtent(space.columns()), width}}, std::move(chunk));
}

StatusOr<LoweredRegion> LowerStreams(const ProductSpace& space) {
  const RegionView& view = space.view();
  ProductKernel kernel(space);
  // The side whose rows stream by, and the one of few.
  const int streamed = view.UpperBound(space.rows()) <= kFewRows ? 1 : 0, few = 1 - streamed;
  const Extent &many = streamed == 0 ? space.rows() : space.columns(),
               &count = streamed == 0 ? space.columns() : space.rows();
  const bool pairs = space.dtype(0) == DType::kBF16 && space.dtype(1) == DType::kBF16;
  const DType dtype = pairs ? DType::kBF16 : DType::kF32;  // what rows are multiplied by
  const int64_t most = view.UpperBound(count);
  const SplitSum split = SplitSum::OfStreams(space);
  const int64_t width = SplitSum::StreamedRows(space);
  const kir::ExprRef i = kb::Ref("i"), j = kb::Ref("j"), m0 = kb::Ref("m0"), xj = kb::Ref("xj"), xk = kb::Ref("xk"),
                     zero = kb::Int(0), n = kb::FromExtent(count), k0 = split.First(),
                     k = split.splits() ? split.End() - k0 : split.End(), in_part = split.splits() ? k0 + xk : xk;
  const kir::SliceDim part = split.splits() ? kb::Range(k0, k) : kb::All();
  const kir::Slice rows = kernel.Rectangle(streamed, kb::Range(m0, kb::Int(width)), part);
  kir::Slice by = kb::SliceOf("px", {kb::Range(zero, n), split.splits() ? kb::Range(zero, k) : kb::All()});
  kir::Block chunk;
  if (space.dtype(few) == dtype && (few == 0 || space.transposed())) {
    by = kernel.Rectangle(few, kb::Range(zero, n), part);
  } else {
    const kir::ExprRef element = few == 0 ? kernel.Left(xj, in_part) : kernel.Right(in_part, xj);
    chunk = {kb::Alloc("px", {dtype, {Extent(most), split.Most()}, kir::Layout::kRow}),
             kb::For("xj", zero, n, {kb::Vec("xk", zero, k, {kb::Store("px", {xj, xk}, kb::CastTo(dtype, element))})})};
  }
  chunk.push_back(kb::Tile("t", {most, width}));
  chunk.push_back(kernel.Of(kb::CallTile(DotOf(space.dtype(streamed), dtype), {"t"}, {rows, by},
                                         {{"ahead", kb::Int(view.facts.prefetch_ahead)}})));
  const kir::ExprRef live = kb::Min(kb::FromExtent(many) - m0, kb::Int(width)), sum = kb::Ref("t", DType::kF32);
  chunk.push_back(kb::Map({"j", "i"}, {"t"}, {n, live},
                          streamed == 0 ? split.Finish(kernel, m0 + i, j, sum) : split.Finish(kernel, j, m0 + i, sum)));
  return split.Lower(kernel, {{"m0", zero, kb::FromExtent(many), width}}, std::move(chunk));
}

}  // namespace quern::codegen
