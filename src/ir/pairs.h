// c64 as pairs: what ops over complex numbers are to kernels. There a value c64[dims] is f32[dims, 2], re and im, which
// are the same bytes; an op says in OpDef::pairs what it does with those, and opt/complex_as_pairs.cc asks it.
#pragma once

#include <span>
#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// What `pairs` sees of a node.
struct PairsContext {
  Expansion& e;
  const Node& node;
  std::span<const TensorType> types;  // of the operands as the node has them
  std::span<const Value> x;           // the operands: those of c64 as pairs

  bool IsPair(size_t operand) const { return IsComplex(types[operand].dtype); }
  size_t rank(size_t operand) const { return types[operand].dims.size(); }
};

// The parts of pairs f32[dims, 2], f32[dims]; and pairs of two parts that broadcast, of which one may be a number.
struct Parts {
  Value re, im;
};
Parts PartsOf(Expansion& e, Value pairs);
Value PairsOf(Expansion& e, const Parts& parts);

// Of ops that do the same to re and im: the node over pairs, its attributes `axis` or `axes` counted from the start.
StatusOr<std::vector<Value>> SameOfPairs(const PairsContext& context);

// The real type of c64 operand 0's dimensions: what infers a part of it, or a size.
StatusOr<std::vector<TensorType>> InferRealOfComplex(const InferContext& context);
// Real and Imag.
const OpDef* PartOfComplex(const char* name, const char* doc, bool imaginary);

}  // namespace quern::ir
