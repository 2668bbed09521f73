// Diff of two plans, for people.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/match.h"
#include "quern/plan.h"

namespace quern {
namespace {

// Rows of one kind: those of one key are each other's.
struct Rows {
  std::vector<std::string> keys, texts;
};

void Compare(const std::string& kind, const Rows& a, const Rows& b, std::string& text) {
  for (size_t i = 0; i < a.keys.size(); ++i) {
    const auto other = std::find(b.keys.begin(), b.keys.end(), a.keys[i]);
    if (other == b.keys.end()) {
      absl::StrAppend(&text, "- ", kind, " ", a.texts[i], "\n");
    } else if (const std::string& now = b.texts[other - b.keys.begin()]; now != a.texts[i]) {
      absl::StrAppend(&text, "~ ", kind, " ", now, "  was ", a.texts[i], "\n");
    }
  }
  for (size_t i = 0; i < b.keys.size(); ++i) {
    if (std::find(a.keys.begin(), a.keys.end(), b.keys[i]) == a.keys.end())
      absl::StrAppend(&text, "+ ", kind, " ", b.texts[i], "\n");
  }
}

Rows RowsOf(const std::vector<BindingPort>& ports, bool names) {
  Rows rows;
  for (const BindingPort& port : ports) {
    rows.keys.push_back(names ? port.name : absl::StrCat(rows.keys.size()));
    const std::string place = port.home == "state" ? absl::StrCat(" at ", port.offset) : "";
    rows.texts.push_back(
        absl::StrCat(rows.keys.back(), "  ", port.dtype, "[", absl::StrJoin(port.dims, ", "), "]", place));
  }
  return rows;
}

Rows RowsOf(const std::vector<WeightBlock>& blocks) {
  Rows rows;
  for (const WeightBlock& block : blocks) {
    rows.keys.push_back(block.prefix);
    rows.texts.push_back(absl::StrCat(block.prefix, "  ", block.bytes, " bytes: ", absl::StrJoin(block.params, ", ")));
  }
  return rows;
}

// "matmul" of "matmul  layers.0/ffn: MatMul", with what it computes: "matmul  MatMul".
std::string WithoutLabel(const std::string& launch) {
  const size_t label = launch.find("  "), what = launch.rfind(": ");
  if (label == std::string::npos) return launch;
  return absl::StrCat(launch.substr(0, label + 2), what == std::string::npos ? "" : launch.substr(what + 2));
}

std::vector<std::string> LaunchesOf(const VariantPlan& variant) {
  std::vector<std::string> launches;
  for (const PlanPhase& phase : variant.phases) {
    for (const std::string& launch : phase.launches) launches.push_back(absl::StrCat(phase.name, "  ", launch));
  }
  return launches;
}

void CompareVariants(const VariantPlan& a, const VariantPlan& b, bool labels, std::string& text) {
  std::string lines;
  const auto changed = [&](const char* what, const auto& before, const auto& now) {
    if (before != now) absl::StrAppend(&lines, "  ~ ", what, " ", now, "  was ", before, "\n");
  };
  changed("kind of step", a.step, b.step);
  changed("kernels", a.kernels, b.kernels);
  changed("launches", a.launches(), b.launches());
  if (a.sizes == b.sizes) {
    changed("operations", a.operations, b.operations);
    changed("bytes read", a.read, b.read);
    changed("bytes written", a.written, b.written);
  }
  changed("arena bytes", a.arena_bytes, b.arena_bytes);
  changed("packed bytes", a.packed_bytes, b.packed_bytes);
  changed("constant bytes", a.constant_bytes, b.constant_bytes);
  changed("scratch bytes", a.scratch_bytes, b.scratch_bytes);
  Rows ops_a, ops_b;
  for (const auto& [variant, rows] : {std::pair(&a, &ops_a), std::pair(&b, &ops_b)}) {
    for (const auto& [op, count] : variant->ops) {
      rows->keys.push_back(op);
      rows->texts.push_back(absl::StrCat(op, " ", count));
    }
  }
  std::string ops;
  Compare("op", ops_a, ops_b, ops);
  for (const absl::string_view line : absl::StrSplit(ops, '\n', absl::SkipEmpty()))
    absl::StrAppend(&lines, "  ", line, "\n");
  const std::vector<std::string> before = LaunchesOf(a), now = LaunchesOf(b);
  std::vector<std::string> own_before = before, own_now = now;
  if (!labels) {
    std::transform(before.begin(), before.end(), own_before.begin(), WithoutLabel);
    std::transform(now.begin(), now.end(), own_now.begin(), WithoutLabel);
  }
  const std::vector<int> partner = Match(own_before, own_now);
  size_t next = 0;
  for (size_t l = 0; l < before.size(); ++l) {
    if (partner[l] < 0) {
      absl::StrAppend(&lines, "  - ", before[l], "\n");
      continue;
    }
    for (; next < static_cast<size_t>(partner[l]); ++next) absl::StrAppend(&lines, "  + ", now[next], "\n");
    next = partner[l] + 1;
  }
  for (; next < now.size(); ++next) absl::StrAppend(&lines, "  + ", now[next], "\n");
  if (!lines.empty()) absl::StrAppend(&text, "~ variant ", b.guard.empty() ? "all other sizes" : b.guard, "\n", lines);
}

}  // namespace

std::string Diff(const BindingManifest& a, const BindingManifest& b, const DiffOptions& options) {
  std::string text;
  Compare("input", RowsOf(a.inputs, options.names), RowsOf(b.inputs, options.names), text);
  Compare("output", RowsOf(a.outputs, options.names), RowsOf(b.outputs, options.names), text);
  Compare("state", RowsOf(a.states, options.names), RowsOf(b.states, options.names), text);
  Compare("parameter", RowsOf(a.params, options.names), RowsOf(b.params, options.names), text);
  if (options.names) Compare("weights", RowsOf(a.weight_blocks), RowsOf(b.weight_blocks), text);
  for (const VariantPlan& variant : a.variants) {
    const auto other = std::find_if(b.variants.begin(), b.variants.end(),
                                    [&](const VariantPlan& one) { return one.guard == variant.guard; });
    if (other == b.variants.end())
      absl::StrAppend(&text, "- variant ", variant.guard.empty() ? "all other sizes" : variant.guard, "\n");
    else
      CompareVariants(variant, *other, options.origins, text);
  }
  for (const VariantPlan& variant : b.variants) {
    const bool known = std::any_of(a.variants.begin(), a.variants.end(),
                                   [&](const VariantPlan& one) { return one.guard == variant.guard; });
    if (!known) absl::StrAppend(&text, "+ variant ", variant.guard.empty() ? "all other sizes" : variant.guard, "\n");
  }
  return text;
}

}  // namespace quern
