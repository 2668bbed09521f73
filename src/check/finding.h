// What a check found: the first op outside of its contract, or the first that makes a NaN, with what a person needs to
// go on.
//
//   MatMul of layers.3/ffn/down is outside of its contract (ref): f32[1, 64] at [0, 17] is 0.5, 0.25 expected, at
//   most 3e-5 off
//     region: MatMul, Add
//     kernel: matmul (layers.3/ffn/down: MatMul)
//     wrong: 12 of 64 elements
//     operand: i0 f32[1, 64]: -1.5 to 2.25
//     reproduction: quern replay ./check-layers.3-ffn-down-MatMul.qir
#pragma once

#include <string>
#include <vector>

#include "check/oracle.h"
#include "ir/graph.h"

namespace quern::check {

enum class Kind { kRef, kNan };

struct Finding {
  Kind kind = Kind::kRef;
  std::string op = {};              // "MatMul"
  std::string block = {};           // label path of its HIR block; empty when unknown
  bool given = false;               // kNan: the op does not make it but reads it from outside,
  std::string holder = {};          // and this Input or Param holds it
  bool alone = false;               // kNan: the kernel makes it where the interpreter has a number
  bool fused = false;               // the ops of the region are right one by one: `op` is the one that makes its result
  std::string type = {};            // of the value: "f32[1, 64]"
  std::vector<int64_t> index = {};  // the worst element
  double got = 0, expected = 0, allowed = 0;
  std::string got_text = {}, expected_text = {};  // kRef: the numbers with all their places
  int64_t wrong = 0, elements = 0;                // how many are
  std::vector<std::string> ops = {};              // of the region, in order
  std::vector<std::string> kernels = {};          // "matmul (layers.3/ffn/down: MatMul)"
  std::vector<std::string> operands = {};         // what went into the element, or the range of what went into the op
  std::vector<std::string> classes = {};          // "negative", "inf", .. of these, as far as they decide what is made
  std::string note = {};                          // how it came about, where there is more to say
  std::string reproduction = {};                  // path of the .qir, or why there is none

  // What stays the same while a reproduction becomes smaller: the op, the kind, and of a NaN or an infinity what sort
  // of operands it was made of. "Log makes a NaN of negative", "MatMul is outside of its contract".
  std::string Signature() const;
  // The first line is a sentence; the others are indented.
  std::string ToString() const;
};

// Names the node that makes `value`, the element and its operands. `values`: of all nodes of `graph`.
void Describe(const ir::Graph& graph, ir::Value value, int64_t element, const Evaluation& values, Finding& finding);

// The finding of an output that is off.
Finding FindingOf(const ir::Graph& graph, const Difference& difference, const Evaluation& values);

}  // namespace quern::check
