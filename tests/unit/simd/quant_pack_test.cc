// The packs of the quantised formats: activations bit for bit kir's encoder, panels and unpacked rows bit for bit its
// decoder, at every level, from memory that ends at a guard page.
#include "unit/simd/quant_support.h"

#include "gtest/gtest.h"

namespace quern::simd {
namespace {

using Pack = void(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k);
using PackPlanar = void(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t k,
                        int64_t row_k, int64_t start);

constexpr uint32_t kSeed = 4711;

// Rows that try the encoders: ties of rounding and of magnitude, zeros, large and small values.
std::vector<float> ActivationRow(int64_t k, int64_t block, int kind, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(k);
  for (int64_t i = 0; i < k; ++i) {
    const int64_t b = i / block;
    switch (kind) {
      case 0: x[i] = normal(random); break;
      case 1: x[i] = normal(random) * (b % 2 == 0 ? 1e6f : 1e-6f); break;
      case 2: x[i] = static_cast<float>(static_cast<int>(random() % 509) - 254) / 2; break;  // d = 1: exact ties
      case 3: x[i] = b % 2 == 0 ? 0.0f : (random() % 2 == 0 ? 1.0f : -1.0f); break;          // equal magnitudes
      default: x[i] = i == b * block + b % block ? -3.5f : 0.0f; break;                      // one element
    }
  }
  if (kind == 2) {
    for (int64_t b = 0; b < k / block; ++b) x[b * block + random() % block] = b % 2 == 0 ? 127.0f : -127.0f;
  }
  return x;
}

TEST(QuantPackTest, ActivationsAreTheReferenceEncoders) {
  for (const std::string& level : HostLevels()) {
    for (DType dtype : {DType::kQ8_0, DType::kQ8_K}) {
      const int64_t block = Row(dtype).block_elements;
      auto* pack = Tile<PackPlanar>("qk_pack_" + std::string(Name(dtype)) + "_planar", level);
      for (int64_t blocks : {1, 2, 3, 5, 7, 8, 17, 24}) {
        for (int64_t start_block : {0, 1, 3}) {
          std::mt19937 random(kSeed + blocks * 5 + start_block);
          constexpr int64_t kRows = 5;
          const int64_t k = blocks * block, start = start_block * block, row_k = k + start + block;
          const int64_t src_ld = k + 3, row_bytes = kir::PlanarRowOf(dtype, row_k).row_bytes;
          Guarded<float> src((kRows - 1) * src_ld + k);
          for (int64_t r = 0; r < kRows; ++r) {
            const std::vector<float> x = ActivationRow(k, block, static_cast<int>(r), random);
            std::copy(x.begin(), x.end(), src.data() + r * src_ld);
          }
          Guarded<uint8_t> got(kRows * row_bytes);
          std::memset(got.data(), 0x5a, kRows * row_bytes);
          std::vector<uint8_t> want(kRows * row_bytes, 0x5a);
          for (int64_t r = 0; r < kRows; ++r) {
            kir::QuantiseToPlanar(dtype, src.data() + r * src_ld, k, want.data() + r * row_bytes, row_k, start);
          }
          pack(got.data(), row_bytes, src.data(), src_ld * 4, kRows, k, row_k, start);
          for (int64_t i = 0; i < kRows * row_bytes; ++i) {
            ASSERT_EQ(got[i], want[i]) << Name(dtype) << " " << level << " k " << k << " start " << start << " row "
                                       << i / row_bytes << " byte " << i % row_bytes << " seed " << kSeed;
          }
        }
      }
    }
  }
}

// Rows of blocks whose last byte is the last readable one.
class Blocks {
 public:
  Blocks(DType dtype, int64_t rows, int64_t k, int64_t gap, uint32_t seed)
      : stride(RowBytes(dtype, k) + gap), bytes((rows - 1) * stride + RowBytes(dtype, k)) {
    std::mt19937 random(seed);
    for (int64_t r = 0; r < rows; ++r) FillBlocks(dtype, Draw::kUniform, k, random, bytes.data() + r * stride);
  }
  int64_t stride;
  Guarded<uint8_t> bytes;
};

TEST(QuantPackTest, PanelsAreTheReferenceLayout) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      if (!HasPlainPanels(format, level)) continue;
      auto* pack = Tile<Pack>("qk_pack_" + format.name + "_panel16", level);
      for (int64_t blocks : {1, 2, 3, 5, 7}) {
        for (int64_t rows = 1; rows <= 16; ++rows) {
          const int64_t k = blocks * Row(format.weight).block_elements;
          Blocks src(format.weight, rows, k, rows % 2 * 6, kSeed + rows);
          const int64_t panel_bytes = kir::Panel16Of(format.weight, k).bytes;
          std::vector<uint8_t> want(panel_bytes, 0);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t j = 0; j < k; ++j) {
              kir::WritePanel16(format.weight, want.data(), k, r, j,
                                kir::ReadBlockElement(format.weight, src.bytes.data() + r * src.stride, j));
            }
          }
          Guarded<uint8_t> got(panel_bytes);
          std::memset(got.data(), 0x5a, panel_bytes);
          pack(got.data(), panel_bytes, src.bytes.data(), src.stride, rows, k);
          const bool supers = kir::HasMinimums(format.weight) || kir::HasAdded(format.weight);
          const int64_t used = kir::Panel16Of(format.weight, k).supers + (supers ? blocks * 64 : 0);
          for (int64_t i = 0; i < used; ++i) {
            const bool missing = i < kir::Panel16Of(format.weight, k).mins && i / 4 % 16 >= rows;
            if (missing && i < k * 16) continue;                    // codes of missing rows: their scales are zero
            if (missing && i % 4 == 3 && got[i] == 0x80) continue;  // with either sign
            ASSERT_EQ(got[i], want[i]) << format.name << " " << level << " rows " << rows << " k " << k << " byte " << i
                                       << " seed " << kSeed;
          }
        }
      }
    }
  }
}

TEST(QuantPackTest, TransposedAndPlainRowsAreTheDecodedValues) {
  for (const std::string& level : HostLevels()) {
    for (const QuantFormat& format : QuantFormats()) {
      for (int64_t blocks : {1, 2, 3, 5, 7}) {
        for (int64_t rows : {1, 2, 3, 5, 15, 16, 17, 31, 32}) {
          const int64_t k = blocks * Row(format.weight).block_elements;
          Blocks src(format.weight, rows, k, rows % 2 * 6, kSeed + rows);
          Guarded<float> kn(k * 32), plain((rows - 1) * (k + 3) + k);
          for (int64_t i = 0; i < k * 32; ++i) kn[i] = 77;
          Tile<Pack>("qk_pack_" + format.name + "_kn32", level)(kn.data(), k * 128, src.bytes.data(), src.stride, rows,
                                                                k);
          Tile<Pack>("qk_unpack_" + format.name, level)(plain.data(), (k + 3) * 4, src.bytes.data(), src.stride, rows,
                                                        k);
          std::vector<float> values(k);
          for (int64_t r = 0; r < 32; ++r) {
            if (r < rows) kir::DecodeRow(format.weight, src.bytes.data() + r * src.stride, k, values.data());
            for (int64_t j = 0; j < k; ++j) {
              const float want = r < rows ? values[j] : 0.0f;
              ASSERT_EQ(kn[kir::Kn32Offset(r, j)], want)
                  << format.name << " " << level << " rows " << rows << " row " << r << " element " << j;
              if (r < rows) {
                ASSERT_EQ(plain[r * (k + 3) + j], want)
                    << format.name << " " << level << " row " << r << " element " << j;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace quern::simd
