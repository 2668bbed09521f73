// SelectiveScan: the op of that name, in which a d that is absent before a state is zeros.

#include "ir/selective_scan.h"
#include "hir/op_block.h"

namespace quern::hir {
namespace {

bool LacksD(const auto& c) { return c.has(ir::kScanState) && !c.has(ir::kScanD); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const TensorType& x = c.operand(ir::kScanX);
  if (!LacksD(c) || x.rank() != 3) return InferOpBlock(c);
  const TensorType d = {DType::kF32, {x.dims[2]}};
  std::vector<const TensorType*> operands(c.operands.begin(), c.operands.end());
  operands[ir::kScanD] = &d;
  return InferOpBlock({c.block, c.label, operands, c.attributes, c.symbols, c.node});
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  std::vector<ir::Value> operands = c.inputs;
  if (LacksD(c)) operands[ir::kScanD] = c.Zeros({DType::kF32, {c.type(c.inputs[ir::kScanX]).dims[2]}});
  return LowerOpBlock(c, std::move(operands));
}

}  // namespace

const BlockDef& Block_selective_scan() {
  static const BlockDef* const block = [] {
    BlockDef def = OpBlock("SelectiveScan", "selective_scan", "selective_scan_carry");
    def.infer = Infer;
    def.lower = Lower;
    return Make(std::move(def));
  }();
  return *block;
}

}  // namespace quern::hir
