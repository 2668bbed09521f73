// Kernels of orders and of writes to places that are data, in every form they have, against the interpreter.

#include "absl/strings/str_cat.h"
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

const char kSymbols[] = "sym S in 1..64 ";

std::string Graph(const std::vector<std::string>& inputs, const std::string& node, const std::string& types,
                  int results = 1) {
  std::string text = absl::StrCat("graph g ", kSymbols, "{\n");
  for (size_t i = 0; i < inputs.size(); ++i)
    absl::StrAppend(&text, "  %", i, " = Input() {name = \"x", i, "\"} : ", inputs[i], "\n");
  const size_t n = inputs.size();
  absl::StrAppend(&text, "  %", n, results > 1 ? absl::StrCat(":", results) : "", " = ", node, " : ", types, "\n");
  absl::StrAppend(&text, "  return %", n);
  if (results > 1) absl::StrAppend(&text, ".0, %", n, ".1");
  return text + "\n}";
}

TEST(Sort, EveryForm) {
  for (const char* dims : {"3, 1", "2, 7", "3, 128", "2, 129", "1, 700", "S, 5", "3, S", "2, 3, 131", "151"}) {
    for (const char* dtype : {"f32", "f16", "bf16", "i8", "u8", "i32"}) {
      for (const char* descending : {"false", "true"}) {
        const std::string type = absl::StrCat(dtype, "[", dims, "]"), places = absl::StrCat("i64[", dims, "]");
        const bool is_long = std::string_view(dims) == "1, 700";  // which the interpreter of blocks takes seconds for
        CheckFused(Graph({type}, absl::StrCat("Sort(%0) {axis = -1, descending = ", descending, "}"),
                         absl::StrCat(type, ", ", places), 2),
                   {{"S", 37}}, 0, is_long ? kCpu : kCpu | kBlocks);
      }
    }
  }
}

// Lines that may have no element, by digits and by counting.
TEST(Sort, OfLinesThatMayBeEmpty) {
  for (const char* const most : {"100", "1000"}) {
    for (const int64_t n : {0, 1, 97}) {
      CheckFused(absl::StrCat("graph g sym N in 0..", most, R"( {
  %0 = Input() {name = "x"} : f32[3, N]
  %1:2 = Sort(%0) {axis = 1, descending = true} : f32[3, N], i64[3, N]
  return %1.0, %1.1
})"),
                 {{"N", n}}, 0, kCpu);
    }
  }
}

TEST(Sort, TheBestOfMany) {
  for (const int n : {5, 128, 129, 191, 700}) {
    for (const int k : {0, 1, 5, 128, 129}) {
      if (k > n) continue;
      for (const char* largest : {"false", "true"}) {
        const std::string dims = absl::StrCat("[2, ", k, "]");
        CheckFused(Graph({absl::StrCat("f32[2, ", n, "]")},
                         absl::StrCat("TopK(%0) {axis = -1, k = ", k, ", largest = ", largest, ", sorted = true}"),
                         absl::StrCat("f32", dims, ", i64", dims), 2),
                   {}, 0, kCpu | kBlocks);
      }
    }
  }
}

// One line, lines and columns that are shared out, and ranges of what indices name.
TEST(Scatter, EveryShare) {
  struct Case {
    const char *x, *indices, *updates, *attributes;
  };
  const Case cases[] = {
      {"f32[13]", "i32[37]", "f32[37]", "axis = 0"},
      {"f32[5, 7]", "i32[3, 7]", "f32[3, 7]", "axis = 0"},
      {"f32[5, 7]", "i32[5, 3]", "f32[5, 3]", "axis = 1"},
      {"f32[S, 7, 3]", "i32[S, 2, 3]", "f32[S, 2, 3]", "axis = 1"},
      {"f32[29]", "i32[20011]", "f32[20011]", "axis = 0"},
      {"f32[3, 601]", "i32[29, 601]", "f32[29, 601]", "axis = 0"},
      {"f32[2, 2, 3, 5, 2]", "i32[2, 2, 3, 7, 2]", "f32[2, 2, 3, 7, 2]", "axis = 3"},
  };
  for (const Case& c : cases) {
    for (const char* reduction : {"none", "add", "max"}) {
      CheckFused(
          Graph({c.x, c.indices, c.updates},
                absl::StrCat("ScatterElements(%0, %1, %2) {", c.attributes, ", reduction = \"", reduction, "\"}"), c.x),
          {{"S", 5}}, 1e-4, kCpu);
    }
  }
  const Case slices[] = {
      {"f32[5, 7]", "i32[3, 1]", "f32[3, 7]", ""},           {"f32[13]", "i32[20011, 1]", "f32[20011]", ""},
      {"f32[3, 601]", "i32[31, 1]", "f32[31, 601]", ""},     {"f32[5, 7, 3]", "i32[2, 11, 2]", "f32[2, 11, 3]", ""},
      {"f32[23, 7, 2]", "i32[2003, 2]", "f32[2003, 2]", ""}, {"f32[S, 3, 2, 5]", "i32[7, 1]", "f32[7, 3, 2, 5]", ""},
  };
  for (const Case& c : slices) {
    for (const char* reduction : {"none", "mul", "min"}) {
      CheckFused(Graph({c.x, c.indices, c.updates},
                       absl::StrCat("ScatterND(%0, %1, %2) {reduction = \"", reduction, "\"}"), c.x),
                 {{"S", 5}}, 1e-4, kCpu);
    }
  }
}

// What is computed on the way: zeros that rows are added to, and the rows.
TEST(Scatter, OfWhatIsComputed) {
  CheckFused(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "u"} : f32[S, 5]
  %1 = Input() {name = "i"} : i32[S, 1]
  %2 = Input() {name = "z"} : f32[]
  %3 = Expand(%2) {shape = <7, 5>} : f32[7, 5]
  %4 = Exp(%0) : f32[S, 5]
  %5 = ScatterND(%3, %1, %4) {reduction = "add"} : f32[7, 5]
  return %5
})",
             {{"S", 37}}, 1e-4, kCpu);
}

}  // namespace
}  // namespace quern::codegen
