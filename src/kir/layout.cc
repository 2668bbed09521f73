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
    case Layout::kRow: return !IsBlock(dtype) && !IsComplex(dtype);
    case Layout::kBlocks: return IsBlock(dtype);
    case Layout::kPlanar: return IsBlock(dtype) && FormatOf(dtype).sums > 0;
    case Layout::kPanel16: return IsBlock(dtype);
    case Layout::kKn32: return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kU32;
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
    case Layout::kKn32: return k * 32 * ScalarBytes(dtype);
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
  if (IsPanel(layout)) return bytes;
  for (size_t i = 0; i + 1 < dims.size(); ++i) bytes = bytes * dims[i];
  return bytes;
}

PlanarRow PlanarRowOf(DType dtype, int64_t k) {
  const BlockFormat& format = FormatOf(dtype);
  QUERN_CHECK(format.sums > 0);
  PlanarRow row;
  row.scales = RoundUp(k, 64);
  row.sums = row.scales + RoundUp(k / format.elements * 4, 64);
  row.wide_sums = row.sums + RoundUp(k / format.sums * 2, 64);
  row.row_bytes = row.wide_sums + (format.sums < 32 ? RoundUp(k / 32 * 2, 64) : 0);
  return row;
}

Panel16 Panel16Of(DType dtype, int64_t k) {
  const int64_t blocks = k / FormatOf(dtype).elements;
  Panel16 panel{};
  panel.scales = k * 16;
  panel.mins = panel.scales + k / PanelGroup(dtype) * 16 * 4;
  const int64_t mins = HasMinimums(dtype) ? k / PanelGroup(dtype) * 16 * 2 : 0;
  panel.supers = panel.mins + mins;
  panel.bytes = panel.supers + (HasMinimums(dtype) || HasAdded(dtype) ? blocks * 64 : 0);
  if (FormatOf(dtype).activation == DType::kQ8_K) {  // for two bytes of each code
    panel.bytes = std::max(panel.bytes, 32 * k + mins + blocks * (HasMinimums(dtype) ? 128 : 64));
  }
  return panel;
}

}  // namespace quern::kir
