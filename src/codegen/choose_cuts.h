// Where a long loop body is cut into several loops, for CutLoops: the order of its steps, and after which of them a
// loop ends. One long body pays for its length: its values do not fit the registers, its rounds do not overlap in the
// processor's window, so that a chain of steps waits for each of them, and its code does not fit where decoded
// instructions are kept. Each cut pays for what crosses it, which is written to memory near by and read again.
//
//   ChooseCuts({{.operands = {}}, {.operands = {0}}, ..}, {.registers = 32})      {{0, 1, 3}, {2, 4}}
//
// The costs are a model of first order, in cycles of one round of one vector; its constants are of no machine in
// particular.
#pragma once

#include <span>
#include <vector>

namespace quern::codegen {

// A value that the body computes in every round.
struct BodyStep {
  std::vector<int> operands = {};  // earlier steps, without repeats
  int work = 1;                    // instructions
  int latency = 4;                 // cycles from its operands to its result
};

struct CutFacts {
  int registers = 32;
  double rounds = 64;  // of a loop, over which its start and its end are shared out
  // Loops that one body becomes at most, unless all are as long as they may be: code generators are made for functions
  // of so many.
  static constexpr size_t kMostLoops = 256;
  size_t loops = kMostLoops;
};

// The steps of each loop, in order: operands before what they are operands of, within a loop and across them. One loop
// where cutting does not pay. Deterministic; the time is about linear in the steps.
std::vector<std::vector<int>> ChooseCuts(std::span<const BodyStep> steps, const CutFacts& facts);

}  // namespace quern::codegen
