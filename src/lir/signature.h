// What the outside of a model looks like: its inputs, outputs, parameters, states and symbols.
//
//   llama: inputs ids i32[SEQ]; outputs 0 f32[LOGITS, 32000]; params token_embd.weight q4_K[32000, 2048], ...;
//          states layers.0.k_cache f16[512, 4, 64], ...; symbols LOGITS in 1..256, PAST_SEQ in 0..511, SEQ in 1..256
#pragma once

#include <string>
#include <vector>

#include "base/extent.h"
#include "ir/counted.h"
#include "ir/graph.h"

namespace quern {

// Something with a name and a type at the border of a model.
struct Port {
  std::string name;
  ir::TensorType type;
  int output = -1;  // outputs: index into the graph's
};

struct Signature {
  std::string name;           // of the graph: where errors of a run say they come from
  std::vector<Port> inputs;   // without those that are donated
  std::vector<Port> outputs;  // likewise; named "0", "1", ... by their index among the graph's outputs
  std::vector<Port> params;
  std::vector<Port> states;  // donated inputs
  SymbolRanges symbols;      // that a run is given
  ir::CountedSizes counted;  // those that it finds, which types of outputs may name: with the most that each may be
  std::vector<std::string> counted_in_bodies;  // those that trips and branches find: of the steps alone
};
Signature SignatureOf(const ir::Graph& graph);

// The symbols that values have in a run, sorted: those that it is given, with their ranges, and those that it finds.
SymbolRanges AllSymbols(const Signature& signature);

// What a caller gives memory for: the output as large as it may be. Its elements lie dense at the start, however many a
// run finds.
Port RoomFor(const Signature& signature, Port output);

// Bytes of a port's memory; `parameter`: in the form of a model file.
Extent BytesOf(const Port& port, bool parameter);

}  // namespace quern
