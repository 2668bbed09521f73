// One graph of a plan, the plan's own or a body, on its way to steps: where its values lie. Internal to BuildPlan.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lir/plan_parts.h"

namespace quern::lir {

// Where a value lies. `version` counts in-place updates of the buffer that had happened when the value was made.
struct Place {
  Argument at;
  int version = 0;
  bool once = false;  // depends on parameters and constants only
};

// Memory that a result is to be written to: the caller's for an output of the graph, or a place.
struct Claimed {
  int output = -1;
  Argument at = {};
};

// The donation to this output, or null.
const ir::Donation* DonationTo(const ir::Graph& graph, int output);

class GraphBuilder {
 public:
  static StatusOr<Plan> BuildRoot(const ir::Graph& graph, PlanParts& parts);

 private:
  // `body`: of the plan's. `prefix`: in front of labels.
  GraphBuilder(PlanParts& parts, const ir::Graph& graph, int body, std::string prefix)
      : parts_(parts), graph_(graph), body_(body), prefix_(std::move(prefix)), places_(graph.nodes().size()) {}

  // The value that `value` is a whole view of.
  ir::Value Root(ir::Value value) const;
  // Has what makes `output` write it there. False: it is nothing that can, or it writes to somewhere else already.
  bool Claim(ir::Value output, Claimed claim);

  Status PlaceNodes();
  Status PlaceNode(int n);
  Status PlaceLeaf(int n);
  Status PlaceView(int n);
  Status PlaceRegion(int n);
  StatusOr<std::vector<int>> AddTemporaries(const family::LoweredRegion& lowered, bool once);
  std::vector<int> AddConstants(const family::LoweredRegion& lowered);
  Status FinishOutputs();
  Status CopyStateToOutputs(int n);

  const Place& PlaceOf(ir::Value value) const { return places_[value.node][value.result]; }
  const Buffer& BufferOf(const Place& place) const { return parts_.plan.buffers[place.at.buffer]; }
  // The place of an operand. Error: its memory has been written over since.
  StatusOr<Argument> Read(ir::Value value) const;
  // Memory for a result that is about to be written: what was claimed for it, or a new buffer.
  // `align`: what is asked of memory that was claimed.
  StatusOr<Place> PlaceResult(ir::Value value, bool once, int64_t align = 1);

  std::string LabelOf(const ir::Node& region, const family::KernelUse& use) const;
  // The launch as the last one of this body so far, or of those that run once.
  void Emit(Launch launch, bool once);
  // The place, or that of a copy, made now, where what is there is aligned to less.
  StatusOr<Argument> Aligned(Argument at, const ir::TensorType& type, int64_t align, bool once);
  // Copies a value of `type` between two places.
  Status EmitCopy(const ir::TensorType& type, Argument from, Argument to, std::string label, bool once = false);

  // ---- place_steps.cc: nodes with bodies.
  Status PlaceStep(int n);
  Status PlaceIf(int n);
  Status PlaceWhile(int n);
  Status PlaceScan(int n);
  Status PlaceCounted(int n);
  // Where an operand of node n lies, that a body writes over to make result `result`: its own place where nothing else
  // reads that memory, else a copy, made here.
  StatusOr<Place> Overwritable(int n, int operand, int result);
  bool MayOverwrite(int n, int operand, int result) const;
  // A carry of a loop: where body and cond find it, and where the next one is to be written; none where the body
  // returns it unchanged, or writes it in place.
  struct CarryPlaces {
    Place current;
    std::optional<Argument> next;
  };
  StatusOr<CarryPlaces> PlaceCarry(int n, int carry, const ir::Graph& body, std::vector<Carry>& carries);
  // Places the carries of loop n after its last trip. Error: a trip overwrites one of `inputs` that the next one reads.
  Status FinishCarries(int n, const std::vector<CarryPlaces>& carries, const ir::Graph& body,
                       const std::vector<Place>& inputs);
  StatusOr<Row> RowsOf(const Argument& whole, const ir::TensorType& type);
  // Body `position` of node n: `inputs` is where its Inputs lie, `outputs` where its outputs are to be; none: they stay
  // where they are.
  StatusOr<int> PlaceBody(int n, int position, std::vector<Place> inputs,
                          const std::vector<std::optional<Argument>>& outputs);
  std::string StepLabel(int n) const;
  // Position of the Input called `name`.
  static int InputIndex(const ir::Graph& graph, std::string_view name);

  PlanParts& parts_;
  const ir::Graph& graph_;
  const int body_;
  const std::string prefix_;
  std::vector<std::vector<Place>> places_;  // by node and result
  std::set<int> copied_outputs_;            // those that FinishOutputs need not look at
  std::map<ir::Value, Claimed> claims_;     // results that are written to a certain place
  std::vector<Place> given_;                // of the Inputs of a body
  size_t next_input_ = 0;
};

}  // namespace quern::lir
