#include "kir/cost_traffic.h"

#include <algorithm>
#include <numeric>

#include "base/dtype.h"
#include "kir/layout.h"
#include "kir/region.h"

namespace quern::kir {
namespace {

// Elements that memory gives at once.
int64_t LineElements(const BufferType& type) { return 64 / RowBytes(type.dtype, 1); }

}  // namespace

bool Traffic::Note(const void* node, Side side, std::span<const Span> spans, std::span<const int64_t> dims,
                   std::span<const Frame> frames) {
  Site& site = sites_[node];
  if (site.dims.empty()) site = {side, std::vector<Site::Dim>(spans.size()), {}};
  uint64_t data_loops = 0;
  bool data = false;
  for (size_t d = 0; d < spans.size(); ++d) {
    const CostValue& start = spans[d].start;
    Site::Dim& dim = site.dims[d];
    int64_t low = start.value, high = start.value;
    if (!start.known || !start.monotone) low = start.low, high = start.high;
    const int64_t first = std::max<int64_t>(low, 0);
    dim.step = std::gcd(dim.step, spans[d].extent > 1 || low < 0 ? 1 : start.step);
    if (dim.low <= dim.high) dim.step = std::gcd(dim.step, first - dim.low);
    dim.low = std::min(dim.low, first);
    dim.high = std::max(dim.high, std::min(std::min(high, kFarIndex - spans[d].extent) + spans[d].extent, dims[d]));
    if (!start.known) dim.data = data = true, data_loops |= start.loops;
  }
  if (!data) return false;
  std::vector<int64_t> trips;
  int64_t rows = 1;
  for (size_t f = 0; f < frames.size(); ++f) {
    if ((data_loops >> f & 1) == 0) continue;
    if (frames[f].each)
      trips.push_back(frames[f].trip);
    else if (__builtin_mul_overflow(rows, frames[f].trips, &rows))
      rows = kFarIndex;
  }
  int64_t& most = site.data_rows[trips];
  most = std::max(most, rows);
  return true;
}

// The step that the indices of all accesses share, by dimension; of the last 1 where every line of memory is read.
std::vector<int64_t> Traffic::Steps(Side side, const BufferType& type, size_t rank) const {
  std::vector<int64_t> steps(rank, 0);
  const Site* first = nullptr;
  for (const auto& [node, site] : sites_) {
    if (site.side != side) continue;
    if (first == nullptr) first = &site;
    for (size_t d = 0; d < rank; ++d) {
      const Site::Dim& dim = site.dims[d];
      steps[d] = dim.data ? 1 : std::gcd(std::gcd(steps[d], dim.step), dim.low - first->dims[d].low);
    }
  }
  for (int64_t& step : steps) step = std::max<int64_t>(step, 1);
  if (rank > 0 && (IsBlock(type.dtype) || steps.back() < LineElements(type))) steps.back() = 1;
  return steps;
}

int64_t Traffic::Bytes(Side side, const BufferType& type, std::span<const int64_t> dims) const {
  int64_t all = 1;
  for (const int64_t dim : dims) all *= dim;
  if (all == 0) return 0;
  const std::vector<int64_t> steps = Steps(side, type, dims.size());
  std::vector<Box> boxes;
  int64_t gathered = 0;
  for (const auto& [node, site] : sites_) {
    if (site.side != side) continue;
    Box box;
    int64_t fixed = 1, most = 1;
    bool data = false;
    for (size_t d = 0; d < site.dims.size(); ++d) {
      IndexRange range{site.dims[d].low, site.dims[d].high};
      if (d + 1 == site.dims.size() && IsBlock(type.dtype)) {  // blocks are read whole
        const int64_t block = Row(type.dtype).block_elements;
        range = {range.low / block * block, std::min((range.high + block - 1) / block * block, dims[d])};
      }
      range = {range.low / steps[d], range.low / steps[d] + (range.size() + steps[d] - 1) / steps[d]};
      (site.dims[d].data ? most : fixed) *= range.size();
      data = data || site.dims[d].data;
      box.push_back(range);
    }
    if (!data) {
      boxes.push_back(std::move(box));
      continue;
    }
    int64_t rows = 0;
    for (const auto& [trips, count] : site.data_rows) rows = std::min(rows + count, kFarIndex / 2);
    gathered = std::max(gathered, std::min(rows, most) * fixed);
  }
  int64_t elements = CoveredElements(boxes) + gathered;
  if (!steps.empty() && steps.back() > 1) elements *= LineElements(type);
  elements = std::min(elements, all);
  if (dims.empty()) return elements * RowBytes(type.dtype, 1);
  const int64_t k = dims.back(), of_panel = IsPanel(type.layout) ? dims.front() : 1;
  return static_cast<int64_t>(static_cast<__int128>(elements) * LayoutRowBytes(type.layout, type.dtype, k) / k /
                              of_panel);
}

}  // namespace quern::kir
