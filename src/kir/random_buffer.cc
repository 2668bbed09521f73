#include "kir/random_buffer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/half.h"
#include "kir/block_fields.h"
#include "kir/decode.h"
#include "kir/quantise.h"

namespace quern::kir {
namespace {

// Not std::uniform_real_distribution, whose values differ between libraries.
float Uniform(std::mt19937_64& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random() >> 40) * 0x1p-24f;
}

template <typename T>
void Put(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <typename T>
T Get(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void PutScalar(DType dtype, uint8_t* at, std::mt19937_64& random) {
  const float real = Uniform(random, -2, 2);
  switch (dtype) {
    case DType::kF32: return Put(at, real);
    case DType::kF64: return Put(at, static_cast<double>(real) + static_cast<double>(random() >> 40) * 0x1p-50);
    case DType::kF16: return Put(at, FloatToHalf(real));
    case DType::kBF16: return Put(at, FloatToBFloat16(real));
    case DType::kBool: return Put<uint8_t>(at, random() >> 32 & 1);
    default: break;
  }
  const int64_t integer = static_cast<int64_t>(random() >> 32) % 80 - (IsUnsigned(dtype) ? 0 : 8);
  std::memcpy(at, &integer, ScalarBytes(dtype));  // little-endian: the low bytes
}

// Row of `k` elements @blocks.
void PutBlocks(DType dtype, uint8_t* row, int64_t k, std::mt19937_64& random) {
  const DTypeRow& type = Row(dtype);
  if (dtype == DType::kQ8_K) {
    std::vector<float> values(k);
    for (float& value : values) value = Uniform(random, -2, 2);
    return QuantiseToBlocks(dtype, values.data(), k, row);
  }
  auto scale = [&] { return Uniform(random, 1.0f / 128, 1.0f / 64); };
  for (int64_t j = 0; j < k; j += type.block_elements, row += type.block_bytes) {
    for (int b = 0; b < type.block_bytes; ++b) row[b] = static_cast<uint8_t>(random() >> 32);
    const float d = scale();
    PutScales(dtype, row, d, HasMinimums(dtype) || HasAdded(dtype) ? scale() : 0);
  }
}

void PutPanel16(DType dtype, uint8_t* panel, int64_t k, std::mt19937_64& random) {
  std::vector<uint8_t> row(RowBytes(dtype, k));
  for (int64_t r = 0; r < 16; ++r) {
    PutBlocks(dtype, row.data(), k, random);
    for (int64_t j = 0; j < k; ++j) WritePanel16(dtype, panel, k, r, j, ReadBlockElement(dtype, row.data(), j));
  }
}

double ScalarAt(DType dtype, const uint8_t* at) {
  switch (dtype) {
    case DType::kF32: return Get<float>(at);
    case DType::kF64: return Get<double>(at);
    case DType::kF16: return HalfToFloat(Get<uint16_t>(at));
    case DType::kBF16: return BFloat16ToFloat(Get<uint16_t>(at));
    default: break;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, at, ScalarBytes(dtype));
  return static_cast<double>(bits);  // as unsigned, which is all that a message and equality need
}

// All elements as numbers; empty where only bytes can be compared (a panel).
std::vector<double> Elements(const BufferType& type, const std::vector<uint8_t>& bytes) {
  std::vector<double> values;
  if (!IsBlock(type.dtype)) {
    const int size = ScalarBytes(type.dtype);
    for (size_t at = 0; at < bytes.size(); at += size) values.push_back(ScalarAt(type.dtype, bytes.data() + at));
    return values;
  }
  if (type.layout == Layout::kPanel16) return values;
  const int64_t k = type.dims.back().constant(), row = LayoutRowBytes(type.layout, type.dtype, k);
  for (size_t at = 0; at < bytes.size(); at += row) {
    for (int64_t j = 0; j < k; ++j) {
      values.push_back(type.layout == Layout::kPlanar ? DecodePlanar(type.dtype, bytes.data() + at, k, j)
                                                      : DecodeElement(type.dtype, bytes.data() + at, j));
    }
  }
  return values;
}

// Makes the f16 of which d is `factor` times, and whose bits lie anywhere in the block, what `half` is: each bit of the
// block that gives one of it when it is the only one.
void PutBits(DType format, uint8_t* block, uint16_t half, float factor) {
  std::vector<uint8_t> probe(FormatOf(format).bytes);
  for (const BlockStep& step : FieldsOf(format).steps) {
    if (step.kind != BlockStep::Kind::kLoad) continue;
    const std::vector<int32_t>& places = FieldsOf(format).steps[step.args[0]].values;
    if (std::count(places.begin(), places.end(), places[0]) != static_cast<int64_t>(places.size())) continue;
    const int32_t byte = places[0];
    for (int bit = 0; bit < 8; ++bit) {
      probe[byte] = static_cast<uint8_t>(1 << bit);
      const uint16_t given = FloatToHalf(ReadBlockElement(format, probe.data(), 0).d / factor);
      if (given == 0) continue;
      block[byte] = static_cast<uint8_t>((block[byte] & ~probe[byte]) | ((half & given) != 0 ? probe[byte] : 0));
    }
    probe[byte] = 0;
  }
}

}  // namespace

void PutScales(DType format, uint8_t* block, float d, float dmin) {
  const BlockFields& fields = FieldsOf(format);
  for (const auto& [number, value] :
       {std::pair(fields.d, d), std::pair(fields.dmin, dmin), std::pair(fields.added, dmin)}) {
    if (number < 0) continue;
    const bool times = fields.steps[number].kind == BlockStep::Kind::kTimes;
    const BlockStep& step = fields.steps[times ? fields.steps[number].args[0] : number];
    const float factor = times ? fields.steps[number].factor : 1;
    const uint16_t half = FloatToHalf(value / factor);
    if (step.kind == BlockStep::Kind::kHalf) {
      PutBits(format, block, half, factor);
      continue;
    }
    const bool power = step.kind == BlockStep::Kind::kPower;
    const BlockStep& load = power ? fields.steps[step.args[0]] : step;
    uint8_t* const at = block + fields.steps[load.args[0]].values[0];
    if (power) {  // the one below it, and far from the smallest
      *at = static_cast<uint8_t>(std::clamp(128 + std::ilogb(value == 0 ? 0x1p-40f : value), 40, 216));
      continue;
    }
    if (load.dtype == DType::kF32)
      std::memcpy(at, &value, sizeof value);
    else
      std::memcpy(at, &half, sizeof half);
  }
}

StatusOr<std::vector<uint8_t>> RandomBuffer(const BufferType& type, const Binding& binding, std::mt19937_64& random) {
  QUERN_ASSIGN(const int64_t size, LayoutBytes(type.layout, type.dtype, type.dims).Evaluate(binding));
  std::vector<uint8_t> bytes(size);
  if (!IsBlock(type.dtype)) {
    // Words of a panel may be pairs of bf16, and quads of bytes may be anything.
    const DType dtype = type.layout == Layout::kKn32 && type.dtype == DType::kU32 ? DType::kBF16 : type.dtype;
    const int step = ScalarBytes(dtype);
    for (int64_t at = 0; at < size; at += step) PutScalar(dtype, bytes.data() + at, random);
    return bytes;
  }
  const int64_t k = type.dims.back().constant(), row = LayoutRowBytes(type.layout, type.dtype, k);
  std::vector<float> values(k);
  for (int64_t at = 0; at < size; at += row) {
    if (type.layout == Layout::kBlocks) PutBlocks(type.dtype, bytes.data() + at, k, random);
    if (type.layout == Layout::kPanel16) PutPanel16(type.dtype, bytes.data() + at, k, random);
    if (type.layout != Layout::kPlanar) continue;
    for (float& value : values) value = Uniform(random, -2, 2);
    QuantiseToPlanar(type.dtype, values.data(), k, bytes.data() + at, k, 0);
  }
  return bytes;
}

std::string FirstDifference(const BufferType& type, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want,
                            double tolerance, bool each) {
  if (got == want) return "";
  const std::vector<double> g = Elements(type, got), w = Elements(type, want);
  if (g.empty() || (tolerance == 0 && IsBlock(type.dtype))) {
    const auto at = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
    return absl::StrFormat(", byte %d = %d, not %d", at, got[at], want[at]);
  }
  double largest = 0;
  for (double value : w) largest = !each && std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  // Of each alone, a little is left for what is too small to be rounded well.
  const double least = !each ? 0 : type.dtype == DType::kF16 ? 0x1p-23 : 0x1p-130;
  if (IsBlock(type.dtype)) tolerance = std::max(tolerance, 1.05 / 127);
  const bool exact = tolerance == 0 || IsInteger(type.dtype) || type.dtype == DType::kBool;
  const size_t size = got.size() / g.size();
  for (size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(g[i]) && std::isnan(w[i])) continue;
    // By bytes: -0 is not 0, and two integers may be one double.
    const bool equal =
        exact ? std::equal(&got[i * size], &got[i * size] + size, &want[i * size])
              : g[i] == w[i] ||
                    (std::isfinite(w[i]) && std::fabs(g[i] - w[i]) <= tolerance * (std::fabs(w[i]) + largest) + least);
    if (!equal) return absl::StrFormat("[%d] = %.17g, not %.17g", i, g[i], w[i]);
  }
  return "";
}

ChunkRanges RandomChunks(int64_t chunks, int64_t most, std::mt19937_64& random) {
  if (chunks <= most) {
    const int64_t cut = static_cast<int64_t>(random() % (chunks + 1));
    return {{0, cut}, {cut, chunks}};
  }
  // Neither the first nor the last, where there are others.
  const int64_t middle = chunks < 3 ? 0 : 1 + static_cast<int64_t>(random() % (chunks - 2));
  ChunkRanges ranges = {{middle, middle + 1}, {chunks - 1, chunks}, {0, 1}};
  if (most < 3) ranges.resize(std::max<int64_t>(most, 1));
  return ranges;
}

}  // namespace quern::kir
