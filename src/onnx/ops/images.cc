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

constexpr Importer kRows[] = {
    {"DepthToSpace", DepthToSpace}, {"GridSample", GridSample, "", 2}, {"Resize", Resize},
    {"RoiAlign", RoiAlign, "", 3},  {"SpaceToDepth", SpaceToDepth},    {"Upsample", Upsample},
};

}  // namespace

std::span<const Importer> ImageImporters() { return kRows; }

}  // namespace quern::onnx
