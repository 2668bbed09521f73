// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) in graphs and in plain
// integers. A state is u32[6]: the counter, low word first, then the key. Block b of an op is that of the counter plus
// b; the counter is returned advanced by as many blocks as the op read.
#pragma once

#include <array>
#include <cstdint>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// That operand `operand` is a state.
Status CheckRandomState(const InferContext& context, int operand);
inline TensorType RandomStateType() { return {DType::kU32, {Extent(6)}}; }
// What ops declare it as.
OperandDef RandomStateOperand();
// The results of an op that makes numbers of this dtype of a state, operand 0: as many as its attribute "shape" says,
// extents that are not negative, and the state behind them.
StatusOr<std::vector<TensorType>> InferRandom(const InferContext& context, DType dtype);

// ceil(words / 4) blocks behind a state: word w of block b is element b of lane w, u64 [blocks] below 2^32.
struct RandomLanes {
  std::array<Value, 4> lanes;
  Value state;  // behind them
};
RandomLanes RandomWords(Graph& graph, Expansion& e, Value state, const Extent& words, int origin);
// Elements 4 b + w from lanes w [blocks], as many as `dims` have.
Value Interleaved(Expansion& e, const std::array<Value, 4>& lanes, const std::vector<Extent>& dims);
// (word >> 8) 2^-24 of a word: f32, at least 0 and below 1.
Value UnitOf(Graph& graph, Expansion& e, Value word, int origin);
// That of as many words as `dims` have elements, and the state behind them.
std::pair<Value, Value> RandomUnits(Graph& graph, Expansion& e, Value state, const std::vector<Extent>& dims,
                                    int origin);

// The words behind a state of the interpreter; `state` is advanced by the blocks that they take.
std::vector<uint32_t> ReferenceWords(const RefTensor& state, int64_t count, RefTensor& after);
inline double ReferenceUnit(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

}  // namespace quern::ir
