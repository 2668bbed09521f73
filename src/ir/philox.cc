#include "ir/philox.h"

#include <algorithm>

#include "ir/shape.h"

namespace quern::ir {
namespace {

constexpr int kRounds = 10;
constexpr uint32_t kMultiplier[2] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kWeyl[2] = {0x9E3779B9, 0xBB67AE85};

Value Constant(Graph& graph, Expansion& e, uint64_t value, int origin) {
  if (!e.ok()) return {};
  std::vector<uint8_t> bytes(sizeof(value));
  for (size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<uint8_t>(value >> (8 * b));
  // A constant of a scalar dtype is never refused.
  return *graph.AddConstant({DType::kU64, {}}, std::move(bytes), origin);
}

}  // namespace

Status CheckRandomState(const InferContext& context, int operand) {
  const TensorType& state = context.operands[operand];
  if (state.dtype != DType::kU32) return context.DTypeError(operand, "u32");
  if (!context.Equal(state.dims, RandomStateType().dims)) return context.ShapeError(operand, "[6]");
  return absl::OkStatus();
}

OperandDef RandomStateOperand() {
  return {
      .name = "state", .kind = OperandKind::kInteger, .shape = "u32 [6]: the counter, then the key", .own_dtype = true};
}

StatusOr<std::vector<TensorType>> InferRandom(const InferContext& context, DType dtype) {
  QUERN_RETURN_IF_ERROR(CheckRandomState(context, 0));
  const std::vector<Extent>& shape = context.attributes.Extents("shape");
  if (shape.size() > kMostDims)
    return context.AttributeError("shape", absl::StrFormat("%u extents at most", kMostDims));
  for (const Extent& extent : shape) {
    if (extent.LowerBound(context.symbols).value_or(-1) < 0)
      return context.AttributeError("shape", "extents of 0 or more");
  }
  return std::vector<TensorType>{{dtype, shape}, RandomStateType()};
}

RandomLanes RandomWords(Graph& graph, Expansion& e, Value state, const Extent& words, int origin) {
  const Extent blocks = words.CeilDividedBy(4);
  const auto number = [&](uint64_t value) { return Constant(graph, e, value, origin); };
  const Value half = number(32), mask = number(0xFFFFFFFF);
  const auto op = [&](const char* name, Value a, Value b) { return e.Add(name, {a, b}); };
  const auto high = [&](Value x) { return op("Shr", x, half); };
  const auto low = [&](Value x) { return op("BitAnd", x, mask); };
  const Value wide = e.Stored(state, DType::kU64);
  const auto word = [&](int64_t w) {
    return e.Add(
        "Narrow", {wide},
        {{"axis", int64_t{0}}, {"start", std::vector<Extent>{Extent(w)}}, {"length", std::vector<Extent>{Extent(1)}}});
  };
  // Two words as one number, and the counter that lies `by` behind: two such numbers.
  const auto pair = [&](int64_t w) { return op("Add", op("Shl", word(w + 1), half), word(w)); };
  const Value from[2] = {pair(0), pair(2)};
  const auto behind = [&](Value by) {
    const Value sum = op("Add", from[0], by), carry = e.Stored(op("Lt", sum, by), DType::kU64);
    return std::pair(sum, op("Add", from[1], carry));
  };
  const Value block = e.Stored(e.Iota({blocks}), DType::kU64);
  const auto [c01, c23] = behind(block);
  std::array<Value, 4> c = {low(c01), high(c01), low(c23), high(c23)};
  Value key[2] = {word(4), word(5)};
  for (int round = 0; round < kRounds; ++round) {
    const Value first = op("Mul", c[0], number(kMultiplier[0])), second = op("Mul", c[2], number(kMultiplier[1]));
    c = {op("BitXor", op("BitXor", high(second), c[1]), key[0]), low(second),
         op("BitXor", op("BitXor", high(first), c[3]), key[1]), low(first)};
    for (int k = 0; k < 2; ++k) key[k] = low(op("Add", key[k], number(kWeyl[k])));
  }
  const Value read = e.Stored(e.Add("Size", {}, {{"extent", std::vector<Extent>{blocks}}}), DType::kU64);
  const auto [a01, a23] = behind(read);
  const Value parts =
      e.Add("Concat", {low(a01), high(a01), low(a23), high(a23), word(4), word(5)}, {{"axis", int64_t{0}}});
  return {c, e.Stored(parts, DType::kU32)};
}

Value Interleaved(Expansion& e, const std::array<Value, 4>& lanes, const std::vector<Extent>& dims) {
  if (!e.ok()) return {};
  const Extent blocks = e.type(lanes[0]).dims[0], words = TensorType{DType::kU32, dims}.elements();
  std::vector<Value> columns;
  for (const Value& lane : lanes) columns.push_back(e.Sized(lane, {blocks, Extent(1)}));
  Value all = e.Sized(e.Add("Concat", columns, {{"axis", int64_t{1}}}), {blocks * Extent(4)});
  all =
      e.Add("Narrow", {all},
            {{"axis", int64_t{0}}, {"start", std::vector<Extent>{Extent(0)}}, {"length", std::vector<Extent>{words}}});
  return e.Sized(all, dims);
}

Value UnitOf(Graph& graph, Expansion& e, Value word, int origin) {
  const Value top = e.Add("Shr", {word, Constant(graph, e, 8, origin)});
  return e.Add("Mul", {e.Stored(top, DType::kF32), e.Scalar(0x1p-24, DType::kF32)});
}

std::pair<Value, Value> RandomUnits(Graph& graph, Expansion& e, Value state, const std::vector<Extent>& dims,
                                    int origin) {
  RandomLanes words = RandomWords(graph, e, state, TensorType{DType::kF32, dims}.elements(), origin);
  for (Value& lane : words.lanes) lane = UnitOf(graph, e, lane, origin);
  return {Interleaved(e, words.lanes, dims), words.state};
}

std::vector<uint32_t> ReferenceWords(const RefTensor& state, int64_t count, RefTensor& after) {
  uint32_t counter[4], key[2];
  for (int w = 0; w < 4; ++w) counter[w] = static_cast<uint32_t>(state.integers[w]);
  for (int w = 0; w < 2; ++w) key[w] = static_cast<uint32_t>(state.integers[4 + w]);
  std::vector<uint32_t> words;
  for (int64_t block = 0; block < (count + 3) / 4; ++block) {
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; ++round) {
      const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
      const uint32_t next[4] = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(q),
                                static_cast<uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p)};
      std::copy(next, next + 4, c);
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
    for (int w = 0; w < 4 && static_cast<int64_t>(words.size()) < count; ++w) words.push_back(c[w]);
    for (int w = 0; w < 4 && ++counter[w] == 0; ++w) continue;
  }
  // Magnitudes have floats alone.
  for (int w = 0; !after.integers.empty() && w < 6; ++w) after.SetInteger(w, w < 4 ? counter[w] : key[w - 4]);
  return words;
}

}  // namespace quern::ir
