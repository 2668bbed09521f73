// For the tests of the float tiles: every level the host runs, memory that ends where reading must end, seeded numbers.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "simd/library.h"

namespace quern::simd {

inline std::vector<std::string> HostLevels() {
  std::vector<std::string> names;
  for (const Level& level : Levels()) {
    if (HostSupports(level)) names.emplace_back(level.name);
  }
  return names;
}

// A tile of one level: Tile<void(float*, ...)>("qk_dot_f32", "avx2").
template <typename Signature>
Signature* Tile(std::string_view name, std::string_view level) {
  const void* address = FindTile(std::string(name) + "_" + std::string(level));
  QUERN_CHECK(address != nullptr);
  return reinterpret_cast<Signature*>(const_cast<void*>(address));
}

// `count` elements that end at an unreadable page.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t count) : count_(count) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t bytes = (count * static_cast<int64_t>(sizeof(T)) + page - 1) / page * page;
    size_ = bytes + page;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    QUERN_CHECK(base_ != MAP_FAILED);
    QUERN_CHECK(mprotect(base_ + bytes, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(base_ + bytes) - count;
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return data_; }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  int64_t count_, size_;
  char* base_;
  T* data_;
};

struct BFloat16 {
  uint16_t bits;
};

// f32, the bits of f16, and bf16 alike.
template <typename T>
float ToFloat(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16ToFloat(value.bits);
  } else {
    return HalfToFloat(value);
  }
}
template <typename T>
T FromFloat(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return {FloatToBFloat16(value)};
  } else {
    return FloatToHalf(value);
  }
}

template <typename T>
const char* TypeName() {
  return std::is_same_v<T, float> ? "f32" : std::is_same_v<T, BFloat16> ? "bf16" : "f16";
}

class Numbers {
 public:
  explicit Numbers(uint32_t seed) : engine_(seed) {}
  float Uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(engine_); }
  int64_t Below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(engine_); }
  template <typename T>
  void Fill(T* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = FromFloat<T>(Uniform(-1.0f, 1.0f));
  }

 private:
  std::mt19937 engine_;
};

}  // namespace quern::simd
