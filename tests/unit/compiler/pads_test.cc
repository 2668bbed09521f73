// Elements of a tensor around it: every mode along several axes, of extents that are known and that are not.
#include "absl/strings/str_cat.h"
#include "unit/compiler/expect_right.h"

namespace quern {
namespace {

using namespace quern::testing;

TEST(Pads, AlongSeveralAxes) {
  for (const char* const mode : {"reflect", "replicate", "circular"}) {
    const auto expect = [&](const char* x, const char* low, const char* high, const char* y, const char* symbols,
                            const std::vector<Binding>& bindings) {
      ExpectRight(absl::StrCat("graph g", symbols, " {\n  %0 = Input() {name = \"x\"} : f32[", x,
                               "]\n  %1 = Neg(%0) : f32[", x, "]\n  %2 = Pad(%1) {low = ", low, ", high = ", high,
                               ", mode = \"", mode, "\"} : f32[", y, "]\n  return %2\n}"),
                  bindings);
    };
    expect("5, 7, 11", "[2, 0, 3]", "[1, 4, 0]", "8, 11, 14", "", {{}});
    expect("5, 7, 11", "[2, 1, 0]", "[0, 3, 0]", "7, 11, 11", "", {{}});
    expect("3, 19, 23", "[0, -2, 3]", "[0, 3, -4]", "3, 20, 22", "", {{}});
    expect("S, 7, 37", "[2, 0, 3]", "[1, 2, 1]", "S + 3, 9, 41", " sym S in 3..64", {{{"S", 3}}, {{"S", 19}}});
    expect("3, 7, S", "[1, 3, 2]", "[2, 1, 3]", "6, 11, S + 5", " sym S in 4..64", {{{"S", 4}}, {{"S", 37}}});
  }
}

}  // namespace
}  // namespace quern
