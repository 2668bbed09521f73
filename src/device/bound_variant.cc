#include "device/bound_variant.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/divide.h"

namespace quern::device {
namespace {

// What drivers take as the first dimension of a grid.
constexpr int64_t kMostChunks = INT32_MAX;

// A size: nullopt where it is negative, or leaves 64 bits.
std::optional<int64_t> SizeOf(const Polynomial& size, std::span<const int64_t> values) {
  const std::optional<int64_t> value = size.EvaluateChecked(values);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

StatusOr<BoundVariant> BoundVariant::Create(const Program& program, int variant, std::span<const std::string> names,
                                            std::span<const uint64_t> functions) {
  BoundVariant bound;
  bound.program_ = &program;
  bound.variant_ = &program.variants[variant];
  bound.names_.assign(names.begin(), names.end());
  bound.functions_.assign(functions.begin(), functions.end());
  bound.kernels_.resize(program.kernels.size());
  bound.used_.resize(bound.variant_->buffers.size());
  QUERN_RETURN_IF_ERROR(bound.Compile(bound.once_, bound.variant_->once));
  QUERN_RETURN_IF_ERROR(bound.Compile(bound.launches_, bound.variant_->launches));
  QUERN_ASSIGN(bound.steps_, BoundSteps::Compile(bound.variant_->bodies, names));
  QUERN_ASSIGN(bound.step_sizes_, StepSizes::Create(*bound.variant_, names));
  for (const int buffer : bound.step_sizes_.buffers()) bound.used_[buffer] = true;
  size_t slot = 0;
  for (const lir::Launch& launch : bound.variant_->launches) {
    for (const lir::Argument& argument : launch.arguments) {
      if (bound.variant_->buffers[argument.buffer].home == lir::Home::kLoop)
        bound.slots_[argument.buffer].push_back(slot);
      ++slot;
    }
  }
  for (const lir::Buffer& buffer : bound.variant_->buffers) {
    QUERN_ASSIGN(Polynomial bytes, Polynomial::Compile(buffer.bytes, names));
    QUERN_ASSIGN(Polynomial offset, Polynomial::Compile(buffer.offset, names));
    bound.buffer_bytes_.push_back(std::move(bytes));
    bound.buffer_offsets_.push_back(std::move(offset));
  }
  bound.sizes_.resize(bound.buffer_bytes_.size());
  bound.offsets_.resize(bound.buffer_bytes_.size());
  QUERN_ASSIGN(bound.arena_, Polynomial::Compile(bound.variant_->arena_bytes, names));
  QUERN_ASSIGN(bound.requirements_, Requirements::Create(bound.variant_->requirements, names));
  return bound;
}

Status BoundVariant::Compile(int index) {
  KernelTable& table = kernels_[index];
  if (table.used) return absl::OkStatus();
  table.used = true;
  const Kernel& kernel = program_->kernels[index];
  std::vector<std::string> own;
  for (const kir::SymbolDecl& decl : kernel.symbols) {
    Symbol symbol;
    if (decl.derived) {
      QUERN_ASSIGN(symbol.numerator, Polynomial::Compile(decl.derived->first, own));
      symbol.divisor = decl.derived->second;
    } else {
      symbol.position = static_cast<int>(std::find(names_.begin(), names_.end(), decl.name) - names_.begin());
      if (symbol.position == static_cast<int>(names_.size()))
        return absl::InternalError(absl::StrCat("symbol ", decl.name, " is not in the table"));
    }
    table.symbols.push_back(std::move(symbol));
    own.push_back(decl.name);
  }
  for (const kir::GridDim& dim : kernel.grid) {
    QUERN_ASSIGN(const Extent low, ExtentOf(dim.low));
    QUERN_ASSIGN(const Extent high, ExtentOf(dim.high));
    QUERN_ASSIGN(Polynomial from, Polynomial::Compile(low, own));
    QUERN_ASSIGN(Polynomial to, Polynomial::Compile(high, own));
    table.grid.push_back({std::move(from), std::move(to), dim.step});
  }
  for (const KernelParam& param : kernel.params) {
    QUERN_ASSIGN(Polynomial bytes, Polynomial::Compile(param.bytes, own));
    table.params.push_back(std::move(bytes));
  }
  table.values.resize(table.symbols.size());
  table.bytes.resize(table.params.size());
  return absl::OkStatus();
}

Status BoundVariant::Compile(Table& table, const std::vector<lir::Launch>& launches) {
  table.launches = &launches;
  for (const lir::Launch& launch : launches) {
    QUERN_RETURN_IF_ERROR(Compile(launch.kernel));
    for (const lir::Argument& argument : launch.arguments) {
      QUERN_ASSIGN(Polynomial offset, Polynomial::Compile(argument.offset, names_));
      table.offsets.push_back(std::move(offset));
      used_[argument.buffer] = true;
    }
  }
  table.moved.resize(table.offsets.size());
  table.pointers.resize(table.offsets.size());
  return absl::OkStatus();
}

Status BoundVariant::NoSize(const std::string& what) const {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s is negative, or leaves 64 bits", program_->signature.name, what));
}

// The kernel's own symbols, its chunks and the bytes of its parameters.
Status BoundVariant::Evaluate(int index, std::span<const int64_t> values) {
  KernelTable& table = kernels_[index];
  const Kernel& kernel = program_->kernels[index];
  for (size_t s = 0; s < table.symbols.size(); ++s) {
    const Symbol& symbol = table.symbols[s];
    if (symbol.position >= 0) {
      table.values[s] = values[symbol.position];
      continue;
    }
    const std::optional<int64_t> numerator = SizeOf(symbol.numerator, table.values);
    if (!numerator) return NoSize(absl::StrCat("symbol ", kernel.symbols[s].name, " of ", kernel.symbol));
    table.values[s] = CeilDiv(*numerator, symbol.divisor);
  }
  table.chunks = 1;
  for (const Dimension& dim : table.grid) {
    const std::optional<int64_t> low = dim.low.EvaluateChecked(table.values),
                                 high = dim.high.EvaluateChecked(table.values);
    int64_t length = 0;
    if (!low || !high || __builtin_sub_overflow(*high, *low, &length) ||
        __builtin_mul_overflow(table.chunks, CeilDiv(std::max<int64_t>(length, 0), dim.step), &table.chunks) ||
        table.chunks > kMostChunks) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: the grid of %s has more than %d chunks",
                                                        program_->signature.name, kernel.symbol, kMostChunks));
    }
  }
  for (size_t p = 0; p < table.params.size(); ++p) {
    const std::optional<int64_t> bytes = SizeOf(table.params[p], table.values);
    if (!bytes) return NoSize(absl::StrCat("parameter ", kernel.params[p].name, " of ", kernel.symbol));
    table.bytes[p] = *bytes;
  }
  return absl::OkStatus();
}

Status BoundVariant::Follow(Table& table, const char* list, std::span<const int64_t> values) {
  table.calls.clear();
  table.before.clear();
  size_t first = 0;
  for (size_t l = 0; l < table.launches->size(); ++l) {
    table.before.push_back(table.calls.size());
    const lir::Launch& launch = (*table.launches)[l];
    const KernelTable& kernel = kernels_[launch.kernel];
    for (size_t a = 0; a < launch.arguments.size(); ++a) {
      const std::optional<int64_t> offset = SizeOf(table.offsets[first + a], values);
      if (!offset) return NoSize(absl::StrFormat("the offset of argument %u of %s[%u]", a, list, l));
      const int64_t have = sizes_[launch.arguments[a].buffer];
      if (kernel.bytes[a] > have || *offset > have - kernel.bytes[a]) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "%s: argument %u of %s[%u] (%s) takes %d bytes from %d on, its buffer has %d", program_->signature.name, a,
            list, l, program_->kernels[launch.kernel].symbol, kernel.bytes[a], *offset, have));
      }
      const int align = program_->kernels[launch.kernel].params[a].align;
      const lir::Buffer& buffer = variant_->buffers[launch.arguments[a].buffer];
      const bool moves_less = buffer.home == lir::Home::kLoop && buffer.align % align != 0;
      if (moves_less || (*offset + offsets_[launch.arguments[a].buffer]) % align != 0) {
        return absl::InvalidArgumentError(absl::StrFormat("%s: argument %u of %s[%u] (%s) is not aligned to %d bytes",
                                                          program_->signature.name, a, list, l,
                                                          program_->kernels[launch.kernel].symbol, align));
      }
      table.moved[first + a] = *offset;
    }
    const std::span<const Address> pointers =
        std::span<const Address>(table.pointers).subspan(first, launch.arguments.size());
    if (kernel.chunks > 0) table.calls.push_back({functions_[launch.kernel], kernel.chunks, pointers, kernel.values});
    first += launch.arguments.size();
  }
  table.before.push_back(table.calls.size());
  return absl::OkStatus();
}

Status BoundVariant::Bind(std::span<const int64_t> values) {
  QUERN_RETURN_IF_ERROR(requirements_.Check(values, program_->signature.name));
  const std::optional<int64_t> arena = SizeOf(arena_, values);
  if (!arena) return NoSize("the arena");
  arena_bytes_ = *arena;
  for (size_t b = 0; b < sizes_.size(); ++b) {
    if (!used_[b]) continue;
    const lir::Buffer& buffer = variant_->buffers[b];
    const std::optional<int64_t> bytes = SizeOf(buffer_bytes_[b], values), offset = SizeOf(buffer_offsets_[b], values);
    if (!bytes || !offset) return NoSize(absl::StrCat("buffer ", b, " (", buffer.name, ") or its offset"));
    sizes_[b] = *bytes;
    offsets_[b] = *offset;
    const int64_t most = buffer.home == lir::Home::kArena  ? arena_bytes_
                         : buffer.home == lir::Home::kOnce ? variant_->once_bytes.constant()
                                                           : INT64_MAX;
    if (*bytes > most || *offset > most - *bytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: buffer %u (%s) of %d bytes at %d lies outside its memory of %d",
                          program_->signature.name, b, buffer.name, *bytes, *offset, most));
    }
  }
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (kernels_[k].used) QUERN_RETURN_IF_ERROR(Evaluate(static_cast<int>(k), values));
  }
  QUERN_RETURN_IF_ERROR(step_sizes_.Check(program_->signature.name, values, sizes_, offsets_));
  QUERN_RETURN_IF_ERROR(Follow(once_, "once", values));
  return Follow(launches_, "launches", values);
}

void BoundVariant::Rebase(int buffer, Address base) {
  const auto slots = slots_.find(buffer);
  if (slots == slots_.end()) return;
  for (const size_t slot : slots->second)
    launches_.pointers[slot] = base + static_cast<uint64_t>(launches_.moved[slot]);
}

void BoundVariant::Place(std::span<const Address> bases) {
  for (Table* table : {&once_, &launches_}) {
    size_t at = 0;
    for (const lir::Launch& launch : *table->launches) {
      for (const lir::Argument& argument : launch.arguments) {
        table->pointers[at] = bases[argument.buffer] + static_cast<uint64_t>(table->moved[at]);
        ++at;
      }
    }
  }
}

}  // namespace quern::device
