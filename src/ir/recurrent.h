// What Lstm, Gru and Rnn have in common: ONNX's operands, directions and results; one Scan a direction, whose body is a
// cell, behind one product of all tokens with the input weights; and the loops of the reference.
//
//   x [S, B, I]   w [D, gates H, I]   r [D, gates H, H]   b [D, 2 gates H], of w and then of r
//   initial states [D, B, H]   lens i32 [B]   ->   y [S, D, B, H], and the last states [D, B, H]
//
// D is 2 where both directions are asked for, else 1. What b, lens or states add where they are absent is nothing:
// zeros, and S tokens for each sequence. Behind its last token a sequence has results of 0, and keeps its state.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// Positions of the operands; the initial states come at kNetStates, then lens, then what one op alone has. ONNX has
// lens before the states: here it is the rarer one that needs the others.
enum : int { kNetX, kNetW, kNetR, kNetB, kNetStates };

struct Recurrent {
  int gates = 1, states = 1;
  constexpr int lens() const { return kNetStates + states; }
  constexpr int extra() const { return lens() + 1; }
};

// The operands of such an op up to its states, `states` of them by these names.
std::vector<OperandDef> RecurrentOperands(int gates, const std::vector<const char*>& states);
// `direction` and `clip`, and what one op has beside them.
std::vector<AttrDef> RecurrentAttributes(std::vector<AttrDef> own);
// ONNX's default for HardSigmoid, clamp(alpha x + beta, 0, 1), which is the only one here.
inline constexpr double kHardSigmoidAlpha = 0.2, kHardSigmoidBeta = 0.5;
// Which function it is, of those of ONNX that need no numbers.
AttrDef ActivationAttribute(const char* name, const char* usual, const char* doc);
bool IsActivation(const std::string& name);
// The types of y and of the last states.
StatusOr<std::vector<TensorType>> InferRecurrent(const InferContext& context, const Recurrent& net);

// A cell in a graph: makes the next states, h first, of what the tokens of a step give all gates, [B, gates H], with
// all biases but those of `own_bias`, the states, r [gates H, H], and the bias of r [gates H] where it is kept apart.
struct CellInputs {
  Value gates;
  std::vector<Value> states;
  Value r, bias, extra;  // `extra`: [1, ..], of the operand behind the states
  Extent hidden;
  double clip = 0;
};
using Cell = std::function<std::vector<Value>(Expansion& body, const CellInputs& in)>;
// `apart`: how many of the gates, the last ones, take the bias of r by themselves.
StatusOr<std::vector<Value>> ExpandRecurrent(Graph& graph, const Node& node, std::span<const Value> inputs, int origin,
                                             const Recurrent& net, int apart, const Cell& cell);
// Columns of gate `gate` of [B, gates H]; the value within the clip, if there is one.
Value Gate(Expansion& body, Value gates, const Extent& hidden, int64_t gate);
Value Clipped(Expansion& body, Value x, double clip);
// The function by the name that an attribute gives it.
Value Activated(Expansion& body, const std::string& name, Value x);
double Activated(const std::string& name, double x);
// h r^T, of the rows of r that `count` gates from `gate` on have.
Value FromHidden(Expansion& body, Value h, Value r, const Extent& hidden, int64_t gate, int64_t count);

// A cell in double. What w and its bias give gate g of element j; what r gives it of a vector in the place of h, and
// the bias of r.
struct RefCell {
  int64_t direction = 0;
  std::function<double(int gate, int64_t j)> input, bias;
  std::function<double(int gate, int64_t j, const std::function<double(int64_t)>& h)> hidden;
  std::function<double(int state, int64_t j)> state;
  double clip = 0;
  double Clip(double x) const;
};
// Calls `make` for each element j of each step: it gives that of the next states. With `bound`, results are replaced by
// what roundings are relative to.
Status ReferenceRecurrent(RefContext& context, const Recurrent& net, bool bound,
                          const std::function<std::vector<double>(const RefCell&, int64_t j)>& make);

}  // namespace quern::ir
