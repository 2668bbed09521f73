// Diagnostic: the one typed payload of an error about a model or a run of it: what is wrong, at which op and operand,
// what was expected, and where in the model it came from. It travels inside an absl::Status, whose message is made from
// it.
//
//   Status s = ToStatus({.code = DiagnosticCode::kShapeMismatch, .op = "SwiGLU", .operand = "gate",
//                        .expected = "[7, 11]", .got = "f32[7, 5]", .provenance = "layers.3/ffn"});
//   s.message()              "SwiGLU: gate is f32[7, 5], [7, 11] expected (in layers.3/ffn)"
//   DiagnosticOf(s)->operand "gate"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quern {

enum class DiagnosticCode : uint8_t {
  kUnknownOp,       // no block or op is called `op`
  kUnknownOperand,  // `operand` refers to `got`, which does not exist
  kInputCount,      // `expected` and `got` are counts
  kMissingBias,     // the attributes ask for a bias that is not there
  kShapeMismatch,
  kDTypeMismatch,
  kUnboundSymbol,  // `operand` is the symbol
  kBadAttribute,   // `operand` is the attribute
  kDuplicateName,  // `operand` is the name
  kUnsupported,    // `got` says what; with `operand` and `expected`: what would be
  // Of a run; `op` is empty and `operand` says what it is about: "input x", "symbol SEQ".
  kMissing,       // the operand was not given
  kUnknownName,   // there is no such operand; `expected` lists those there are
  kOutOfRange,    // `got` is outside `expected`
  kSizeConflict,  // the sizes `got` break `expected`, which the graph needs
  kBusy,          // another run is under way
};
inline constexpr DiagnosticCode kLastDiagnosticCode = DiagnosticCode::kBusy;

struct Diagnostic {
  DiagnosticCode code = DiagnosticCode::kUnsupported;
  std::string op, operand, expected, got;
  std::string provenance;       // label path of the block, or empty
  std::string suggestion = {};  // the name there is that is nearest to one there is not (base/nearest.h), or empty
  bool operator==(const Diagnostic&) const = default;
};

Status ToStatus(const Diagnostic& diagnostic);
// "a, b, c" of up to 8 names, then how many there are; "none".
std::string NamesText(const std::vector<std::string_view>& names);
// kUnknownName of "KIND NAME", with the names that there are and the nearest of them.
Status UnknownName(std::string_view kind, std::string_view name, const std::vector<std::string_view>& known,
                   const std::string& provenance);
// The diagnostic that ToStatus put into `status`, or nullopt.
std::optional<Diagnostic> DiagnosticOf(const Status& status);
// `status` with where it happened, unless it says already: as the provenance of its diagnostic, else as " (in WHERE)"
// after the message.
Status WithProvenance(const Status& status, std::string_view where);
// `status` with another message: its code and its diagnostic stay.
Status WithMessage(const Status& status, std::string_view message);

}  // namespace quern
