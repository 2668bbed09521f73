// Status and StatusOr, with the macros that pass an error up.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"

namespace quern {
using absl::Status;
using absl::StatusOr;
}  // namespace quern

#define QUERN_CONCAT_INNER(a, b) a##b
#define QUERN_CONCAT(a, b) QUERN_CONCAT_INNER(a, b)
// Returns from the enclosing function when `expression` is an error.
#define QUERN_RETURN_IF_ERROR(expression)                                                  \
  do {                                                                                     \
    if (absl::Status quern_status = (expression); !quern_status.ok()) return quern_status; \
  } while (false)
// QUERN_ASSIGN(auto x, F()): returns F's error, or declares x with its value.
#define QUERN_ASSIGN(declaration, expression) \
  QUERN_ASSIGN_IMPL(QUERN_CONCAT(quern_or_, __LINE__), declaration, expression)
#define QUERN_ASSIGN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                              \
  if (!temporary.ok()) return std::move(temporary).status();  \
  declaration = *std::move(temporary)
