#include "runtime/requirements.h"

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"

namespace quern {

std::string SizesText(std::span<const std::string> names, std::span<const int64_t> values) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", names[i], " = ", values[i]);
  return text;
}

StatusOr<Requirements> Requirements::Create(const std::vector<lir::Requirement>& requirements,
                                            std::span<const std::string> names) {
  Requirements made;
  made.names_.assign(names.begin(), names.end());
  for (const lir::Requirement& requirement : requirements) {
    QUERN_ASSIGN(Polynomial value, Polynomial::Compile(requirement.value, names));
    made.rows_.push_back({std::move(value), requirement.exact, requirement.text});
  }
  return made;
}

Status Requirements::Check(std::span<const int64_t> values, const std::string& graph) const {
  for (const Row& row : rows_) {
    const int64_t value = row.value.Evaluate(values);
    if (row.exact ? value == 0 : value >= 0) continue;
    return ToStatus({DiagnosticCode::kSizeConflict, "", "", row.text, SizesText(names_, values), graph});
  }
  return absl::OkStatus();
}

}  // namespace quern
