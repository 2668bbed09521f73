// Against ggml itself: rows quantised by ggml, its activations, its dot products (ggml_quant_golden.safetensors of the
// shared models; skipped where absent).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "unit/simd/quant_support.h"

#include "gtest/gtest.h"

namespace quern::simd {
namespace {

constexpr int64_t kRows = 64, kElements = 256;

// A safetensors file, read whole: an 8-byte header length, a JSON header, the data.
class Golden {
 public:
  bool Open() {
    std::ifstream file(std::filesystem::path(QUERN_MODELS_DIR) / "ref" / "ggml_quant_golden.safetensors",
                       std::ios::binary);
    if (!file) return false;
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    std::memcpy(&header_, bytes_.data(), 8);
    return true;
  }
  // The tensor's bytes; its offsets follow its name in the header.
  const uint8_t* Find(const std::string& name) const {
    const std::string_view header(bytes_.data() + 8, header_);
    const size_t at = header.find("\"" + name + "\"");
    if (at == std::string_view::npos) return nullptr;
    const size_t offsets = header.find("\"data_offsets\"", at);
    const size_t open = header.find('[', offsets);
    return reinterpret_cast<const uint8_t*>(bytes_.data()) + 8 + header_ +
           std::strtoull(bytes_.data() + 8 + open + 1, nullptr, 10);
  }

 private:
  std::string bytes_;
  uint64_t header_ = 0;
};

class QuantGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!golden_.Open()) GTEST_SKIP() << "no ggml_quant_golden.safetensors under " << QUERN_MODELS_DIR;
  }
  Golden golden_;
};

using Pack = void(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k);
using PackPlanar = void(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k,
                        int64_t row_k, int64_t start);
using Dot = void(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m,
                 int64_t n, int64_t k, int64_t ahead, int64_t many);
using Mma = void(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t panel_stride,
                 int64_t m, int64_t n, int64_t k);

TEST_F(QuantGoldenTest, ActivationsDotsAndValues) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      if (!FormatOf(format.weight).grid.empty()) continue;  // tests/golden/grids.txt has their blocks (kir_test)
      if (format.weight == DType::kQ8_K) continue;          // ggml has no products of it
      SCOPED_TRACE(format.name + " " + level);
      const std::string activation(Name(format.activation));
      const uint8_t* weights = golden_.Find(format.name + ".bytes");
      const auto* dequantised = reinterpret_cast<const float*>(golden_.Find(format.name + ".dequant"));
      // Beside blocks with a number that is added, ggml has q8_1: the quants of q8_0, and their sum as a rounded half.
      const bool added = kir::HasAdded(format.weight);
      const auto* dots =
          reinterpret_cast<const float*>(golden_.Find(format.name + ".vecdot_" + (added ? "q8_1" : activation)));
      const double near = added ? 1e-3 : 1e-5;
      const uint8_t* quantised = golden_.Find("act_" + activation);
      const uint8_t* x = golden_.Find("activation");
      ASSERT_TRUE(weights && dequantised && dots && quantised && x);
      const int64_t weight_bytes = RowBytes(format.weight, kElements);
      const int64_t block_bytes = RowBytes(format.activation, kElements);
      const int64_t planar_bytes = kir::PlanarRowOf(format.activation, kElements).row_bytes;

      std::vector<uint8_t> planar(kRows * planar_bytes, 0);
      Tile<PackPlanar>("qk_pack_" + activation + "_planar", level)(planar.data(), planar_bytes, x, kElements * 4, kRows,
                                                                   kElements, kElements, 0);
      std::vector<float> values(kRows * kElements);
      Tile<Pack>("qk_unpack_" + format.name, level)(values.data(), kElements * 4, weights, weight_bytes, kRows,
                                                    kElements);
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t j = 0; j < kElements; ++j) {
          ASSERT_EQ(kir::DecodePlanar(format.activation, planar.data() + r * planar_bytes, kElements, j),
                    kir::DecodeElement(format.activation, quantised + r * block_bytes, j))
              << "row " << r << " element " << j;
          ASSERT_EQ(values[r * kElements + j], dequantised[r * kElements + j]) << "row " << r << " element " << j;
        }
        // ggml's own sums round in another order: judged by the size of the terms.
        double magnitude = 0;
        for (int64_t j = 0; j < kElements; ++j) {
          const double weight = dequantised[r * kElements + j];
          magnitude += std::abs(weight * kir::DecodeElement(format.activation, quantised + r * block_bytes, j));
        }
        float y = 0;
        Tile<Dot>("qk_dot_" + format.name, level)(&y, 1, weights + r * weight_bytes, weight_bytes,
                                                  planar.data() + r * planar_bytes, planar_bytes, 1, 1, kElements, 0,
                                                  1);
        ASSERT_NEAR(y, dots[r], near * magnitude) << "row " << r;
      }
      std::vector<uint8_t> panel(kir::Panel16Of(format.weight, kElements).bytes);
      for (int64_t first = 0; first < kRows; first += 16) {
        Tile<Pack>("qk_pack_" + format.name + "_panel16", level)(panel.data(), 0, weights + first * weight_bytes,
                                                                 weight_bytes, 16, kElements);
        std::vector<float> c(16 * 16, 0);
        Tile<Mma>("qk_mma_" + format.name, level)(c.data(), 16, planar.data() + first * planar_bytes, planar_bytes,
                                                  panel.data(), 0, 16, 16, kElements);
        for (int64_t i = 0; i < 16; ++i) {
          const int64_t r = first + i;
          double magnitude = 0;
          for (int64_t j = 0; j < kElements; ++j) {
            const double weight = dequantised[r * kElements + j];
            magnitude += std::abs(weight * kir::DecodeElement(format.activation, quantised + r * block_bytes, j));
          }
          ASSERT_NEAR(c[i * 17], dots[r], near * magnitude) << "row " << r;
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::simd
