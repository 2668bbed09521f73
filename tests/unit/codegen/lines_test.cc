// Programs over lines: any axes, bundles of lines, lines that are split, folds of several values, scans.
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

std::string Reduction(const std::string& type, const std::string& op, const std::string& axes) {
  return absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : ", type, "\n  %1 = Reduce(%0) {axes = [", axes,
                      "], keep_dim = true, op = \"", op, "\"}");
}

// The result type of a reduction of f32[3, 5, 70] that keeps its dimensions.
std::string Kept(const std::string& axes) {
  return absl::StrCat("f32[", absl::StrContains(axes, "0") ? "1" : "3", ", ", absl::StrContains(axes, "1") ? "1" : "5",
                      ", ", absl::StrContains(axes, "2") ? "1" : "70", "]");
}

TEST(Lines, EveryReductionOverEveryAxis) {
  for (const char* op : {"sum", "mean", "max", "min"}) {
    for (const char* axes : {"0", "1", "2", "0, 1", "0, 2", "1, 2", "0, 1, 2"}) {
      SCOPED_TRACE(absl::StrCat(op, " over ", axes));
      CheckFused(absl::StrCat(Reduction("f32[3, 5, 70]", op, axes), " : ", Kept(axes), "\n  return %1\n}"), {});
    }
  }
}

TEST(Lines, SoftmaxOverEveryAxis) {
  for (const char* axis : {"0", "1", "2"}) {
    SCOPED_TRACE(axis);
    CheckFused(absl::StrCat("graph g sym S in 1..64 {\n  %0 = Input() {name = \"x\"} : f32[S, 5, 67]\n"
                            "  %1 = Softmax(%0) {axis = ",
                            axis, "} : f32[S, 5, 67]\n  return %1\n}"),
               {{"S", 3}});
  }
}

// Short lines go in groups of eight, the last of which may be smaller, a step of the program at a time.
TEST(Lines, ShortLinesGoInGroups) {
  for (const int64_t lines : {1, 7, 8, 9, 65}) {
    SCOPED_TRACE(lines);
    CheckFused(R"(graph g sym S in 1..70 {
  %0 = Input() {name = "x"} : f32[2, S, 43]
  %1 = Softmax(%0) {axis = -1} : f32[2, S, 43]
  %2 = Reduce(%1) {axes = [2], keep_dim = true, op = "max"} : f32[2, S, 1]
  %3 = Sub(%1, %2) : f32[2, S, 43]
  return %2, %3
})",
               {{"S", lines}});
  }
}

// Both the sums and what is made of them, and lines whose middle axis stays.
TEST(Lines, ResultsOfEitherKind) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[4, 7, 33]
  %1 = Reduce(%0) {axes = [0, 2], keep_dim = true, op = "mean"} : f32[1, 7, 1]
  %2 = Sub(%0, %1) : f32[4, 7, 33]
  %3 = Mul(%2, %2) : f32[4, 7, 33]
  %4 = Reduce(%3) {axes = [0, 2], keep_dim = true, op = "mean"} : f32[1, 7, 1]
  %5 = Rsqrt(%4) : f32[1, 7, 1]
  %6 = Mul(%2, %5) : f32[4, 7, 33]
  return %6, %5, %1
})",
             {});
}

// Groups of channels; the scale that follows the Reshape back is by channel.
TEST(Lines, GroupNorm) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 6, 5, 7]
  %1 = Reshape(%0) {shape = <2, 3, 70>} : f32[2, 3, 70]
  %2 = Reduce(%1) {axes = [-1], keep_dim = true, op = "mean"} : f32[2, 3, 1]
  %3 = Sub(%1, %2) : f32[2, 3, 70]
  %4 = Mul(%3, %3) : f32[2, 3, 70]
  %5 = Reduce(%4) {axes = [-1], keep_dim = true, op = "mean"} : f32[2, 3, 1]
  %6 = Rsqrt(%5) : f32[2, 3, 1]
  %7 = Mul(%3, %6) : f32[2, 3, 70]
  %8 = Reshape(%7) {shape = <2, 6, 5, 7>} : f32[2, 6, 5, 7]
  %9 = Input() {name = "g"} : f32[6, 1, 1]
  %10 = Mul(%8, %9) : f32[2, 6, 5, 7]
  %11 = Silu(%10) : f32[2, 6, 5, 7]
  return %11
})",
             {});
}

// Few lines of many elements: parts in one kernel, joined in the next.
TEST(Lines, LongLinesAreSplit) {
  for (const char* type : {"f32[S]", "f32[2, S]", "f32[S, 5]"}) {
    SCOPED_TRACE(type);
    const int axis = std::string_view(type) == "f32[2, S]" ? 1 : 0;
    CheckFused(absl::StrCat("graph g sym S in 1..2000000 {\n  %0 = Input() {name = \"x\"} : ", type,
                            "\n  %1 = Softmax(%0) {axis = ", axis, "} : ", type, "\n  return %1\n}"),
               {{"S", 70001}}, 2e-5, kCpu);
    CheckFused(absl::StrCat("graph g sym S in 1..2000000 {\n  %0 = Input() {name = \"x\"} : ", type,
                            "\n  %1 = ArgMax(%0) {axis = ", axis, ", keep_dim = true} : i64",
                            axis == 1                            ? "[2, 1]"
                            : std::string_view(type) == "f32[S]" ? "[1]"
                                                                 : "[1, 5]",
                            "\n  return %1\n}"),
               {{"S", 70001}}, 0, kCpu);
  }
}

// Rows whose columns are folded: whole rows by parts, narrow ones in registers; f16 has a state of f32.
TEST(Lines, BundlesByPartsAndInRegisters) {
  for (const char* dims : {"1031, 1021", "257, 1050", "70001, 3", "5003, 16", "5003, 17", "300, 5", "2, 700, 401"}) {
    const std::string all = dims, middle = all.starts_with("2, ") ? "2, " : "";
    const std::string columns = all.substr(all.rfind(' ') + 1), axis = middle.empty() ? "0" : "1";
    for (const char* op : {"sum", "max"}) {
      SCOPED_TRACE(absl::StrCat(dims, " ", op));
      CheckFused(absl::StrCat(Reduction(absl::StrCat("f32[", dims, "]"), op, axis), " : f32[", middle, "1, ", columns,
                              "]\n  return %1\n}"),
                 {}, 2e-5, kCpu);
    }
    SCOPED_TRACE(absl::StrCat(dims, " mean of squares, and ArgMax"));
    const std::string out = absl::StrCat("[", middle, "1, ", columns, "]");
    CheckFused(absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : f16[", dims, "]\n  %1 = Mul(%0, %0) : f16[",
                            dims, "]\n  %2 = Reduce(%1) {axes = [", axis, "], keep_dim = true, op = \"mean\"} : f16",
                            out, "\n  %3 = Sqrt(%2) : f16", out, "\n  return %3\n}"),
               {}, 2e-3, kCpu);
    CheckFused(absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : i32[", dims,
                            "]\n  %1 = ArgMax(%0) {axis = ", axis, ", keep_dim = true} : i64", out, "\n  return %1\n}"),
               {}, 0, kCpu);
  }
}

// Of lines up to 32 several at once, of longer ones lanes that are joined by halves.
TEST(Lines, ArgFoldsOfLinesOfAnyLength) {
  for (const int64_t length : {1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127}) {
    for (const char* type : {"f32", "i32"}) {
      for (const char* attributes : {"", ", last = true"}) {
        SCOPED_TRACE(absl::StrCat(type, " ", length, attributes));
        CheckFused(absl::StrCat("graph g sym S in 1..300 {\n  %0 = Input() {name = \"x\"} : ", type, "[S, ", length,
                                "]\n  %1 = ArgMin(%0) {axis = 1", attributes, "} : i64[S]\n  return %1\n}"),
                   {{"S", 37}}, 0);
      }
    }
  }
}

TEST(Lines, SumOfEverythingAndItsEpilogue) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[300, 301]
  %1 = Mul(%0, %0) : f32[300, 301]
  %2 = Reduce(%1) {axes = [0, 1], keep_dim = false, op = "sum"} : f32[]
  %3 = Sqrt(%2) : f32[]
  return %3
})",
             {}, 2e-5, kCpu);
}

TEST(Lines, ArgFoldsOverEveryAxis) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const char* type : {"f32", "i32", "f16"}) {
      for (const bool last : {false, true}) {
        SCOPED_TRACE(absl::StrCat(op, " ", type, last ? " last" : ""));
        // Values repeat in i32: ties.
        const std::string attributes = last ? ", last = true" : "";
        CheckFused(absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : ", type, "[5, 7, 131]\n  %1 = ", op,
                                "(%0) {axis = 2", attributes, "} : i64[5, 7]\n  return %1\n}"),
                   {}, 0);
        CheckFused(absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : ", type, "[5, 37, 131]\n  %1 = ", op,
                                "(%0) {axis = 1, keep_dim = true", attributes, "} : i64[5, 1, 131]\n  return %1\n}"),
                   {}, 0);
      }
    }
  }
}

TEST(Lines, ScansOverEveryAxis) {
  for (const char* axis : {"0", "1", "2"}) {
    for (const char* attributes :
         {"", ", exclusive = true", ", reverse = true", ", exclusive = true, reverse = true"}) {
      SCOPED_TRACE(absl::StrCat(axis, attributes));
      CheckFused(
          absl::StrCat("graph g sym B in 1..7 {\n  %0 = Input() {name = \"x\"} : f32[B, 5, 40]\n"
                       "  %1 = Exp(%0) : f32[B, 5, 40]\n  %2 = CumSum(%1) {axis = ",
                       axis, attributes, "} : f32[B, 5, 40]\n  %3 = Tanh(%2) : f32[B, 5, 40]\n  return %3, %2\n}"),
          {{"B", 3}});
    }
  }
}

// A line of a scan that is longer than what is kept of it at a time, where it is: by blocks of threads, and of scans of
// two values.
TEST(Lines, LongScans) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[2, 20011]
  %1:2 = CumMax(%0) {axis = 1} : f32[2, 20011], i64[2, 20011]
  return %1, %1.1
})",
             {}, 0, kCpu);
  for (const char* attributes : {"", ", reverse = true"}) {
    SCOPED_TRACE(attributes);
    CheckFused(absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : f32[2, 40007]\n  %1 = CumSum(%0) {axis = 1",
                            attributes, "} : f32[2, 40007]\n  %2 = Neg(%1) : f32[2, 40007]\n  return %2\n}"),
               {}, 1e-4, kCpu | kBlocks);
    CheckFused(absl::StrCat("graph g sym S in 1..1000000 {\n  %0 = Input() {name = \"x\"} : i32[2, S]\n"
                            "  %1 = CumSum(%0) {axis = 1",
                            attributes, "} : i32[2, S]\n  %2 = Neg(%1) : i32[2, S]\n  return %2\n}"),
               {{"S", 20011}}, 0);
  }
}

TEST(Lines, HalvesAndIntegers) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f16[9, 130]
  %1 = Reduce(%0) {axes = [0], keep_dim = false, op = "sum"} : f16[130]
  return %1
})",
             {}, 1e-3);
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : i32[9, 130]
  %1 = Reduce(%0) {axes = [0], keep_dim = false, op = "prod"} : i32[130]
  return %1
})",
             {}, 0);
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : i32[9, 130]
  %1 = CumSum(%0) {axis = 0} : i32[9, 130]
  return %1
})",
             {}, 0);
}

// A line of one element, and lines none of whose axes is more than one.
TEST(Lines, LinesOfOneElement) {
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 1]
  %1 = Softmax(%0) {axis = 1} : f32[5, 1]
  %2 = CumSum(%0) {axis = 1} : f32[5, 1]
  %3 = Add(%1, %2) : f32[5, 1]
  return %3
})",
             {});
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 1]
  %1 = ArgMax(%0) {axis = 0} : i64[1]
  return %1
})",
             {}, 0);
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[1, 5]
  %1 = CumSum(%0) {axis = 0, reverse = true} : f32[1, 5]
  return %1
})",
             {});
  CheckFused(R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 1]
  %1 = Gelu(%0) : f32[5, 1]
  %2 = Reduce(%1) {axes = [1], keep_dim = true, op = "max"} : f32[5, 1]
  %3 = Add(%1, %2) : f32[5, 1]
  return %3
})",
             {});
}

}  // namespace
}  // namespace quern::codegen
