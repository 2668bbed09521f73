#include "compiler/op_targets.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "compiler/public_error.h"
#include "compiler/target_check.h"
#include "ir/examples.h"
#include "ir/op.h"
#include "quern/dispatch.h"

// docs/ops.md.
extern "C" {
extern const char quern_docs_ops[], quern_docs_ops_end[];
}

namespace quern {
namespace {

constexpr std::string_view kTitle = "\n## Targets\n";

// Of the page that is part of the library.
std::string_view KnownSection() {
  const std::string_view page(quern_docs_ops, static_cast<size_t>(quern_docs_ops_end - quern_docs_ops));
  const size_t at = page.find(kTitle);
  return at == std::string_view::npos ? std::string_view() : page.substr(at);
}

std::vector<OpOnTarget> Compiled(const std::string& target) {
  std::vector<OpOnTarget> ops;
  for (const ir::OpDef* op : ir::Ops()) {
    if (op->operands.empty() || (op->kind != ir::OpKind::kElementwise && op->examples.empty())) continue;
    // The first of its examples that there is, of floats where it takes them.
    std::vector<DType> dtypes = {DType::kF32};
    dtypes.insert(dtypes.end(), ir::ScalarDTypes().begin(), ir::ScalarDTypes().end());
    OpOnTarget made{op->name, false, ""};
    bool found = false;
    for (size_t d = 0; d < dtypes.size() && !found; ++d) {
      for (const ir::ExampleGraph& example : ir::ExamplesIn(*op, dtypes[d])) {
        if (!example.status.ok()) continue;
        found = true;
        const Status taken = compiler::Takes(example.graph, target, {});
        made.taken = taken.ok();
        made.reason = std::string(taken.message());
        break;
      }
    }
    if (found) ops.push_back(std::move(made));
  }
  std::sort(ops.begin(), ops.end(), [](const OpOnTarget& a, const OpOnTarget& b) { return a.op < b.op; });
  return ops;
}

// Code ahead of time is of the same plans as that for here, so the page has one column for both.
std::string_view ColumnOf(std::string_view target) { return target == "aot" ? "cpu" : target; }

// Backquotes and spaces around a cell.
std::string_view Bare(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '`')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '`')) cell.remove_suffix(1);
  return cell;
}

// What the section says of a target, which it knows.
std::vector<OpOnTarget> Known(std::string_view target) {
  std::vector<OpOnTarget> ops;
  size_t column = 0;  // of the target
  const std::string section(KnownSection());
  for (const absl::string_view text : absl::StrSplit(section, '\n')) {
    const std::string_view line(text.data(), text.size());
    if (line.starts_with("| ")) {
      const std::vector<absl::string_view> split = absl::StrSplit(text, '|');
      std::vector<std::string_view> cells;
      for (const absl::string_view cell : split) cells.push_back(Bare({cell.data(), cell.size()}));
      if (column == 0) {
        column = static_cast<size_t>(std::find(cells.begin(), cells.end(), ColumnOf(target)) - cells.begin());
        QUERN_CHECK(column < cells.size());
      } else {
        ops.push_back({std::string(cells[1]), cells[column] == "+", ""});
      }
    } else if (line.starts_with("- `")) {  // "- `Sort` on ptx: why not"
      const size_t on = line.find("` on "), reason = line.find(": ", on);
      if (on == std::string_view::npos || line.substr(on + 5, reason - on - 5) != ColumnOf(target)) continue;
      const auto op =
          std::find_if(ops.begin(), ops.end(), [&](const OpOnTarget& row) { return row.op == line.substr(3, on - 3); });
      if (op != ops.end()) op->reason = absl::StrReplaceAll(absl::string_view(text).substr(reason + 2), {{"\\|", "|"}});
    }
  }
  return ops;
}

}  // namespace

std::string compiler::Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string compiler::TargetSection(bool compile) {
  if (!compile) return std::string(KnownSection());
  std::vector<std::string> targets;
  for (const std::string& target : DispatchTargets()) {
    if (ColumnOf(target) == target) targets.push_back(target);
  }
  std::string text = absl::StrCat(
      absl::string_view(kTitle.data(), kTitle.size()),
      "\nWhich ops are compiled for what (+): this machine, where `cpu` is just in time and ahead of time, plain C, "
      "and "
      "devices. What is refused is refused when a graph is compiled, by name; the reasons are below the table. "
      "Of each op the first of its examples counts. `quern ops --target NAME` is the list of one, `quern dispatch` "
      "says "
      "it of a graph.\n\n| op |");
  std::string under = "\n|---|", reasons;
  std::map<std::string, std::string> rows;
  for (const std::string& target : targets) {
    absl::StrAppend(&text, " ", target, " |");
    under += "---|";
    for (const OpOnTarget& op : Compiled(target)) {
      absl::StrAppend(&rows[op.op], op.taken ? " + |" : " no |");
      if (!op.taken) absl::StrAppend(&reasons, "- `", op.op, "` on ", target, ": ", Cell(op.reason), "\n");
    }
  }
  text += under + "\n";
  for (const auto& [op, cells] : rows) absl::StrAppend(&text, "| `", op, "` |", cells, "\n");
  return absl::StrCat(text, "\n", reasons);
}

Result<std::vector<OpOnTarget>> OpsOnTarget(const std::string& target, bool compile) {
  if (const Status known = compiler::PipelineOf(target, {}).status(); !known.ok())
    return Result<std::vector<OpOnTarget>>::Failed(compiler::ErrorOf(known));
  return compile ? Compiled(target) : Known(target);
}

}  // namespace quern
