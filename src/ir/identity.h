// Identities: what an op is when its operands are what they are, x * 1 or a Transpose of a Transpose. Each stands in
// the file of its op (OpDef::identity); here is what they have in common. All hold bit for bit, those of floats with
// NaN and signed zeros: x * 1, x / 1, x - 0 and x + (-0) are x; x + 0 is not, for -0 + 0 is 0.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

// Adds a node to the graph that a pass makes, at the place of an old one; operands are values of that graph.
using MakeNode =
    std::function<StatusOr<Value>(std::string_view op, std::vector<Value> operands, Attributes attributes)>;

// What an identity sees: a node about to be written, over operands that were simplified.
struct IdentityContext {
  const Node& node;
  const Graph& graph;  // in which the operands lie
  const std::vector<Value>& inputs;
  const MakeNode& make;

  const TensorType& result() const { return node.results[0]; }
  const TensorType& type(size_t operand) const { return graph.type(inputs[operand]); }
  // The node that makes an operand.
  const Node& behind(size_t operand) const { return graph.node(inputs[operand].node); }
};

// f(x) = x where x has the type of the result already.
Replacement Unchanged(const IdentityContext& context);
// f(f(x)) = x.
Replacement Involution(const IdentityContext& context);
// f(f(x)) = f(x).
Replacement Idempotent(const IdentityContext& context);
// Operand 0 beside the scalar `neutral`; with `commutes` operand 1 as well. Not where it would have to be broadcast.
Replacement Neutral(const IdentityContext& context, double neutral, bool commutes);
// `x` with the extents of the result, past all Reshapes behind it.
Replacement Reshaped(const IdentityContext& context, Value x);

// A value as dimension perm[d] of `x` with the extents `dims`, which are its own or runs of them joined: a Transpose
// behind which neighbours that stay together were made one, or nothing was.
struct TurnedView {
  Value x;
  std::vector<Extent> dims;
  std::vector<int64_t> perm;
};
std::optional<TurnedView> AsTurned(const Graph& graph, Value value);
// x with the extents `dims`.
StatusOr<Value> WithoutTurning(const MakeNode& make, const Graph& graph, const TurnedView& view);

// The table whose rows, all of them in their order, a Gather of `value` has: of a block format those as numbers.
// Nothing for any other node.
std::optional<Value> AllRowsOf(const Graph& graph, Value value);

// The value of a Constant of one element, of 64-bit integers the nearest double; nullopt for any other node.
std::optional<double> ScalarConstant(const Graph& graph, Value value);
// The same of a Constant of any number of elements, which are all alike.
std::optional<double> UniformConstant(const Graph& graph, Value value);

// Nodes that passes put beside others, by what they are for.
// The same values in a buffer of their own.
StatusOr<Value> MakeCopy(const MakeNode& make, Value x, DType dtype);
// f32 rows in an int8 format.
StatusOr<Value> MakeQuantised(const MakeNode& make, Value x, DType format);
// The slices of `table` along its outermost dimension that `indices` names.
StatusOr<Value> MakePicked(const MakeNode& make, Value table, Value indices);
// Each element of x [count] so many times, one behind the other: [count * times].
StatusOr<Value> MakeRepeated(const MakeNode& make, Value x, const Extent& count, const Extent& times);
// A matrix with rows and columns exchanged.
StatusOr<Value> MakeTransposed(const MakeNode& make, Value matrix);
// Dimension d of the result is dimension perm[d] of x.
StatusOr<Value> MakePermuted(const MakeNode& make, Value x, std::vector<int64_t> perm);
// The same elements in row-major order with other extents.
StatusOr<Value> MakeReshaped(const MakeNode& make, Value x, std::vector<Extent> dims);
StatusOr<Value> MakeNot(const MakeNode& make, Value x);
// condition ? a : b.
StatusOr<Value> MakeChoice(const MakeNode& make, Value condition, Value a, Value b);

}  // namespace quern::ir
