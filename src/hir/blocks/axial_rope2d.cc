// AxialRope2d: the rotation of SAM2 for tokens of an image of end_x by end_y, over rows first. Pairs are neighbours;
// those of the first half of a head turn by tx f_i, those of the second by ty f_i, with f_i = theta^(-4i / head_dim).
//
//   x [B, T, heads * head_dim], T = end_x end_y repeat + exclude; tx = pos mod end_x, ty = pos div end_x
//
// order "tile": token t has pos = t mod (end_x end_y), images one after the other; "interleave": pos = t div repeat.
// The last `exclude` tokens pass as they are. The table is a constant, computed in double.

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "hir/block.h"

namespace quern::hir {
namespace {

struct Sizes {
  explicit Sizes(const Attributes& attributes)
      : end_x(attributes.Int("end_x")),
        end_y(attributes.Int("end_y")),
        head_dim(attributes.Int("head_dim")),
        heads(attributes.Int("heads")),
        repeat(attributes.Int("repeat")),
        exclude(attributes.Int("exclude")) {}
  int64_t end_x, end_y, head_dim, heads, repeat, exclude;
  int64_t turned() const { return end_x * end_y * repeat; }
};

constexpr int64_t kMostTokens = int64_t{1} << 24;  // of the table

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const Sizes s(c.attributes);
  for (const char* name : {"end_x", "end_y", "heads", "repeat"}) {
    if (c.attributes.Int(name) < 1 || c.attributes.Int(name) > kMostTokens)
      return c.AttributeError(name, absl::StrCat("1 to ", kMostTokens));
  }
  if (s.head_dim < 4 || s.head_dim % 4 != 0 || s.head_dim > kMostTokens)
    return c.AttributeError("head_dim", "a multiple of 4");
  if (s.exclude < 0 || s.exclude > kMostTokens) return c.AttributeError("exclude", "0 or more");
  if (static_cast<double>(s.end_x) * static_cast<double>(s.end_y) * static_cast<double>(s.repeat) > kMostTokens)
    return c.AttributeError("repeat", absl::StrCat("at most ", kMostTokens, " tokens"));
  if (!(c.attributes.Float("theta") > 0)) return c.AttributeError("theta", "above 0");
  if (c.operand(0).rank() != 3) return c.ShapeError(0, "[B, T, heads * head_dim]");
  QUERN_RETURN_IF_ERROR(
      c.ExpectDims(0, {c.operand(0).dims[0], Extent(s.turned() + s.exclude), Extent(s.heads * s.head_dim)}));
  return std::vector<TensorType>{c.operand(0)};
}

// [tokens, head_dim / 2] of the cosines or sines, as f32.
std::vector<uint8_t> Table(const Sizes& s, const Attributes& attributes, double (*function)(double)) {
  const int64_t pairs = s.head_dim / 2, quarter = s.head_dim / 4;
  const bool tile = attributes.String("order") == "tile";
  std::vector<float> table;
  table.reserve(s.turned() * pairs);
  for (int64_t t = 0; t < s.turned(); ++t) {
    const int64_t at = tile ? t % (s.end_x * s.end_y) : t / s.repeat;
    for (int64_t p = 0; p < pairs; ++p) {
      const double frequency = std::pow(attributes.Float("theta"),
                                        -4.0 * static_cast<double>(p % quarter) / static_cast<double>(s.head_dim));
      const int64_t place = p < quarter ? at % s.end_x : at / s.end_x;
      table.push_back(static_cast<float>(function(static_cast<double>(place) * frequency)));
    }
  }
  std::vector<uint8_t> bytes(table.size() * sizeof(float));
  std::memcpy(bytes.data(), table.data(), bytes.size());
  return bytes;
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const Sizes s(c.attributes());
  const DType dtype = c.type(c.inputs[0]).dtype;
  const TensorType type = {DType::kF32, {Extent(s.turned()), Extent(s.head_dim / 2)}};
  const auto constant = [&](double (*function)(double)) {
    const StatusOr<ir::Value> table = c.graph.AddConstant(type, Table(s, c.attributes(), function), c.origin());
    if (!table.ok()) c.Fail(table.status());
    return table.ok() ? c.CastTo(dtype, *table) : ir::Value{};
  };
  const auto part = [&](int64_t start, int64_t length) {
    return c.Add("Narrow", {c.inputs[0]},
                 {{"axis", int64_t{1}},
                  {"start", std::vector<Extent>{Extent(start)}},
                  {"length", std::vector<Extent>{Extent(length)}}});
  };
  const ir::Value turned = s.exclude == 0 ? c.inputs[0] : part(0, s.turned());
  const ir::Value cosines = constant([](double x) { return std::cos(x); });
  const ir::Value sines = constant([](double x) { return std::sin(x); });
  const ir::Value y =
      c.Add("Rope", {turned, cosines, sines},
            {{"head_dim", s.head_dim}, {"n_rot", s.head_dim}, {"style", std::string("gptj")}, {"packed", true}});
  if (s.exclude == 0) return c.Finish({y});
  return c.Finish({c.Add("Concat", {y, part(s.turned(), s.exclude)}, {{"axis", int64_t{1}}})});
}

}  // namespace

const BlockDef& Block_axial_rope2d() {
  static const BlockDef* const block = Make({
      .name = "AxialRope2d",
      .doc = "rotary position embedding of the tokens of an image by their column and row",
      .label = "axial_rope2d",
      .operands = {{.name = "x", .shape = "[B, end_x end_y repeat + exclude, heads * head_dim]"}},
      .attributes = {{.name = "end_x", .kind = ir::AttrKind::kInt, .doc = "columns"},
                     {.name = "end_y", .kind = ir::AttrKind::kInt, .doc = "rows"},
                     {.name = "head_dim", .kind = ir::AttrKind::kInt},
                     {.name = "heads", .kind = ir::AttrKind::kInt},
                     {.name = "theta", .kind = ir::AttrKind::kFloat, .default_value = 10000.0},
                     {.name = "repeat", .kind = ir::AttrKind::kInt, .default_value = int64_t{1}, .doc = "images"},
                     {.name = "exclude",
                      .kind = ir::AttrKind::kInt,
                      .default_value = int64_t{0},
                      .doc = "tokens at the end that are not turned"},
                     {.name = "order",
                      .kind = ir::AttrKind::kString,
                      .default_value = std::string("tile"),
                      .doc = "whether images follow each other, or the tokens of one place",
                      .choices = {"tile", "interleave"}}},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
