// What stands before the grid: symbols, parameters and their types.
#include <algorithm>

#include "kir/verify_state.h"

namespace quern::kir {
namespace {

constexpr int kMaxRank = 8;

}  // namespace

Status Verifier::CheckSymbols() {
  for (const SymbolDecl& symbol : kernel_.symbols) {
    const SymbolRange& range = symbol.range;
    if (!symbol.derived && (range.low < 0 || range.high < range.low)) {
      return Fail(absl::StrFormat("symbol %s has the range %d..%d", symbol.name, range.low, range.high));
    }
    QUERN_RETURN_IF_ERROR(Declare(symbol.name, {.kind = EntityKind::kSymbol, .type = {DType::kI64, {}, Layout::kRow}}));
    const IndexProver::Id id = prover_.Add(symbol.name);
    names_[symbol.name].value = prover_.Variable(id);
    if (!symbol.derived) {
      prover_.SetLow(id, std::min(range.low, kLargest));
      if (range.high <= kLargest) prover_.SetHigh(id, range.high);
      continue;
    }
    const auto& [numerator, divisor] = *symbol.derived;
    if (divisor < 1 || divisor > kLargest) {
      return Fail(absl::StrFormat("symbol %s has the divisor %d", symbol.name, divisor));
    }
    for (const std::string& used : numerator.Symbols()) {
      if (used == symbol.name || !names_.contains(used)) {
        return Fail(absl::StrFormat("symbol %s needs %s, which is not declared before it", symbol.name, used));
      }
    }
    for (const Extent::Term& term : numerator.terms()) {
      if (term.coefficient > kLargest || term.coefficient < -kLargest) {
        return Fail(absl::StrFormat("symbol %s: %s is too large", symbol.name, numerator.ToString()));
      }
    }
    prover_.SetLow(id, numerator, divisor);
    prover_.SetHigh(id, numerator + (divisor - 1), divisor);
  }
  for (const SizeFact& fact : kernel_.facts) {
    for (const std::string& used : fact.Symbols()) {
      if (!names_.contains(used)) return Fail(absl::StrFormat("where %s: unknown symbol %s", fact.ToString(), used));
    }
    for (const Extent::Term& term : fact.terms()) {
      if (term.coefficient > kLargest || term.coefficient < -kLargest)
        return Fail(absl::StrFormat("where %s: too large", fact.ToString()));
    }
    prover_.PushFact(fact);
  }
  return absl::OkStatus();
}

Status Verifier::CheckType(const std::string& name, const BufferType& type) {
  const std::string text = name + " : " + Print(type);
  if (!LayoutAllows(type.layout, type.dtype)) {
    return Fail(absl::StrFormat("%s: the dtype does not have this layout", text));
  }
  if (type.dims.size() > kMaxRank) return Fail(absl::StrFormat("%s: more than %d dimensions", text, kMaxRank));
  std::optional<Extent> elements(64);  // room for the bytes of an element and for padding
  for (const Extent& dim : type.dims) {
    for (const std::string& symbol : dim.Symbols()) {
      auto it = names_.find(symbol);
      if (it == names_.end() || it->second.kind != EntityKind::kSymbol) {
        return Fail(absl::StrFormat("%s: %s is not a symbol", text, symbol));
      }
    }
    for (const Extent::Term& term : dim.terms()) {
      if (term.coefficient > kLargest || term.coefficient < -kLargest) elements.reset();
    }
    if (elements) elements = CheckedMultiply(*elements, dim);
    if (!elements) return Fail(absl::StrFormat("%s: too large", text));
    if (!prover_.NonNegative(dim))
      return Fail(absl::StrFormat("%s: the extent %s may be negative", text, dim.ToString()));
  }
  if (type.layout == Layout::kRow) return absl::OkStatus();
  if (type.dims.empty() || !type.dims.back().is_constant()) {
    return Fail(absl::StrFormat("%s: rows of this layout have a constant number of elements", text));
  }
  const int64_t block = Row(type.dtype).block_elements;
  if (type.dims.back().constant() % block != 0) {
    return Fail(
        absl::StrFormat("%s: %s is not a multiple of the block of %d", text, type.dims.back().ToString(), block));
  }
  const int64_t rows = type.layout == Layout::kPanel16 ? 16 : type.layout == Layout::kKn32 ? 32 : 0;
  if (rows != 0 && (type.dims.size() != 2 || type.dims[0] != Extent(rows))) {
    return Fail(absl::StrFormat("%s: a panel has %d rows", text, rows));
  }
  return absl::OkStatus();
}

Status Verifier::CheckParams() {
  for (const Param& param : kernel_.params) {
    QUERN_RETURN_IF_ERROR(CheckType(param.name, param.type));
    if (param.align < 1 || (param.align & (param.align - 1)) != 0) {
      return Fail(absl::StrFormat("%s: the alignment %d is not a power of two", param.name, param.align));
    }
    QUERN_RETURN_IF_ERROR(Declare(param.name, {.kind = EntityKind::kParam, .type = param.type, .mode = param.mode}));
    if (param.mode == Mode::kInOut) written_.insert(param.name);
  }
  return absl::OkStatus();
}

Status Verifier::CheckInplace() {
  for (const Param& param : kernel_.params) {
    if (param.inplace.empty()) continue;
    auto it = std::find_if(kernel_.params.begin(), kernel_.params.end(),
                           [&](const Param& other) { return other.name == param.inplace; });
    if (param.mode != Mode::kOut || it == kernel_.params.end() || it->mode != Mode::kIn || it->type != param.type) {
      return Fail(
          absl::StrFormat("%s may share memory with %s only if one is an output and the other an input of its type",
                          param.name, param.inplace));
    }
    if (!shared_.emplace(param.inplace, Shared{.indices = {}, .out = param.name}).second) {
      return Fail(absl::StrFormat("two outputs share the memory of %s", param.inplace));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::kir
