// What every family needs to write a kernel: parameters for the values of a region, the symbols that occur, origins,
// and the loops around a body.
#pragma once

#include <string>
#include <vector>

#include "codegen/fused_expr.h"
#include "codegen/region.h"
#include "kir/build.h"

namespace quern::codegen {

// The region being lowered, as the families see it.
struct RegionView {
  const ir::Graph& graph;  // that holds the region
  const ir::Node& region;
  const ir::Graph& body;    // with symbols replaced where the guard makes them constant
  std::vector<int> inputs;  // body nodes that are region inputs, in order
  SymbolRanges ranges;
  TargetFacts facts;

  bool IsParam(int input) const { return codegen::IsParam(graph, region, input); }
  bool IsDonated(int input) const { return codegen::IsDonated(graph, region, input); }
  // The region input that `value` is, or -1.
  int InputIndex(ir::Value value) const;
};

class KernelWriter {
 public:
  KernelWriter(const RegionView& view, std::string name);

  // Names of buffers; each is declared at first use.
  std::string Input(int index);
  std::string Result(int index);
  std::string Temporary(int index, const kir::BufferType& type, bool written);
  // A result that takes over an input's memory: one inout parameter.
  std::string UpdatedInput(int index);

  // Provides every region input to `expr` as a load from its parameter.
  void ProvideInputs(FusedExpr& expr);

  // "layers.3/ffn_up: MatMul+Silu" of a body node, as an origin row.
  int Origin(int node);

  // The finished kernel; verified. `kernel.body`, `grid` and `sequential` are the caller's to fill.
  kir::Kernel kernel;
  StatusOr<KernelUse> Finish();

 private:
  std::string Declare(Operand operand, const kir::BufferType& type, kir::Mode mode, int align, std::string prefix);
  const RegionView& view_;
  std::vector<Operand> operands_;
  int last_origin_ = -1;
};

// Upper bound of an extent over the ranges; INT64_MAX when there is none.
int64_t UpperBound(const Extent& extent, const SymbolRanges& ranges);

// The families. Each returns Unimplemented with a reason when the region is not of its kind.
StatusOr<LoweredRegion> LowerMap(const RegionView& view);
StatusOr<LoweredRegion> LowerReduce(const RegionView& view);
StatusOr<LoweredRegion> LowerMatmul(const RegionView& view);
StatusOr<LoweredRegion> LowerAttention(const RegionView& view);
StatusOr<LoweredRegion> LowerUpdate(const RegionView& view);

}  // namespace quern::codegen
