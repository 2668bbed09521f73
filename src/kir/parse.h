// Parses parts of KIR text: an expression or statements over names that the caller declares. Op bodies and the meanings
// of tile ops are such text; whole kernels are read by ParseKernel (kir.h).
//
//   ParseExpr("x / (1 + exp(-x))", {.scalars = {{"x", DType::kF32}}})
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kir/kir.h"

namespace quern::kir {

// The names that a text may use. Sizes and indices are i64 scalars; extents of the buffer types may be anything.
struct Scope {
  std::vector<std::pair<std::string, DType>> scalars;
  std::vector<std::pair<std::string, BufferType>> buffers;
};

// Errors: InvalidArgument, "line:column: expected ..., got ...". A literal alone is i64, or f32 if real.
StatusOr<ExprRef> ParseExpr(std::string_view text, const Scope& scope);
StatusOr<Block> ParseStatements(std::string_view text, const Scope& scope);

}  // namespace quern::kir
