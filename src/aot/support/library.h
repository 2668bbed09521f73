// Files that the build embeds (cmake/aot.cmake): the bitcode of support.c, and include/quern/abi.h. Internal to aot.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

extern "C" const uint8_t quern_aot_support[];
extern "C" const uint8_t quern_aot_support_end[];
extern "C" const char quern_aot_abi[];
extern "C" const char quern_aot_abi_end[];

namespace quern::aot {

inline std::span<const uint8_t> SupportBitcode() { return {quern_aot_support, quern_aot_support_end}; }

inline std::string_view AbiHeader() { return {quern_aot_abi, static_cast<size_t>(quern_aot_abi_end - quern_aot_abi)}; }

}  // namespace quern::aot
