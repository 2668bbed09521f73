// Powers that are constants: whole numbers that become products, and their neighbours that do not.
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

TEST(Powers, OfConstants) {
  const float powers[] = {-2, -1, 0, 0.5, 1, 1.5, 2, 3, 4, 5};
  for (const std::string type : {"f32", "f64", "f16"}) {
    for (const float power : powers) {
      std::string hex;
      for (const uint8_t byte : std::bit_cast<std::array<uint8_t, 4>>(power)) absl::StrAppendFormat(&hex, "%02x", byte);
      ExpectRight(absl::StrReplaceAll(R"(graph g {
  %0 = Input() {name = "x"} : $t[3, 37]
  %1 = Abs(%0) : $t[3, 37]
  %2 = Constant() hex $h : f32[]
  %3 = Cast(%2) {to = $t} : $t[]
  %4 = Pow(%1, %3) : $t[3, 37]
  %5 = Add(%4, %0) : $t[3, 37]
  return %5
})",
                                      {{"$t", type}, {"$h", hex}}),
                  {{}});
    }
  }
}

}  // namespace
}  // namespace quern
