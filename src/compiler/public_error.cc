#include "compiler/public_error.h"

#include "base/diagnostic.h"

namespace quern::compiler {
namespace {

ErrorCode CodeOf(DiagnosticCode code) {
  switch (code) {
    case DiagnosticCode::kUnknownOp: return ErrorCode::kUnknownOp;
    case DiagnosticCode::kUnknownOperand: return ErrorCode::kUnknownOperand;
    case DiagnosticCode::kInputCount: return ErrorCode::kInputCount;
    case DiagnosticCode::kMissingBias: return ErrorCode::kMissingBias;
    case DiagnosticCode::kShapeMismatch: return ErrorCode::kShapeMismatch;
    case DiagnosticCode::kDTypeMismatch: return ErrorCode::kDTypeMismatch;
    case DiagnosticCode::kUnboundSymbol: return ErrorCode::kUnboundSymbol;
    case DiagnosticCode::kBadAttribute: return ErrorCode::kBadAttribute;
    case DiagnosticCode::kDuplicateName: return ErrorCode::kDuplicateName;
    case DiagnosticCode::kUnsupported: return ErrorCode::kUnsupported;
    case DiagnosticCode::kMissing: return ErrorCode::kMissing;
    case DiagnosticCode::kUnknownName: return ErrorCode::kUnknownName;
    case DiagnosticCode::kOutOfRange: return ErrorCode::kOutOfRange;
    case DiagnosticCode::kSizeConflict: return ErrorCode::kSizeConflict;
    case DiagnosticCode::kBusy: return ErrorCode::kBusy;
  }
  return ErrorCode::kInternal;
}

// Of an error that carries no diagnostic.
ErrorCode CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnimplemented: return ErrorCode::kUnsupported;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable: return ErrorCode::kResource;
    case absl::StatusCode::kInternal: return ErrorCode::kInternal;
    case absl::StatusCode::kAborted: return ErrorCode::kCheck;
    case absl::StatusCode::kCancelled: return ErrorCode::kCancelled;
    default: return ErrorCode::kInvalid;  // absl asks for a default: codes may be added
  }
}

}  // namespace

Error ErrorOf(const Status& status, std::string_view where) {
  Error error;
  error.message = std::string(status.message());
  if (const std::optional<Diagnostic> diagnostic = DiagnosticOf(status)) {
    error.code = CodeOf(diagnostic->code);
    error.op = diagnostic->op;
    error.operand = diagnostic->operand;
    error.expected = diagnostic->expected;
    error.got = diagnostic->got;
    error.where = diagnostic->provenance;
    error.suggestion = diagnostic->suggestion;
  } else {
    error.code = CodeOf(status.code());
  }
  if (error.where.empty()) error.where = where;
  return error;
}

}  // namespace quern::compiler
