// What every family needs to write a kernel: parameters for the values of a region, the symbols that occur, origins,
// and the loops around a body.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/fused_expr.h"
#include "codegen/region.h"
#include "family/lowered_region.h"
#include "family/region_view.h"
#include "kir/build.h"

namespace quern::codegen {

using family::KernelUse;
using family::LoweredRegion;
using family::Operand;
using family::RegionPlan;
using family::RegionView;

class KernelWriter {
 public:
  KernelWriter(const RegionView& view, std::string name);

  // Names of buffers; each is declared at first use.
  std::string Input(int index);
  std::string Result(int index);
  std::string Temporary(int index, const kir::BufferType& type, bool written);
  // A result that takes over an input's memory: one inout parameter.
  std::string UpdatedInput(int index);
  // Declares an input with other extents, and perhaps in another layout or of another dtype, before it is first used:
  // the same bytes.
  void DeclareAs(int input, std::vector<Extent> dims, std::optional<kir::Layout> layout = std::nullopt,
                 std::optional<DType> dtype = std::nullopt) {
    declared_as_[input] = {std::move(dims), layout, dtype};
  }
  // The same for a buffer that has been declared.
  void Redeclare(const std::string& buffer, std::vector<Extent> dims);

  // Provides every region input to `expr` as a load from its parameter.
  void ProvideInputs(FusedExpr& expr);

  // "layers.3/ffn_up: MatMul+Silu" of a body node, as an origin row.
  int Origin(int node);

  // The finished kernel; verified. `kernel.body`, `grid` and `sequential` are the caller's to fill.
  kir::Kernel kernel;
  StatusOr<KernelUse> Finish();
  // The region that this kernel alone computes.
  StatusOr<LoweredRegion> FinishRegion();

 private:
  std::string Declare(Operand operand, const kir::BufferType& type, kir::Mode mode, int align, std::string prefix);
  const RegionView& view_;
  std::vector<Operand> operands_;
  int last_origin_ = -1;
  struct DeclaredAs {
    std::vector<Extent> dims;
    std::optional<kir::Layout> layout;
    std::optional<DType> dtype;
  };
  std::map<int, DeclaredAs> declared_as_;
};

}  // namespace quern::codegen
