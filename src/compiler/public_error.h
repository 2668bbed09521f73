// From a Status to the Error of the public interface: the Diagnostic inside, where there is one, field by field.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "quern/result.h"

namespace quern::compiler {

// `where`: what the error is about when the status does not say. Precondition: not ok.
Error ErrorOf(const Status& status, std::string_view where = "");

// An error that has its sentence alone.
inline Error ErrorOf(ErrorCode code, std::string sentence) {
  Error error;
  error.code = code;
  error.message = std::move(sentence);
  return error;
}

// A Result of what `value` holds, or of its error.
template <typename T>
Result<T> ToResult(StatusOr<T> value, std::string_view where = "") {
  if (!value.ok()) return Result<T>::Failed(ErrorOf(value.status(), where));
  return *std::move(value);
}
inline Result<void> ToResult(const Status& status, std::string_view where = "") {
  return status.ok() ? Result<void>() : Result<void>::Failed(ErrorOf(status, where));
}

}  // namespace quern::compiler
