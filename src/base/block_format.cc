#include "base/block_format.h"

#include "base/check.h"

namespace quern {

#define QUERN_DECLARE(format, file) const BlockFormat& Format_##file();
QUERN_BLOCK_FORMATS(QUERN_DECLARE)
#undef QUERN_DECLARE

const BlockFormat& FormatOf(DType dtype) {
#define QUERN_ADDRESS(format, file) Format_##file,
  static constexpr const BlockFormat& (*kFormats[])() = {QUERN_BLOCK_FORMATS(QUERN_ADDRESS)};
#undef QUERN_ADDRESS
  const int number = static_cast<int>(dtype) - kScalarDTypeCount;
  QUERN_CHECK(number >= 0 && number < kDTypeCount - kScalarDTypeCount);
  return kFormats[number]();
}

}  // namespace quern
