#include "ir/custom.h"

#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
#include "ir/linear_algebra.h"

namespace quern::ir {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const CustomDef>, std::less<>> rows;
};

Registry& TheRegistry() {
  static Registry* const registry = [] {
    auto* made = new Registry;
    for (CustomDef& own : LinearAlgebraCalls()) {
      std::unique_ptr<const CustomDef>& row = made->rows[own.name];
      row = std::make_unique<const CustomDef>(std::move(own));
    }
    return made;
  }();
  return *registry;
}

}  // namespace

Status RegisterCustom(CustomDef def) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  std::unique_ptr<const CustomDef>& row = registry.rows[def.name];
  if (row != nullptr) return ToStatus({DiagnosticCode::kDuplicateName, "Custom", def.name, "", "", ""});
  row = std::make_unique<const CustomDef>(std::move(def));
  return absl::OkStatus();
}

StatusOr<const CustomDef*> CustomOf(const Attributes& attributes) {
  const std::string& name = attributes.String("name");
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto row = registry.rows.find(name);
  if (row == registry.rows.end()) {
    std::vector<std::string_view> names;
    for (const auto& [known, def] : registry.rows) names.emplace_back(known);
    return ToStatus({DiagnosticCode::kUnknownOp, name, "", "", "", "", Nearest(name, names)});
  }
  const int64_t asked = attributes.Int("version");
  if (row->second->version != asked) {
    return ToStatus(
        {DiagnosticCode::kBadAttribute, name, "version", absl::StrCat(row->second->version), absl::StrCat(asked), ""});
  }
  return row->second.get();
}

}  // namespace quern::ir
