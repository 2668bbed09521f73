// The helper functions that emitted text calls: templates over dtypes, written once for all languages where they can
// be.
//
//   HelpersFor(language, "y[i] = add_i32(a, b);") ==
//     "static inline int32_t add_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)(a) + (uint32_t)(b)); }\n"
//
// In their text:
//   $D name of the dtype   $T its type   $U unsigned type to compute in   $W width in bits
//   $L, $H least and greatest value   $l, $h the floats at or below $L and above $H   $P the widest float type
//   $sqrt, $exp, $fmod: the language's functions for $T
//   $T(x) and $U(x) convert, in the way of the language
// Those for no dtype are as for i64. What block formats have: block_words.h, and
//   $constant type of a table of i8
#pragma once

#include <string>
#include <string_view>

#include "codegen/text/language.h"

namespace quern::text {

// The helpers that `body` calls, by the words in it, each after those that it needs.
std::string HelpersFor(const Language& language, std::string_view body);
// Whether C or C++ has the word for itself.
bool IsKeyword(std::string_view identifier);
// Whether an identifier may not be used: a keyword, a helper, or what the language says is taken.
bool Reserved(const Language& language, std::string_view identifier);

}  // namespace quern::text
