#include "kir/block_products.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "kir/layout.h"

namespace quern::kir {
namespace {

std::vector<DType> Weights() {
  std::vector<DType> weights;
  for (int d = kScalarDTypeCount; d < kDTypeCount; ++d) weights.push_back(static_cast<DType>(d));
  return weights;
}
bool HasTiles(DType weight) { return FormatOf(weight).activation.has_value(); }

// Tables point to their names for as long as the process.
const char* Symbol(const char* prefix, DType weight, const char* suffix = "") {
  return strdup(absl::StrCat(prefix, FormatOf(weight).name, suffix).c_str());
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

constexpr TileAttribute kAhead = {"ahead", DType::kI64, 0};

// GEMV rows: up to 64 rows of a weight against one or a few rows of activations, quantised or (kF32) exact. w may be
// prefetched `ahead` bytes past its end, never loaded there. many = 1: a row has the same bits however many
// there are.
const TileOp* Dot(DType weight, DType activation) {
  const bool exact = activation == DType::kF32;
  const char* const symbol = Symbol("qk_dot_", weight, exact ? "_x" : "");
  return new TileOp{
      .name = symbol + 3,
      .doc = exact ? "y += x w^T for rows of blocks and exact f32 activations" : "y += x w^T for rows of blocks",
      .tiles = {{"y", DType::kF32, {"m", "n"}}},
      .operands = {{"w", weight, {"n", "k"}, Layout::kBlocks},
                   {"x", activation, {"m", "k"}, exact ? Layout::kRow : Layout::kPlanar}},
      .sizes = {"m", "n", "k"},
      .attributes =
          exact ? std::vector<TileAttribute>{kAhead} : std::vector<TileAttribute>{kAhead, {"many", DType::kI64, 0}},
      .meaning = exact ? kDotExact : kDot,
      .rtol = 1e-5,
      .symbol = symbol,
      .work = exact ? FloatProduct : IntegerProduct,
  };
}

// GEMM micro-tile: a few rows of quantised activations against one panel of at most 16 rows of a weight.
const TileOp* Mma(DType weight, DType activation) {
  const char* const symbol = Symbol("qk_mma_", weight);
  return new TileOp{
      .name = symbol + 3,
      .doc = "c += x w^T for one panel of 16 rows",
      .tiles = {{"y", DType::kF32, {"m", "n"}}},
      .operands = {{"x", activation, {"m", "k"}, Layout::kPlanar}, {"w", weight, {"n", "k"}, Layout::kPanel16}},
      .sizes = {"m", "n", "k"},
      .attributes = {},
      .meaning = kDot,
      .rtol = 1e-5,
      .symbol = symbol,
      .work = IntegerProduct,
  };
}

}  // namespace

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
  constexpr const char* kPanelDoc = "16 rows of blocks to a panel for 4-way dot products; missing rows are zero";
  std::vector<PackRow> packs;
  for (const DType weight : Weights()) {
    packs.push_back({weight, Layout::kBlocks, DType::kF32, Layout::kRow, Symbol("qk_unpack_", weight),
                     "rows of blocks decoded to f32 rows"});
    packs.push_back(
        {weight, Layout::kBlocks, DType::kF32, Layout::kKn32, Symbol("qk_pack_", weight, "_kn32"), kTransposeDoc});
    if (HasTiles(weight)) {
      packs.push_back(
          {weight, Layout::kBlocks, weight, Layout::kPanel16, Symbol("qk_pack_", weight, "_panel16"), kPanelDoc});
    }
  }
  return packs;
}

}  // namespace quern::kir
