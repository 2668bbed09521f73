#include "ir/composite.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/half.h"

namespace quern::ir {

Value Expansion::Wide(Value value) {
  if (!status_.ok()) return {};
  const DType dtype = type(value).dtype;
  return dtype == DType::kF16 || dtype == DType::kBF16 ? Stored(value, DType::kF32) : value;
}

Value Expansion::Stored(Value value, DType dtype) {
  if (!status_.ok() || type(value).dtype == dtype) return value;
  return Add("Cast", {value}, {{"to", dtype}});
}

Value Expansion::Sized(Value value, std::vector<Extent> dims) {
  return Add("Reshape", {value}, {{"shape", std::move(dims)}});
}

Value Expansion::Reduced(const char* op, Value value, const std::vector<int64_t>& axes) {
  return Add("Reduce", {value}, {{"op", std::string(op)}, {"axes", axes}, {"keep_dim", true}});
}

namespace {

// Behind the others, as it is stored.
void Append(std::vector<uint8_t>& bytes, double value, DType dtype) {
  auto put = [&](auto v) {
    const auto* from = reinterpret_cast<const uint8_t*>(&v);
    bytes.insert(bytes.end(), from, from + sizeof(v));
  };
  switch (dtype) {
    case DType::kF32: put(static_cast<float>(value)); break;
    case DType::kF64: put(value); break;
    case DType::kF16: put(FloatToHalf(static_cast<float>(value))); break;
    case DType::kBF16: put(FloatToBFloat16(static_cast<float>(value))); break;
    default: QUERN_CHECK(false);  // callers ask for the dtype of a float operand
  }
}

}  // namespace

Value Expansion::Scalar(double value, DType dtype) {
  if (!status_.ok()) return {};
  std::vector<uint8_t> bytes;
  Append(bytes, value, dtype);
  return Take(graph_.AddConstant({dtype, {}}, std::move(bytes), origin_));
}

Value Expansion::Floats(const std::vector<double>& values, DType dtype) {
  if (!status_.ok()) return {};
  std::vector<uint8_t> bytes;
  for (const double value : values) Append(bytes, value, dtype);
  return Take(graph_.AddConstant({dtype, {Extent(static_cast<int64_t>(values.size()))}}, std::move(bytes), origin_));
}

Value Expansion::Iota(std::vector<Extent> shape, int64_t axis, DType dtype) {
  return Add("Iota", {}, {{"shape", std::move(shape)}, {"axis", axis}, {"dtype", dtype}});
}

Value Expansion::Integers(const std::vector<int64_t>& values) {
  if (!status_.ok()) return {};
  std::vector<uint8_t> bytes(values.size() * sizeof(int64_t));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  const TensorType type = {DType::kI64, {Extent(static_cast<int64_t>(values.size()))}};
  return Take(graph_.AddConstant(type, std::move(bytes), origin_));
}

std::vector<Value> Expansion::Scan(const Extent& length, std::vector<Value> carries, const std::vector<Value>& xs,
                                   const Step& make, const std::vector<Value>& captures, bool reverse) {
  const auto add = [&]() -> StatusOr<std::vector<Value>> {
    QUERN_RETURN_IF_ERROR(status_);
    const int64_t carried = static_cast<int64_t>(carries.size());
    std::vector<Value> operands = std::move(carries);
    operands.insert(operands.end(), xs.begin(), xs.end());
    operands.insert(operands.end(), captures.begin(), captures.end());
    const auto body = std::make_shared<Graph>();
    body->name = "body";
    body->symbols = graph_.symbols;
    std::vector<Value> inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      TensorType type = graph_.type(operands[i]);
      const bool row = i >= static_cast<size_t>(carried) && i < carried + xs.size();
      if (row) type.dims.erase(type.dims.begin());
      QUERN_ASSIGN(inputs.emplace_back(), body->AddInput(absl::StrCat("x", i), std::move(type)));
    }
    Expansion inside(*body, -1);
    QUERN_ASSIGN(body->outputs, inside.Finish(make(inside, inputs)));
    const Attributes attributes = {{"length", std::vector<Extent>{length}},
                                   {"carries", carried},
                                   {"xs", static_cast<int64_t>(xs.size())},
                                   {"reverse", reverse}};
    QUERN_ASSIGN(const Value made, graph_.Add("Scan", std::move(operands), attributes, origin_, {body}));
    std::vector<Value> results;
    for (int r = 0; r < static_cast<int>(graph_.node(made.node).results.size()); ++r) results.push_back({made.node, r});
    return results;
  };
  StatusOr<std::vector<Value>> results = add();
  if (results.ok()) return *std::move(results);
  status_ = results.status();
  return std::vector<Value>(carries.size() + 8);
}

void ForEachLine(const RefTensor& x, int64_t axis, const std::function<void(const std::vector<int64_t>&)>& line) {
  const int64_t rank = static_cast<int64_t>(x.dims.size());
  if (axis < 0) axis += rank;
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < rank; ++d) inner *= x.dims[d];
  const int64_t length = x.dims[axis], outer = x.elements() == 0 ? 0 : x.elements() / (inner * length);
  std::vector<int64_t> offsets(length);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t l = 0; l < length; ++l) offsets[l] = (o * length + l) * inner + i;
      line(offsets);
    }
  }
}

}  // namespace quern::ir
