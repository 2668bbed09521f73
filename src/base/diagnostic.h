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
  kUnsupported,    // `got` says what
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
  std::string provenance;  // label path of the block, or empty
  bool operator==(const Diagnostic&) const = default;
};

Status ToStatus(const Diagnostic& diagnostic);
// The diagnostic that ToStatus put into `status`, or nullopt.
std::optional<Diagnostic> DiagnosticOf(const Status& status);

}  // namespace quern
