// Diagnostics travel inside a Status and come out as they went in.

#include "base/diagnostic.h"

#include <gtest/gtest.h>

namespace quern {
namespace {

TEST(Diagnostic, ComesBackAsItWentIn) {
  for (int code = 0; code <= static_cast<int>(kLastDiagnosticCode); ++code) {
    const Diagnostic in{
        static_cast<DiagnosticCode>(code), "Op", "a:b 3:", std::string("\0x", 2), "", "layers.3/ffn", "Opp"};
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

TEST(Diagnostic, WhatWouldBeSupportedAndWhatWasMeantAreSaid) {
  EXPECT_EQ(ToStatus({DiagnosticCode::kUnsupported, "Eq", "a", "f32", "q4_K[5, 256]", "ffn"}).message(),
            "Eq: a is q4_K[5, 256], which is not supported: f32 is (in ffn)");
  EXPECT_EQ(ToStatus({DiagnosticCode::kUnknownOp, "Softmaxx", "", "", "", "%3", "Softmax"}).message(),
            "there is no block or op Softmaxx; did you mean Softmax? (in %3)");
}

TEST(Diagnostic, ThePlaceIsAddedOnce) {
  const Status plain = ToStatus({DiagnosticCode::kShapeMismatch, "Add", "b", "[3]", "f32[4]", ""});
  const Status placed = WithProvenance(plain, "ffn");
  EXPECT_EQ(placed.message(), "Add: b is f32[4], [3] expected (in ffn)");
  EXPECT_EQ(DiagnosticOf(placed)->provenance, "ffn");
  EXPECT_EQ(WithProvenance(placed, "elsewhere"), placed);
  EXPECT_EQ(WithProvenance(plain, ""), plain);
  EXPECT_TRUE(WithProvenance(absl::OkStatus(), "ffn").ok());
  EXPECT_EQ(WithProvenance(absl::InternalError("x"), "ffn"), absl::InternalError("x (in ffn)"));
  const Status other = WithMessage(placed, "line 3: wrong");
  EXPECT_EQ(other.message(), "line 3: wrong");
  EXPECT_EQ(other.code(), placed.code());
  EXPECT_EQ(DiagnosticOf(other), DiagnosticOf(placed));
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
