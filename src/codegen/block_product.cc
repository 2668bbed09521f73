#include "codegen/block_product.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kir/build.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

constexpr int64_t kWarps = 4;          // of halves: two by two
constexpr int64_t kThreads = 256;      // of floats: sixteen by sixteen
constexpr int64_t kAcross = 16;


kir::Slice Shared(const std::string& name, const kir::ExprRef& row, int64_t rows, int64_t depth) {
  return kb::SliceOf(name, {kb::Range(row, kb::Int(rows)), kb::Range(kb::Int(0), kb::Int(depth))});
}

}  // namespace

SquareProduct::SquareProduct(DType dtype, int64_t rows, int64_t columns, int products, const BlockFacts& facts)
    : dtype_(dtype), rows_(rows), columns_(columns), depth_(halves() ? 32 : 16),
      // Rows of shared memory are padded, so that the elements of a column lie in different banks.
      padded_(halves() ? depth_ + 8 : depth_ + 1), products_(products) {
  const int64_t bytes = (rows_ + columns_ * products_) * padded_ * ScalarBytes(dtype_);
  stages_ = static_cast<int>(std::clamp<int64_t>(facts.shared_bytes / bytes, 1, facts.stages));
}

// The number is left out where there is one product.
std::string SquareProduct::Named(const char* what, int product) const {
  return products_ == 1 ? what : absl::StrCat(what, product);
}

int64_t SquareProduct::threads() const { return halves() ? kWarps * kir::kWarpThreads : kThreads; }

kir::Block SquareProduct::Allocs() const {
  auto shared = [&](std::string name, int64_t rows) {
    return kb::Alloc(std::move(name), {dtype_, {Extent(rows), Extent(padded_)}, kir::Layout::kRow}, kir::Space::kShared);
  };
  kir::Block allocs = {shared("sa", rows_)};
  for (int p = 0; p < products_; ++p) allocs.push_back(shared(Named("sb", p), columns_));
  return allocs;
}

kir::StmtRef SquareProduct::Steps(const Part& x, const std::vector<Part>& w, const kir::ExprRef& depth, kir::Block use) const {
  const kir::ExprRef k = kb::Ref("k0"), zero = kb::Int(0);
  kir::Block fetch = {kb::Copy(Shared("sa", zero, rows_, depth_), x(rows_, k, depth_))};
  for (int p = 0; p < static_cast<int>(w.size()); ++p) {
    fetch.push_back(kb::Copy(Shared(Named("sb", p), zero, columns_, depth_), w[p](columns_, k, depth_)));
  }
  return kb::Pipeline("k0", zero, depth, depth_, stages_, std::move(fetch), std::move(use));
}

kir::StmtRef SquareProduct::Threads(const std::vector<std::string>& tiles, const Part& x, const std::vector<Part>& w, const kir::ExprRef& depth,
                                    int origin, const Finish& finish) const {
  const int count = static_cast<int>(w.size());
  kir::Block body, use;
  kir::ExprRef row, column;
  int64_t rows = 0, columns = 0;
  if (halves()) {
    rows = rows_ / 2, columns = columns_ / 2;
    row = (kb::Ref("w") / 2.0) * static_cast<double>(rows), column = (kb::Ref("w") % 2.0) * static_cast<double>(columns);
    const char* op = dtype_ == DType::kF16 ? "mma_f16" : "mma_bf16";
    for (int p = 0; p < count; ++p) {
      use.push_back(kb::CallTile(op, {tiles[p]}, {Shared("sa", row, rows, depth_), Shared(Named("sb", p), column, columns, depth_)}));
    }
  } else {
    rows = rows_ / kAcross, columns = columns_ / kAcross;
    row = (kb::Ref("t") / static_cast<double>(kAcross)) * static_cast<double>(rows);
    column = (kb::Ref("t") % static_cast<double>(kAcross)) * static_cast<double>(columns);
    const kir::ExprRef k = kb::Ref("k");
    kir::Block adds;
    for (int p = 0; p < count; ++p) {
      const kir::ExprRef a = kb::At("sa", DType::kF32, {row + kb::Ref("ti"), k}), b = kb::At(Named("sb", p), DType::kF32, {column + kb::Ref("tj"), k});
      adds.push_back(kb::Store(tiles[p], {kb::Ref("ti"), kb::Ref("tj")}, kb::Contract(kb::Ref(tiles[p], DType::kF32) + a * b)));
    }
    use = {kb::For("k", kb::Int(0), kb::Int(depth_), {kb::Map({"ti", "tj"}, tiles, {kb::Int(rows), kb::Int(columns)}, std::move(adds))})};
  }
  for (const std::string& name : tiles) body.push_back(kb::Tile(name, {rows, columns}));
  body.push_back(kb::WithOrigin(Steps(x, w, depth, std::move(use)), origin));
  const kir::Block last = finish(row, column, rows, columns);
  body.insert(body.end(), last.begin(), last.end());
  return halves() ? kb::Thread(kir::ThreadLevel::kWarp, "w", kWarps, std::move(body))
                  : kb::Thread(kir::ThreadLevel::kBlock, "t", kThreads, std::move(body));
}

}  // tilespace quern::codegen
