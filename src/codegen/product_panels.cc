#include "codegen/product_panels.h"

#include <algorithm>

#include "base/divide.h"
#include "codegen/loops.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kColumns = 64;       // of a chunk of two panels, for which rows are read or copied once
constexpr int64_t kWholeBytes = 4096;  // of a column of a panel, which stays in the second cache beside the rows
constexpr int64_t kBlockBytes = 2048;  // of a column of a block of k otherwise

DepthBlocks::Limits DepthOf(int64_t bytes) { return {kWholeBytes / bytes, kBlockBytes / bytes}; }

// Elements of k in a word of a panel.
int64_t Together(const ProductSpace& space) {
  if (space.IsOfBytes()) return 4;
  const bool pairs = space.in_panels() || space.view().facts.bf16_pairs;
  return pairs && space.dtype(0) == DType::kBF16 && space.dtype(1) == DType::kBF16 ? 2 : 1;
}

}  // namespace

ProductPanels::ProductPanels(ProductKernel& kernel)
    : kernel_(kernel),
      space_(kernel.space()),
      together_(Together(space_)),
      computed_(space_.InMemory(1) ? std::nullopt : std::optional<ComputedSide>(std::in_place, kernel_)),
      depth_(computed_ ? computed_->k() : std::vector<Extent>{space_.k()},
             DepthOf(ScalarBytes(PanelType()) / together_)),
      runs_along_k_(computed_ ? computed_->RunsAlongK() : space_.transposed() || space_.in_panels()) {
  ChooseColumns();
}

// Few columns that fill vectors but for one to four, 7 x 7 pixels for one, would waste most of a vector.
void ProductPanels::ChooseColumns() {
  constexpr int64_t kVector = 16, kMostRest = 4;
  const bool loops_fill = !runs_along_k_ && kernel_.view().UpperBound(space_.columns()) > kWidth;
  columns_ = IsMultiple(space_.columns(), kColumns) || (computed_ && loops_fill) ? kColumns : kWidth;
  if (!loops_fill || !space_.IsOfShortFloats() || !space_.columns().is_constant() ||
      space_.columns().constant() > kColumns)
    return;
  const int64_t rest = space_.columns().constant() % kVector;
  if (rest < 1 || rest > kMostRest) return;
  rest_ = rest;
  columns_ = Covered() > kWidth ? kColumns : kWidth;
}

kir::ExprRef ProductPanels::First(int64_t f) const {
  return f == 0 ? kb::Ref("n0") : kb::Ref("n0") + static_cast<double>(f);
}

kir::ExprRef ProductPanels::Live(int64_t f) const {
  if (rest_ > 0) return kb::Int(std::min(kWidth, Covered() - f));
  if (AlwaysLive(f)) return codegen::Live(space_.columns(), First(f), kWidth);
  return kb::Min(kb::FromExtent(space_.columns()) - First(f), kb::Int(kWidth));
}

kir::ExprRef ProductPanels::Words() const {
  const kir::ExprRef depth = depth_.Count();
  return InWords() ? (depth + static_cast<double>(together_ - 1)) / kb::Int(together_) : depth;
}

kir::StmtRef ProductPanels::Multiply(std::string tile, kir::Slice rows, int64_t f) {
  const char* const bytes = IsUnsigned(space_.dtype(0)) ? "mma_u8_quads" : "mma_i8_quads";
  const char* const floats = InWords() ? "mma_bf16_pairs" : space_.IsOfDoubles() ? "mma_f64" : "mma_f32";
  std::vector<std::pair<std::string, kir::ExprRef>> attributes;
  if (space_.IsOfBytes()) {
    const bool has_sign = !IsUnsigned(space_.dtype(1));
    if (Turned()) attributes.emplace_back("add", kb::Int(has_sign ? -128 : 128));
    if (has_sign != Turned()) attributes.emplace_back("signed", kb::Int(1));
  }
  return kernel_.Of(kb::CallTile(space_.IsOfBytes() ? bytes : floats, {std::move(tile)}, {std::move(rows), Panel(f)},
                                 std::move(attributes)));
}

// One behind the other where they lie in memory.
kir::Slice ProductPanels::Panel(int64_t f) const {
  const kir::SliceDim columns = kb::Range(kb::Int(0), Live(f));
  if (!space_.in_panels()) return kb::SliceOf(Name(f), {columns, kb::Range(kb::Int(0), Words())});
  const auto each = static_cast<double>(together_), words = static_cast<double>(space_.k().constant() / together_);
  const kir::ExprRef first = First(f) / static_cast<double>(kWidth) * words + depth_.First() / each;
  return kernel_.Rectangle(1, columns, kb::Range(first, Words()));
}

kir::StmtRef ProductPanels::Alloc(int64_t f) const {
  const Extent depth = depth_.Most(), words = InWords() ? Extent(CeilDiv(depth.constant(), together_)) : depth;
  return kb::Alloc(Name(f), {PanelType(), {Extent(kWidth), words}, kir::Layout::kKn32});
}

kir::StmtRef ProductPanels::AllocRows() const {
  return kb::Alloc("pw", {ElementType(), {Extent(kWidth), depth_.Most()}, kir::Layout::kRow});
}

// Words of bytes take the other sign once they are in place.
kir::Block ProductPanels::Pack(int64_t f, kir::Slice rows) {
  const kir::ExprRef j = kb::Ref("pj"), k = kb::Ref("pk"), zero = kb::Int(0);
  const kir::SliceDim words = InWords() ? kb::All() : kb::Range(zero, depth_.Count());
  kir::Block block = {
      kernel_.Of(kb::Pack(kb::SliceOf(Name(f), {kb::Range(zero, kb::Int(kWidth)), words}), std::move(rows)))};
  if (!Turned()) return block;
  const kir::ExprRef turned = kb::Call(kir::Op::kXor, {kb::At(Name(f), DType::kU32, {j, k}), TopBits()});
  block.push_back(kb::For("pk", zero, Words(), {kb::Vec("pj", zero, Live(f), {kb::Store(Name(f), {j, k}, turned)})}));
  return block;
}

kir::Block ProductPanels::Fill() {
  if (space_.in_panels()) return {};
  return computed_ ? FillComputed() : FillFromMemory();
}

kir::Block ProductPanels::FillRest() {
  const kir::ExprRef j = kb::Ref("rj"), column = j + static_cast<double>(Covered());
  const DepthBlocks::Elements inside = depth_.Inside();
  const kir::ExprRef element = computed_ ? computed_->Element(column, inside.at) : kernel_.Right(inside.at[0], column);
  return {kb::Alloc("pr", {ElementType(), {Extent(rest_), depth_.Most()}, kir::Layout::kRow}),
          kb::For("rj", kb::Int(0), kb::Int(rest_),
                  inside.Around(0, inside.loops.size(),
                                {kb::Store("pr", {j, inside.k}, kb::CastTo(ElementType(), element))}))};
}

kir::ExprRef ProductPanels::Piece(const kir::ExprRef& element) const {
  // Floats that were bf16 have nothing in their low halves.
  if (!space_.IsOfBytes()) return kb::Call(kir::Op::kShr, {kb::BitsTo(DType::kU32, element), kb::Int(16, DType::kU32)});
  return kb::Call(kir::Op::kAnd, {kb::CastTo(DType::kU32, element), kb::Int(255, DType::kU32)});
}

kir::Block ProductPanels::FillWords(const Element& element) const {
  const kir::ExprRef j = kb::Ref("pj"), k = kb::Ref("pk"), zero = kb::Int(0), depth = depth_.Count(),
                     each = kb::Int(together_), whole = depth / each * each;
  const int64_t bits = 32 / together_;
  kir::Block words, none, last;
  for (int64_t f = 0; f < columns_; f += kWidth) {
    const kir::ExprRef live = Live(f), column = f == 0 ? j : j + static_cast<double>(f);
    const kir::Index at = {j, k / each};
    const auto store = [&](const kir::ExprRef& word) {
      return kb::Vec("pj", zero, live, {kb::Store(Name(f), at, word)});
    };
    kir::ExprRef word = Piece(element(k, column));
    for (int64_t i = 1; i < together_; ++i) {
      const kir::ExprRef piece = Piece(element(k + static_cast<double>(i), column));
      word = kb::Call(kir::Op::kOr, {word, kb::Call(kir::Op::kShl, {piece, kb::Int(bits * i, DType::kU32)})});
    }
    words.push_back(store(Turned() ? kb::Call(kir::Op::kXor, {word, TopBits()}) : word));
    none.push_back(store(Turned() ? TopBits() : kb::Int(0, DType::kU32)));
    const kir::ExprRef place = kb::CastTo(DType::kU32, k % each * kb::Int(bits));
    last.push_back(store(kb::Call(kir::Op::kXor, {kb::At(Name(f), DType::kU32, at),
                                                  kb::Call(kir::Op::kShl, {Piece(element(k, column)), place})})));
  }
  kir::Block block = {kb::For("pk", zero, depth - static_cast<double>(together_ - 1), std::move(words), together_)};
  if (depth_.AreMultiplesOf(together_)) return block;
  block.push_back(kb::For("pk", whole, depth, std::move(none), together_));
  block.push_back(kb::For("pk", whole, depth, std::move(last)));
  return block;
}

// Where k is contiguous, rows are transposed by a pack; where columns are, all panels take their part
// of a row of k together.
kir::Block ProductPanels::FillFromMemory() {
  const kir::ExprRef j = kb::Ref("pj"), k = kb::Ref("pk"), zero = kb::Int(0), k0 = depth_.First(),
                     depth = depth_.Count();
  kir::Block block, row;
  for (int64_t f = 0; f < columns_; f += kWidth) {
    const kir::ExprRef n = First(f), live = Live(f);
    block.push_back(Alloc(f));
    if (runs_along_k_) {
      Append(block, Pack(f, kernel_.Rectangle(1, kb::Range(n, kb::Int(kWidth)), kb::Range(k0, depth))));
    } else if (!InWords()) {
      row.push_back(kb::Vec("pj", zero, live,
                            {kb::Store(Name(f), {j, k}, kb::CastTo(PanelType(), kernel_.Right(k0 + k, n + j)))}));
    }
  }
  if (!row.empty()) block.push_back(kb::For("pk", zero, depth, std::move(row)));
  if (!InWords() || runs_along_k_) return block;
  Append(block, FillWords([&](const kir::ExprRef& at, const kir::ExprRef& column) {
           return kernel_.Right(k0 + at, kb::Ref("n0") + column);
         }));
  return block;
}

// As rows of columns where those run in memory, or rows of k.
kir::Block ProductPanels::FillComputed() {
  kir::Block block;
  for (int64_t f = 0; f < columns_; f += kWidth) block.push_back(Alloc(f));
  if (runs_along_k_) {
    block.push_back(AllocRows());
  } else if (InWords()) {
    block.push_back(kb::Alloc("pb", {ElementType(), {depth_.Most(), Extent(columns_)}, kir::Layout::kRow}));
  }
  for (int64_t f = 0; f < columns_; f += kWidth) Append(block, runs_along_k_ ? FillAlongK(f) : FillAlongColumns(f));
  if (!InWords() || runs_along_k_) return block;
  Append(block, FillWords([&](const kir::ExprRef& at, const kir::ExprRef& column) {
           return Factor(kb::At("pb", ElementType(), {at, column}), SumType());
         }));
  return block;
}

// The first axis of k, the channels of an image, is the innermost loop: what a window makes of the others, and where it
// reaches outside, is the same for all of it. Words are made of whole rows of columns.
kir::Block ProductPanels::FillAlongColumns(int64_t f) {
  const kir::ExprRef n = First(f), c = kb::Ref("c");
  const DepthBlocks::Elements inside = depth_.Inside();
  return computed_->Across(n, Live(f), [&](const ComputedSide::Segment& segment) -> kir::Block {
    const kir::ExprRef element = computed_->Element(segment, c, inside.at);
    const kir::StmtRef store =
        InWords() ? kb::Store("pb", {inside.k, segment.start + c - kb::Ref("n0")}, kb::CastTo(ElementType(), element))
                  : kb::Store(Name(f), {segment.start + c - n, inside.k}, kb::CastTo(PanelType(), element));
    return inside.Around(1, inside.loops.size(),
                         {kb::Vec("c", segment.low, segment.high, inside.Around(0, 1, {store}))});
  });
}

kir::Block ProductPanels::FillAlongK(int64_t f) {
  const kir::ExprRef n = First(f), j = kb::Ref("pj"), zero = kb::Int(0), live = Live(f);
  const DepthBlocks::Elements inside = depth_.Inside();
  const DepthBlocks::Elements::Loop& last = inside.loops.back();
  const kir::ExprRef element = kb::CastTo(ElementType(), computed_->Element(n + j, inside.at));
  kir::Block block = {
      kb::For("pj", zero, live,
              inside.Around(0, inside.loops.size() - 1,
                            {kb::Vec(last.name, last.low, last.high, {kb::Store("pw", {j, inside.k}, element)})}))};
  Append(block, Pack(f, kb::SliceOf("pw", {kb::Range(zero, live), kb::Range(zero, depth_.Count())})));
  return block;
}

}  // namespace quern::codegen
