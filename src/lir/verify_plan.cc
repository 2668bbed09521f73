#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "lir/plan.h"

namespace quern::lir {
namespace {

Status Fail(std::string text) { return absl::InternalError(absl::StrCat("plan: ", text)); }

// Whether [a, a + a_bytes) and [b, b + b_bytes) share nothing for any value of the symbols.
bool Apart(const Extent& a, const Extent& a_bytes, const Extent& b, const Extent& b_bytes, const SymbolRanges& ranges) {
  return b.ProvablyAtLeast(a + a_bytes, ranges) || a.ProvablyAtLeast(b + b_bytes, ranges);
}

// What is known of the memory behind an argument before a caller says more.
int64_t Guaranteed(const Buffer& buffer) {
  switch (buffer.home) {
    case Home::kInput:
    case Home::kOutput: return IsBlock(buffer.type.dtype) ? 1 : ScalarBytes(buffer.type.dtype);
    case Home::kParam: return kParamAlign;
    case Home::kArena:
    case Home::kConstant:
    case Home::kState:
    case Home::kOnce: return kBufferAlign;
  }
  return 1;
}

Status VerifyLaunch(const Plan& plan, const Launch& launch, std::set<int>& defined) {
  if (launch.kernel < 0 || launch.kernel >= static_cast<int>(plan.kernels.size())) return Fail("a launch of no kernel");
  const kir::Kernel& kernel = plan.kernels[launch.kernel];
  const std::string where = absl::StrCat(kernel.name, " (", launch.label, ")");
  if (launch.arguments.size() != kernel.params.size()) {
    return Fail(
        absl::StrFormat("%s has %u arguments, %u expected", where, launch.arguments.size(), kernel.params.size()));
  }
  for (size_t p = 0; p < launch.arguments.size(); ++p) {
    const Argument& argument = launch.arguments[p];
    if (argument.buffer < 0 || argument.buffer >= static_cast<int>(plan.buffers.size()))
      return Fail(where + " has an argument without a buffer");
    const Buffer& buffer = plan.buffers[argument.buffer];
    const kir::Param& param = kernel.params[p];
    if (AlignmentOf(argument.offset, Guaranteed(buffer)) < param.align) {
      return Fail(absl::StrFormat("%s: %s wants alignment %d, %s + %s has less", where, param.name, param.align,
                                  buffer.name, argument.offset.ToString()));
    }
    // Extents may name symbols that the kernel derives; those have been checked against the buffer's own when it was
    // made.
    const Extent bytes = kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims);
    const std::vector<std::string> symbols = bytes.Symbols();
    const bool known = std::all_of(symbols.begin(), symbols.end(),
                                   [&](const std::string& name) { return plan.ranges.contains(name); });
    if (known && argument.offset == Extent(0) && (bytes - buffer.bytes).LowerBound(plan.ranges).value_or(0) > 0) {
      return Fail(absl::StrFormat("%s: %s is %s bytes, %s has %s", where, param.name, bytes.ToString(), buffer.name,
                                  buffer.bytes.ToString()));
    }
    const bool writes = param.mode != kir::Mode::kIn;
    if (writes && (buffer.home == Home::kParam || buffer.home == Home::kConstant || buffer.home == Home::kInput)) {
      return Fail(absl::StrFormat("%s writes %s, which is not to be written", where, buffer.name));
    }
    const bool ours = buffer.home == Home::kArena || buffer.home == Home::kOnce || buffer.home == Home::kOutput;
    if (!writes && ours && !defined.contains(argument.buffer))
      return Fail(absl::StrFormat("%s reads %s before it is written", where, buffer.name));
    for (size_t other = 0; writes && other < p; ++other) {
      if (launch.arguments[other] == argument && param.inplace == kernel.params[other].name) continue;
      if (launch.arguments[other].buffer == argument.buffer) {
        return Fail(absl::StrFormat("%s writes %s under another argument too", where, buffer.name));
      }
    }
  }
  for (size_t p = 0; p < launch.arguments.size(); ++p) {
    if (kernel.params[p].mode != kir::Mode::kIn) defined.insert(launch.arguments[p].buffer);
  }
  return absl::OkStatus();
}

}  // namespace

Status Verify(const Plan& plan) {
  std::set<int> defined;
  for (const Launch& launch : plan.once) {
    if (!plan.kernels[launch.kernel].symbols.empty()) return Fail("parameter-only work depends on a symbol");
    QUERN_RETURN_IF_ERROR(VerifyLaunch(plan, launch, defined));
  }
  std::map<int, std::pair<int, int>> live;
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    QUERN_RETURN_IF_ERROR(VerifyLaunch(plan, plan.launches[l], defined));
    for (const Argument& argument : plan.launches[l].arguments) {
      if (plan.buffers[argument.buffer].home != Home::kArena) continue;
      live.try_emplace(argument.buffer, static_cast<int>(l), static_cast<int>(l)).first->second.second =
          static_cast<int>(l);
    }
  }
  for (auto a = live.begin(); a != live.end(); ++a) {
    const Buffer& first = plan.buffers[a->first];
    if (AlignmentOf(first.offset, kBufferAlign) < kBufferAlign) return Fail(first.name + " is not aligned");
    if (!first.offset.ProvablyAtLeast(Extent(0), plan.ranges) ||
        !plan.arena_bytes.ProvablyAtLeast(first.offset + first.bytes, plan.ranges)) {
      return Fail(first.name + " does not lie in the arena");
    }
    for (auto b = std::next(a); b != live.end(); ++b) {
      if (a->second.first > b->second.second || b->second.first > a->second.second) continue;
      const Buffer& second = plan.buffers[b->first];
      if (!Apart(first.offset, first.bytes, second.offset, second.bytes, plan.ranges)) {
        return Fail(absl::StrFormat("%s and %s are live at once and share memory", first.name, second.name));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::lir
