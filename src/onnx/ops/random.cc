// Random numbers. What ONNX draws anew in each run is drawn once here: the numbers are those of a seed, the model's
// where it has one, and the same in every run.

#include <cstring>

#include "base/hash.h"
#include "onnx/table.h"

namespace quern::onnx {
namespace {

// The state that numbers come behind: a counter, then the key, which no other node has.
Value StateOf(Call& c) {
  const auto seed = static_cast<float>(c.Float("seed", 0));
  const Hash128 key = HashBytes(absl::StrCat(c.Where(), " ", seed));
  std::vector<uint8_t> bytes(24);
  std::memcpy(bytes.data() + 16, &key.low, 8);
  return c.Constant({DType::kU32, {Extent(6)}}, std::move(bytes));
}

Value Drawn(Call& c, const char* op, const Extents& dims, DType dtype, ir::Attributes attributes = {}) {
  attributes.Set("shape", dims);
  return c.Cast(c.Add(op, {StateOf(c)}, attributes), dtype);
}

void Draw(Call& c, const Extents& dims, DType like) {
  DType dtype = like;
  if (c.Find("dtype") != nullptr) {
    const StatusOr<DType> given = DTypeOf(static_cast<int>(c.Int("dtype", 1)));
    if (!given.ok()) return c.Fail(given.status());
    dtype = *given;
  }
  if (c.node.op_type().starts_with("RandomUniform")) {
    return c.Return(Drawn(c, "RngUniform", dims, dtype, {{"low", c.Float("low", 0)}, {"high", c.Float("high", 1)}}));
  }
  const Value normal = Drawn(c, "RngNormal", dims, DType::kF32);
  const Value scaled = c.Add("Mul", {normal, c.Scalar(c.Float("scale", 1), DType::kF32)});
  c.Return(c.Cast(c.Add("Add", {scaled, c.Scalar(c.Float("mean", 0), DType::kF32)}), dtype));
}

void Random(Call& c) {
  const Ints shape = c.IntList("shape");
  Draw(c, Extents(shape.begin(), shape.end()), DType::kF32);
}
void RandomLike(Call& c) { Draw(c, c.type(c.x(0)).dims, c.dtype(c.x(0))); }

// 1 with the probability x.
void Bernoulli(Call& c) {
  const Value x = c.x(0);
  DType dtype = c.dtype(x);
  if (c.Find("dtype") != nullptr) {
    const StatusOr<DType> given = DTypeOf(static_cast<int>(c.Int("dtype", 1)));
    if (!given.ok()) return c.Fail(given.status());
    dtype = *given;
  }
  const Value drawn = Drawn(c, "RngUniform", c.type(x).dims, DType::kF32);
  c.Return(c.Cast(c.Add("Lt", {drawn, c.Cast(x, DType::kF32)}), dtype));
}

constexpr Importer kRows[] = {
    {"Bernoulli", Bernoulli},         {"RandomNormal", Random, "", 0},   {"RandomNormalLike", RandomLike},
    {"RandomUniform", Random, "", 0}, {"RandomUniformLike", RandomLike},
};

}  // namespace

std::span<const Importer> RandomImporters() { return kRows; }

}  // namespace quern::onnx
