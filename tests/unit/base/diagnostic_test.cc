// Diagnostics travel inside a Status and come out as they went in.

#include "base/diagnostic.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

TEST(Diagnostic, ComesBackAsItWentIn) {
  for (int code = 0; code <= static_cast<int>(kLastDiagnosticCode); ++code) {
    const Diagnostic in{static_cast<DiagnosticCode>(code), "Op", "a:b 3:", std::string("\0x", 2), "", "layers.3/ffn"};
    EXPECT_EQ(DiagnosticOf(ToStatus(in)), in);
  }
}

TEST(Diagnostic, ThePlaceIsPartOfTheMessage) {
  const Status status =
      ToStatus({DiagnosticCode::kShapeMismatch, "SwiGLU", "gate", "[7, 11]", "f32[7, 5]", "layers.3/ffn"});
  EXPECT_EQ(status.message(), "SwiGLU: gate is f32[7, 5], [7, 11] expected (in layers.3/ffn)");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToStatus({DiagnosticCode::kUnsupported, "A", "", "", "this", ""}).message(), "A: this is not supported");
  EXPECT_EQ(ToStatus({DiagnosticCode::kUnsupported, "A", "", "", "this", ""}).code(), absl::StatusCode::kUnimplemented);
}

TEST(Diagnostic, RunsAreAboutAnOperand) {
  const Status status = ToStatus({DiagnosticCode::kOutOfRange, "", "symbol SEQ", "1..256", "300", "ffn"});
  EXPECT_EQ(status.message(), "symbol SEQ is 300, outside 1..256 (in ffn)");
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ToStatus({DiagnosticCode::kShapeMismatch, "", "input x", "f32[SEQ, 8]", "f32[3, 7]", ""}).message(),
            "input x is f32[3, 7], f32[SEQ, 8] expected");
  EXPECT_EQ(ToStatus({DiagnosticCode::kUnknownName, "", "input z", "x, y", "", ""}).message(),
            "there is no input z; there is: x, y");
}

TEST(Diagnostic, OtherErrorsHaveNone) {
  EXPECT_EQ(DiagnosticOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(DiagnosticOf(absl::InternalError("x")), std::nullopt);
  Status damaged = absl::InternalError("x");
  damaged.SetPayload("quern.dev/diagnostic", absl::Cord(absl::string_view("\1"
                                                                          "99:a")));
  EXPECT_EQ(DiagnosticOf(damaged), std::nullopt);
}

}  // namespace
}  // namespace quern
