// Ops on images.

#include "onnx/images.h"

#include "onnx/table.h"

namespace quern::onnx {
namespace {

void DepthToSpace(Call& c) {
  const Value x = c.x(0);
  const int64_t block = c.Int("blocksize", 1);
  if (block < 1 || c.rank(x) != 4) return c.Fail(absl::InvalidArgumentError("[N, C, H, W] and a block are needed"));
  const std::optional<Extent> channels = c.dim(x, 1).DividedBy(Extent(block * block));
  if (!channels) return c.Fail(absl::InvalidArgumentError("its blocks do not divide the channels"));
  const Extent n = c.dim(x, 0), h = c.dim(x, 2), w = c.dim(x, 3), b(block);
  const bool crd = c.Str("mode", "DCR") == "CRD";
  const Value apart = c.Reshape(x, crd ? Extents{n, *channels, b, b, h, w} : Extents{n, b, b, *channels, h, w});
  const Value turned = c.Transpose(apart, crd ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  c.Return(c.Reshape(turned, {n, *channels, h * b, w * b}));
}

void SpaceToDepth(Call& c) {
  const Value x = c.x(0);
  const int64_t block = c.Int("blocksize", 1);
  if (block < 1 || c.rank(x) != 4) return c.Fail(absl::InvalidArgumentError("[N, C, H, W] and a block are needed"));
  const std::optional<Extent> h = c.dim(x, 2).DividedBy(Extent(block)), w = c.dim(x, 3).DividedBy(Extent(block));
  if (!h || !w) {
    for (const int d : {2, 3}) c.fixed_dim(x, d);
    return c.Fail(absl::InvalidArgumentError("its blocks do not divide the image"));
  }
  const Extent n = c.dim(x, 0), channels = c.dim(x, 1), b(block);
  const Value turned = c.Transpose(c.Reshape(x, {n, channels, *h, b, *w, b}), {0, 3, 5, 1, 2, 4});
  c.Return(c.Reshape(turned, {n, channels * b * b, *h, *w}));
}

// Places of the elements of an image, turned by theta [N, n, n + 1]: x first, between -1 and 1.
void AffineGrid(Call& c) {
  const Value theta = c.x(0);
  const Ints size = c.IntsOf(c.x(1));
  const size_t n = size.size() < 2 ? 0 : size.size() - 2;
  if (n != 2 && n != 3) return c.Fail(absl::InvalidArgumentError("sizes of an image are needed"));
  const bool align = c.Int("align_corners", 0) != 0;
  int64_t places = 1;
  for (size_t d = 0; d < n; ++d) {
    if (size[d + 2] < 1 || size[d + 2] > 4096) return c.Fail(absl::InvalidArgumentError("its sizes are none"));
    places *= size[d + 2];
  }
  if (places > int64_t{1} << 22) return c.Fail("it has %d places", places);
  std::vector<double> base;
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    std::vector<double> at;
    for (size_t d = n; d-- > 0; rest /= size[d + 2]) {
      const auto i = static_cast<double>(rest % size[d + 2]), all = static_cast<double>(size[d + 2]);
      at.push_back(align ? (all == 1 ? 0 : 2 * i / (all - 1) - 1) : (2 * i + 1) / all - 1);
    }
    base.insert(base.end(), at.begin(), at.end());
    base.push_back(1);
  }
  const Value rows = c.Reals(base, c.dtype(theta), {Extent(1), Extent(places), Extent(static_cast<int64_t>(n) + 1)});
  Extents dims = {c.dim(theta, 0)};
  for (size_t d = 0; d < n; ++d) dims.emplace_back(size[d + 2]);
  dims.emplace_back(static_cast<int64_t>(n));
  c.Return(c.Reshape(c.Add("MatMul", {rows, theta}, {{"transpose_b", true}}), dims));
}

// Columns [N, C block, places] added up where they lie in an image: a transposed convolution that copies.
void Col2Im(Call& c) {
  const Value x = c.x(0);
  const Ints image = c.IntsOf(c.x(1)), block = c.IntsOf(c.x(2));
  const size_t n = image.size();
  Ints strides = c.IntList("strides"), pads = c.IntList("pads"), dilations = c.IntList("dilations");
  if (strides.empty()) strides.assign(n, 1);
  if (dilations.empty()) dilations.assign(n, 1);
  if (pads.empty()) pads.assign(2 * n, 0);
  bool right =
      n >= 1 && n <= 3 && block.size() == n && strides.size() == n && dilations.size() == n && pads.size() == 2 * n;
  int64_t size = 1;
  for (size_t d = 0; right && d < n; ++d) {
    const auto fits = [](int64_t value, int64_t least) { return value >= least && value <= 4096; };
    right = fits(block[d], 1) && fits(strides[d], 1) && fits(dilations[d], 1) && fits(pads[d], 0) &&
            fits(pads[d + n], 0) && fits(image[d], 1);
    size *= block[d];
    right = right && size <= 4096;
  }
  if (!right) return c.Fail(absl::InvalidArgumentError("its image, block, strides, pads or dilations do not fit"));
  const int64_t channels = c.fixed_dim(x, 1) / size;
  if (channels < 1 || channels * size * size > int64_t{1} << 24) return c.Fail("its blocks do not divide its channels");
  Extents columns = {c.dim(x, 0), Extent(channels * size)}, kernel = {Extent(channels * size), Extent(1)};
  Ints extra(n);
  for (size_t d = 0; d < n; ++d) {
    const int64_t span = (block[d] - 1) * dilations[d] + 1, room = image[d] + pads[d] + pads[d + n] - span;
    if (room < 0) return c.Fail(absl::InvalidArgumentError("its block is larger than its image"));
    columns.emplace_back(room / strides[d] + 1);
    kernel.emplace_back(block[d]);
    extra[d] = room % strides[d];
  }
  std::vector<double> copy(channels * size * size);
  for (int64_t i = 0; i < channels * size; ++i) copy[i * size + i % size] = 1;
  c.Return(c.Add("ConvTranspose", {c.Reshape(x, columns), c.Reals(copy, c.dtype(x), kernel)},
                 {{"groups", channels},
                  {"strides", strides},
                  {"pads", pads},
                  {"dilations", dilations},
                  {"output_padding", extra}}));
}

constexpr Importer kRows[] = {
    {"AffineGrid", AffineGrid, "", 2}, {"Col2Im", Col2Im, "", 3}, {"DepthToSpace", DepthToSpace},
    {"GridSample", GridSample, "", 2}, {"Resize", Resize},        {"RoiAlign", RoiAlign, "", 3},
    {"SpaceToDepth", SpaceToDepth},    {"Upsample", Upsample},
};

}  // namespace

std::span<const Importer> ImageImporters() { return kRows; }

}  // namespace quern::onnx
