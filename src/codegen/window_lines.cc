#include "codegen/window_lines.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/spelled_out.h"
#include "ir/window.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

constexpr int64_t kScratchBytes = 192 << 10;  // of copied lines, which stay in the second cache beside a panel
constexpr int64_t kMostBytes = 512 << 10;     // where fewer are less than kLeastRows
constexpr int64_t kMostRows = 400;            // of a block
constexpr int64_t kLeastRows = 64;      // for which lines are copied and weights are read, where there are as many
constexpr int64_t kRowElements = 16;    // of a row in scratch that others run on into: fewer are copied one by one
constexpr int64_t kLeastElements = 48;  // of a run: sums are loaded and stored once for each
// Places of a line where sums of six rows fill the registers: of seven or eight, two or three are left, too few sums to
// do anything but wait for each other.
constexpr int64_t kLeastPlaces = 9;
constexpr int64_t kSaves = 2;  // times that what is copied is less than rows of windows are

int64_t Product(const std::vector<int64_t>& of) {
  return std::accumulate(of.begin(), of.end(), int64_t{1}, std::multiplies<>());
}

// The most of `all` to go by, at most `most`, so that all steps are of one length or nearly.
int64_t EvenStep(int64_t all, int64_t most) {
  most = std::max<int64_t>(1, std::min(all, most));
  for (int64_t step = most; step * 3 >= most * 2; --step) {
    if (all % step == 0) return step;
  }
  return EvenPart(all, most);
}

std::vector<int64_t> Constants(const std::vector<Extent>& extents) {
  std::vector<int64_t> constants;
  for (const Extent& extent : extents) constants.push_back(extent.is_constant() ? extent.constant() : -1);
  return constants;
}

std::vector<int64_t> WithoutOnes(std::vector<int64_t> extents) {
  std::erase(extents, 1);
  return extents;
}

// The Window whose kernel and places are the columns and rows of `lhs`: behind it a Transpose that has them change
// places, and a Reshape; casts anywhere. -1: none.
int WindowBehind(const RegionView& view, ir::Value lhs) {
  int n = lhs.node;
  const auto skip_casts = [&] {
    while (view.Has(n) && ir::IsCast(view.node(n))) n = view.node(n).inputs[0].node;
  };
  skip_casts();
  if (!view.Has(n) || !ir::IsReshape(view.graph, view.node(n))) return -1;
  n = view.node(n).inputs[0].node;
  skip_casts();
  const std::vector<int64_t>* const turned = view.Has(n) ? ir::PermutationOf(view.node(n)) : nullptr;
  if (turned == nullptr) return -1;
  const std::vector<int64_t>& perm = *turned;
  n = view.node(n).inputs[0].node;
  skip_casts();
  if (!view.Has(n) || !ir::IsWindow(view.node(n))) return -1;
  const auto parts = static_cast<int64_t>(view.node(n).attributes.Ints("kernel").size()),
             batch = static_cast<int64_t>(perm.size()) - 2 * parts;
  for (int64_t d = 0; d < batch + 2 * parts; ++d) {
    const int64_t from = d < batch ? d : d < batch + parts ? d + parts : d - parts;
    if (perm[d] != from) return -1;
  }
  return n;
}

}  // namespace

std::optional<WindowLines> WindowLines::Of(const RegionView& view, const MatmulPlan::Tiles& plan) {
  if (!plan.windows || !plan.row->in_panels()) return std::nullopt;
  const int window = WindowBehind(view, plan.lhs);
  WindowLines lines;
  if (window < 0 || !lines.Measure(view.graph, view.node(window))) return std::nullopt;
  // The axes of the left side, which ComputedSide goes by.
  const auto extents = [&](size_t first, size_t end) {
    std::vector<Extent> of;
    for (size_t d = first; d < end; ++d) {
      for (const int axis : plan.windows->Find(plan.lhs)->dims[d]) of.push_back(plan.windows->extents()[axis]);
    }
    return Constants(of);
  };
  const size_t rank = plan.windows->Find(plan.lhs)->dims.size();
  std::vector<int64_t> across = lines.outer_, k = lines.planes_;
  across.insert(across.end(), {lines.lines_, lines.places_});
  k.insert(k.end(), {lines.high_, lines.run_});
  if (extents(0, rank - 1) != WithoutOnes(across) || extents(rank - 1, rank) != WithoutOnes(k)) return std::nullopt;
  if (!lines.Choose(view)) return std::nullopt;
  return lines;
}

bool WindowLines::Measure(const ir::Graph& graph, const ir::Node& node) {
  const std::vector<int64_t>& kernel = node.attributes.Ints("kernel");
  const ir::Window window = ir::WindowOf(node.attributes, kernel);
  const size_t n = kernel.size(), last = n - 1;
  std::vector<int64_t> dims = Constants(node.results[0].dims);
  if (std::ranges::any_of(dims, [](int64_t extent) { return extent < 1; })) return false;
  dims.erase(dims.end() - static_cast<int64_t>(2 * n), dims.end() - static_cast<int64_t>(n));
  const std::vector<int64_t> image = Constants(graph.type(node.inputs[0]).dims);
  const size_t batch = dims.size() - n;
  // Padding that is not 0 is a factor like others, and so is an image whose end is not known.
  const bool of_zeros = node.attributes.Float("value") == 0;
  const auto padded = [&](size_t d) -> std::optional<PaddedAxis> {
    const int64_t end = (dims[batch + d] - 1) * window.strides[d] + window.Span(d) - window.low[d];
    if (!of_zeros || image[batch + d] < 1 || (window.low[d] == 0 && end <= image[batch + d])) return std::nullopt;
    return PaddedAxis{window.strides[d], window.dilations[d], window.low[d], image[batch + d]};
  };
  if (n > 1) padded_lines_ = padded(n - 2);
  for (size_t d = 0; d + 2 < n; ++d) {
    if (kernel[d] == 1) continue;
    padded_planes_.push_back(padded(d));
    const auto before = dims.begin() + static_cast<int64_t>(batch + d);
    const auto ones = std::count(dims.begin(), before, 1);
    plane_places_.push_back(*before == 1 ? -1 : static_cast<int>(before - dims.begin() - ones));
  }
  places_ = dims.back();
  dims.pop_back();
  if (window.dilations[last] != 1) return false;
  run_ = kernel[last], step_ = window.strides[last];
  if (n > 1) {
    lines_ = dims.back();
    dims.pop_back();
    high_ = kernel[n - 2], stride_ = window.strides[n - 2], dilation_ = window.dilations[n - 2];
    planes_ = WithoutOnes({kernel.begin(), kernel.end() - 2});
  }
  outer_ = WithoutOnes(std::move(dims));
  if (lines_ == 1 || high_ == 1) stride_ = dilation_ = 1;  // of lines that are held no other lies between
  // A line of the image is a line of the results at the first line of the kernel, or a line of the kernel at the first
  // of the results.
  return places_ > 1 && (dilation_ == 1 || (stride_ == 1 && lines_ > 1));
}

bool WindowLines::Choose(const RegionView& view) {
  row_ = step_ >= kRowElements && step_ < run_ ? step_ : run_;
  if (run_ < kLeastElements || high_ * run_ < kSaves * stride_ * row_) return false;
  // Tiles end with each line.
  const int64_t rows = view.facts.gemm_rows;
  const int64_t least_places = view.facts.vector_registers < 32 ? kLeastPlaces : rows / 2;
  if (places_ < least_places) return false;
  places_of_block_ = EvenStep(places_, kMostRows);
  while (places_of_block_ > rows && BytesHeld(1, places_of_block_) > kScratchBytes)
    places_of_block_ = EvenStep(places_, places_of_block_ - 1);
  const int64_t least = std::min(kLeastRows, lines_ * places_);
  lines_of_block_ = EvenStep(lines_, kMostRows / places_of_block_);
  while (lines_of_block_ > 1 && BytesHeld(lines_of_block_, places_of_block_) > kScratchBytes) {
    const int64_t fewer = EvenStep(lines_, lines_of_block_ - 1);
    if (fewer * places_of_block_ < least && BytesHeld(lines_of_block_, places_of_block_) <= kMostBytes) break;
    lines_of_block_ = fewer;
  }
  if (lines_of_block_ * places_of_block_ < least || BytesHeld(lines_of_block_, places_of_block_) > kMostBytes)
    return false;
  return true;
}

int64_t WindowLines::BytesHeld(int64_t lines, int64_t places) const {
  return Product(planes_) * LinesHeld(lines) * PlacesHeld(places) * row_ * ScalarBytes(DType::kF32);
}

int64_t WindowLines::Blocks() const {
  const int64_t blocks = Product(outer_) * CeilDiv(lines_, lines_of_block_);
  return LoopsOverPlaces() ? blocks : blocks * CeilDiv(places_, places_of_block_);
}

int64_t WindowLines::ImageElements() const { return Product(outer_) * lines_ * stride_ * places_ * step_; }

bool WindowLines::CutFurther() {
  const int64_t fewer = EvenStep(lines_, lines_of_block_ - 1);
  if (fewer >= lines_of_block_ || fewer * places_of_block_ < kLeastRows) return false;
  lines_of_block_ = fewer;
  return true;
}

// That parts of lines do not meet is plain only where there is one line.
bool WindowLines::LoopsOverPlaces() const { return places_of_block_ < places_ && (!outer_.empty() || lines_ > 1); }

std::vector<kir::GridDim> WindowLines::Grid() const {
  std::vector<kir::GridDim> grid;
  if (!outer_.empty()) grid.push_back({"o", kb::Int(0), kb::Int(Product(outer_)), 1});
  if (lines_of_block_ < lines_) grid.push_back({"q0", kb::Int(0), kb::Int(lines_), lines_of_block_});
  if (places_of_block_ < places_ && !LoopsOverPlaces())
    grid.push_back({"c0", kb::Int(0), kb::Int(places_), places_of_block_});
  return grid;
}

kir::Block WindowLines::InChunk(kir::Block body) const {
  if (!LoopsOverPlaces()) return body;
  return {kb::For("c0", kb::Int(0), kb::Int(places_), std::move(body), places_of_block_)};
}

namespace {

kir::ExprRef FirstOf(const char* name, int64_t step, int64_t all) { return step < all ? kb::Ref(name) : kb::Int(0); }
kir::ExprRef EndOf(const char* name, int64_t step, int64_t all) {
  if (step >= all) return kb::Int(all);
  const kir::ExprRef end = kb::Ref(name) + static_cast<double>(step);
  return all % step == 0 ? end : kb::Min(end, kb::Int(all));
}
std::string PlaneName(size_t d) { return absl::StrCat("d", d); }

// far / step, rounded up, where it is more than 0.
kir::ExprRef StepsTo(const kir::ExprRef& far, int64_t step) {
  const kir::ExprRef positive = kb::Max(kb::Int(0), far);
  return step == 1 ? positive : (positive + static_cast<double>(step - 1)) / static_cast<double>(step);
}

}  // namespace

kir::ExprRef WindowLines::FirstLine() const { return FirstOf("q0", lines_of_block_, lines_); }
kir::ExprRef WindowLines::FirstPlace() const { return FirstOf("c0", places_of_block_, places_); }
kir::ExprRef WindowLines::EndPlace() const { return EndOf("c0", places_of_block_, places_); }
kir::ExprRef WindowLines::EndLine() const { return EndOf("q0", lines_of_block_, lines_); }

std::pair<kir::ExprRef, kir::ExprRef> WindowLines::PaddedAxis::PartsAt(const kir::ExprRef& place) const {
  const kir::ExprRef far = kb::Int(low) - place * static_cast<double>(stride);
  return {StepsTo(far, dilation), StepsTo(far + static_cast<double>(image), dilation)};
}

std::pair<kir::ExprRef, kir::ExprRef> WindowLines::PaddedAxis::PlacesOf(const kir::ExprRef& part) const {
  const kir::ExprRef far = kb::Int(low) - part * static_cast<double>(dilation);
  return {StepsTo(far, stride), StepsTo(far + static_cast<double>(image), stride)};
}

kir::ExprRef WindowLines::FirstLineOfRun(bool of_all) const {
  if (!padded_lines_) return of_all ? kb::Int(0) : FirstLine();
  const kir::ExprRef first = padded_lines_->PlacesOf(kb::Ref("h")).first;
  return of_all || lines_of_block_ == lines_ ? first : kb::Max(FirstLine(), first);
}

kir::Index WindowLines::OuterIndex() const {
  kir::Index outer;
  kir::ExprRef rest = kb::Ref("o");
  for (size_t d = outer_.size(); d-- > 0;) {
    const auto extent = static_cast<double>(outer_[d]);
    outer.insert(outer.begin(), d == 0 ? rest : rest % extent);
    rest = rest / extent;
  }
  return outer;
}

kir::Block WindowLines::OverPlanes(kir::Block body) const {
  const kir::Index outer = OuterIndex();
  for (size_t d = planes_.size(); d-- > 0;) {
    kir::ExprRef first = kb::Int(0), end = kb::Int(planes_[d]);
    if (padded_planes_[d]) {
      const auto parts = padded_planes_[d]->PartsAt(plane_places_[d] < 0 ? kb::Int(0) : outer[plane_places_[d]]);
      first = parts.first, end = kb::Min(end, parts.second);
    }
    body = {kb::For(PlaneName(d), first, end, std::move(body))};
  }
  return body;
}

kir::ExprRef WindowLines::Plane() const {
  kir::ExprRef plane = kb::Int(0);
  for (size_t d = 0; d < planes_.size(); ++d) plane = plane * static_cast<double>(planes_[d]) + kb::Ref(PlaneName(d));
  return plane;
}

kir::ExprRef WindowLines::RowOf(const kir::ExprRef& line, const kir::ExprRef& place) const {
  return (Plane() * static_cast<double>(LinesHeld(lines_of_block_)) + line) *
             static_cast<double>(PlacesHeld(places_of_block_)) +
         place;
}

kir::Block WindowLines::Fill(ComputedSide& left) const {
  const kir::ExprRef r = kb::Ref("r"), p = kb::Ref("p"), e = kb::Ref("e"), q0 = FirstLine(), c0 = FirstPlace();
  const kir::ExprRef lines = (EndLine() - q0 - 1.0) * static_cast<double>(stride_) +
                             static_cast<double>((high_ - 1) * dilation_ + 1),
                     live = EndPlace() - c0;
  const bool runs = row_ == run_, by_line = stride_ == 1 && lines_ > 1;
  ComputedSide::Segment segment;
  segment.outer = OuterIndex();
  if (lines_ > 1) segment.outer.push_back(by_line ? q0 + r : q0);
  kir::Index at;
  for (size_t d = 0; d < planes_.size(); ++d) at.push_back(kb::Ref(PlaneName(d)));
  if (high_ > 1) at.push_back(by_line ? kb::Int(0) : r);
  const auto step = static_cast<double>(step_);
  at.push_back(runs ? e : p * step + e);
  // The last place of a line may have only a part of a row.
  const kir::ExprRef places = runs ? live : live + static_cast<double>(PlacesHeld(1) - 1);
  const kir::ExprRef end = runs || run_ % step_ == 0
                               ? kb::Int(row_)
                               : kb::Min(kb::Int(row_), (live - 1.0) * step + static_cast<double>(run_) - p * step);
  kir::Block fill = {kb::Vec("e", kb::Int(0), end,
                             {kb::Store("px", {RowOf(r, p), e}, left.Element(segment, runs ? c0 + p : c0, at))})};
  fill = OverPlanes({kb::For("r", kb::Int(0), lines, {kb::For("p", kb::Int(0), places, std::move(fill))})});
  const int64_t rows = Product(planes_) * LinesHeld(lines_of_block_) * PlacesHeld(places_of_block_);
  fill.insert(fill.begin(), kb::Alloc("px", {DType::kF32, {Extent(rows), Extent(row_)}, kir::Layout::kRow}));
  return fill;
}

int64_t WindowLines::TileRows() const { return EvenStep(places_of_block_, kLeastRows); }

int64_t WindowLines::TilesOfLine(int64_t places) const { return CeilDiv(places, TileRows()); }

kir::ExprRef WindowLines::Tile(bool of_all) const {
  const kir::ExprRef c = kb::Ref("c"), each = kb::Int(TileRows());
  const kir::ExprRef first = FirstLineOfRun(of_all);
  if (of_all) return (Line() - first) * static_cast<double>(TilesOfLine(places_)) + c / each;
  return (kb::Ref("q") - first) * static_cast<double>(TilesOfLine(places_of_block_)) + (c - FirstPlace()) / each;
}

kir::ExprRef WindowLines::TileCount(bool of_all) const {
  if (of_all) return kb::Int(Product(outer_) * lines_ * TilesOfLine(places_));
  return (EndLine() - FirstLine()) * static_cast<double>(TilesOfLine(places_of_block_));
}

kir::ExprRef WindowLines::RowInBlock() const {
  return LineInBlock() * static_cast<double>(places_of_block_) + (kb::Ref("c") - FirstPlace());
}

kir::ExprRef WindowLines::LineInBlock() const { return kb::Ref("q") - FirstLine(); }

// Of all lines of results the one that the loops are at.
kir::ExprRef WindowLines::Line() const {
  const kir::ExprRef q = kb::Ref("q");
  return outer_.empty() ? q : kb::Ref("o") * static_cast<double>(lines_) + q;
}

kir::Block WindowLines::Tiles(const std::function<kir::Block(const kir::ExprRef& row, const kir::ExprRef& rows)>& body,
                              bool in_runs) const {
  const kir::ExprRef c = kb::Ref("c");
  const kir::ExprRef rows = kb::Min(EndPlace() - c, kb::Int(TileRows()));
  kir::ExprRef end = EndLine();
  if (in_runs && padded_lines_) end = kb::Min(end, padded_lines_->PlacesOf(kb::Ref("h")).second);
  return {kb::For(
      "q", in_runs ? FirstLineOfRun(/*of_all=*/false) : FirstLine(), end,
      {kb::For("c", FirstPlace(), EndPlace(), body(Line() * static_cast<double>(places_) + c, rows), TileRows())})};
}

kir::Slice WindowLines::RowsOfTile() const {
  const kir::ExprRef c = kb::Ref("c"), rows = kb::Min(EndPlace() - c, kb::Int(TileRows())),
                     line =
                         LineInBlock() * static_cast<double>(stride_) + kb::Ref("h") * static_cast<double>(dilation_);
  return kb::SliceOf("px",
                     {kb::Range(RowOf(line, c - FirstPlace()), rows + static_cast<double>(RowsBehind())), kb::All()});
}

kir::ExprRef WindowLines::RunStart() const {
  return (Plane() * static_cast<double>(high_) + kb::Ref("h")) * static_cast<double>(run_);
}

kir::Block WindowLines::OverRuns(kir::Block body, bool in_tiles) const {
  kir::ExprRef first = kb::Int(0), end = kb::Int(high_);
  if (in_tiles && padded_lines_) {
    const auto parts = padded_lines_->PartsAt(lines_ > 1 ? kb::Ref("q") : kb::Int(0));
    first = parts.first, end = kb::Min(end, parts.second);
  }
  return OverPlanes({kb::For("h", first, end, std::move(body))});
}

}  // namespace quern::codegen
