#include "kir/region.h"

#include <algorithm>

namespace quern::kir {
namespace {

// The boxes from dimension `dim` on: between two neighbouring ends of ranges the set of boxes that cover is the same.
int64_t Covered(const std::vector<const Box*>& boxes, size_t dim) {
  if (boxes.empty()) return 0;
  if (dim == boxes[0]->size()) return 1;
  std::vector<int64_t> ends;
  for (const Box* box : boxes) {
    if ((*box)[dim].size() > 0) ends.insert(ends.end(), {(*box)[dim].low, (*box)[dim].high});
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  int64_t elements = 0;
  for (size_t e = 0; e + 1 < ends.size(); ++e) {
    std::vector<const Box*> across;
    for (const Box* box : boxes) {
      if ((*box)[dim].low <= ends[e] && ends[e + 1] <= (*box)[dim].high) across.push_back(box);
    }
    elements += (ends[e + 1] - ends[e]) * Covered(across, dim + 1);
  }
  return elements;
}

}  // namespace

int64_t CoveredElements(std::span<const Box> boxes) {
  std::vector<const Box*> all;
  for (const Box& box : boxes) all.push_back(&box);
  return Covered(all, 0);
}

}  // namespace quern::kir
