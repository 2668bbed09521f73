// Runs a kernel by the interpreter and by the JIT on the same random inputs and compares every output.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/generated_code.h"
#include "base/half.h"
#include "codegen/cpu/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/engine.h"
#include "kir/decode.h"
#include "kir/interpret.h"
#include "kir/kir.h"
#include "kir/layout.h"
#include "kir/quantise.h"
#include "support/block_formats.h"

namespace quern::jit_test {

using Rng = std::mt19937_64;
inline constexpr uint64_t kSeed = 20240607;

// 64-byte aligned memory of an exact size, followed by a canary that no kernel may touch.
class Memory {
 public:
  explicit Memory(size_t bytes)
      : bytes_(bytes), data_(static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 191) / 64 * 64)), &std::free) {
    std::memset(data_.get(), 0, (bytes + 191) / 64 * 64);
    std::memset(data_.get() + bytes, 0xa5, 64);
  }
  Memory(const Memory& other) : Memory(other.bytes_) { std::memcpy(data(), other.data(), bytes_); }
  uint8_t* data() const { return data_.get(); }
  size_t size() const { return bytes_; }
  std::span<uint8_t> span() const { return {data(), bytes_}; }
  bool intact() const {
    for (int i = 0; i < 64; ++i) {
      if (data()[bytes_ + i] != 0xa5) return false;
    }
    return true;
  }

 private:
  size_t bytes_;
  std::unique_ptr<uint8_t, decltype(&std::free)> data_;
};

inline double ReadElement(DType dtype, const uint8_t* at) {
  auto as = [&]<typename T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kF32: return as(float{});
    case DType::kF64: return as(double{});
    case DType::kF16: return HalfToFloat(as(uint16_t{}));
    case DType::kBF16: return BFloat16ToFloat(as(uint16_t{}));
    case DType::kI8: return as(int8_t{});
    case DType::kI16: return as(int16_t{});
    case DType::kI32: return as(int32_t{});
    case DType::kI64: return static_cast<double>(as(int64_t{}));
    case DType::kU8:
    case DType::kBool: return as(uint8_t{});
    case DType::kU16: return as(uint16_t{});
    case DType::kU32: return as(uint32_t{});
    case DType::kU64: return static_cast<double>(as(uint64_t{}));
    default: return NAN;
  }
}

inline void WriteElement(DType dtype, uint8_t* at, double value) {
  auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case DType::kF32: return put(static_cast<float>(value));
    case DType::kF64: return put(value);
    case DType::kF16: return put(FloatToHalf(static_cast<float>(value)));
    case DType::kBF16: return put(FloatToBFloat16(static_cast<float>(value)));
    default: FAIL() << "not a float";
  }
}

struct FillOptions {
  double range = 4;       // floats in [-range, range]
  bool specials = false;  // and now and then NaN, infinities, zeros, subnormals, huge values
  int64_t int_limit = 0;  // integers in [0, limit) when positive, else all bits random
};

inline void FillScalars(DType dtype, std::span<uint8_t> bytes, const FillOptions& options, Rng& rng) {
  const int width = ScalarBytes(dtype);
  std::uniform_real_distribution<double> real(-options.range, options.range);
  const double specials[] = {NAN,   INFINITY, -INFINITY, 0.0,   -0.0,  1e-41,        -3e-40,        6e-8,         3e38,
                             -3e38, 0.5,      1.5,       2.5,   -0.5,  2147483648.0, -2147483648.0, 4294967296.0, 127.5,
                             128,   255.5,    -128.5,    65504, 65520, 9e18,         2e19};
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    if (IsFloat(dtype)) {
      double value = real(rng);
      if (options.specials && rng() % 3 == 0) value = specials[rng() % std::size(specials)];
      WriteElement(dtype, bytes.data() + at, value);
    } else if (dtype == DType::kBool) {
      bytes[at] = rng() % 2;
    } else {
      int64_t value = static_cast<int64_t>(rng());
      if (options.int_limit > 0)
        value = static_cast<int64_t>(static_cast<uint64_t>(value) % options.int_limit);
      else if (rng() % 4 == 0)
        value = static_cast<int64_t>(rng() % 5) - 2;
      std::memcpy(bytes.data() + at, &value, width);
    }
  }
}

// Random but well-formed blocks: small finite scales.
inline void FillBlocks(DType dtype, std::span<uint8_t> bytes, Rng& rng) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng());
  std::uniform_real_distribution<float> scale(0.001f, 0.02f);
  const int block = Row(dtype).block_bytes;
  for (size_t at = 0; at + block <= bytes.size(); at += block) {
    const float d = scale(rng), dmin = scale(rng);
    kir::PutScales(dtype, bytes.data() + at, d, dmin);
  }
}

inline void FillPlanar(DType dtype, int64_t k, std::span<uint8_t> bytes, Rng& rng) {
  const int64_t row_bytes = kir::PlanarRowOf(dtype, k).row_bytes;
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(k);
  for (size_t at = 0; at < bytes.size(); at += row_bytes) {
    for (float& value : x) value = normal(rng);
    kir::QuantiseToPlanar(dtype, x.data(), k, bytes.data() + at, k, 0);
  }
}

inline kir::Kernel Parse(const std::string& text) {
  auto kernel = kir::ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << text;
  if (!kernel.ok()) return {};
  const Status verified = kir::Verify(*kernel);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << text;
  return *std::move(kernel);
}

// How far an output may lie from the interpreter's.
struct Tolerance {
  double relative = 0, absolute = 0;
};

inline bool Near(double got, double want, DType dtype, const Tolerance& tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got);
  if (got == want) return true;
  if (std::isinf(want) || std::isinf(got)) return false;
  double relative = tolerance.relative;
  if (relative > 0 && dtype == DType::kF16) relative += 0x1p-10;
  if (relative > 0 && dtype == DType::kBF16) relative += 0x1p-7;
  return std::fabs(got - want) <= relative * std::fabs(want) + tolerance.absolute;
}

struct Case {
  const kir::Kernel* kernel = nullptr;
  Binding symbols;
  std::vector<Memory> buffers;  // inputs filled; outputs zero
  Tolerance tolerance;
  std::vector<Tolerance> each;  // per parameter, in place of `tolerance` when not empty
};

inline std::vector<Memory> MakeBuffers(const kir::Kernel& kernel, const Binding& symbols) {
  std::vector<Memory> buffers;
  auto binding = kir::BindSymbols(kernel, symbols);
  EXPECT_TRUE(binding.ok()) << binding.status();
  for (const kir::Param& param : kernel.params) {
    auto bytes = kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims).Evaluate(*binding);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    buffers.emplace_back(static_cast<size_t>(*bytes));
  }
  return buffers;
}

// Every in and inout parameter filled by its type.
inline void FillInputs(const kir::Kernel& kernel, std::vector<Memory>& buffers, const FillOptions& options, Rng& rng) {
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const kir::Param& param = kernel.params[i];
    if (param.mode == kir::Mode::kOut) continue;
    const kir::BufferType& type = param.type;
    if (type.layout == kir::Layout::kPlanar)
      FillPlanar(type.dtype, type.dims.back().constant(), buffers[i].span(), rng);
    else if (IsBlock(type.dtype))
      FillBlocks(type.dtype, buffers[i].span(), rng);
    else
      FillScalars(type.dtype, buffers[i].span(), options, rng);
  }
}

// Runs all chunks of a compiled kernel, in `splits` calls.
QUERN_CALLS_GENERATED_CODE inline void RunCompiled(quern_kernel* function, const kir::Kernel& kernel,
                                                   const Binding& symbols, const std::vector<Memory>& buffers,
                                                   int splits = 1) {
  auto binding = kir::BindSymbols(kernel, symbols);
  ASSERT_TRUE(binding.ok()) << binding.status();
  auto scratch_bytes = kir::ScratchBytes(kernel, *binding);
  ASSERT_TRUE(scratch_bytes.ok()) << scratch_bytes.status();
  auto chunks = kir::GridChunks(kernel, *binding);
  ASSERT_TRUE(chunks.ok()) << chunks.status();
  Memory scratch(static_cast<size_t>(*scratch_bytes));
  std::memset(scratch.data(), 0xcd, scratch.size());
  std::vector<void*> pointers;
  for (const Memory& buffer : buffers) pointers.push_back(buffer.data());
  std::vector<int64_t> values;
  for (const kir::SymbolDecl& symbol : kernel.symbols) values.push_back(binding->at(symbol.name));
  const quern_args args = {pointers.data(), values.data()};
  for (int s = 0; s < splits; ++s) function(&args, scratch.data(), *chunks * s / splits, *chunks * (s + 1) / splits);
  EXPECT_TRUE(scratch.intact()) << "scratch overrun";
  for (const Memory& buffer : buffers) EXPECT_TRUE(buffer.intact()) << "buffer overrun";
}

inline void ExpectSame(const Case& test, const std::vector<Memory>& got, const std::vector<Memory>& want,
                       const std::string& where) {
  const kir::Kernel& kernel = *test.kernel;
  for (size_t p = 0; p < kernel.params.size(); ++p) {
    const kir::Param& param = kernel.params[p];
    const DType dtype = param.type.dtype;
    const Tolerance tolerance = test.each.empty() ? test.tolerance : test.each[p];
    if (param.mode == kir::Mode::kIn) {
      EXPECT_EQ(std::memcmp(got[p].data(), test.buffers[p].data(), got[p].size()), 0) << "input changed";
      continue;
    }
    int bad = 0;
    auto check = [&](double g, double w, size_t index) {
      if (Near(g, w, dtype, tolerance) || ++bad > 3) return;
      ADD_FAILURE() << where << ": kernel " << kernel.name << " " << param.name << "[" << index << "] is " << g
                    << ", interpreter " << w << " (" << Row(dtype).name << ")";
    };
    if (param.type.layout == kir::Layout::kPlanar) {
      const int64_t k = param.type.dims.back().constant();
      const int64_t row_bytes = kir::PlanarRowOf(dtype, k).row_bytes;
      for (size_t row = 0; row * row_bytes < got[p].size(); ++row) {
        for (int64_t j = 0; j < k; ++j) {
          check(kir::DecodePlanar(dtype, got[p].data() + row * row_bytes, k, j),
                kir::DecodePlanar(dtype, want[p].data() + row * row_bytes, k, j), row * k + j);
        }
      }
      continue;
    }
    ASSERT_FALSE(IsBlock(dtype));
    const int width = ScalarBytes(dtype);
    for (size_t at = 0; at + width <= got[p].size(); at += width) {
      if (IsFloat(dtype)) {
        check(ReadElement(dtype, got[p].data() + at), ReadElement(dtype, want[p].data() + at), at / width);
      } else if (std::memcmp(got[p].data() + at, want[p].data() + at, width) != 0) {
        if (++bad <= 3) {
          ADD_FAILURE() << where << ": kernel " << kernel.name << " " << param.name << "[" << at / width << "] is "
                        << ReadElement(dtype, got[p].data() + at) << ", interpreter "
                        << ReadElement(dtype, want[p].data() + at) << " (" << Row(dtype).name << ")";
        }
      }
    }
    EXPECT_LE(bad, 3) << where << ": kernel " << kernel.name << " " << param.name << ": " << bad << " elements differ";
  }
}

inline std::shared_ptr<jit::Engine> MakeEngine(const cpu::Target& target, const cpu::EmitOptions& emit = {}) {
  auto engine = jit::Engine::Create({.cpu = target.name, .emit = emit});
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *engine : nullptr;
}

// Compiles the kernels of all cases at every level that this machine has and compares with the interpreter, which runs
// each case once. `suits`: others are left out.
inline void CheckCases(
    const std::vector<Case>& cases, const cpu::EmitOptions& emit = {},
    bool (*suits)(const cpu::Target&) = [](const cpu::Target&) { return true; }) {
  std::vector<std::vector<Memory>> want;
  for (const Case& test : cases) {
    want.push_back(test.buffers);
    std::vector<kir::BufferBytes> spans;
    for (const Memory& buffer : want.back()) spans.push_back(buffer.span());
    const Status status = kir::Interpret(*test.kernel, test.symbols, spans);
    ASSERT_TRUE(status.ok()) << status << "\n" << kir::Print(*test.kernel);
  }
  std::vector<kir::Kernel> kernels;
  std::vector<const kir::Kernel*> sources;
  std::vector<size_t> index_of;
  for (const Case& test : cases) {
    size_t index = std::find(sources.begin(), sources.end(), test.kernel) - sources.begin();
    if (index == sources.size()) {
      sources.push_back(test.kernel);
      kernels.push_back(*test.kernel);
    }
    index_of.push_back(index);
  }
  for (const cpu::Target* target : cpu::HostTargets()) {
    if (!suits(*target)) continue;
    auto engine = MakeEngine(*target, emit);
    ASSERT_NE(engine, nullptr);
    auto module = engine->Compile(kernels);
    ASSERT_TRUE(module.ok()) << module.status();
    for (size_t i = 0; i < cases.size(); ++i) {
      std::vector<Memory> got = cases[i].buffers;
      RunCompiled(module->kernel(index_of[i]), *cases[i].kernel, cases[i].symbols, got, 1 + i % 3);
      std::string where = target->name;
      for (const auto& [name, value] : cases[i].symbols) where += " " + name + "=" + std::to_string(value);
      ExpectSame(cases[i], got, want[i], where);
    }
  }
}

}  // namespace quern::jit_test
