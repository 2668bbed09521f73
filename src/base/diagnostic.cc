#include "base/diagnostic.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"

namespace quern {
namespace {

constexpr const char* kPayloadUrl = "quern.dev/diagnostic";

std::string Message(const Diagnostic& d) {
  switch (d.code) {
    case DiagnosticCode::kUnknownOp: return absl::StrFormat("there is no block or op %s", d.op);
    case DiagnosticCode::kUnknownOperand:
      return absl::StrFormat("%s: %s refers to no value (%s)", d.op, d.operand, d.got);
    case DiagnosticCode::kInputCount: return absl::StrFormat("%s takes %s inputs, got %s", d.op, d.expected, d.got);
    case DiagnosticCode::kMissingBias: return absl::StrFormat("%s: the bias %s is missing", d.op, d.operand);
    case DiagnosticCode::kShapeMismatch:
    case DiagnosticCode::kDTypeMismatch:
      return absl::StrFormat("%s%s%s is %s, %s expected", d.op, d.op.empty() ? "" : ": ", d.operand, d.got, d.expected);
    case DiagnosticCode::kUnboundSymbol: return absl::StrFormat("%s: the symbol %s is not declared", d.op, d.operand);
    case DiagnosticCode::kBadAttribute:
      return absl::StrFormat("%s: the attribute %s is %s, %s expected", d.op, d.operand, d.got, d.expected);
    case DiagnosticCode::kDuplicateName: return absl::StrFormat("%s: the name %s is taken", d.op, d.operand);
    case DiagnosticCode::kUnsupported:
      if (d.expected.empty()) return absl::StrFormat("%s: %s is not supported", d.op, d.got);
      return absl::StrFormat("%s: %s is %s, which is not supported: %s is", d.op, d.operand, d.got, d.expected);
    case DiagnosticCode::kMissing: return absl::StrFormat("%s was not given", d.operand);
    case DiagnosticCode::kUnknownName: return absl::StrFormat("there is no %s; there is: %s", d.operand, d.expected);
    case DiagnosticCode::kOutOfRange: return absl::StrFormat("%s is %s, outside %s", d.operand, d.got, d.expected);
    case DiagnosticCode::kSizeConflict: return absl::StrFormat("%s does not hold for %s", d.expected, d.got);
    case DiagnosticCode::kBusy: return "another run is under way: one at a time";
  }
  return "";
}

absl::StatusCode StatusCodeOf(DiagnosticCode code) {
  switch (code) {
    case DiagnosticCode::kUnsupported: return absl::StatusCode::kUnimplemented;
    case DiagnosticCode::kMissing:
    case DiagnosticCode::kBusy: return absl::StatusCode::kFailedPrecondition;
    case DiagnosticCode::kUnknownName: return absl::StatusCode::kNotFound;
    case DiagnosticCode::kOutOfRange:
    case DiagnosticCode::kSizeConflict: return absl::StatusCode::kOutOfRange;
    case DiagnosticCode::kUnknownOp:
    case DiagnosticCode::kUnknownOperand:
    case DiagnosticCode::kInputCount:
    case DiagnosticCode::kMissingBias:
    case DiagnosticCode::kShapeMismatch:
    case DiagnosticCode::kDTypeMismatch:
    case DiagnosticCode::kUnboundSymbol:
    case DiagnosticCode::kBadAttribute:
    case DiagnosticCode::kDuplicateName: break;
  }
  return absl::StatusCode::kInvalidArgument;
}

// Strings are stored as LENGTH:BYTES, so that any byte may occur in them.
void Append(std::string& out, const std::string& field) { absl::StrAppend(&out, field.size(), ":", field); }

bool Take(std::string& in, std::string& field) {
  const size_t colon = in.find(':');
  size_t length = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(in.substr(0, colon), &length) || length > in.size() - colon - 1)
    return false;
  field = in.substr(colon + 1, length);
  in.erase(0, colon + 1 + length);
  return true;
}

}  // namespace

Status ToStatus(const Diagnostic& diagnostic) {
  std::string message = Message(diagnostic);
  if (!diagnostic.suggestion.empty()) absl::StrAppend(&message, "; did you mean ", diagnostic.suggestion, "?");
  if (!diagnostic.provenance.empty()) absl::StrAppend(&message, " (in ", diagnostic.provenance, ")");
  Status status(StatusCodeOf(diagnostic.code), message);
  std::string payload(1, static_cast<char>(diagnostic.code));
  for (const std::string* field : {&diagnostic.op, &diagnostic.operand, &diagnostic.expected, &diagnostic.got,
                                   &diagnostic.provenance, &diagnostic.suggestion}) {
    Append(payload, *field);
  }
  status.SetPayload(kPayloadUrl, absl::Cord(payload));
  return status;
}

std::string NamesText(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", std::string(names[i]));
  if (names.size() > 8) absl::StrAppend(&text, ", ... (", names.size(), " in all)");
  return text.empty() ? "none" : text;
}

Status UnknownName(std::string_view kind, std::string_view name, const std::vector<std::string_view>& known,
                   const std::string& provenance) {
  return ToStatus({DiagnosticCode::kUnknownName, "", absl::StrCat(std::string(kind), " ", std::string(name)),
                   NamesText(known), "", provenance, Nearest(name, known)});
}

std::optional<Diagnostic> DiagnosticOf(const Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  std::string text(*payload);
  if (text.empty() || static_cast<uint8_t>(text[0]) > static_cast<uint8_t>(kLastDiagnosticCode)) return std::nullopt;
  Diagnostic d;
  d.code = static_cast<DiagnosticCode>(text[0]);
  text.erase(0, 1);
  for (std::string* field : {&d.op, &d.operand, &d.expected, &d.got, &d.provenance, &d.suggestion}) {
    if (!Take(text, *field)) return std::nullopt;
  }
  return d;
}

Status WithMessage(const Status& status, std::string_view message) {
  Status result(status.code(), absl::string_view(message.data(), message.size()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

Status WithProvenance(const Status& status, std::string_view where) {
  if (status.ok() || where.empty()) return status;
  std::optional<Diagnostic> diagnostic = DiagnosticOf(status);
  if (!diagnostic) return WithMessage(status, absl::StrCat(status.message(), " (in ", std::string(where), ")"));
  if (!diagnostic->provenance.empty()) return status;
  diagnostic->provenance = std::string(where);
  return ToStatus(*diagnostic);
}

}  // namespace quern
