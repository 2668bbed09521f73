// Scan: the body over the carries and one row of each x, row by row; what else it returns is stacked.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/control.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const OpDef& op = context.op;
  const Attributes& attributes = context.attributes;
  const int64_t operands = static_cast<int64_t>(context.operands.size());
  const int64_t carries = attributes.Int("carries"), xs = attributes.Int("xs");
  if (carries < 0 || carries > operands) return context.AttributeError("carries", absl::StrFormat("0 to %d", operands));
  if (xs < 0 || xs > operands - carries)
    return context.AttributeError("xs", absl::StrFormat("0 to %d", operands - carries));
  if (attributes.Extents("length").size() != 1) return context.AttributeError("length", "one extent");
  const Extent& length = attributes.Extents("length")[0];
  if (length.LowerBound(context.symbols).value_or(-1) < 0) return context.AttributeError("length", "0 or more");
  std::vector<TensorType> inputs(context.operands.begin(), context.operands.end());
  for (int64_t x = carries; x < carries + xs; ++x) {
    TensorType& type = inputs[x];
    const bool rows = type.rank() > 0;
    if (!rows || (type.dims[0] != length && type.dims[0].is_constant() && length.is_constant()))
      return context.ShapeError(static_cast<int>(x), absl::StrFormat("[%s, ..]", length.ToString()));
    if (type.dims[0] != length) context.constraints->push_back({type.dims[0], length});
    type.dims.erase(type.dims.begin());
  }
  const Graph& body = *context.bodies[0];
  QUERN_RETURN_IF_ERROR(CheckBodyInputs(op, op.bodies[0], body, inputs));
  std::vector<TensorType> results = OutputTypes(body);
  if (static_cast<int64_t>(results.size()) < carries || results.empty()) {
    return context.Error(DiagnosticCode::kShapeMismatch, "body's number of outputs",
                         absl::StrCat(std::max<int64_t>(carries, 1), " or more"), absl::StrCat(results.size()));
  }
  for (int64_t r = 0; r < static_cast<int64_t>(results.size()); ++r) {
    const std::string what = absl::StrFormat("output %d of body", r);
    if (r < carries) {
      if (results[r] != context.operands[r]) return OtherType(op, what, results[r], context.operands[r]);
      continue;
    }
    if (IsBlock(results[r].dtype))
      return context.Error(DiagnosticCode::kUnsupported, what, "a scalar dtype", results[r].ToString());
    results[r].dims.insert(results[r].dims.begin(), length);
  }
  return results;
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  const size_t carries = attributes.Int("carries"), xs = attributes.Int("xs");
  const int64_t length = SizesOf(attributes.Extents("length"), context.binding)[0];
  std::vector<RefTensor>& results = context.results;
  std::vector<RefTensor> now, rows(xs);
  for (size_t c = 0; c < carries; ++c) now.push_back(*context.operands[c]);
  std::vector<const RefTensor*> inputs(context.operands.begin(), context.operands.end());
  for (size_t c = 0; c < carries; ++c) inputs[c] = &now[c];
  for (int64_t step = 0; step < length; ++step) {
    const int64_t t = attributes.Bool("reverse") ? length - 1 - step : step;
    for (size_t x = 0; x < xs; ++x) {
      const RefTensor& all = *context.operands[carries + x];
      rows[x] = {all.dtype, {all.dims.begin() + 1, all.dims.end()}, {}};
      rows[x].Allocate();
      const int64_t elements = rows[x].elements();
      for (int64_t e = 0; e < elements; ++e) rows[x].Take(e, all, t * elements + e);
      inputs[carries + x] = &rows[x];
    }
    QUERN_ASSIGN(std::vector<RefTensor> made, context.run(0, inputs));
    for (size_t r = 0; r < made.size(); ++r) {
      if (r < carries) {
        now[r] = std::move(made[r]);
        continue;
      }
      const int64_t elements = made[r].elements();
      for (int64_t e = 0; e < elements; ++e) results[r].Take(t * elements + e, made[r], e);
    }
  }
  for (size_t c = 0; c < carries; ++c) results[c] = std::move(now[c]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_scan() {
  static const OpDef* const op = Make({
      .name = "Scan",
      .doc =
          "carries after `body` has run once for each row of the xs, then what else it returns, row by row: row t is "
          "of the step that read row t",
      .kind = OpKind::kControl,
      .operands = {{.name = "carries, xs and captures", .optional = true, .variadic = true, .own_dtype = true}},
      .attributes = {{.name = "length", .kind = AttrKind::kExtents, .doc = "one extent: how many steps"},
                     {.name = "carries",
                      .kind = AttrKind::kInt,
                      .default_value = AttrValue(int64_t{0}),
                      .doc = "how many of the operands, from the first"},
                     {.name = "xs",
                      .kind = AttrKind::kInt,
                      .default_value = AttrValue(int64_t{0}),
                      .doc = "how many after the carries are read row by row"},
                     {.name = "reverse",
                      .kind = AttrKind::kBool,
                      .default_value = AttrValue(false),
                      .doc = "from the last row to the first"}},
      .bodies = {"body"},
      .infer = Infer,
      .reference = Reference,
      .onnx = "Scan",
  });
  return *op;
}

bool IsStacked(const Node& node, int result) { return node.op == &Op_scan() && result >= Carries(node); }

}  // namespace quern::ir
