// Custom: an op of the caller's own, computed by a C function (ir/custom.h).

#include "ir/custom.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const StatusOr<const CustomDef*> def = CustomOf(context.attributes);
  // A graph that was written down has its types, and can be read by who does not know the op.
  if (!def.ok() && !context.declared.empty())
    return std::vector<TensorType>(context.declared.begin(), context.declared.end());
  QUERN_RETURN_IF_ERROR(def.status());
  return (*def)->infer(context.operands, context.attributes.String("attrs"));
}

Status Reference(RefContext& context) {
  QUERN_ASSIGN(const CustomDef* const def, CustomOf(context.node.attributes));
  if (def->reference == nullptr)
    return absl::UnimplementedError(absl::StrFormat("Custom: %s has no reference", def->name));
  return def->reference(context);
}

Contract OwnContract(const Node& node) {
  const StatusOr<const CustomDef*> def = CustomOf(node.attributes);
  return def.ok() ? Contract{(*def)->rtol, (*def)->atol} : Contract{};
}

}  // namespace

const OpDef& Op_custom() {
  static const OpDef* const op = Make({
      .name = "Custom",
      .doc = "what a C function of the caller's makes of the operands (quern/custom.h)",
      .kind = OpKind::kRoot,
      .family = "call",
      .operands = {{.name = "operands", .optional = true, .variadic = true, .own_dtype = true}},
      .attributes = {{.name = "name", .kind = AttrKind::kString, .doc = "under which the function is registered"},
                     {.name = "version", .kind = AttrKind::kInt, .default_value = AttrValue(int64_t{1})},
                     {.name = "attrs",
                      .kind = AttrKind::kString,
                      .default_value = AttrValue(std::string()),
                      .doc = "bytes that the function is handed"}},
      .infer = Infer,
      .reference = Reference,
      .contract = OwnContract,
  });
  return *op;
}

}  // namespace quern::ir
