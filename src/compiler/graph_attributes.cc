#include "compiler/graph_attributes.h"

#include "base/diagnostic.h"

namespace quern::compiler {
namespace {

// What a block or op says of an attribute, or null.
const ir::AttrDef* FindAttribute(const std::vector<ir::AttrDef>& defs, std::string_view name) {
  for (const ir::AttrDef& def : defs) {
    if (name == def.name) return &def;
  }
  return nullptr;
}

StatusOr<std::vector<Extent>> ParseExtents(const std::vector<std::string>& texts) {
  std::vector<Extent> extents;
  for (const std::string& text : texts) {
    QUERN_ASSIGN(Extent extent, Extent::Parse(text));
    extents.push_back(std::move(extent));
  }
  return extents;
}

// The value in the kind that is asked for, where it can be one; else as it is, for the checks that follow to refuse.
StatusOr<ir::AttrValue> Convert(const Attribute& attribute, const ir::AttrDef* def) {
  const auto* text = std::get_if<std::string>(&attribute.value);
  const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value);
  const auto* number = std::get_if<int64_t>(&attribute.value);
  const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute.value);
  if (def != nullptr && def->kind == ir::AttrKind::kFloat && number != nullptr)
    return ir::AttrValue(static_cast<double>(*number));
  if (def != nullptr && def->kind == ir::AttrKind::kDType && text != nullptr) {
    if (const std::optional<DType> dtype = DTypeFromName(*text)) return ir::AttrValue(*dtype);
  }
  if (def != nullptr && def->kind == ir::AttrKind::kExtents) {
    if (numbers != nullptr) return ir::AttrValue(std::vector<Extent>(numbers->begin(), numbers->end()));
    if (number != nullptr) return ir::AttrValue(std::vector<Extent>{Extent(*number)});
    if (text != nullptr) {
      QUERN_ASSIGN(std::vector<Extent> extents, ParseExtents({*text}));
      return ir::AttrValue(std::move(extents));
    }
  }
  if (texts != nullptr) {
    QUERN_ASSIGN(std::vector<Extent> extents, ParseExtents(*texts));
    return ir::AttrValue(std::move(extents));
  }
  if (text != nullptr) return ir::AttrValue(*text);
  if (number != nullptr) return ir::AttrValue(*number);
  if (numbers != nullptr) return ir::AttrValue(*numbers);
  if (const auto* flag = std::get_if<bool>(&attribute.value)) return ir::AttrValue(*flag);
  return ir::AttrValue(std::get<double>(attribute.value));
}

}  // namespace

StatusOr<ir::Attributes> ConvertAttributes(std::string_view name, const std::vector<ir::AttrDef>& defs,
                                           const std::vector<Attribute>& attributes, std::string_view label) {
  ir::Attributes converted;
  for (const Attribute& attribute : attributes) {
    StatusOr<ir::AttrValue> value = Convert(attribute, FindAttribute(defs, attribute.name));
    if (!value.ok()) {
      return ToStatus({DiagnosticCode::kBadAttribute, std::string(name), attribute.name, "extents",
                       std::string(value.status().message()), std::string(label)});
    }
    converted.Set(attribute.name, *std::move(value));
  }
  return converted;
}

}  // namespace quern::compiler
