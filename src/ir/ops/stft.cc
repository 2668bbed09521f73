// Stft: the Fft of frames of x that begin `hop` apart, each times a window. Frame t is column t of the result, as in
// scipy.signal and PyTorch; center reflects half a frame at both ends first, so that frame t is around element t hop.
//
//   x [.., L], window [frame]  ->  [.., frame / 2 + 1, 1 + (L - frame) / hop]

#include <cmath>

#include "ir/fourier.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &window = context.operands[1];
  if (x.dtype != DType::kF32) return context.UnsupportedError(0, "f32");
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  const int64_t frame = context.attributes.Int("frame"), hop = context.attributes.Int("hop");
  if (frame < 1 || frame > kMostOfWindow) return context.AttributeError("frame", "1 to 2^20");
  if (hop < 1 || hop > kMostOfWindow) return context.AttributeError("hop", "1 to 2^20");
  if (window.rank() != 1 || !context.Equal(window.dims[0], Extent(frame)))
    return context.ShapeError(1, absl::StrFormat("[%d]", frame));
  const int64_t reflected = context.attributes.Bool("center") ? frame / 2 : 0;
  const Extent room = x.dims.back() + Extent(2 * reflected - frame);
  if (!context.AtLeast(room, Extent(0)) || !context.AtLeast(x.dims.back(), Extent(reflected + 1)))
    return context.ShapeError(
        0, absl::StrFormat("[.., L], L at least %d", std::max(frame - 2 * reflected, reflected + 1)));
  TensorType result{DType::kC64, x.dims};
  result.dims.back() = Extent(context.attributes.Bool("onesided") ? frame / 2 + 1 : frame);
  result.dims.push_back(room.FloorDividedBy(hop) + Extent(1));
  return std::vector<TensorType>{std::move(result)};
}

// Calls `frame` with each frame of a line of x, and where its results are.
void ForEachFrame(RefContext& context, const std::function<void(const std::vector<std::complex<double>>& frame,
                                                                int64_t first, int64_t step, int64_t bins)>& visit) {
  const RefTensor &x = *context.operands[0], &window = *context.operands[1];
  const RefTensor& y = context.results[0];
  const int64_t length = x.dims.back(), size = context.node.attributes.Int("frame"),
                hop = context.node.attributes.Int("hop"), frames = y.dims.back(), bins = y.dims[y.dims.size() - 2];
  const int64_t reflected = context.node.attributes.Bool("center") ? size / 2 : 0;
  for (int64_t l = 0; l < x.elements() / length; ++l) {
    for (int64_t t = 0; t < frames; ++t) {
      std::vector<std::complex<double>> frame;
      for (int64_t j = 0; j < size; ++j) {
        int64_t at = t * hop + j - reflected;
        if (at < 0) at = -at;
        if (at >= length) at = 2 * (length - 1) - at;
        frame.emplace_back(x.data[l * length + at] * window.data[j]);
      }
      visit(frame, l * bins * frames + t, frames, bins);
    }
  }
}

Status Reference(RefContext& context) {
  ForEachFrame(context, [&](const auto& frame, int64_t first, int64_t step, int64_t bins) {
    const auto line = ReferenceTransform(frame, false);
    for (int64_t k = 0; k < bins; ++k) context.results[0].SetComplex(first + k * step, line[k]);
  });
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  ForEachFrame(context, [&](const auto& frame, int64_t first, int64_t step, int64_t bins) {
    double squares = 0;
    for (const std::complex<double>& value : frame) squares += std::norm(value);
    for (int64_t k = 0; k < bins; ++k) context.results[0].data[first + k * step] = std::sqrt(squares);
  });
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const Attributes& attributes = context.node.attributes;
  const int64_t frame = attributes.Int("frame"), hop = attributes.Int("hop");
  const int64_t leading = static_cast<int64_t>(context.rank(0)) - 1;
  Value x = context.x[0];
  if (attributes.Bool("center")) {
    std::vector<int64_t> pads(context.rank(0));
    pads[leading] = frame / 2;
    x = e.Add("Pad", {x}, {{"low", pads}, {"high", pads}, {"mode", std::string("reflect")}});
  }
  const Window window = {.kernel = {frame}, .strides = {hop}, .dilations = {1}, .low = {0}, .high = {0}};
  const Value frames = e.Add("Mul", {Windows(e, x, window, 0), e.Sized(context.x[1], {Extent(frame), Extent(1)})});
  const int64_t bins = context.node.results[0].dims[leading].constant();
  const Value planes = Transformed(e, AsPlanes(e, frames, leading, false, frame),
                                   {.n = frame, .planes_in = 1, .have = frame, .keep = bins});
  return e.Finish({FromPlanes(e, planes, leading, context.node.results[0].dims, frame)});
}

}  // namespace

const OpDef& Op_stft() {
  static const OpDef* const op = Make({
      .name = "Stft",
      .doc = "the Fft of frames of x, each times a window: a column for each frame",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "f32 [.., L]"},
                   {.name = "window", .kind = OperandKind::kFloat, .shape = "[frame]"}},
      .attributes = {{.name = "frame", .kind = AttrKind::kInt},
                     {.name = "hop", .kind = AttrKind::kInt},
                     {.name = "center",
                      .kind = AttrKind::kBool,
                      .default_value = false,
                      .doc = "half a frame is reflected at both ends"},
                     {.name = "onesided",
                      .kind = AttrKind::kBool,
                      .default_value = true,
                      .doc = "the first frame / 2 + 1 results"}},
      .infer = Infer,
      .reference = Reference,
      .pairs = Pairs,
      .rtol = 3e-6,
      .magnitude = Magnitude,
      .examples = {{{"f32[2, 61]", "f32[16]"}, {{"frame", int64_t{16}}, {"hop", int64_t{5}}}},
                   {{"f32[S + 20]", "f32[12]"}, {{"frame", int64_t{12}}, {"hop", int64_t{7}}, {"center", true}}},
                   {{"f32[37]", "f32[9]"},
                    {{"frame", int64_t{9}}, {"hop", int64_t{4}}, {"center", true}, {"onesided", false}}}},
  });
  return *op;
}

}  // namespace quern::ir
