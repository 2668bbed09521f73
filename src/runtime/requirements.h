// What a plan demands of the sizes beyond their ranges, checked whenever symbols get new values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "lir/plan.h"
#include "runtime/symbol_program.h"

namespace quern {

// "PAST_SEQ = 3, SEQ = 5"
std::string SizesText(std::span<const std::string> names, std::span<const int64_t> values);

class Requirements {
 public:
  // `names`: the table of symbols. Errors: a symbol that is not in it.
  static StatusOr<Requirements> Create(const std::vector<lir::Requirement>& requirements,
                                       std::span<const std::string> names);
  // Errors: kSizeConflict (base/diagnostic.h) with the first one that `values` break; `graph`: where it comes from.
  Status Check(std::span<const int64_t> values, const std::string& graph) const;

 private:
  struct Row {
    Polynomial value;
    bool exact;
    std::string text;
  };
  std::vector<Row> rows_;
  std::vector<std::string> names_;
};

}  // namespace quern
