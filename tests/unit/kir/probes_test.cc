// Kernels by hand of ../shared/probes: what convolutions, scatters, sorts and ragged loops need of kernel text.
// Skipped, saying so, where they are absent.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kir/interpret.h"
#include "kir/kir.h"

namespace quern::kir {
namespace {

constexpr uint32_t kSeed = 23;

class Probes : public testing::Test {
 protected:
  // The kernel of that name in one of the files, as text; empty where the file is absent.
  static std::string Text(const std::string& file, const std::string& kernel) {
    std::ifstream stream(QUERN_MODELS_DIR "/../probes/" + file + ".kir");
    std::stringstream text;
    text << stream.rdbuf();
    const std::string all = text.str();
    const size_t begin = all.find("kernel " + kernel + " (");
    if (begin == std::string::npos) return "";
    return all.substr(begin, all.find("\nkernel ", begin) - begin);
  }
  static bool Absent() { return Text("probe", "argmax_row").empty(); }

  // Runs it on these buffers, in place.
  template <typename... Buffers>
  static void Run(const std::string& kernel, Buffers&... buffers) {
    const StatusOr<Kernel> parsed = ParseKernel(Text("probe", kernel));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const Status verified = Verify(*parsed);
    ASSERT_TRUE(verified.ok()) << verified.message();
    const std::vector<BufferBytes> bytes = {
        BufferBytes(reinterpret_cast<uint8_t*>(buffers.data()), buffers.size() * sizeof(buffers[0]))...};
    const Status ran = Interpret(*parsed, {}, bytes);
    ASSERT_TRUE(ran.ok()) << ran.message();
  }

  std::vector<float> Random(size_t count) {
    std::vector<float> values(count);
    std::uniform_real_distribution<float> real(-1, 1);
    for (float& value : values) value = real(random_);
    return values;
  }
  std::mt19937 random_{kSeed};
};

TEST_F(Probes, Verify) {
  if (Absent()) GTEST_SKIP() << "no probes beside " QUERN_MODELS_DIR;
  const struct {
    const char *file, *kernel, *error;
  } rows[] = {
      {"convk", "conv_tile", ""},
      {"convk2", "conv_tile", ""},
      {"probe", "conv_tile", ""},
      {"probe", "scatter_add_columns", ""},
      // Two rows may have one id.
      {"probe", "scatter_parallel_rows", "two iterations of the grid are not proved to touch different elements"},
      {"probe", "argmax_last_index_vec", ""},
      // No bound is known of what a register becomes.
      {"probe", "unique_count", "not proved to be at least 0"},
      {"unwritten_scratch", "rms_norm_q8", "written"},
  };
  for (const auto& row : rows) {
    const StatusOr<Kernel> parsed = ParseKernel(Text(row.file, row.kernel));
    ASSERT_TRUE(parsed.ok()) << row.kernel << ": " << parsed.status().message();
    const std::string message(Verify(*parsed).message());
    if (*row.error == '\0')
      EXPECT_EQ(message, "") << row.file << " " << row.kernel;
    else
      EXPECT_NE(message.find(row.error), std::string::npos) << row.file << " " << row.kernel << ": " << message;
  }
}

TEST_F(Probes, ArgMax) {
  if (Absent()) GTEST_SKIP() << "no probes beside " QUERN_MODELS_DIR;
  std::vector<float> x = Random(8 * 300);
  std::vector<int64_t> y(8);
  Run("argmax_row", x, y);
  for (int r = 0; r < 8; ++r)
    EXPECT_EQ(y[r], std::max_element(&x[r * 300], &x[r * 300] + 300) - &x[r * 300]) << "seed " << kSeed;
}

TEST_F(Probes, Sort) {
  if (Absent()) GTEST_SKIP() << "no probes beside " QUERN_MODELS_DIR;
  std::vector<float> x = Random(8 * 256), y(8 * 256);
  Run("bitonic", x, y);
  for (int r = 0; r < 8; ++r) std::sort(&x[r * 256], &x[r * 256] + 256);
  EXPECT_EQ(x, y) << "seed " << kSeed;
}

TEST_F(Probes, RaggedSums) {
  if (Absent()) GTEST_SKIP() << "no probes beside " QUERN_MODELS_DIR;
  std::vector<int32_t> lengths = {0, 3, 512, 700};
  std::vector<float> x(4 * 512 * 64), y(4 * 64);
  for (float& value : x) value = static_cast<float>(random_() % 7);  // sums are exact
  Run("ragged", lengths, x, y);
  for (int b = 0; b < 4; ++b) {
    for (int c = 0; c < 64; ++c) {
      float sum = 0;
      for (int t = 0; t < std::min(lengths[b], 512); ++t) sum += x[(b * 512 + t) * 64 + c];
      EXPECT_EQ(y[b * 64 + c], sum) << "seed " << kSeed << ", " << b << ", " << c;
    }
  }
}

}  // namespace
}  // namespace quern::kir
