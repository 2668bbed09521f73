// Dtypes: names, sizes, promotion.
#include "base/dtype.h"

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "gtest/gtest.h"

namespace quern {
namespace {

TEST(DTypeTest, NamesAreUniqueAndRoundTrip) {
  std::set<std::string_view> names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(Row(dtype).dtype, dtype);
    EXPECT_TRUE(names.insert(Name(dtype)).second) << Name(dtype);
    EXPECT_EQ(DTypeFromName(Name(dtype)), dtype);
  }
  EXPECT_EQ(DTypeFromName("float"), std::nullopt);
  EXPECT_EQ(DTypeFromName(""), std::nullopt);
}

TEST(DTypeTest, BytesOfRows) {
  EXPECT_EQ(RowBytes(DType::kF16, 7), 14);
  EXPECT_EQ(RowBytes(DType::kBool, 7), 7);
  EXPECT_EQ(RowBytes(DType::kQ4_0, 64), 36);
  EXPECT_EQ(RowBytes(DType::kQ8_0, 96), 102);
  EXPECT_EQ(RowBytes(DType::kQ4_K, 512), 288);
  EXPECT_EQ(RowBytes(DType::kQ5_K, 768), 528);
  EXPECT_EQ(RowBytes(DType::kQ6_K, 256), 210);
  EXPECT_EQ(RowBytes(DType::kQ8_K, 768), 876);
}

// The table of semantics.md section 1, written out.
TEST(DTypeTest, PromotesByTheRule) {
  using D = DType;
  const std::tuple<D, D, D> rows[] = {
      {D::kF16, D::kBF16, D::kF32}, {D::kF16, D::kF32, D::kF32}, {D::kBF16, D::kF64, D::kF64},
      {D::kF32, D::kF64, D::kF64},  {D::kI8, D::kF32, D::kF32},  {D::kI32, D::kF16, D::kF32},
      {D::kU8, D::kBF16, D::kF32},  {D::kI64, D::kF16, D::kF64}, {D::kU64, D::kF32, D::kF64},
      {D::kI32, D::kF64, D::kF64},  {D::kU8, D::kI8, D::kI16},   {D::kU16, D::kI16, D::kI32},
      {D::kU32, D::kI32, D::kI64},  {D::kU8, D::kI32, D::kI32},  {D::kU32, D::kI8, D::kI64},
      {D::kU16, D::kI64, D::kI64},  {D::kU64, D::kI8, D::kI64},  {D::kU8, D::kU32, D::kU32},
      {D::kI16, D::kI64, D::kI64},  {D::kBool, D::kU8, D::kU8},  {D::kBool, D::kF16, D::kF16},
      {D::kU8, D::kI16, D::kI16},   {D::kC64, D::kF32, D::kC64}, {D::kBool, D::kC64, D::kC64},
      {D::kC64, D::kI64, D::kC64},
  };
  for (const auto& [a, b, expected] : rows) {
    EXPECT_EQ(Promote(a, b), expected) << Name(a) << " " << Name(b);
    EXPECT_EQ(Promote(b, a), expected) << Name(b) << " " << Name(a);
  }
}

// For all pairs: commutative, idempotent, never narrower than either operand among integers or among floats.
TEST(DTypeTest, PromotionIsCommutativeAndKeepsRange) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const DType a = static_cast<DType>(i);
    EXPECT_EQ(Promote(a, a), a);
    for (int j = 0; j <= static_cast<int>(DType::kBool); ++j) {
      const DType b = static_cast<DType>(j), common = Promote(a, b);
      EXPECT_EQ(common, Promote(b, a)) << Name(a) << " " << Name(b);
      EXPECT_EQ(IsFloat(common), IsFloat(a) || IsFloat(b)) << Name(a) << " " << Name(b);
      EXPECT_GE(ScalarBytes(common), ScalarBytes(a)) << Name(a) << " " << Name(b);
      if (IsInteger(common)) {
        const bool is_signed = !IsUnsigned(a) && a != DType::kBool;
        EXPECT_TRUE(!is_signed || !IsUnsigned(common)) << Name(a) << " " << Name(b);
      }
    }
  }
}

}  // namespace
}  // namespace quern
