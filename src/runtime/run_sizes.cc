#include "runtime/run_sizes.h"

#include "absl/strings/str_cat.h"
#include "runtime/requirements.h"

namespace quern {
namespace {

std::vector<std::string_view> Names(const std::vector<Port>& ports) {
  std::vector<std::string_view> names;
  for (const Port& port : ports) names.emplace_back(port.name);
  return names;
}

const Port* FindPort(const std::vector<Port>& ports, std::string_view name) {
  for (const Port& port : ports) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

std::string RangeText(const SymbolRange& range) {
  return absl::StrCat(range.low, "..", range.high == INT64_MAX ? "" : absl::StrCat(range.high));
}

}  // namespace

std::string GuardText(const SymbolRanges& guard) {
  std::string text;
  for (const auto& [symbol, range] : guard) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", symbol);
    if (range.low == range.high)
      absl::StrAppend(&text, " == ", range.low);
    else
      absl::StrAppend(&text, " in ", range.low, "..", range.high);
  }
  return text.empty() ? "all sizes" : text;
}

StatusOr<RunSizes> RunSizes::Create(Signature signature, std::span<const SymbolRanges> guards) {
  RunSizes sizes;
  sizes.signature_ = std::move(signature);
  for (const auto& [name, range] : AllSymbols(sizes.signature_)) {
    sizes.names_.push_back(name);
    sizes.ranges_.push_back(range);
    sizes.counted_symbols_.push_back(!sizes.signature_.symbols.contains(name));
  }
  for (const SymbolRanges& guard : guards) {
    std::vector<SymbolRange>& ranges = sizes.guards_.emplace_back(sizes.ranges_);
    for (size_t i = 0; i < sizes.names_.size(); ++i) {
      const auto range = guard.find(sizes.names_[i]);
      if (range != guard.end()) ranges[i] = range->second;
    }
  }
  for (const Port& port : sizes.signature_.inputs) {
    QUERN_ASSIGN(Polynomial bytes, Polynomial::Compile(BytesOf(port, false), sizes.names_));
    sizes.input_sizes_.push_back(std::move(bytes));
  }
  for (const Port& port : sizes.signature_.outputs) {
    QUERN_ASSIGN(Polynomial bytes, Polynomial::Compile(BytesOf(RoomFor(sizes.signature_, port), false), sizes.names_));
    sizes.output_sizes_.push_back(std::move(bytes));
  }
  return sizes;
}

Status RunSizes::Fail(DiagnosticCode code, std::string operand, std::string expected, std::string got) const {
  return ToStatus({code, "", std::move(operand), std::move(expected), std::move(got), signature_.name});
}

StatusOr<int> RunSizes::InputIndex(std::string_view name) const {
  const Port* port = FindPort(signature_.inputs, name);
  if (port != nullptr) return static_cast<int>(port - signature_.inputs.data());
  return UnknownName("input", name, Names(signature_.inputs), signature_.name);
}

StatusOr<const Port*> RunSizes::FindState(std::string_view name) const {
  const Port* port = FindPort(signature_.states, name);
  if (port != nullptr) return port;
  return UnknownName("state", name, Names(signature_.states), signature_.name);
}

StatusOr<const Port*> RunSizes::CheckParam(std::string_view name, int64_t bytes) const {
  const Port* port = FindPort(signature_.params, name);
  if (port == nullptr) return UnknownName("parameter", name, Names(signature_.params), signature_.name);
  const Extent expected = BytesOf(*port, true);
  if (expected.is_constant() && expected.constant() == bytes) return port;
  return Fail(DiagnosticCode::kShapeMismatch, absl::StrCat("parameter ", port->name),
              absl::StrCat(expected.ToString(), " bytes of ", port->type.ToString()), absl::StrCat(bytes, " bytes"));
}

StatusOr<int> RunSizes::Choose(const Binding& symbols) {
  values_.clear();
  for (size_t i = 0; i < names_.size(); ++i) {
    if (counted_symbols_[i]) {
      values_.push_back(0);
      continue;
    }
    const auto value = symbols.find(names_[i]);
    if (value == symbols.end()) return Fail(DiagnosticCode::kMissing, absl::StrCat("symbol ", names_[i]), "", "");
    if (value->second < ranges_[i].low || value->second > ranges_[i].high) {
      return Fail(DiagnosticCode::kOutOfRange, absl::StrCat("symbol ", names_[i]), RangeText(ranges_[i]),
                  absl::StrCat(value->second));
    }
    values_.push_back(value->second);
  }
  if (symbols.size() != signature_.symbols.size()) {
    for (const auto& [name, value] : symbols) {
      if (!signature_.symbols.contains(name))
        return UnknownName("symbol", name, {names_.begin(), names_.end()}, signature_.name);
    }
  }
  for (size_t v = 0; v < guards_.size(); ++v) {
    bool holds = true;
    for (size_t i = 0; holds && i < values_.size(); ++i)
      holds = guards_[v][i].low <= values_[i] && values_[i] <= guards_[v][i].high;
    if (holds) return static_cast<int>(v);
  }
  return Fail(DiagnosticCode::kSizeConflict, "", "a guard of some variant", SizesText(names_, values_));
}

Status RunSizes::CheckLength(const char* kind, const Port& port, const void* data, int64_t bytes,
                             int64_t expected) const {
  if (bytes == expected && (data != nullptr || bytes == 0)) return absl::OkStatus();
  if (bytes == expected) return Fail(DiagnosticCode::kMissing, absl::StrCat(kind, port.name), "", "");
  return Fail(DiagnosticCode::kShapeMismatch, absl::StrCat(kind, port.name),
              absl::StrCat(expected, " bytes of ", port.type.ToString()), absl::StrCat(bytes, " bytes"));
}

Status RunSizes::CheckMemory(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs) {
  if (!counted_ || sized_ != values_) {
    input_bytes_.clear();
    output_bytes_.clear();
    for (const Polynomial& size : input_sizes_) input_bytes_.push_back(size.Evaluate(values_));
    for (const Polynomial& size : output_sizes_) output_bytes_.push_back(size.Evaluate(values_));
    sized_ = values_;
    counted_ = true;
  }
  if (inputs.size() != input_bytes_.size()) {
    return Fail(DiagnosticCode::kMissing,
                absl::StrFormat("one of the %u inputs (%s)", input_bytes_.size(), NamesText(Names(signature_.inputs))),
                "", "");
  }
  if (outputs.size() != output_bytes_.size()) {
    return Fail(DiagnosticCode::kMissing, absl::StrFormat("one of the %u outputs", output_bytes_.size()), "", "");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    QUERN_RETURN_IF_ERROR(
        CheckLength("input ", signature_.inputs[i], inputs[i].data, inputs[i].bytes, input_bytes_[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    QUERN_RETURN_IF_ERROR(
        CheckLength("output ", signature_.outputs[i], outputs[i].data, outputs[i].bytes, output_bytes_[i]));
  }
  return absl::OkStatus();
}

}  // namespace quern
