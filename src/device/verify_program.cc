// Verify: a program may come from a file that anybody wrote, so nothing in it is believed before this.

#include <algorithm>
#include <bit>
#include <cctype>
#include <set>

#include "absl/strings/str_cat.h"
#include "device/device.h"
#include "device/program.h"
#include "device/verify_steps.h"

namespace quern::device {
namespace {

// What every device has, or more.
constexpr int64_t kMostThreads = 1024, kMostShared = 1 << 20, kMostAlign = kMemoryAlign;
constexpr size_t kMostSymbols = 64, kMostParams = 256, kMostDims = 8, kMostTerms = 256;
constexpr int64_t kMostColumns = int64_t{1} << 40;

using Names = std::set<std::string, std::less<>>;

bool IsIdentifier(std::string_view name) {
  const auto word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), word);
}

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const Program& program) : program_(program) {
    for (const auto& [name, range] : program.signature.symbols) symbols_.insert(name);
  }

  Status Run() {
    for (const auto& [name, range] : program_.signature.symbols) {
      QUERN_RETURN_IF_ERROR(CheckRange(absl::StrCat("symbols.", name), range));
    }
    const Signature& signature = program_.signature;
    QUERN_RETURN_IF_ERROR(CheckPorts("inputs", signature.inputs));
    QUERN_RETURN_IF_ERROR(CheckPorts("outputs", signature.outputs));
    QUERN_RETURN_IF_ERROR(CheckPorts("params", signature.params));
    QUERN_RETURN_IF_ERROR(CheckPorts("states", signature.states));
    QUERN_RETURN_IF_ERROR(CheckSources());
    Names entries;
    for (size_t k = 0; k < program_.kernels.size(); ++k) {
      const std::string where = absl::StrCat("kernels[", k, "]");
      QUERN_RETURN_IF_ERROR(CheckKernel(where, program_.kernels[k]));
      if (!entries.insert(program_.kernels[k].symbol).second)
        return Bad(where, absl::StrCat("a second entry ", program_.kernels[k].symbol));
    }
    if (program_.variants.empty()) return Bad("variants", "none");
    for (size_t v = 0; v < program_.variants.size(); ++v) {
      QUERN_RETURN_IF_ERROR(CheckVariant(absl::StrCat("variants[", v, "]"), program_.variants[v]));
    }
    return absl::OkStatus();
  }

 private:
  static Status Bad(const std::string& where, const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  }

  static Status CheckRange(const std::string& where, const SymbolRange& range) {
    if (range.low >= 0 && range.low <= range.high) return absl::OkStatus();
    return Bad(where, absl::StrFormat("%d..%d is no range of sizes", range.low, range.high));
  }

  static Status CheckExtent(const std::string& where, const Extent& extent, const Names& symbols) {
    for (const std::string& symbol : extent.Symbols()) {
      if (!symbols.contains(symbol)) return Bad(where, absl::StrCat("there is no symbol ", symbol));
    }
    return absl::OkStatus();
  }
  Status CheckExtent(const std::string& where, const Extent& extent) const {
    return CheckExtent(where, extent, symbols_);
  }

  Status CheckPorts(const std::string& list, const std::vector<Port>& ports) const {
    Names names;
    for (size_t p = 0; p < ports.size(); ++p) {
      const std::string where = absl::StrCat(list, "[", p, "]");
      if (!names.insert(ports[p].name).second) return Bad(where, absl::StrCat("a second ", ports[p].name));
      QUERN_RETURN_IF_ERROR(CheckType(absl::StrCat(where, ".shape"), ports[p].type, list == "params"));
    }
    return absl::OkStatus();
  }

  // Bytes of a type are a product that is worked out: not of a shape that makes that long, nor of one that has no
  // bytes.
  Status CheckType(const std::string& where, const ir::TensorType& type, bool parameter) const {
    size_t terms = 1;
    for (const Extent& dim : type.dims) {
      QUERN_RETURN_IF_ERROR(CheckExtent(where, dim));
      terms *= std::max<size_t>(dim.terms().size(), 1);
      if (type.dims.size() > kMostDims || terms > kMostTerms) return Bad(where, "so many dimensions, or terms");
    }
    if (IsBlock(type.dtype)) {
      const int64_t block = Row(type.dtype).block_elements;
      const bool whole = !type.dims.empty() && type.dims.back().is_constant() && type.dims.back().constant() >= 0 &&
                         type.dims.back().constant() < kMostColumns && type.dims.back().constant() % block == 0;
      if (!whole) return Bad(where, absl::StrFormat("rows of %s are not whole blocks", std::string(Name(type.dtype))));
      if (!kir::LayoutAllows(parameter ? kir::Layout::kBlocks : kir::Layout::kPlanar, type.dtype))
        return Bad(where, absl::StrCat("no memory of ", std::string(Name(type.dtype))));
    }
    const Extent bytes = BytesOf({"", type, -1}, parameter);
    if (parameter && !bytes.is_constant()) return Bad(where, "it depends on a symbol");
    if (bytes.LowerBound(program_.signature.symbols).value_or(0) < 0) return Bad(where, "a negative size");
    return absl::OkStatus();
  }

  Status CheckSources() const {
    const std::vector<Port>& params = program_.signature.params;
    if (!program_.sources.empty() && program_.sources.size() != params.size())
      return Bad("params", "some have no source");
    for (size_t p = 0; p < program_.sources.size(); ++p) {
      const ParamSource& source = program_.sources[p];
      const std::string where = absl::StrCat("params[", p, "]");
      const int64_t bytes = BytesOf(params[p], true).constant();
      if (source.file_offset < -1 || source.file_offset > INT64_MAX - std::max<int64_t>(bytes, 0))
        return Bad(where, "its offset is none");
      if (source.data != nullptr && static_cast<int64_t>(source.data->size()) != bytes) {
        return Bad(where, absl::StrFormat("%u bytes of data, %d expected", source.data->size(), bytes));
      }
    }
    return absl::OkStatus();
  }

  Status CheckKernel(const std::string& where, const Kernel& kernel) const {
    if (!IsIdentifier(kernel.symbol)) return Bad(absl::StrCat(where, ".symbol"), "it is no identifier");
    if (kernel.threads < 1 || kernel.threads > kMostThreads)
      return Bad(absl::StrCat(where, ".threads"), absl::StrCat(kernel.threads, " threads in a block"));
    if (kernel.shared_bytes < 0 || kernel.shared_bytes > kMostShared)
      return Bad(absl::StrCat(where, ".shared_bytes"), absl::StrCat(kernel.shared_bytes, " bytes"));
    if (kernel.symbols.size() > kMostSymbols || kernel.params.size() > kMostParams)
      return Bad(where, "it has too many parameters");
    Names own;
    for (size_t s = 0; s < kernel.symbols.size(); ++s) {
      const kir::SymbolDecl& symbol = kernel.symbols[s];
      const std::string at = absl::StrCat(where, ".symbols[", s, "]");
      if (symbol.derived) {
        QUERN_RETURN_IF_ERROR(CheckExtent(at, symbol.derived->first, own));
        if (symbol.derived->second < 1) return Bad(at, absl::StrCat("divided by ", symbol.derived->second));
      } else if (!symbols_.contains(symbol.name)) {
        return Bad(at, absl::StrCat("there is no symbol ", symbol.name));
      }
      if (!own.insert(symbol.name).second) return Bad(at, absl::StrCat("a second ", symbol.name));
    }
    if (kernel.grid.empty() || kernel.grid.size() > 3)
      return Bad(absl::StrCat(where, ".grid"), absl::StrCat(kernel.grid.size(), " dimensions"));
    for (size_t d = 0; d < kernel.grid.size(); ++d) {
      const std::string at = absl::StrCat(where, ".grid[", d, "]");
      for (const kir::ExprRef& bound : {kernel.grid[d].low, kernel.grid[d].high}) {
        QUERN_ASSIGN(const Extent extent, ExtentOf(bound));
        QUERN_RETURN_IF_ERROR(CheckExtent(at, extent, own));
      }
      if (kernel.grid[d].step < 1) return Bad(at, absl::StrCat("steps of ", kernel.grid[d].step));
    }
    for (size_t p = 0; p < kernel.params.size(); ++p) {
      const std::string at = absl::StrCat(where, ".params[", p, "]");
      QUERN_RETURN_IF_ERROR(CheckExtent(at, kernel.params[p].bytes, own));
      const int align = kernel.params[p].align;
      if (align < 1 || align > kMostAlign || !std::has_single_bit(static_cast<unsigned>(align)))
        return Bad(at, absl::StrCat("alignment ", align));
    }
    return absl::OkStatus();
  }

  Status CheckBuffer(const std::string& where, const lir::Buffer& buffer) const {
    QUERN_RETURN_IF_ERROR(CheckExtent(absl::StrCat(where, ".bytes"), buffer.bytes));
    QUERN_RETURN_IF_ERROR(CheckExtent(absl::StrCat(where, ".offset"), buffer.offset));
    const auto named = [&](const std::vector<Port>& ports) {
      const bool found =
          std::any_of(ports.begin(), ports.end(), [&](const Port& port) { return port.name == buffer.name; });
      return found ? absl::OkStatus()
                   : Bad(where, absl::StrCat("there is no ", std::string(lir::Name(buffer.home)), " ", buffer.name));
    };
    switch (buffer.home) {
      case lir::Home::kInput: return named(program_.signature.inputs);
      case lir::Home::kParam: return named(program_.signature.params);
      case lir::Home::kState: return named(program_.signature.states);
      case lir::Home::kOutput: {
        const std::vector<Port>& outputs = program_.signature.outputs;
        const bool found =
            std::any_of(outputs.begin(), outputs.end(), [&](const Port& port) { return port.output == buffer.index; });
        return found ? absl::OkStatus() : Bad(where, absl::StrCat("there is no output ", buffer.index));
      }
      case lir::Home::kConstant:
        if (buffer.data == nullptr) return Bad(where, "a constant without data");
        if (!buffer.bytes.is_constant() || buffer.bytes.constant() != static_cast<int64_t>(buffer.data->size())) {
          return Bad(where,
                     absl::StrFormat("%u bytes of data, %s expected", buffer.data->size(), buffer.bytes.ToString()));
        }
        return absl::OkStatus();
      case lir::Home::kOnce:
        if (!buffer.bytes.is_constant() || !buffer.offset.is_constant())
          return Bad(where, "memory of parameters alone depends on a symbol");
        return absl::OkStatus();
      case lir::Home::kArena: return absl::OkStatus();
      case lir::Home::kLoop:
        if (buffer.align >= 1 && buffer.align <= kMostAlign && std::has_single_bit(static_cast<uint64_t>(buffer.align)))
          return absl::OkStatus();
        return Bad(where, absl::StrCat("alignment ", buffer.align));
    }
    return absl::OkStatus();
  }

  Status CheckLaunch(const std::string& where, const Variant& variant, const lir::Launch& launch, bool once) const {
    if (launch.kernel < 0 || launch.kernel >= static_cast<int>(program_.kernels.size())) {
      return Bad(where, absl::StrFormat("kernel %d of %u", launch.kernel, program_.kernels.size()));
    }
    const Kernel& kernel = program_.kernels[launch.kernel];
    if (launch.arguments.size() != kernel.params.size()) {
      return Bad(where, absl::StrFormat("%u arguments, %s takes %u", launch.arguments.size(), kernel.symbol,
                                        kernel.params.size()));
    }
    if (once && !kernel.symbols.empty()) return Bad(where, "work on parameters alone depends on a symbol");
    for (size_t a = 0; a < launch.arguments.size(); ++a) {
      const lir::Argument& argument = launch.arguments[a];
      const std::string at = absl::StrCat(where, ".arguments[", a, "]");
      if (argument.buffer < 0 || argument.buffer >= static_cast<int>(variant.buffers.size())) {
        return Bad(at, absl::StrFormat("buffer %d of %u", argument.buffer, variant.buffers.size()));
      }
      QUERN_RETURN_IF_ERROR(CheckExtent(at, argument.offset));
      const lir::Home home = variant.buffers[argument.buffer].home;
      const bool fixed = home == lir::Home::kParam || home == lir::Home::kConstant || home == lir::Home::kOnce;
      if (once && (!fixed || !argument.offset.is_constant()))
        return Bad(at, "work on parameters alone reads or writes something else");
      const bool kept = home == lir::Home::kParam || home == lir::Home::kConstant || home == lir::Home::kInput;
      if (kept && kernel.params[a].mode != kir::Mode::kIn)
        return Bad(at, absl::StrCat("it writes an argument of home ", std::string(lir::Name(home))));
    }
    return absl::OkStatus();
  }

  Status CheckVariant(const std::string& where, const Variant& variant) const {
    for (const auto& [name, range] : variant.guard) {
      if (!symbols_.contains(name))
        return Bad(absl::StrCat(where, ".guard"), absl::StrCat("there is no symbol ", name));
      QUERN_RETURN_IF_ERROR(CheckRange(absl::StrCat(where, ".guard.", name), range));
    }
    for (size_t b = 0; b < variant.buffers.size(); ++b) {
      QUERN_RETURN_IF_ERROR(CheckBuffer(absl::StrCat(where, ".buffers[", b, "]"), variant.buffers[b]));
    }
    for (size_t l = 0; l < variant.once.size(); ++l) {
      QUERN_RETURN_IF_ERROR(CheckLaunch(absl::StrCat(where, ".once[", l, "]"), variant, variant.once[l], true));
    }
    for (size_t l = 0; l < variant.launches.size(); ++l) {
      QUERN_RETURN_IF_ERROR(
          CheckLaunch(absl::StrCat(where, ".launches[", l, "]"), variant, variant.launches[l], false));
    }
    QUERN_RETURN_IF_ERROR(VerifySteps(where, variant, symbols_));
    for (size_t r = 0; r < variant.requirements.size(); ++r) {
      QUERN_RETURN_IF_ERROR(CheckExtent(absl::StrCat(where, ".requirements[", r, "]"), variant.requirements[r].value));
    }
    QUERN_RETURN_IF_ERROR(CheckExtent(absl::StrCat(where, ".arena_bytes"), variant.arena_bytes));
    if (!variant.once_bytes.is_constant() || variant.once_bytes.constant() < 0)
      return Bad(absl::StrCat(where, ".once_bytes"), "it depends on a symbol, or is negative");
    return absl::OkStatus();
  }

  const Program& program_;
  Names symbols_;
};

}  // namespace

Status Verify(const Program& program) { return ProgramVerifier(program).Run(); }

}  // namespace quern::device
