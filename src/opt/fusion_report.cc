#include "opt/fusion_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern::opt {

std::string FusionReport::ToString() const {
  std::string text;
  for (const std::string& layout : layouts) absl::StrAppend(&text, "layout: ", layout, "\n");
  for (const Recognised& found : recognised) {
    absl::StrAppend(&text, found.done ? "" : "not ", "recognised: ", found.op, " at ", found.node, ": ", found.remark,
                    "\n");
  }
  for (const Region& region : regions) {
    absl::StrAppend(&text, "region %", region.node, " ", region.family, region.label.empty() ? "" : " ", region.label,
                    ": ", absl::StrJoin(region.ops, " "), ", ", region.inputs,
                    region.inputs == 1 ? " input, " : " inputs, ", region.outputs,
                    region.outputs == 1 ? " output" : " outputs", region.remark.empty() ? "" : "; ", region.remark,
                    "\n");
  }
  for (const Missed& miss : missed) {
    absl::StrAppend(&text, "missed: ", miss.consumer, " not fused with ", miss.producer, ": ", miss.reason, "\n");
  }
  return text;
}

}  // namespace quern::opt
