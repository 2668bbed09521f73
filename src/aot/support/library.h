// Files that the build embeds (cmake/aot.cmake): the bitcode of support.c for each platform, and include/quern/abi.h.
// Internal to aot.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

extern "C" const uint8_t quern_aot_support_x86_64[];
extern "C" const uint8_t quern_aot_support_x86_64_end[];
extern "C" const uint8_t quern_aot_support_aarch64[];
extern "C" const uint8_t quern_aot_support_aarch64_end[];
extern "C" const char quern_aot_abi[];
extern "C" const char quern_aot_abi_end[];

namespace quern::aot {

// Empty where there is none for the triple.
inline std::span<const uint8_t> SupportBitcode(std::string_view triple) {
  if (triple.starts_with("x86_64-")) return {quern_aot_support_x86_64, quern_aot_support_x86_64_end};
  if (triple.starts_with("aarch64-")) return {quern_aot_support_aarch64, quern_aot_support_aarch64_end};
  return {};
}

inline std::string_view AbiHeader() { return {quern_aot_abi, static_cast<size_t>(quern_aot_abi_end - quern_aot_abi)}; }

}  // namespace quern::aot
