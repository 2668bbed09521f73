#include "profile/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "profile/text_table.h"

namespace quern::profile {
namespace {

using Json = nlohmann::json;

// Kernels that compute the same, in one step: of their launches the medians, added up.
struct Row {
  double before = 0, after = 0;  // ns
  double launches_before = 0, launches_after = 0;
};
struct Phase {
  double median = 0, least = 0;
  bool disturbed = false;
  std::map<std::string, std::pair<double, double>> kernels;  // "matmul  layers.*/ffn: Add": ns and launches a step
};
using Phases = std::map<std::string, Phase>;

double Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::string Word(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

StatusOr<Phases> PhasesOf(std::string_view text, const char* which) {
  const auto bad = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrFormat("the profile %s: %s", which, why));
  };
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || Word(json, "schema") != "quern.profile") return bad("no JSON of quern profile");
  const auto sections = json.find("sections");
  if (sections == json.end() || !sections->is_array()) return bad("it has no sections");
  Phases phases;
  for (const Json& section : *sections) {
    const auto step = section.is_object() ? section.find("step") : section.end();
    const auto kernels = section.is_object() ? section.find("kernels") : section.end();
    if (!section.is_object() || step == section.end() || !step->is_object() || kernels == section.end() ||
        !kernels->is_array())
      return bad("a section without step or kernels: it is of an older version");
    const double steps = Number(section, "steps");
    if (!(steps > 0)) return bad("a section without steps");
    const std::string guard = Word(section, "guard");
    Phase& phase =
        phases[guard.empty() ? Word(section, "phase") : absl::StrCat(Word(section, "phase"), " (", guard, ")")];
    phase.median = Number(*step, "median_ns");
    phase.least = Number(*step, "least_ns");
    const auto disturbed = step->find("disturbed");
    phase.disturbed = disturbed != step->end() && disturbed->is_boolean() && disturbed->get<bool>();
    for (const Json& kernel : *kernels) {
      if (!kernel.is_object()) return bad("a kernel that is none");
      auto& [ns, launches] = phase.kernels[absl::StrCat(Word(kernel, "family"), "  ", Word(kernel, "label"))];
      ns += Number(kernel, "typical_ns") / steps;
      launches += Number(kernel, "calls") / steps;
    }
  }
  return phases;
}

std::string Us(double ns) { return absl::StrFormat("%.2f", ns * 1e-3); }
std::string Change(double before, double after) {
  return before > 0 && after > 0 ? absl::StrFormat("%+.1f", 100 * (after / before - 1)) : "";
}

std::string PhaseText(const std::string& name, const Phase& before, const Phase& after, size_t columns) {
  std::string text =
      absl::StrFormat("%s: a step took %s us and takes %s (median), %s %%; quickest %s and %s%s\n\n", name,
                      Us(before.median), Us(after.median), Change(before.median, after.median), Us(before.least),
                      Us(after.least), before.disturbed || after.disturbed ? "; something else ran meanwhile" : "");
  std::map<std::string, Row> rows;
  for (const auto& [kernel, figures] : before.kernels)
    rows[kernel].before = figures.first, rows[kernel].launches_before = figures.second;
  for (const auto& [kernel, figures] : after.kernels)
    rows[kernel].after = figures.first, rows[kernel].launches_after = figures.second;
  std::vector<std::pair<std::string, Row>> order(rows.begin(), rows.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const double left = std::fabs(a.second.after - a.second.before),
                 right = std::fabs(b.second.after - b.second.before);
    return std::pair(-left, a.first) < std::pair(-right, b.first);
  });
  TextTable table({"kernel", ">before us", ">after us", ">differ", ">%", ">launches"});
  for (const auto& [kernel, row] : order) {
    const std::string launches = row.launches_before == row.launches_after
                                     ? absl::StrFormat("%g", row.launches_after)
                                     : absl::StrFormat("%g to %g", row.launches_before, row.launches_after);
    table.Add({kernel, row.launches_before > 0 ? Us(row.before) : "none",
               row.launches_after > 0 ? Us(row.after) : "none",
               absl::StrFormat("%+.2f", (row.after - row.before) * 1e-3), Change(row.before, row.after), launches});
  }
  return absl::StrCat(text, table.Text(columns));
}

}  // namespace

StatusOr<std::string> DiffText(std::string_view before, std::string_view after, size_t columns) {
  QUERN_ASSIGN(const Phases was, PhasesOf(before, "before"));
  QUERN_ASSIGN(const Phases is, PhasesOf(after, "after"));
  std::string text, alone;
  for (const auto& [name, phase] : was) {
    if (const auto found = is.find(name); found != is.end())
      absl::StrAppend(&text, text.empty() ? "" : "\n", PhaseText(name, phase, found->second, columns));
    else
      absl::StrAppend(&alone, name, ": before alone\n");
  }
  for (const auto& [name, phase] : is) {
    if (!was.contains(name)) absl::StrAppend(&alone, name, ": after alone\n");
  }
  if (text.empty()) return absl::InvalidArgumentError("the profiles have no phase in common");
  return absl::StrCat(text, alone.empty() ? "" : "\n", alone);
}

}  // namespace quern::profile
