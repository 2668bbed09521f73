#include "kir/block_products.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kir/layout.h"

namespace quern::kir {
namespace {

std::vector<DType> Weights() {
  std::vector<DType> weights;
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) {
    if (FormatOf(static_cast<DType>(d)).is_weight) weights.push_back(static_cast<DType>(d));
  }
  return weights;
}
bool HasTiles(DType weight) { return FormatOf(weight).activation.has_value(); }

// Tables point to their names for as long as the process.
const char* Kept(std::string text) { return (new std::string(std::move(text)))->c_str(); }

// The symbols of a format's tiles; the ops are called what follows "qk_".
struct Symbols {
  const char *dot, *dot_x, *mma, *panel16, *kn32, *unpack;
};
const Symbols& SymbolsOf(DType weight) {
  static const std::vector<Symbols>* const all = [] {
    auto* symbols = new std::vector<Symbols>(kDTypeCount);
    for (const DType dtype : Weights()) {
      const std::string format(Name(dtype));
      (*symbols)[static_cast<int>(dtype)] = {
          .dot = Kept(absl::StrCat("qk_dot_", format)),
          .dot_x = Kept(absl::StrCat("qk_dot_", format, "_x")),
          .mma = Kept(absl::StrCat("qk_mma_", format)),
          .panel16 = Kept(absl::StrCat("qk_pack_", format, "_panel16")),
          .kn32 = Kept(absl::StrCat("qk_pack_", format, "_kn32")),
          .unpack = Kept(absl::StrCat("qk_unpack_", format)),
      };
    }
    return symbols;
  }();
  QUERN_CHECK(IsBlock(weight) && FormatOf(weight).is_weight);
  return (*all)[static_cast<int>(weight)];
}

// Without a tile lanes of neighbours are decoded together.
constexpr const char* kDotExact = R"(
    for r in 0..m {
      for j in 0..n {
        y[r, j] = y[r, j] + (sum accs 4 vec i in 0..k { contract(x[r, i] * decode(w, j, i)) })
      }
    }
  )";
constexpr const char* kDot = R"(
    for r in 0..m {
      for j in 0..n {
        y[r, j] = y[r, j] + (sum for i in 0..k { decode(x, r, i) * decode(w, j, i) })
      }
    }
  )";
constexpr const char* kMma = R"(
    for r in 0..m {
      for j in 0..n {
        c[r, j] = c[r, j] + (sum for i in 0..k { decode(x, r, i) * decode(w, j, i) })
      }
    }
  )";

// GEMV rows: up to 64 rows of a weight against one or a few rows of activations, quantised or (kF32) exact. w may be
// prefetched `ahead` bytes past its end, never loaded there.
const TileOp* Dot(DType weight, DType activation) {
  const bool exact = activation == DType::kF32;
  return new TileOp{
      .name = DotName(weight, activation),
      .doc = exact ? "y += x w^T for rows of blocks and exact f32 activations" : "y += x w^T for rows of blocks",
      .tiles = {{"y", DType::kF32, {"m", "n"}}},
      .operands = {{"w", weight, {"n", "k"}, Layout::kBlocks},
                   {"x", activation, {"m", "k"}, exact ? Layout::kRow : Layout::kPlanar}},
      .sizes = {"m", "n", "k"},
      .attributes = {{"ahead", DType::kI64, 0}},
      .meaning = !exact             ? kDot
                 : HasTiles(weight) ? kDotExact
                                    : kDotExact,
      .rtol = 1e-5,
      .symbol = exact ? SymbolsOf(weight).dot_x : SymbolsOf(weight).dot,
      .work = exact ? FloatProduct : IntegerProduct,
  };
}

// GEMM micro-tile: a few rows of quantised activations against one panel of at most 16 rows of a weight.
const TileOp* Mma(DType weight, DType activation) {
  return new TileOp{
      .name = MmaName(weight),
      .doc = "c += x w^T for one panel of 16 rows",
      .tiles = {{"c", DType::kF32, {"m", "n"}}},
      .operands = {{"x", activation, {"m", "k"}, Layout::kPlanar}, {"w", weight, {"n", "k"}, Layout::kPanel16}},
      .sizes = {"m", "n", "k"},
      .attributes = {},
      .meaning = kMma,
      .rtol = 1e-5,
      .symbol = SymbolsOf(weight).mma,
      .work = IntegerProduct,
  };
}

}  // namespace

const char* DotName(DType weight, DType activation) {
  return (activation == DType::kF32 ? SymbolsOf(weight).dot_x : SymbolsOf(weight).dot) + 3;
}

const char* MmaName(DType weight) { return SymbolsOf(weight).mma + 3; }

std::vector<const TileOp*> BlockProducts() {
  std::vector<const TileOp*> ops;
  for (const DType weight : Weights()) {
    ops.push_back(Dot(weight, DType::kF32));
    if (!HasTiles(weight)) continue;
    const DType activation = *FormatOf(weight).activation;
    ops.push_back(Dot(weight, activation));
    ops.push_back(Mma(weight, activation));
  }
  return ops;
}

std::vector<PackRow> BlockPacks() {
  std::vector<PackRow> packs;
  for (const DType weight : Weights()) {
    const Symbols& symbols = SymbolsOf(weight);
    auto add = [&](DType to, Layout layout, const char* symbol, const char* doc) {
      packs.push_back({weight, Layout::kBlocks, to, layout, symbol, doc});
    };
    if (HasTiles(weight)) {
      add(weight, Layout::kPanel16, symbols.panel16,
          "16 rows of blocks to a panel for 4-way dot products; missing rows are zero");
    }
    add(DType::kF32, Layout::kKn32, symbols.kn32, kTransposeDoc);
    add(DType::kF32, Layout::kRow, symbols.unpack, "rows of blocks decoded to f32 rows");
  }
  return packs;
}

}  // namespace quern::kir
