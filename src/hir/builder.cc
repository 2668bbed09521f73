#include "hir/builder.h"

#include <cstring>
#include <optional>

namespace quern::hir {
namespace {

// More than any block or op has. After an error there are as many, which are nothing: callers index without looking.
constexpr size_t kMostResults = 8;

}  // namespace

Value Builder::Input(std::string name, TensorType type) {
  return status_.ok() ? Take(module_.AddInput(std::move(name), std::move(type))) : Value{};
}

Value Builder::InputBatchSeq(std::string name, DType dtype, std::vector<Extent> inner) {
  std::vector<Extent> dims = {Extent::Symbol("BATCH"), Extent::Symbol("SEQ")};
  for (const char* symbol : {"BATCH", "SEQ"}) module_.symbols.try_emplace(symbol);
  dims.insert(dims.end(), inner.begin(), inner.end());
  return Input(std::move(name), {dtype, std::move(dims)});
}

Value Builder::Param(std::string name, TensorType type) {
  return status_.ok() ? Take(module_.AddParam(std::move(name), std::move(type))) : Value{};
}

Value Builder::Scalar(float value) {
  std::vector<uint8_t> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return status_.ok() ? Take(module_.AddConstant({DType::kF32, {}}, std::move(bytes))) : Value{};
}

std::vector<Value> Builder::Results(std::string_view block, std::vector<Value> inputs, Attributes attributes,
                                    std::string label) {
  std::vector<Value> results;
  if (status_.ok()) results = Take(module_.Add(block, std::move(inputs), std::move(attributes), std::move(label)));
  if (!status_.ok()) results.resize(kMostResults);
  return results;
}

Value Builder::Block(std::string_view block, std::vector<Value> inputs, Attributes attributes, std::string label) {
  return Results(block, std::move(inputs), std::move(attributes), std::move(label))[0];
}

std::vector<Value> Builder::MirResults(std::string_view op, std::vector<Value> inputs, Attributes attributes,
                                       std::string label) {
  std::vector<Value> results;
  if (status_.ok()) results = Take(module_.AddMir(op, std::move(inputs), std::move(attributes), std::move(label)));
  if (!status_.ok()) results.resize(kMostResults);
  return results;
}

Value Builder::Mir(std::string_view op, std::vector<Value> inputs, Attributes attributes, std::string label) {
  const std::vector<Value> results = MirResults(op, std::move(inputs), std::move(attributes), std::move(label));
  return results.empty() ? Value{} : results[0];
}

Value Builder::Linear(Value x, Value w, const LinearOptions& options) {
  std::vector<Value> inputs = {x, w};
  if (!options.bias.absent()) inputs.push_back(options.bias);
  return Block("Linear", std::move(inputs),
               {{"act", options.act}, {"bias", !options.bias.absent()}, {"weight_layout", options.weight_layout}},
               options.label);
}

Value Builder::RmsNorm(Value x, Value gamma, double eps, Value beta) {
  return Block("RmsNorm", {x, gamma, beta}, {{"eps", eps}});
}

Value Builder::SwiGLU(Value x, Value up, Value gate, Value down, std::string weight_layout) {
  return Block("SwiGLU", {x, up, gate, down}, {{"weight_layout", std::move(weight_layout)}});
}

Value Builder::Attention(Value q, Value k, Value v, const AttentionOptions& o) {
  return Block("Attention", {q, k, v, o.mask_value},
               {{"heads", o.heads},
                {"kv_heads", o.kv_heads},
                {"head_dim", o.head_dim},
                {"mask", o.mask},
                {"window", o.window},
                {"scale", o.scale},
                {"softcap", o.softcap},
                {"layout", o.layout}},
               o.label);
}

namespace {

// What two operands become. Nothing where they are alike, or the op is to refuse them: c64 and f64 have no common
// dtype.
std::optional<DType> CommonOf(DType a, DType b) {
  if (a == b || IsBlock(a) || IsBlock(b)) return std::nullopt;
  const bool wide = a == DType::kF64 || b == DType::kF64;
  if (wide && (IsComplex(a) || IsComplex(b))) return std::nullopt;
  return Promote(a, b);
}

}  // namespace

Value Builder::Binary(std::string_view op, Value a, Value b) {
  if (!status_.ok()) return {};
  const std::optional<DType> common = a.absent() || b.absent() ? std::nullopt : CommonOf(type(a).dtype, type(b).dtype);
  if (common) {
    a = Cast(*common, a);
    b = Cast(*common, b);
  }
  return Mir(op, {a, b});
}

Value Builder::Where(Value condition, Value a, Value b) {
  if (!status_.ok()) return {};
  if (const std::optional<DType> common = CommonOf(type(a).dtype, type(b).dtype)) {
    a = Cast(*common, a);
    b = Cast(*common, b);
  }
  return Mir("Where", {condition, a, b});
}

Value Builder::Cast(DType to, Value x) {
  if (!status_.ok() || type(x).dtype == to) return x;
  return Mir("Cast", {x}, {{"to", to}});
}

Value Builder::Narrow(Value x, int64_t axis, Extent start, Extent length) {
  return Mir("Narrow", {x},
             {{"axis", axis},
              {"start", std::vector<Extent>{std::move(start)}},
              {"length", std::vector<Extent>{std::move(length)}}});
}

Value Builder::Reduce(std::string op, Value x, std::vector<int64_t> axes, bool keep_dim) {
  return Mir("Reduce", {x}, {{"op", std::move(op)}, {"axes", std::move(axes)}, {"keep_dim", keep_dim}});
}

}  // namespace quern::hir
