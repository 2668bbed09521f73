// The functions in KIR: each one parses, verifies and gives, run by the interpreter in double, about what the operator
// means. What they give in the arithmetic of the machine tests/run/ptx_test.py measures.
#include "codegen/ptx/math.h"

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kir/interpret.h"
#include "kir/operators.h"

namespace quern::ptx {
namespace {

template <typename T>
double Called(const kir::Kernel& function, double a, double b) {
  T x = static_cast<T>(a), y = static_cast<T>(b), result = 0;
  auto bytes = [](T& value) { return kir::BufferBytes(reinterpret_cast<uint8_t*>(&value), sizeof value); };
  std::vector<kir::BufferBytes> buffers = {bytes(x)};
  if (function.params.size() == 3) buffers.push_back(bytes(y));
  buffers.push_back(bytes(result));
  const Status status = kir::Interpret(function, {}, buffers);
  EXPECT_TRUE(status.ok()) << status;
  return static_cast<double>(result);
}

TEST(Math, IsWhatTheOperatorsMean) {
  constexpr uint32_t kSeed = 4271;
  std::mt19937 random(kSeed);
  MathLibrary library;
  int functions = 0;
  for (int i = 0; i < kir::kOpCount; ++i) {
    const auto op = static_cast<kir::Op>(i);
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const StatusOr<const kir::Kernel*> function = library.Find(op, dtype);
      if (!function.ok()) {
        // Everything that is no instruction has a row; exp2 of f32 is one.
        EXPECT_TRUE(absl::IsUnimplemented(function.status())) << function.status();
        EXPECT_TRUE(!kir::Row(op).math || (op == kir::Op::kExp2 && dtype == DType::kF32)) << kir::Row(op).name;
        continue;
      }
      ++functions;
      SCOPED_TRACE(absl::StrCat(kir::Row(op).name, " of ", std::string(Name(dtype)), ", seed ", kSeed));
      EXPECT_EQ(kir::Verify(**function), absl::OkStatus());
      const double limit = dtype == DType::kF64 ? 1e-14 : 1e-6;
      std::vector<double> values = {0.0,   -0.0, 1,    -1,  0.5,      -2,        3,           1e-30,
                                    -1e-7, 40,   -1e4, 2e7, HUGE_VAL, -HUGE_VAL, std::nan("")};
      for (int n = 0; n < 100; ++n)
        values.push_back(
            std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), static_cast<int>(random() % 12) - 5));
      for (size_t n = 0; n < values.size(); ++n) {
        const double b = values[(7 * n + 3) % values.size()];
        const double x = dtype == DType::kF32 ? static_cast<float>(values[n]) : values[n],
                     y = dtype == DType::kF32 ? static_cast<float>(b) : b;
        const double want = kir::Row(op).eval(x, y, 0);
        const double got = dtype == DType::kF32 ? Called<float>(**function, x, y) : Called<double>(**function, x, y);
        if (std::isnan(want))
          EXPECT_TRUE(std::isnan(got)) << x << ", " << y << ": " << got;
        else if (std::isinf(want))
          EXPECT_EQ(got, want) << x << ", " << y;
        else if (dtype == DType::kF32 && std::fabs(want) > 3.4028234e38)
          EXPECT_TRUE(std::isinf(got)) << x << ", " << y;
        else
          EXPECT_NEAR(got, want, limit * std::fabs(want) + 1e-45) << x << ", " << y;
      }
    }
  }
  EXPECT_EQ(functions, 31);
}

}  // namespace
}  // namespace quern::ptx
