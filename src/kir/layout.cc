#include "kir/layout.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"

namespace quern::kir {
namespace {

constexpr std::array<LayoutRow, 5> kRows = {{
    {Layout::kRow, "row"},
    {Layout::kBlocks, "blocks"},
    {Layout::kPlanar, "planar"},
    {Layout::kPanel16, "panel16"},
    {Layout::kKn32, "kn32"},
}};

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

const LayoutRow& Row(Layout layout) { return kRows[static_cast<size_t>(layout)]; }

std::optional<Layout> LayoutFromName(std::string_view name) {
  for (const LayoutRow& row : kRows) {
    if (name == row.name) return row.layout;
  }
  return std::nullopt;
}

bool LayoutAllows(Layout layout, DType dtype) {
  switch (layout) {
    case Layout::kRow: return !IsBlock(dtype);
    case Layout::kBlocks: return IsBlock(dtype);
    case Layout::kPlanar: return dtype == DType::kQ8_0 || dtype == DType::kQ8_K;
    case Layout::kPanel16: return IsBlock(dtype) && dtype != DType::kQ8_K;
    case Layout::kKn32: return dtype == DType::kF32;
  }
  QUERN_CHECK(false);
}

bool CanCopy(DType from, Layout from_layout, DType to, Layout to_layout) {
  if (to_layout != Layout::kRow || IsBlock(to)) return false;
  if (from_layout == Layout::kBlocks) return IsFloat(to);
  if (from_layout != Layout::kRow || IsBlock(from)) return false;
  return from == to || (IsFloat(from) && IsFloat(to));
}

int64_t LayoutRowBytes(Layout layout, DType dtype, int64_t k) {
  switch (layout) {
    case Layout::kRow:
    case Layout::kBlocks: return RowBytes(dtype, k);
    case Layout::kPlanar: return PlanarRowOf(dtype, k).row_bytes;
    case Layout::kPanel16: return Panel16Of(dtype, k).bytes;
    case Layout::kKn32: return k * 32 * 4;
  }
  QUERN_CHECK(false);
}

Extent LayoutBytes(Layout layout, DType dtype, const std::vector<Extent>& dims) {
  if (layout == Layout::kRow) {
    Extent bytes(ScalarBytes(dtype));
    for (const Extent& dim : dims) bytes = bytes * dim;
    return bytes;
  }
  // Every other layout has rows of a constant number of elements.
  QUERN_CHECK(!dims.empty() && dims.back().is_constant());
  Extent bytes(LayoutRowBytes(layout, dtype, dims.back().constant()));
  if (layout == Layout::kPanel16 || layout == Layout::kKn32) return bytes;
  for (size_t i = 0; i + 1 < dims.size(); ++i) bytes = bytes * dims[i];
  return bytes;
}

PlanarRow PlanarRowOf(DType dtype, int64_t k) {
  QUERN_CHECK(dtype == DType::kQ8_0 || dtype == DType::kQ8_K);
  const int64_t block = dtype == DType::kQ8_0 ? 32 : 256;
  const int64_t group = dtype == DType::kQ8_0 ? 32 : 16;
  PlanarRow row;
  row.scales = RoundUp(k, 64);
  row.sums = row.scales + RoundUp(k / block * 4, 64);
  row.wide_sums = row.sums + RoundUp(k / group * 2, 64);
  row.row_bytes = row.wide_sums + (dtype == DType::kQ8_K ? RoundUp(k / 32 * 2, 64) : 0);
  return row;
}

Panel16 Panel16Of(DType dtype, int64_t k) {
  Panel16 panel{};
  panel.scales = k * 16;
  panel.mins = panel.scales + k / PanelGroup(dtype) * 16 * 4;
  panel.supers = panel.mins + (HasMinimums(dtype) ? k / 256 * 256 : 0);
  panel.bytes = panel.supers + (HasMinimums(dtype) ? k / 256 * 64 : 0);
  if (HasMinimums(dtype)) panel.bytes = std::max(panel.bytes, 33 * k + k / 256 * 128);
  if (dtype == DType::kQ6_K) panel.bytes = std::max(panel.bytes, 32 * k + k / 256 * 64);
  return panel;
}

}  // namespace quern::kir
