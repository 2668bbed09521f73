// SelectiveSteps: SelectiveScan in f32, with all of its operands: what kernels are made of. A state that is donated is
// written over in place.

#include "ir/selective_scan.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  for (int i = 0; i < static_cast<int>(context.operands.size()); ++i) {
    if (context.operands[i].dtype != DType::kF32) return context.UnsupportedError(i, "f32");
  }
  return InferSelectiveScan(context);
}

}  // namespace

const OpDef& Op_selective_steps() {
  static const OpDef* const op = Make({
      .name = "SelectiveSteps",
      .doc = "SelectiveScan in f32: y and the state",
      .kind = OpKind::kRoot,
      .family = "selective_scan",
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[B, S, H]"},
                   {.name = "delta", .kind = OperandKind::kFloat, .shape = "[B, S, H]"},
                   {.name = "a", .kind = OperandKind::kFloat, .shape = "[H, n] or [H, 1]"},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "[B, S, n]"},
                   {.name = "c", .kind = OperandKind::kFloat, .shape = "[B, S, n]"},
                   {.name = "d", .kind = OperandKind::kFloat, .shape = "[H]"},
                   {.name = "state", .kind = OperandKind::kFloat, .shape = "[B, H, n]"}},
      .infer = Infer,
      .takes_over = Takeover{.result = 1, .operand = kScanState},
      .reference = ReferenceSelectiveScan,
      .rtol = 2e-5,
      .magnitude = MagnitudeOfSelectiveScan,
      .examples = {{{"f32[2, 3, 5]", "f32[2, 3, 5]", "f32[5, 7]", "f32[2, 3, 7]", "f32[2, 3, 7]", "f32[5]",
                     "f32[2, 5, 7]"}},
                   {{"f32[S, 1, 37]", "f32[S, 1, 37]", "f32[37, 16]", "f32[S, 1, 16]", "f32[S, 1, 16]", "f32[37]",
                     "f32[S, 37, 16]"}},
                   {{"f32[2, S, 5]", "f32[2, S, 5]", "f32[5, 1]", "f32[2, S, 19]", "f32[2, S, 19]", "f32[5]",
                     "f32[2, 5, 19]"}}},
  });
  return *op;
}

}  // namespace quern::ir
