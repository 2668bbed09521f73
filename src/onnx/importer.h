// The table of importers: one ONNX op, one row; and what the function of a row is given, a Call.
//
//   {"Relu", SameOp, "Relu"},                 // an op of ours does the same
//   {"LogSoftmax", SoftmaxLike, "LogSoftmax"}
//
//   void Neg2(Call& c) { c.Return(c.Add("Neg", {c.Add("Neg", {c.x(0)})})); }
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/composite.h"
#include "ir/op.h"
#include "onnx/scope.h"

namespace quern::onnx {

using ir::Value;
using Values = std::vector<Value>;
using Ints = std::vector<int64_t>;
using Extents = std::vector<Extent>;

class Call;

inline constexpr const char* kContrib = "com.microsoft";  // a domain

struct Importer {
  const char* name;  // of the ONNX op
  void (*import)(Call& call);
  const char* op = "";  // of the one that does most of it, for functions that several rows share
  int inputs = 1;       // that must be there, from the first on
  const char* domain = "";
  bool any_items = false;  // takes sequences and optionals that are absent too
};

// A node on its way into a graph. The first error sticks: what is added after it is nothing, and functions return
// values and numbers that may be used. Values that are returned are always of the graph.
class Call {
 public:
  Call(Scope& scope, const format::Node& node, const Importer& row, int64_t opset, int depth);

  Scope& scope;
  Session& session;
  Builder& builder;
  const format::Node& node;
  const Importer& row;
  const int64_t opset;  // version of the ops of the node's domain
  const int depth;

  // Operands.
  int inputs() const { return node.input_size(); }
  bool Has(int i) const { return i < inputs() && !node.input(i).empty(); }
  const Item& item(int i);
  Value x(int i);
  Values all();  // every operand
  const ir::TensorType& type(Value value) const { return builder.graph.type(value); }
  DType dtype(Value value) const { return type(value).dtype; }
  int rank(Value value) const { return type(value).rank(); }
  // The size of a dimension; 1 where there is no such dimension, which is an error.
  Extent dim(Value value, int64_t axis);
  int64_t fixed_dim(Value value, int64_t axis);  // a number: else an error
  // From the start; in range, or an error and 0.
  int64_t Axis(int64_t axis, int64_t rank);

  // Attributes.
  const format::Attribute* Find(std::string_view name) const;
  int64_t Int(std::string_view name, int64_t otherwise) const;
  double Float(std::string_view name, double otherwise) const;
  std::string Str(std::string_view name, std::string_view otherwise) const;
  Ints IntList(std::string_view name) const;
  std::vector<double> FloatList(std::string_view name) const;
  std::vector<std::string> StrList(std::string_view name) const;

  // What is known of values before anything runs: numbers, or symbols of small tensors of integers.
  std::optional<Extents> MaybeExtents(Value value);
  Extents ExtentsOf(Value value);  // or an error
  std::optional<Ints> MaybeInts(Value value);
  Ints IntsOf(Value value);  // or an error
  std::optional<std::vector<double>> MaybeReals(Value value);
  std::vector<double> RealsOf(Value value);  // or an error
  std::vector<double> NumbersOf(int i);      // likewise of operand i, however many where they are data of the file
  // A size that only these values give: a symbol, unless what else the graph says of it solves it.
  Extent OpenSize(const Values& from);
  // A size of at most that many, which each run finds: a symbol.
  Extent FoundSize(const Extent& most);
  // Operand i, or an attribute that it was before; nothing where neither is given.
  std::optional<Ints> IntsFrom(int i, std::string_view attribute);

  // Nodes.
  Value Add(std::string_view op, Values inputs, ir::Attributes attributes = {});
  Values AddAll(std::string_view op, Values inputs, ir::Attributes attributes = {},
                std::vector<std::shared_ptr<const ir::Graph>> bodies = {});
  // What a chain of nodes over `from` gives, as composites add them.
  Value Chain(const Values& from, const std::function<Value(ir::Expansion& e)>& make);
  Value Constant(ir::TensorType type, std::vector<uint8_t> bytes);
  // Bytes that the graph reads as a parameter; the name is made one that is free.
  Value Param(std::string name, ir::TensorType type, std::vector<uint8_t> bytes);
  Value Scalar(double value, DType dtype);
  Value Like(double value, Value like) { return Scalar(value, dtype(like)); }
  Value Integers(const Ints& values);  // i64 [n]
  Value Reals(const std::vector<double>& values, DType dtype, Extents dims);
  Value Size(const Extent& extent);     // i64 []
  Value Sizes(const Extents& extents);  // i64 [n]
  Value Filled(double value, DType dtype, const Extents& dims);
  Value Cast(Value value, DType to);
  Value Reshape(Value value, const Extents& dims);
  Value Transpose(Value value, const Ints& perm);
  Value Expand(Value value, const Extents& dims);
  Value Slice(Value value, int64_t axis, const Extent& start, const Extent& length);
  Value Reduce(const char* op, Value value, const Ints& axes, bool keep);
  // Both in one dtype of floats that arithmetic is done in: f32 for halves and integers of up to 16 bits.
  Value Wide(Value value);

  void Return(Value value) { Return(0, value); }
  void Return(int output, Value value) { ReturnItem(output, TensorItem(value)); }
  void ReturnItem(int output, Item item);
  bool Wants(int output) const { return output < node.output_size() && !node.output(output).empty(); }

  void Fail(Status status);
  template <typename... Args>
  void Fail(const absl::FormatSpec<Args...>& format, const Args&... args) {
    Fail(absl::UnimplementedError(absl::StrFormat(format, args...)));
  }
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  std::string Where() const;  // "Conv conv_1": the op, and the name of the node or of its first result
  int origin() const { return origin_; }

 private:
  Value Nothing();
  void Refuse(const Values& inputs, const Status& status);

  Status status_;
  int origin_;
};

// The row of an op, or null. An empty domain is that of ONNX.
const Importer* FindImporter(std::string_view domain, std::string_view name);
// All rows, by domain and name.
std::vector<const Importer*> Importers();

// What many rows share.
void SameOp(Call& c);  // the operands as they are, no attributes

}  // namespace quern::onnx
