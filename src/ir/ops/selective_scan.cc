// SelectiveScan: a state of n numbers for each channel that decays by a step of its own for each token (Mamba). `delta`
// is used as given; the state is f32 whatever the operands are.
//
//   x, delta [B, S, H]   a [H, n] or [H, 1]   b, c [B, S, n]   d [H]   state [B, H, n]
//   h <- e^(delta a) h + delta x b    y = sum_n h c + d x

#include "ir/selective_scan.h"
#include "ir/composite.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  std::vector<Value> operands;
  for (size_t i = 0; i < inputs.size() && i <= kScanD; ++i) operands.push_back(e.Wide(inputs[i]));
  const Value zero = e.Scalar(0, DType::kF32);
  const auto zeros = [&](const std::vector<Extent>& dims) { return e.Add("Expand", {zero}, {{"shape", dims}}); };
  if (operands.size() == kScanD) operands.push_back(zeros({node.results[1].dims[1]}));
  operands.push_back(inputs.size() > kScanState ? inputs[kScanState] : zeros(node.results[1].dims));
  const Value y = e.Add("SelectiveSteps", operands);
  return e.Finish({e.Stored(y, node.results[0].dtype), {y.node, 1}});
}

}  // namespace

const OpDef& Op_selective_scan() {
  static const OpDef* const op = Make({
      .name = "SelectiveScan",
      .doc = "a state of n numbers for each channel that every token decays and adds to: y and the state",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[B, S, H]"},
                   {.name = "delta", .kind = OperandKind::kFloat, .shape = "[B, S, H]"},
                   {.name = "a", .kind = OperandKind::kFloat, .shape = "[H, n] or [H, 1]", .own_dtype = true},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "[B, S, n]"},
                   {.name = "c", .kind = OperandKind::kFloat, .shape = "[B, S, n]"},
                   {.name = "d", .kind = OperandKind::kFloat, .shape = "[H]", .optional = true, .own_dtype = true},
                   {.name = "state",
                    .kind = OperandKind::kFloat,
                    .shape = "f32 [B, H, n]; absent: zeros",
                    .optional = true,
                    .own_dtype = true}},
      .infer = InferSelectiveScan,
      .reference = ReferenceSelectiveScan,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = MagnitudeOfSelectiveScan,
      .examples = {{{"f32[2, 3, 5]", "f32[2, 3, 5]", "f32[5, 7]", "f32[2, 3, 7]", "f32[2, 3, 7]"}},
                   {{"f16[S, 1, 37]", "f16[S, 1, 37]", "f32[37, 16]", "f16[S, 1, 16]", "f16[S, 1, 16]", "f32[37]",
                     "f32[S, 37, 16]"}},
                   {{"f32[2, S, 5]", "f32[2, S, 5]", "f32[5, 1]", "f32[2, S, 19]", "f32[2, S, 19]"}}},
  });
  return *op;
}

}  // namespace quern::ir
