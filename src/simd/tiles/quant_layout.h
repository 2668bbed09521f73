// Block sizes and the offsets inside blocks, planar rows and panels, as src/kir defines them (this folder sees nothing
// of kir; tests/unit/simd/quant_layout_test.cc holds the two together).
#pragma once

#include <cstdint>
#include <type_traits>

namespace quern::simd {
namespace {

// The formats of weights. kGroup: elements that share a scale in a panel. kCodes: values of a code; kOffset: what is
// taken away from it. kActivation: elements of a block of the activations they are multiplied by (32: q8_0, 256: q8_K).
// kLevels: the numbers that codes of four bits stand for; a tile multiplies kOffset more than these, below kCodes.
// Where the fields of a block are, in bytes: kNibbles, kHigh, the bits above these. kPanelRows: from how many rows of
// activations on AVX2 packs panels of it (quant_dot.h).
//
// Blocks of 32: d is at 0, a half, or with kPower a power of two, with kSingles an f32; with kAdded another behind it
// is added. kQuants: where codes are bytes.
struct Block32 {
  static constexpr int kElements = 32, kGroup = 32, kActivation = 32, kHigh = 0, kPanelRows = 2;
  static constexpr bool kHasMins = false, kAdded = false, kPower = false, kSingles = false, kGrid = false;
  static constexpr const int8_t* kLevels = nullptr;
};
inline constexpr int8_t kLevelsIQ4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr int8_t kLevelsE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
struct Q8_0 : Block32 {
  static constexpr int kBytes = 34, kCodes = 256, kOffset = 128, kQuants = 2, kPanelRows = 4;
};
struct Q4_0 : Block32 {
  static constexpr int kBytes = 18, kCodes = 16, kOffset = 8, kNibbles = 2;
};
struct Q5_0 : Block32 {
  static constexpr int kBytes = 22, kCodes = 32, kOffset = 16, kHigh = 2, kNibbles = 6, kPanelRows = 3;
};
struct Q4_1 : Block32 {
  static constexpr int kBytes = 20, kCodes = 16, kOffset = 0, kNibbles = 4;
  static constexpr bool kAdded = true;
};
struct Q5_1 : Block32 {
  static constexpr int kBytes = 24, kCodes = 32, kOffset = 0, kHigh = 4, kNibbles = 8, kPanelRows = 3;
  static constexpr bool kAdded = true;
};
struct IQ4_NL : Block32 {
  static constexpr int kBytes = 18, kCodes = 256, kOffset = 128, kNibbles = 2;
  static constexpr const int8_t* kLevels = kLevelsIQ4;
};
struct MXFP4 : Block32 {
  static constexpr int kBytes = 17, kCodes = 32, kOffset = 16, kNibbles = 1;
  static constexpr bool kPower = true;
  static constexpr const int8_t* kLevels = kLevelsE2M1;
};

// With f32 activations alone: no products of bytes, no panels of codes.
struct Single32 : Block32 {
  static constexpr bool kSingles = true;
};
struct N4_0 : Single32 {
  static constexpr int kBytes = 20, kCodes = 16, kOffset = 8, kNibbles = 4;
};
struct N4_1 : Single32 {
  static constexpr int kBytes = 24, kCodes = 16, kOffset = 0, kNibbles = 8;
  static constexpr bool kAdded = true;
};
struct N8_0 : Single32 {
  static constexpr int kBytes = 36, kCodes = 256, kOffset = 128, kQuants = 4;
};
struct N8_1 : Single32 {
  static constexpr int kBytes = 40, kCodes = 256, kOffset = 0, kQuants = 8;
  static constexpr bool kAdded = true;
};

// K-quants: blocks of 256. kHasMins: each group has a minimum that is taken away from code * scale. Fields besides: kD
// (with minimums: d and dmin), kScales, and in place of nibbles kPairs, codes of two bits.
struct KQuant {
  static constexpr int kElements = 256, kActivation = 256, kPanelRows = 3;
  static constexpr bool kAdded = false, kGrid = false;
  static constexpr const int8_t* kLevels = nullptr;
};
struct Q4_K : KQuant {
  static constexpr int kBytes = 144, kGroup = 32, kCodes = 16, kOffset = 0;
  static constexpr bool kHasMins = true;
  static constexpr int kD = 0, kScales = 4, kNibbles = 16;
};
struct Q5_K : KQuant {
  static constexpr int kBytes = 176, kGroup = 32, kCodes = 32, kOffset = 0;
  static constexpr bool kHasMins = true;
  static constexpr int kD = 0, kScales = 4, kHigh = 16, kNibbles = 48;
};
struct Q6_K : KQuant {
  static constexpr int kBytes = 210, kGroup = 16, kCodes = 64, kOffset = 32, kPanelRows = 5;
  static constexpr bool kHasMins = false;
  static constexpr int kNibbles = 0, kHigh = 128, kScales = 192, kD = 208;
};
struct Q2_K : KQuant {
  static constexpr int kBytes = 84, kGroup = 16, kCodes = 4, kOffset = 0, kPanelRows = 4;
  static constexpr bool kHasMins = true;
  static constexpr int kScales = 0, kPairs = 16, kD = 80;
};
struct Q3_K : KQuant {
  static constexpr int kBytes = 110, kGroup = 16, kCodes = 8, kOffset = 4;
  static constexpr bool kHasMins = false;
  static constexpr int kHigh = 0, kPairs = 32, kScales = 96, kD = 108;
};
// Bytes with their sign, and d as f32: one scale for all of a block.
struct Q8_K : KQuant {
  static constexpr int kBytes = 292, kGroup = 256, kCodes = 256, kOffset = 128, kPanelRows = 4;
  static constexpr bool kHasMins = false;
  static constexpr int kD = 0, kQuants = 4;
};
// Numbers of -1, 0 and 1, one scale for all of a block: as pairs of bits, and as digits of base three in bytes.
struct Ternary : KQuant {
  static constexpr int kGroup = 256, kOffset = 1;
  static constexpr bool kHasMins = false;
};
struct TQ2_0 : Ternary {
  static constexpr int kBytes = 66, kCodes = 4, kPanelRows = 5;
  static constexpr int kPairs = 0, kD = 64;
};
struct TQ1_0 : Ternary {
  static constexpr int kBytes = 54, kCodes = 3;
  static constexpr int kDigits = 0, kD = 52;
};
struct IQ4_XS : KQuant {
  static constexpr int kBytes = 136, kGroup = 32, kCodes = 256, kOffset = 128, kPanelRows = 2;
  static constexpr bool kHasMins = false;
  static constexpr int kD = 0, kScales = 2, kNibbles = 8;
  static constexpr const int8_t* kLevels = kLevelsIQ4;
};

// Codes that are looked up in a grid, with the sign above (quant_grid.h): of two bits and it, or, of kNibbleGrid, of
// three. kUnit: of the scale.
inline constexpr int8_t kLevelsIQ2[16] = {8, 25, 43, 0, -8, -25, -43, 0};
inline constexpr int8_t kLevelsIQ3XXS[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
inline constexpr int8_t kLevelsIQ3S[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};
inline constexpr int8_t kLevelsIQ1[16] = {-7, 1, 9, 0, -9, -1, 7, 0};
struct GridQuant : KQuant {
  static constexpr int kCodes = 256, kOffset = 128, kPanelRows = 5;
  static constexpr bool kHasMins = false, kGrid = true, kNibbleGrid = false;
};
struct IQ2 : GridQuant {
  static constexpr float kUnit = 0.125f;
  static constexpr const int8_t* kLevels = kLevelsIQ2;
};
struct IQ2_XXS : IQ2 {
  static constexpr int kBytes = 66, kGroup = 32;
};
struct IQ2_XS : IQ2 {
  static constexpr int kBytes = 74, kGroup = 16;
};
struct IQ2_S : IQ2 {
  static constexpr int kBytes = 82, kGroup = 16;
};
struct IQ3_XXS : GridQuant {
  static constexpr int kBytes = 98, kGroup = 32;
  static constexpr bool kNibbleGrid = true;
  static constexpr float kUnit = 0.25f;
  static constexpr const int8_t* kLevels = kLevelsIQ3XXS;
};
struct IQ3_S : GridQuant {
  static constexpr int kBytes = 110, kGroup = 32;
  static constexpr bool kNibbleGrid = true;
  static constexpr float kUnit = 1;
  static constexpr const int8_t* kLevels = kLevelsIQ3S;
};
struct IQ1 : GridQuant {
  static constexpr float kUnit = 0.125f;
  static constexpr const int8_t* kLevels = kLevelsIQ1;
};
struct IQ1_S : IQ1 {
  static constexpr int kBytes = 50, kGroup = 32;
};
struct IQ1_M : IQ1 {
  static constexpr int kBytes = 56, kGroup = 16;
};

// Offsets in bytes inside a planar row of k activations; the quants are at 0.
template <int kBlock>
struct PlanarAt {
  int64_t scales, sums, wide_sums;
  explicit PlanarAt(int64_t k)
      : scales((k + 63) / 64 * 64),
        sums(scales + (k / kBlock * 4 + 63) / 64 * 64),
        wide_sums(sums + (k / (kBlock == 256 ? 16 : 32) * 2 + 63) / 64 * 64) {}
};

// Offsets in bytes inside a panel16 of k elements; the codes are at 0.
template <class Format>
struct PanelAt {
  static constexpr bool kWords = false, kScalesAgain = false;
  int64_t scales, mins, supers;
  explicit PanelAt(int64_t k)
      : scales(k * 16),
        mins(scales + k / Format::kGroup * 64),
        supers(mins + (Format::kHasMins ? k / Format::kGroup * 32 : 0)) {}
};

// The same where the scales of groups are words (kWordScales), of blocks of 256:
//   scales  i16 [K/group][16][2]: the scale of the group, twice
//   mins    i16 [K/group/2][16][2], two groups interleaved: minimums, or where codes have an offset the scales again
//   supers  f32 [K/256][16] d; with minimums f32 [K/256][2][16]: d, then dmin
template <class Format>
struct WordPanelAt {
  static constexpr bool kWords = true;
  static constexpr bool kScalesAgain = !Format::kHasMins && Format::kCodes < 256;
  int64_t scales, mins, supers;
  explicit WordPanelAt(int64_t k)
      : scales(k * 16),
        mins(scales + k / Format::kGroup * 64),
        supers(mins + (Format::kHasMins || kScalesAgain ? k / Format::kGroup * 32 : 0)) {}
};

// Of the two, the one of blocks of 256 at a level: a scale of a whole block is no word.
template <class Format, bool kWordScales>
using KPanelAt = std::conditional_t<kWordScales && (Format::kGroup < 256), WordPanelAt<Format>, PanelAt<Format>>;

}  // namespace
}  // namespace quern::simd
