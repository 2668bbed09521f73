// What all graphs of one plan share while it is built: its tables, and what they have of kernels already. Internal to
// BuildPlan.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/counted.h"
#include "lir/plan.h"

namespace quern::lir {

// Bytes of a buffer; symbols that `kernel`, where there is one, derives count as their upper bound.
StatusOr<Extent> BytesOf(const kir::BufferType& type, const SymbolRanges& ranges, const kir::Kernel* kernel);

// A region as kernels, and those that the plan has of them already. A model repeats its regions layer by layer: they
// are lowered, and verified, once.
struct LoweredOnce {
  const ir::Graph* graph;
  int node;
  family::LoweredRegion region;
  std::map<std::pair<size_t, std::vector<int>>, int> interned;  // by its kernel and the alignment of the parameters
};

class PlanParts {
 public:
  PlanParts(const SymbolRanges& ranges, const family::TargetFacts& facts) : facts(facts) { plan.ranges = ranges; }

  const family::TargetFacts& facts;
  Plan plan;
  std::vector<int> versions;          // by buffer: in-place updates so far
  std::map<std::string, int> params;  // buffers, by name
  ir::CountedSizes counted;           // sizes that steps find: buffers have room for the most that they may be
  std::set<std::string> found;        // those that steps so far find

  int AddBuffer(Buffer buffer);
  // A buffer of a value of this type.
  StatusOr<int> AddBuffer(Home home, const ir::TensorType& type, int index = -1);
  // The region with the kernels that it, or one like it, lowers to. `graph` outlives the plan's making.
  StatusOr<LoweredOnce*> Lower(const ir::Graph& graph, int node);
  // The index of `kernel` among the plan's, where one with the same canonical text and symbols may stand already.
  // `call`: the function that computes it, or null.
  int Intern(kir::Kernel kernel, const ir::CustomDef* call = nullptr);
  void Require(const ir::ExtentConstraint& constraint);
  // Takes the requirements out of the plan's whose last symbol to be found is this one.
  std::vector<Requirement> TakeRequirements(const std::string& symbol);
  // What the memory behind an argument is aligned to.
  int64_t AlignmentOf(const Argument& argument) const;
  // Whether a carried input, or what a loop started with one, lies there.
  bool MayBeState(int buffer) const;
  // What `MayBeState` knows of carries.
  void AddCarry(const Carry& carry) { initial_[carry.current] = carry.initial.buffer; }

  // Offsets in the arena, and in the memory of what depends on parameters alone.
  void PlaceMemory();

 private:
  // What kernels may do with the values of a graph, by node.
  const std::vector<family::Memory>& MemoryOf(const ir::Graph& graph);

  std::deque<LoweredOnce> lowered_;  // by pointer: they stay where they are
  std::map<const ir::Graph*, std::vector<family::Memory>> memory_;
  std::map<Hash128, int> kernels_;
  std::map<int, int> initial_;  // by `current` of a carry: the buffer of its operand
};

}  // namespace quern::lir
