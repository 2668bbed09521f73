// DynamicUpdateSlice as kernels on the KIR interpreter, which checks every access: of whole dimensions and of parts, in
// place and of a copy, with starts inside and outside.
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

std::string Text(const std::string& whole, const std::string& part, int rank, bool donated) {
  const std::string state = "f16[" + whole + "]", update = "f32[" + part + "]", half = "f16[" + part + "]";
  return absl::StrCat("graph g sym R in 1..64 {\n  %0 = Input() {name = \"state\"} : ", state,
                      "\n  %1 = Input() {name = \"x\"} : ", update, "\n  %2 = Input() {name = \"at\"} : i32[", rank,
                      "]\n  %3 = Cast(%1) {to = f16} : ", half, "\n  %4 = DynamicUpdateSlice(%0, %3, %2) : ", state,
                      "\n  return %4\n", donated ? "  donate \"state\" -> 0\n" : "", "}");
}

TEST(DynamicUpdate, OfPartsAndWholeDimensions) {
  const std::tuple<std::string, std::string, int> shapes[] = {
      {"13, 2, 5", "1, 2, 5", 3}, {"13, 37", "7, 37", 2},     {"13", "R", 1},      {"3, 13, 4", "3, R, 4", 3},
      {"5, 13", "2, 3", 2},       {"7, 3, 11", "7, 2, 5", 3}, {"5, 3", "5, 3", 2}, {"13, R", "2, R", 2}};
  for (const auto& [whole, part, rank] : shapes) {
    for (const int32_t start : {0, 2, -1, INT32_MAX, INT32_MIN}) {
      for (const bool donated : {true, false}) {
        SCOPED_TRACE(absl::StrCat(part, " of ", whole, " at ", start, donated ? " in place" : ""));
        CheckFused(Text(whole, part, rank, donated), {{"R", 6}}, 1e-3, kCpu | kBlocks,
                   {{"at", std::vector<int32_t>(rank, start)}});
      }
    }
  }
}

}  // namespace
}  // namespace quern::codegen
