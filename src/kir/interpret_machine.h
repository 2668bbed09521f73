// Executes a resolved kernel; private to the interpreter. interpret_eval.cc: expressions and slices;
// interpret_stmt.cc: statements of one agent; interpret_block.cc: blocks of threads; interpret.cc: chunks.
//
// Agents are what runs at once in a chunk: on a CPU the worker alone, in a kernel of threads the block, its warps or
// its threads. Each has its own scalars and tiles. They go through the statements together, one after the other at
// each, so a run is deterministic; what hardware might do in another order is a race, which the watch on memory
// reports.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kir/interpret_program.h"

namespace quern::kir::interpret {

class Machine {
 public:
  explicit Machine(Program& program);
  Status Run(int64_t begin, int64_t end);

 private:
  struct Agent {
    std::vector<Value> slots;
    std::vector<View> views;
    std::deque<Memory> own;    // tiles
    int first = 0, count = 0;  // its threads
  };
  using Agents = std::vector<Agent*>;

  // ---- interpret_eval.cc
  bool FailWith(const std::string& message);
  std::string ElementText(const View& view, const int64_t* index) const;
  // Evaluates indices; false when outside the view.
  bool Inside(const View& view, const std::vector<NodeRef>& nodes, int64_t* index);
  bool Check(Fault fault, const View& view, const int64_t* index);
  bool OutOfRange(const View& view, const int64_t* index);
  Value Load(const Node& node);
  double DecodeAt(const Node& node);
  double Real(const Node& node);
  int64_t Integer(const Node& node);
  uint64_t BitsOf(const Node& node);
  Value Evaluate(const Node& node);
  // The part of a buffer that a slice names, ranges clipped.
  bool Cut(const SliceNode& slice, View& cut);

  // ---- interpret.cc
  void Execute(const Steps& steps);
  // ---- interpret_stmt.cc
  void ExecuteOne(const Step& step);
  void RunStore(const Step& step);
  void FillTile(const Step& step);
  // Loops over dimension `dim` and those below it.
  void MapOver(const Step& step, size_t dim);
  void Call(const Step& step);
  void RunPack(const Step& step);

  // ---- interpret_block.cc
  void RunBlock();
  void Select(Agent& agent);
  void Together(const Steps& steps, const Agents& agents);
  void TogetherOne(const Step& step, const Agents& agents);
  void LoopTogether(const Step& step, const Agents& agents);
  void OpenThreads(const Step& step, const Agents& parents);
  void RunPipeline(const Step& step, const Agents& agents);
  void RunShuffle(const Step& step, const Agents& agents);
  void RunCopy(const Step& step, const Agents& agents);
  void Barrier(const Agents& agents);
  bool WholeBlock(const char* what, const Agents& agents);
  bool Agree(const Node& node, const Agents& agents, int64_t& value);

  Program& program_;
  std::vector<Value> root_slots_;
  Value* slots_;  // of the agent that runs
  View* views_;
  std::vector<const Step*> calls_;  // tile calls whose meaning is running
  const Step* step_ = nullptr;
  int64_t chunk_ = 0;
  // Inside of a tile call, while what is stored is computed: whether a read of what nobody wrote makes no fault, but an
  // element of the tile that has no value either; and whether there was one. The first of them, for who reads such an
  // element.
  bool forgives_ = false, vague_ = false;
  std::string forgiven_;
  bool failed_ = false;
  Status error_;
};

}  // namespace quern::kir::interpret
