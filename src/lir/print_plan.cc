#include "absl/strings/str_cat.h"
#include "lir/plan.h"

namespace quern::lir {
namespace {

std::string Text(const Argument& argument) {
  std::string text = absl::StrCat("b", argument.buffer);
  if (argument.offset != Extent(0)) absl::StrAppend(&text, "+", argument.offset.ToString());
  return text;
}

void PrintLaunches(const Plan& plan, const std::vector<Launch>& launches, std::string_view word, std::string& text) {
  for (size_t l = 0; l < launches.size(); ++l) {
    const Launch& launch = launches[l];
    const kir::Kernel& kernel = plan.kernels[launch.kernel];
    std::string in, out;
    for (size_t p = 0; p < launch.arguments.size(); ++p) {
      std::string& side = kernel.params[p].mode == kir::Mode::kIn ? in : out;
      absl::StrAppend(&side, side.empty() ? "" : ", ", Text(launch.arguments[p]),
                      kernel.params[p].mode == kir::Mode::kInOut ? "!" : "");
    }
    absl::StrAppend(&text, "  ", std::string(word), " ", l, "  k", launch.kernel, " ", kernel.name, " (", in, " -> ",
                    out, ")", kernel.sequential ? "  seq" : "", launch.label.empty() ? "" : "  ", launch.label, "\n");
  }
}

}  // namespace

std::string Print(const Plan& plan) {
  std::string text = absl::StrCat("plan ", plan.name);
  std::string_view separator = " where ";
  for (const auto& [symbol, range] : plan.ranges) {
    absl::StrAppend(&text, std::string(separator), symbol, " in ", range.low, "..");
    if (range.high != INT64_MAX) absl::StrAppend(&text, range.high);
    separator = ", ";
  }
  absl::StrAppend(&text, "  arena ", plan.arena_bytes.ToString(), " bytes");
  if (plan.once_bytes != Extent(0)) absl::StrAppend(&text, "  once ", plan.once_bytes.ToString(), " bytes");
  text += "\n";
  for (const Requirement& requirement : plan.requirements)
    absl::StrAppend(&text, "  requires ", requirement.text, "\n");
  std::vector<int> uses(plan.kernels.size());
  for (const std::vector<Launch>* list : {&plan.once, &plan.launches}) {
    for (const Launch& launch : *list) ++uses[launch.kernel];
  }
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    absl::StrAppend(&text, "  kernel k", k, " ", plan.kernels[k].name, "  ", uses[k],
                    uses[k] == 1 ? " use\n" : " uses\n");
  }
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    absl::StrAppend(&text, "  buffer b", b, " ", std::string(Name(buffer.home)), " ");
    switch (buffer.home) {
      case Home::kArena:
      case Home::kOnce: absl::StrAppend(&text, "+", buffer.offset.ToString(), " "); break;
      case Home::kOutput: absl::StrAppend(&text, buffer.index, " "); break;
      case Home::kInput:
      case Home::kParam:
      case Home::kState: absl::StrAppend(&text, buffer.name, " "); break;
      case Home::kConstant: break;
    }
    absl::StrAppend(&text, kir::Print(buffer.type), "  ", buffer.bytes.ToString(), " bytes\n");
  }
  PrintLaunches(plan, plan.once, "once", text);
  PrintLaunches(plan, plan.launches, "launch", text);
  return text;
}

}  // namespace quern::lir
