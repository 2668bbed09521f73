// What the ops with bodies that a plan runs as steps (If, While, Scan) have in common.
//
//   %3:2 = While(%0, %1, %2) {carries = 2, max = 0} : i64[], f32[8]
//     cond graph cond { ... return %n }        # Inputs: both carries, then the capture %2; makes bool[]
//     body graph body { ... return %n, %m }    # the same Inputs; makes the next carries
// Operands that change from trip to trip (carries) come first; what a body only reads (captures) comes last.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

// Position of a body of If.
enum : int { kThen = 0, kElse = 1 };
// Bodies of While; Scan has the one called body.
enum : int { kWhileCond = 0, kWhileBody = 1 };

// That something of a node, "carry 2", has another type than is expected.
Status OtherType(const OpDef& op, std::string what, const TensorType& got, const TensorType& expected);

// Fails unless the Inputs of `body` have these types, in order.
Status CheckBodyInputs(const OpDef& op, const char* name, const Graph& body, std::span<const TensorType> types);

// How many of the last bodies that the op names a node may lack.
size_t OptionalBodies(const OpDef& op);

// Types of what a body returns.
std::vector<TensorType> OutputTypes(const Graph& body);

// The nodes of `body` appended to `graph`, with `inputs` in place of its Inputs; what it returns. A Param is the one of
// that name that the graph has, or a new one. Labels of the body stand behind that of `origin`.
StatusOr<std::vector<Value>> AddBody(Graph& graph, const Graph& body, std::span<const Value> inputs, int origin);

// Whether it is an If: bodies of which one runs, and operand 0 says which.
bool IsBranch(const Node& node);
// Whether result `result` of a node with bodies is made row by row, one each trip (Scan).
bool IsStacked(const Node& node, int result);

// How many of the leading operands of a While or Scan are carries.
int Carries(const Node& node);

}  // namespace quern::ir
