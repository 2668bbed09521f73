// Many rows of f32 by weights of f16 or bf16 where products of bf16 run on tile registers, and the product may take
// numbers as sums of bf16 (`as_bf16`):
//
//   x = x0 + x1      the upper 8 bits of x, and the next 8, rounded
//   w = w0 + w1      f16 has 11 bits, so this is all of it; of bf16 w1 is 0
//   x w ~ x0 w0 + x0 w1 + x1 w0
//
// The parts of x are a kernel of their own, once for all columns; those of weights are packed to a panel each:
//
//   xp[0, m, c], xp[1, m, c] = parts of x0[m, c]
//   ..
//   pack p2x = w1[n : +32, :]
//   for wk in 0..384 { vec wj in 0..32 { p2x[wj, wk], p2y[wj, wk] = parts of both in p2x[wj, wk] } }
//   mma_bf16_parts t += xp[0, m : +64, :], xp[1, m : +64, :], p2x, p2y
//
// Both parts have the sign of the number, and a second part that would be 0 is the least normal number instead. So what
// an infinity meets has the sign of the product everywhere, where 0 would make NaN of it; of other numbers tile
// registers take such a product for 0.
#include "absl/strings/str_cat.h"
#include "base/divide.h"
#include "codegen/loops.h"
#include "codegen/matmul_kernels.h"
#include "ir/product.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kLine = 32;            // bf16 of a line of memory
constexpr int64_t kRowsBytes = 1 << 20;  // of parts of rows that the second cache keeps beside panels
constexpr int64_t kLeastRows = 256;      // that a panel is packed for, where there are as many
constexpr DepthBlocks::Limits kDepth = {1536, 1024};
constexpr uint32_t kUpper = 0xffff0000, kSign = 0x80000000, kLeastNormal = 0x00800000;

struct Parts {
  kir::ExprRef first, second;
};

// Of an f32; both as f32 whose lower halves are 0, but for the second of more than 16 bits.
Parts PartsOf(const kir::ExprRef& value) {
  const auto bits = [&](uint32_t mask) {
    return kb::Call(kir::Op::kAnd, {kb::BitsTo(DType::kU32, value), kb::Int(mask, DType::kU32)});
  };
  const kir::ExprRef first = kb::BitsTo(DType::kF32, bits(kUpper)),
                     least = kb::BitsTo(DType::kF32,
                                        kb::Call(kir::Op::kOr, {bits(kSign), kb::Int(kLeastNormal, DType::kU32)}));
  // Of an infinity, which equals its first part, the difference would be NaN.
  return {first, kb::Select(kb::Call(kir::Op::kEq, {first, value}), least, value - first)};
}

std::string PartName(int root, int part) { return absl::StrCat("p", root, part == 0 ? "x" : "y"); }

}  // namespace

bool MatmulKernels::MayTakeParts() const {
  if (!view_.facts.bf16_tiles || plan_.windows || plan_.row->in_panels()) return false;
  return std::ranges::all_of(plan_.segments, [&](const MatmulSegment& segment) {
    return std::ranges::all_of(segment.roots, [&](int root) { return ir::MayBeAsBf16(view_.node(root)); });
  });
}

int64_t MatmulKernels::PartsOfWeights(int root) const { return RowOf(root).weight == DType::kF16 ? 2 : 1; }

DepthBlocks MatmulKernels::CutPartsDepth() const { return DepthBlocks({Extent(plan_.k)}, kDepth); }

int64_t MatmulKernels::MostPartRows() const {
  if (InDepthBlocks()) return kLeastRows;  // whose sums lie in scratch
  return std::max(kLeastRows, kRowsBytes / (2 * plan_.k * ScalarBytes(DType::kBF16)));
}

// Rows an odd number of lines apart: of those of a tile no two are in one set of the first cache.
Status MatmulKernels::LowerParts() {
  const std::vector<Extent> flat = plan_.Flat(Extent(plan_.k)), rows(flat.begin(), flat.end() - 1);
  const Extent padded((CeilDiv(plan_.k, kLine) | 1) * kLine);
  lowered_.temporaries.push_back({DType::kBF16, {Extent(2), plan_.rows, padded}, kir::Layout::kRow});
  KernelWriter writer = Writer("parts");
  FusedExpr expr(view_.graph);
  writer.ProvideInputs(expr);
  EmitGrid(view_, writer.kernel, rows, plan_.k, [&](const kir::Index& index, kir::Block& block) {
    const kir::ExprRef row = index[plan_.row_axis], c = kb::Ref("c");
    kir::Index at = index;
    at.push_back(c);
    const kir::ExprRef value = expr.Element(plan_.lhs, at);
    const Parts parts = PartsOf(kb::Ref("x", DType::kF32));
    const std::string to = writer.Temporary(0, lowered_.temporaries[0], true);
    block.push_back(
        kb::Vec("c", kb::Int(0), kb::Int(plan_.k),
                {kb::Let("x", value), kb::Store(to, {kb::Int(0), row, c}, kb::CastTo(DType::kBF16, parts.first)),
                 kb::Store(to, {kb::Int(1), row, c}, kb::CastTo(DType::kBF16, parts.second))}));
  });
  QUERN_ASSIGN(KernelUse use, writer.Finish());
  lowered_.kernels.push_back(std::move(use));
  return absl::OkStatus();
}

kir::Block MatmulKernels::AllocParts(const MatmulSegment& segment) const {
  const int64_t depth = InDepthBlocks() ? depth_->Most().constant() : plan_.k;
  kir::Block block;
  for (const int root : segment.roots) {
    for (int part = 0; part < PartsOfWeights(root); ++part)
      block.push_back(
          kb::Alloc(PartName(root, part),
                    {DType::kU32, {Extent(plan_.row->panel_rows), Extent(CeilDiv(depth, 2))}, kir::Layout::kKn32}));
  }
  return block;
}

kir::Slice MatmulKernels::PanelOfPart(int root, int part) const {
  const kir::ExprRef words = (CountOfK() + 1.0) / kb::Int(2);
  return kb::SliceOf(PartName(root, part), {kb::All(), kb::Range(kb::Int(0), words)});
}

// Weights of a panel of columns from n on, in the block of k.
kir::Block MatmulKernels::PackParts(KernelWriter& writer, int root, const kir::ExprRef& n) const {
  const kir::Slice words = PanelOfPart(root, 0);
  kir::Block block = {
      kb::Pack(words, Weights(writer, root, n, kb::Int(plan_.row->panel_rows), FirstOfK(), CountOfK()))};
  if (PartsOfWeights(root) > 1) block.push_back(SplitHalves(root, words.dims[1].extent));
  for (kir::StmtRef& stmt : block) stmt = kb::WithOrigin(stmt, writer.Origin(root));
  return block;
}

// Words of two f16 as packed: the first parts of both take their place, the second ones are stored beside.
kir::StmtRef MatmulKernels::SplitHalves(int root, const kir::ExprRef& words) const {
  const kir::ExprRef j = kb::Ref("wj"), k = kb::Ref("wk"), word = kb::Ref("w", DType::kU32);
  const kir::Index at = {j, k};
  const auto shifted = [](const kir::ExprRef& value) {
    return kb::Call(kir::Op::kShr, {value, kb::Int(16, DType::kU32)});
  };
  const auto number = [](const kir::ExprRef& half) {
    return kb::CastTo(DType::kF32, kb::BitsTo(DType::kF16, kb::CastTo(DType::kU16, half)));
  };
  const auto pair = [&](const kir::ExprRef& low, const kir::ExprRef& high) {
    return kb::Call(kir::Op::kOr, {shifted(kb::BitsTo(DType::kU32, low)), kb::BitsTo(DType::kU32, high)});
  };
  const Parts low = PartsOf(kb::Ref("low", DType::kF32)), high = PartsOf(kb::Ref("high", DType::kF32));
  kir::Block body = {kb::Let("w", kb::At(PartName(root, 0), DType::kU32, at)), kb::Let("low", number(word)),
                     kb::Let("high", number(shifted(word))),
                     kb::Store(PartName(root, 0), at, pair(low.first, high.first)),
                     kb::Store(PartName(root, 1), at, pair(low.second, high.second))};
  return kb::For("wk", kb::Int(0), words, {kb::Vec("wj", kb::Int(0), kb::Int(plan_.row->panel_rows), std::move(body))});
}

// The products of rows [m, m + rows), in the block of k.
kir::StmtRef MatmulKernels::MultiplyParts(KernelWriter& writer, int root, const kir::ExprRef& m,
                                          const kir::ExprRef& rows) {
  const std::string x = writer.Temporary(0, lowered_.temporaries[0], false);
  std::vector<kir::Slice> operands;
  for (int part = 0; part < 2; ++part)
    operands.push_back(
        kb::SliceOf(x, {kb::Point(kb::Int(part)), kb::Range(m, rows), kb::Range(FirstOfK(), CountOfK())}));
  for (int part = 0; part < PartsOfWeights(root); ++part) operands.push_back(PanelOfPart(root, part));
  return kb::WithOrigin(kb::CallTile("mma_bf16_parts", {TileName(root)}, std::move(operands)), writer.Origin(root));
}

}  // namespace quern::codegen
