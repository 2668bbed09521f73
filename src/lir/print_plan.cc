#include "absl/strings/str_cat.h"
#include "lir/plan.h"

namespace quern::lir {
namespace {

std::string Text(const Argument& argument) {
  std::string text = absl::StrCat("b", argument.buffer);
  if (argument.offset != Extent(0)) absl::StrAppend(&text, "+", argument.offset.ToString());
  return text;
}

class Printer {
 public:
  Printer(const Plan& plan, std::string& text) : plan_(plan), text_(text) {}

  void PrintLaunch(const Launch& launch, std::string_view word, size_t l, int indent) {
    const kir::Kernel& kernel = plan_.kernels[launch.kernel];
    std::string in, out;
    for (size_t p = 0; p < launch.arguments.size(); ++p) {
      std::string& side = kernel.params[p].mode == kir::Mode::kIn ? in : out;
      absl::StrAppend(&side, side.empty() ? "" : ", ", Text(launch.arguments[p]),
                      kernel.params[p].mode == kir::Mode::kInOut ? "!" : "");
    }
    absl::StrAppend(&text_, Pad(indent), std::string(word), " ", l, "  k", launch.kernel, " ", kernel.name, " (", in,
                    " -> ", out, ")", kernel.sequential ? "  seq" : "", Label(launch.label), "\n");
  }

  void PrintBody(int body, int indent) {
    const Body& from = plan_.bodies[body];
    if (!from.name.empty()) absl::StrAppend(&text_, Pad(indent - 2), from.name, "\n");
    for (const Step& step : from.steps) {
      std::visit([&](const auto& kind) { PrintStep(kind, indent); }, step);
    }
  }

 private:
  static std::string Pad(int indent) { return std::string(indent, ' '); }
  static std::string Label(const std::string& label) { return label.empty() ? "" : "  " + label; }

  void PrintStep(const Run& run, int indent) {
    for (int l = run.first; l < run.end; ++l) PrintLaunch(plan_.launches[l], "launch", l, indent);
  }
  void PrintStep(const If& step, int indent) {
    absl::StrAppend(&text_, Pad(indent), "if ", Text(step.predicate), Label(step.label), "\n");
    PrintBody(step.then, indent + 4);
    PrintBody(step.otherwise, indent + 4);
  }
  void PrintStep(const While& step, int indent) {
    absl::StrAppend(&text_, Pad(indent), "while ", Text(step.predicate));
    if (step.max > 0) absl::StrAppend(&text_, " at most ", step.max, " times");
    PrintCarries(step.carries);
    absl::StrAppend(&text_, Label(step.label), "\n");
    PrintBody(step.cond, indent + 4);
    PrintBody(step.body, indent + 4);
  }
  void PrintStep(const Scan& step, int indent) {
    absl::StrAppend(&text_, Pad(indent), "scan ", step.length.ToString(), step.reverse ? " in reverse" : "");
    PrintCarries(step.carries);
    for (const Row& row : step.rows)
      absl::StrAppend(&text_, ", b", row.buffer, " in ", Text(row.whole), " by ", row.stride.ToString());
    absl::StrAppend(&text_, Label(step.label), "\n");
    PrintBody(step.body, indent + 4);
  }
  void PrintStep(const Count& step, int indent) {
    absl::StrAppend(&text_, Pad(indent), "count ", step.symbol, " in ", step.range.low, "..");
    if (step.range.high != INT64_MAX) absl::StrAppend(&text_, step.range.high);
    absl::StrAppend(&text_, " from ", Text(step.count), Label(step.label), "\n");
    for (const Requirement& requirement : step.requirements)
      absl::StrAppend(&text_, Pad(indent + 4), "requires ", requirement.text, "\n");
  }
  // ", b5 -> b6 from b2 by b7 b8": current, next, the operand, the places.
  void PrintCarries(const std::vector<Carry>& carries) {
    for (const Carry& carry : carries) {
      absl::StrAppend(&text_, ", b", carry.current, " -> b", carry.next, " from ", Text(carry.initial), " by b",
                      carry.places[0], " b", carry.places[1]);
    }
  }

  const Plan& plan_;
  std::string& text_;
};

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
    const auto call = plan.calls.find(static_cast<int>(k));
    const std::string function = call == plan.calls.end() ? "" : absl::StrCat(" ", call->second->symbol, "()");
    absl::StrAppend(&text, "  kernel k", k, " ", plan.kernels[k].name, function, "  ", uses[k],
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
      case Home::kConstant:
      case Home::kLoop: break;
    }
    absl::StrAppend(&text, kir::Print(buffer.type), "  ", buffer.bytes.ToString(), " bytes\n");
  }
  Printer printer(plan, text);
  for (size_t l = 0; l < plan.once.size(); ++l) printer.PrintLaunch(plan.once[l], "once", l, 2);
  printer.PrintBody(0, 2);
  return text;
}

}  // namespace quern::lir
