#include "ir/quantisation.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/value_names.h"

namespace quern::ir {
namespace {

Status CheckScheme(const Graph& graph, const std::string& name, const Scheme& scheme, const TensorType& type) {
  const auto wrong = [&](const char* field, std::string wanted, std::string got) {
    return ToStatus({DiagnosticCode::kBadAttribute, absl::StrCat("the scheme of ", name), field, std::move(wanted),
                     std::move(got), graph.name});
  };
  if (scheme.dtype != DType::kI8 && scheme.dtype != DType::kU8)
    return wrong("dtype", "i8 or u8", std::string(Name(scheme.dtype)));
  if (scheme.axis && (*scheme.axis < 0 || *scheme.axis >= type.rank()))
    return wrong("axis", absl::StrCat("one of ", type.ToString()), absl::StrCat(*scheme.axis));
  if (scheme.axis && scheme.range) return wrong("range", "none beside an axis", "one");
  if (!scheme.range && scheme.dtype != DType::kI8) return wrong("dtype", "i8 without a range", "u8");
  if (!scheme.range && !scheme.symmetric) return wrong("symmetric", "true without a range", "false");
  // What no f32 is has no scale that is one.
  if (scheme.range &&
      !(-FLT_MAX <= scheme.range->low && scheme.range->low <= scheme.range->high && scheme.range->high <= FLT_MAX))
    return wrong("range", "two numbers of f32, the least first",
                 absl::StrFormat("%g..%g", scheme.range->low, scheme.range->high));
  return absl::OkStatus();
}

}  // namespace

ScaleAndZero ScaleAndZeroOf(const Scheme& scheme, const ValueRange& range) {
  double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  if (scheme.symmetric) {
    high = std::max(-low, high);
    low = -high;
  }
  const bool is_signed = scheme.dtype == DType::kI8;
  const double least = !is_signed ? 0 : scheme.symmetric ? -127 : -128, most = is_signed ? 127 : 255;
  const auto scale = static_cast<float>((high - low) / (most - least));
  // Nothing but 0, or what is too near to it to divide by.
  if (scale < FLT_MIN) return {1, scheme.symmetric && !is_signed ? 128 : 0};
  const double zero = scheme.symmetric ? (least + most) / 2 : least - low / static_cast<double>(scale);
  return {scale, static_cast<int64_t>(std::nearbyint(zero))};
}

Attributes AttributesOf(const Scheme& scheme) {
  Attributes attributes{{"dtype", scheme.dtype}, {"symmetric", scheme.symmetric}};
  if (scheme.axis) attributes.Set("axis", *scheme.axis);
  if (scheme.range) attributes.Set("low", scheme.range->low);
  if (scheme.range) attributes.Set("high", scheme.range->high);
  return attributes;
}

StatusOr<Scheme> SchemeOf(std::string_view name, const Attributes& attributes) {
  const bool has_range = attributes.Find("low") != nullptr || attributes.Find("high") != nullptr;
  std::vector<AttrDef> fields = {
      {"dtype", AttrKind::kDType},
      {"symmetric", AttrKind::kBool, AttrValue(false)},
      {"axis", AttrKind::kInt, AttrValue(int64_t{-1})},
      {"low", AttrKind::kFloat, AttrValue(0.0)},
      {"high", AttrKind::kFloat, AttrValue(0.0)},
  };
  // Both or none.
  if (has_range) fields[3].default_value = fields[4].default_value = std::nullopt;
  Attributes all = attributes;
  QUERN_RETURN_IF_ERROR(
      CheckAttributes(absl::StrCat("the scheme of ", std::string(name)).c_str(), fields, all, /*fill_defaults=*/true));
  Scheme scheme{.dtype = all.Type("dtype"), .symmetric = all.Bool("symmetric")};
  if (attributes.Find("axis") != nullptr) scheme.axis = all.Int("axis");
  if (has_range) scheme.range = ValueRange{all.Float("low"), all.Float("high")};
  return scheme;
}

Status CheckQuantisation(const Graph& graph, const QuantisationMap& map) {
  if (map.empty()) return absl::OkStatus();
  const std::map<Value, std::string> names = ValueNames(graph);
  std::vector<std::string_view> known;
  std::map<std::string_view, Value> values;
  for (const auto& [value, name] : names) {
    known.emplace_back(name);
    values[name] = value;
  }
  for (const auto& [name, scheme] : map) {
    const auto found = values.find(name);
    if (found == values.end()) return UnknownName("value", name, known, graph.name);
    QUERN_RETURN_IF_ERROR(CheckScheme(graph, name, scheme, graph.type(found->second)));
  }
  return absl::OkStatus();
}

}  // namespace quern::ir
