// A language whose expressions and statements are those of C, as a row of facts: what it calls its types and functions,
// and what its compilers are good at. All else that differs between languages is a virtual function of TextEmitter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace quern::text {

// The dtypes for which a helper has a version: one named NAME_<dtype> for each, or NAME alone.
enum class Over : uint8_t { kNone, kSigned, kUnsigned, kInteger, kFloat, kBlock };

// A function that the text may call; helpers.h says what its text may name.
struct Helper {
  const char* name;
  Over over;
  const char* text;
};

struct Language {
  // What stands in the text of a helper, and its replacement.
  using Words = std::vector<std::pair<std::string, std::string>>;

  const char* name = "";       // in messages
  const char* types[13] = {};  // of scalars in memory, in the order of DType; "" for those it lacks
  std::string (*function)(std::string_view name, DType dtype) = nullptr;  // that computes fabs, exp, ... of f32 or f64
  bool casts_like_calls = false;                                          // T(x), not (T)x
  bool narrows = false;                                                   // i64s that provably fit are `int`
  bool contracts = false;                            // where the kernel allows it, a*b+c is one operation
  const char* constant = "const";                    // before the type of a table outside functions
  bool wide = false;                                 // floats below f64 are computed as f64
  const char* unroll = nullptr;                      // the line before a loop that is to be unrolled
  std::span<const Helper> helpers = {};              // besides those that all languages have
  Words (*words)(const Language&, DType) = nullptr;  // of those helpers, besides the shared ones
  std::string_view taken = "";                       // " word word ": identifiers that mean something, besides keywords
  bool (*is_taken)(std::string_view) = nullptr;      // whether another one does
};

// The type of an element in memory; blocks are bytes.
inline const char* MemoryType(const Language& language, DType dtype) {
  return language.types[static_cast<size_t>(IsBlock(dtype) ? DType::kU8 : dtype)];
}

// The dtype in which floats of `dtype` are computed.
inline DType ComputedIn(const Language& language, DType dtype) {
  return dtype == DType::kF64 || language.wide ? DType::kF64 : DType::kF32;
}

inline bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace quern::text
