// What becomes of each op on a target: its own kernel, other ops, something that a pass made of it, or nothing.
//
//   quern::Result<quern::DispatchReport> report = quern::Dispatch(graph, "ptx");
//   if (report.ok()) std::puts(report->Text().c_str());
//     %3  Attention  native        attention                                layers.0/attention
//     %4  Softmax    common        Reduce, Sub, Exp, Reduce, Div            layers.0/%4
//     %5  MatMul     rewritten     by recognise_attention into Attention
//     %6  Sort       unsupported   no kernel of this form on the target
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quern/graph.h"
#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

enum class DispatchState : uint8_t {
  kNative,       // there is a kernel of the op, or of the family of kernels that takes it with what is around it
  kCommon,       // expanded: `into` are the ops that kernels have
  kRewritten,    // by the pass `by` into the ops `into`; none: it was folded, shared or not needed
  kUnsupported,  // `reason`
};

struct NodeDispatch {
  int node = 0;           // in the graph's ops: %3
  std::string op, label;  // the label of its block
  std::string type;       // of the first result
  DispatchState state = DispatchState::kNative;
  std::string family;  // kNative: of the kernel, "matmul"
  std::string by;      // kRewritten
  std::vector<std::string> into;
  std::string reason;  // kUnsupported
};

struct DispatchReport {
  std::string target;
  std::vector<NodeDispatch> nodes;  // but for inputs, parameters and constants

  std::string Text() const;
  // {"target": .., "nodes": [{"node": 3, "op": .., "label": .., "type": .., "state": "native", ..}]}
  std::string Json() const;
};

// "cpu", "aot" (ahead of time), "c" (plain C), and those of devices: "ptx", "metal".
std::vector<std::string> DispatchTargets();

// For all sizes that the graph may have; of Options, `exact`, `kernels` and, of a cpu, its level count. Errors: that of
// the graph; kInvalid, for an unknown target or policy.
Result<DispatchReport> Dispatch(const Graph& graph, const std::string& target = "cpu", const Options& options = {});

// An op on a target, by its own example: taken, or refused for a reason. In the order of the names.
struct OpOnTarget {
  std::string op;
  bool taken = false;
  std::string reason;
};
// Of the ops that have examples: all but control flow and those of C functions. As docs/ops.md has it, or, which takes
// seconds, by compiling them. Error: kInvalid, for an unknown target.
Result<std::vector<OpOnTarget>> OpsOnTarget(const std::string& target, bool compile = false);

}  // namespace quern
