// What the verifier accepts, it must be right about: random kernels that pass run through the interpreter, for several
// sizes, without an access out of bounds, and no two chunks write one element.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernel_files.h"
#include "kir/interpret.h"

namespace quern::kir {
namespace {

constexpr uint32_t kSeed = 65537;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  // An index expression over the names in scope.
  std::string Index(int depth) {
    const std::string a = Leaf();
    if (depth == 0 || Below(3) == 0) return a;
    const std::string left = Index(depth - 1);
    switch (Below(11)) {
      case 0: return absl::StrCat("(", left, " + ", Index(depth - 1), ")");
      case 1: return absl::StrCat("(", left, " - ", Leaf(), ")");
      case 2: return absl::StrCat("(", left, " * ", 1 + Below(8), ")");
      case 3: return absl::StrCat("(", left, " / ", 1 + Below(9), ")");
      case 4: return absl::StrCat("(", left, " % ", 1 + Below(9), ")");
      case 5: return absl::StrCat("min(", left, ", ", Index(depth - 1), ")");
      case 6: return absl::StrCat("max(", left, ", ", Index(depth - 1), ")");
      case 7: return absl::StrCat("(", left, " >> ", Below(4), ")");
      case 8: return absl::StrCat("(", left, " & ", (1 << Below(5)) - 1, ")");
      case 9: return absl::StrCat("select(", left, " < ", a, ", ", left, ", ", a, ")");
      default: return absl::StrCat("min(max(", left, ", 0), ", Below(2) ? "M - 1" : "N - 1", ")");
    }
  }

  std::string Leaf() {
    const int pick = Below(static_cast<int>(names_.size()) + 2);
    if (pick < static_cast<int>(names_.size())) return names_[pick];
    return pick % 2 == 0 ? absl::StrCat(Below(12))
                         : absl::StrCat(names_[Below(static_cast<int>(names_.size()))], " + ", Below(3));
  }

  std::string Statement(int depth) {
    const int kind = depth == 0 ? (Below(5) == 0 ? 0 : 1) : Below(6);
    switch (kind) {
      case 0: return absl::StrCat("y[", Index(1), ", ", Index(1), "] = x[", Index(2), ", ", Index(2), "]");
      case 1: {
        const std::string column = Below(2) ? names_.back() : absl::StrCat(names_.back(), " + ", Below(3));
        return absl::StrCat("y[r, ", column, "] = x[", Row(), ", ", Column(), "]");
      }
      case 2:
        return absl::StrCat("if ", Index(1), " < ", Index(1), " { ", Inside(depth), " } else { ", Inside(depth), " }");
      case 3:
        return absl::StrCat("if (", Index(1), " <= ", Index(0), ") & (", Leaf(), " != 0) { ", Inside(depth), " }");
      default: {
        const std::string name = absl::StrCat("i", next_++);
        const std::string low = Below(3) ? "0" : Leaf(), high = Below(3) ? "N" : Index(1);
        const std::string head = absl::StrCat("for ", name, " in ", low, "..", high, " by ", 1 + Below(4), " { ");
        names_.push_back(name);
        const std::string body = Inside(depth);
        names_.pop_back();
        return absl::StrCat(head, body, " }");
      }
    }
  }

  std::string Inside(int depth) {
    std::string text = Statement(depth - 1);
    if (Below(4) == 0) absl::StrAppend(&text, "\n", Statement(depth - 1));
    return text;
  }

  // Indices that are often in range, so that the rest of a kernel decides.
  std::string Row() { return Below(3) == 0 ? Index(2) : Below(2) ? "r" : absl::StrCat("min(", Index(0), ", M - 1)"); }
  std::string Column() { return Below(3) == 0 ? Index(1) : Below(2) ? names_.back() : absl::StrCat(Index(1), " % 2"); }

  std::string Kernel() {
    names_ = {"r", "M", "N"};
    next_ = 0;
    const bool flat = Below(3) == 0;
    const std::string second = flat ? "" : absl::StrCat(", s in 0..N by ", 1 + Below(3));
    if (!flat)
      names_.push_back("s");
    else
      names_ = {"M", "N", "r"};
    const std::string step = Below(2) ? "" : absl::StrCat(" by ", 1 + Below(3));
    return absl::StrCat(
        "kernel k ( x : f32[M, N] in\n y : f32[M, N] out ) sym M in 1..9, N in 2..13 {\n grid r in 0..M", step, second,
        " {\n", Inside(3), "\n}\n}");
  }

 private:
  std::mt19937 random_;
  std::vector<std::string> names_;
  int next_ = 0;
};

TEST(VerifySoundTest, AcceptedKernelsStayInBoundsAndApart) {
  SCOPED_TRACE(kSeed);
  Generator generator(kSeed);
  int accepted = 0;
  for (int round = 0; round < 10000; ++round) {
    const std::string text = generator.Kernel();
    const auto kernel = ParseKernel(text);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message() << "\n" << text;
    if (!Verify(*kernel).ok()) continue;
    ++accepted;
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 2}, {5, 3}, {9, 13}, {2, 11}}) {
      auto interpreter = Interpreter::Create(*kernel, {{"M", m}, {"N", n}});
      ASSERT_TRUE(interpreter.ok()) << interpreter.status().message() << "\n" << text;
      std::vector<float> x(m * n, 1), y(m * n);
      std::vector<bool> written(m * n);
      for (int64_t chunk = 0; chunk < interpreter->chunks(); ++chunk) {
        std::fill(y.begin(), y.end(), NAN);
        const BufferBytes buffers[] = {{reinterpret_cast<uint8_t*>(x.data()), x.size() * 4},
                                       {reinterpret_cast<uint8_t*>(y.data()), y.size() * 4}};
        const Status status = interpreter->Run(buffers, chunk, chunk + 1);
        ASSERT_TRUE(status.ok()) << "M " << m << " N " << n << ": " << status.message() << "\n" << text;
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_FALSE(!std::isnan(y[i]) && written[i]) << "two chunks write " << i << ", M " << m << " N " << n << "\n"
                                                        << text;
          if (!std::isnan(y[i])) written[i] = true;
        }
      }
    }
  }
  // The generator must reach the accepting paths for this to say anything.
  EXPECT_GT(accepted, 300);
}

}  // namespace
}  // namespace quern::kir
