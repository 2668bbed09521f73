#include "codegen/block_product.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kir/build.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kWarps = 4;      // of halves: two by two
constexpr int64_t kThreads = 256;  // of floats: sixteen by sixteen
constexpr int64_t kAcross = 16;
constexpr int64_t kGroupRows = 64;  // of halves, by a group of warps

kir::Slice Shared(const std::string& name, const kir::ExprRef& row, int64_t rows, int64_t depth) {
  return kb::SliceOf(name, {kb::Range(row, kb::Int(rows)), kb::Range(kb::Int(0), kb::Int(depth))});
}

}  // namespace

SquareProduct::SquareProduct(DType dtype, int64_t rows, int64_t columns, int products, const family::BlockFacts& facts)
    : dtype_(dtype),
      groups_(halves() && facts.group_products),
      rows_(rows),
      columns_(columns),
      depth_(halves() ? 32 : 16),
      // Rows of shared memory are padded, so that the elements of a column lie in different banks. What a group
      // multiplies no thread reads, and the target lays it out.
      padded_(groups_    ? depth_
              : halves() ? depth_ + 8
                         : depth_ + 1),
      products_(products) {
  const int64_t bytes = (rows_ + columns_ * products_) * padded_ * ScalarBytes(dtype_);
  stages_ = static_cast<int>(std::clamp<int64_t>(facts.shared_bytes / bytes, 1, facts.stages));
}

// The number is left out where there is one product.
std::string SquareProduct::Named(const char* what, int product) const {
  return products_ == 1 ? what : absl::StrCat(what, product);
}

SquareProduct::Piece SquareProduct::PieceOf() const {
  auto times = [](const kir::ExprRef& place, int64_t by) { return place * static_cast<double>(by); };
  if (groups_) {
    const kir::ExprRef g = kb::Ref("g0");
    return {kir::ThreadLevel::kGroup, "g0", rows_ / kGroupRows, times(g, kGroupRows), kb::Int(0), kGroupRows, columns_};
  }
  if (halves()) {
    const kir::ExprRef w = kb::Ref("w");
    return {kir::ThreadLevel::kWarp,      "w",       kWarps,      times(w / 2.0, rows_ / 2),
            times(w % 2.0, columns_ / 2), rows_ / 2, columns_ / 2};
  }
  const kir::ExprRef t = kb::Ref("t");
  const int64_t rows = rows_ / kAcross, columns = columns_ / kAcross;
  return {kir::ThreadLevel::kBlock,
          "t",
          kThreads,
          times(t / static_cast<double>(kAcross), rows),
          times(t % static_cast<double>(kAcross), columns),
          rows,
          columns};
}

int64_t SquareProduct::threads() const {
  const Piece piece = PieceOf();
  return piece.count * kir::Row(piece.level).threads;
}

kir::Block SquareProduct::Allocs() const {
  auto shared = [&](std::string name, int64_t rows) {
    return kb::Alloc(std::move(name), {dtype_, {Extent(rows), Extent(padded_)}, kir::Layout::kRow},
                     kir::Space::kShared);
  };
  kir::Block allocs = {shared("sa", rows_)};
  for (int p = 0; p < products_; ++p) allocs.push_back(shared(Named("sb", p), columns_));
  return allocs;
}

kir::StmtRef SquareProduct::Steps(const Part& x, const std::vector<Part>& w, const kir::ExprRef& depth,
                                  kir::Block use) const {
  const kir::ExprRef k = kb::Ref("k0"), zero = kb::Int(0);
  kir::Block fetch = {kb::Copy(Shared("sa", zero, rows_, depth_), x(rows_, k, depth_))};
  for (int p = 0; p < static_cast<int>(w.size()); ++p) {
    fetch.push_back(kb::Copy(Shared(Named("sb", p), zero, columns_, depth_), w[p](columns_, k, depth_)));
  }
  return kb::Pipeline("k0", zero, depth, depth_, stages_, std::move(fetch), std::move(use));
}

kir::StmtRef SquareProduct::Threads(const std::vector<std::string>& tiles, const Part& x, const std::vector<Part>& w,
                                    const kir::ExprRef& depth, int origin, const Finish& finish) const {
  const int count = static_cast<int>(w.size());
  const Piece piece = PieceOf();
  const kir::ExprRef k = kb::Ref("k"), ti = kb::Ref("ti"), tj = kb::Ref("tj");
  kir::Block body, use, adds;
  for (int p = 0; p < count; ++p) {
    const std::string other = Named("sb", p);
    if (halves()) {
      use.push_back(kb::CallTile(
          dtype_ == DType::kF16 ? "mma_f16" : "mma_bf16", {tiles[p]},
          {Shared("sa", piece.row, piece.rows, depth_), Shared(other, piece.column, piece.columns, depth_)}));
    } else {
      const kir::ExprRef product =
          kb::At("sa", DType::kF32, {piece.row + ti, k}) * kb::At(other, DType::kF32, {piece.column + tj, k});
      adds.push_back(kb::Store(tiles[p], {ti, tj}, kb::Contract(kb::Ref(tiles[p], DType::kF32) + product)));
    }
  }
  if (!halves()) {
    use = {kb::For("k", kb::Int(0), kb::Int(depth_),
                   {kb::Map({"ti", "tj"}, tiles, {kb::Int(piece.rows), kb::Int(piece.columns)}, std::move(adds))})};
  }
  for (const std::string& name : tiles) body.push_back(kb::Tile(name, {piece.rows, piece.columns}));
  body.push_back(kb::WithOrigin(Steps(x, w, depth, std::move(use)), origin));
  const kir::Block last = finish(piece.row, piece.column, piece.rows, piece.columns);
  body.insert(body.end(), last.begin(), last.end());
  return kb::Thread(piece.level, piece.index, piece.count, std::move(body));
}

}  // namespace quern::codegen
