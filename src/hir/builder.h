// Builder: a module written as expressions. Shapes are inferred; the first error stops it and status() reports it.
//
//   Builder b(module);
//   const Value h = b.Linear(b.RmsNorm(x, gamma), w, {.act = "Silu"});
//   module.outputs = {b.Add(x, h)};
//   QUERN_RETURN_IF_ERROR(b.status());
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hir/module.h"

namespace quern::hir {

struct LinearOptions {
  std::string act;  // name of an elementwise op
  Value bias;       // [N]
  std::string weight_layout = "kn";
  std::string label;
};

struct AttentionOptions {
  int64_t heads = 1, kv_heads = 0, head_dim = 1;
  std::string mask = "none";
  Value mask_value;  // with mask "custom" and "bias"
  int64_t window = 0;
  double scale = 0, softcap = 0;
  std::string layout = "packed";
  std::string label;
};

class Builder {
 public:
  explicit Builder(Module& module) : module_(module) {}

  const Status& status() const { return status_; }
  // Stops the building with an error of the caller's, where there was none before.
  void Fail(Status error) {
    if (status_.ok()) status_ = std::move(error);
  }
  // The type of a value that exists.
  const TensorType& type(Value value) const { return module_.type(value); }

  Value Input(std::string name, TensorType type);
  // [BATCH, SEQ, ..inner]; both symbols are declared (1 and above) when they are not yet.
  Value InputBatchSeq(std::string name, DType dtype, std::vector<Extent> inner);
  Value Param(std::string name, TensorType type);
  Value Scalar(float value);  // f32[]

  // A block, or with Mir an op, by name; the first result. Results and MirResults give all.
  Value Block(std::string_view block, std::vector<Value> inputs, Attributes attributes = {}, std::string label = "");
  std::vector<Value> Results(std::string_view block, std::vector<Value> inputs, Attributes attributes = {},
                             std::string label = "");
  Value Mir(std::string_view op, std::vector<Value> inputs, Attributes attributes = {}, std::string label = "");
  std::vector<Value> MirResults(std::string_view op, std::vector<Value> inputs, Attributes attributes = {},
                                std::string label = "");

  Value Linear(Value x, Value w, const LinearOptions& options = {});
  Value RmsNorm(Value x, Value gamma, double eps = 1e-5, Value beta = {});
  Value SwiGLU(Value x, Value up, Value gate, Value down, std::string weight_layout = "kn");
  Value Attention(Value q, Value k, Value v, const AttentionOptions& options);

  // Elementwise, with broadcasting. Operands of different dtypes are cast to their common one.
  Value Add(Value a, Value b) { return Binary("Add", a, b); }
  Value Sub(Value a, Value b) { return Binary("Sub", a, b); }
  Value Mul(Value a, Value b) { return Binary("Mul", a, b); }
  Value Div(Value a, Value b) { return Binary("Div", a, b); }
  Value Max(Value a, Value b) { return Binary("Max", a, b); }
  Value Min(Value a, Value b) { return Binary("Min", a, b); }
  Value Binary(std::string_view op, Value a, Value b);
  Value Unary(std::string_view op, Value x) { return Mir(op, {x}); }
  Value Silu(Value x) { return Unary("Silu", x); }
  Value Gelu(Value x) { return Unary("Gelu", x); }
  Value Relu(Value x) { return Unary("Relu", x); }
  Value Sigmoid(Value x) { return Unary("Sigmoid", x); }
  Value Tanh(Value x) { return Unary("Tanh", x); }
  Value Exp(Value x) { return Unary("Exp", x); }
  Value Where(Value condition, Value a, Value b);
  Value Cast(DType to, Value x);  // x itself when it has the dtype

  Value Reshape(Value x, std::vector<Extent> shape) { return Mir("Reshape", {x}, {{"shape", std::move(shape)}}); }
  Value Transpose(Value x, std::vector<int64_t> perm) { return Mir("Transpose", {x}, {{"perm", std::move(perm)}}); }
  Value Narrow(Value x, int64_t axis, Extent start, Extent length);
  Value Expand(Value x, std::vector<Extent> shape) { return Mir("Expand", {x}, {{"shape", std::move(shape)}}); }
  Value Concat(std::vector<Value> values, int64_t axis) { return Mir("Concat", std::move(values), {{"axis", axis}}); }
  Value Gather(Value table, Value indices, int64_t axis = 0) {
    return Mir("Gather", {table, indices}, {{"axis", axis}});
  }
  Value Softmax(Value x, int64_t axis = -1) { return Mir("Softmax", {x}, {{"axis", axis}}); }
  Value Reduce(std::string op, Value x, std::vector<int64_t> axes, bool keep_dim = false);
  Value MatMul(Value a, Value b, bool transpose_b = false) {
    return Mir("MatMul", {a, b}, {{"transpose_b", transpose_b}});
  }

 private:
  template <typename T>
  T Take(StatusOr<T> result) {
    if (result.ok()) return *std::move(result);
    status_ = result.status();
    return T{};
  }
  Module& module_;
  Status status_;
};

}  // namespace quern::hir
