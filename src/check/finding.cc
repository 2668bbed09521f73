#include "check/finding.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "check/value.h"
#include "ir/op.h"

namespace quern::check {
namespace {

std::string Concrete(const ir::RefTensor& tensor) {
  return absl::StrCat(std::string(Name(tensor.dtype)), Text(tensor.dims));
}

// A NaN has a sign, but not for people.
std::string Number(double value) { return std::isnan(value) ? "nan" : absl::StrFormat("%.9g", value); }

// The element of an operand that meets `index` of the result.
std::vector<int64_t> Broadcast(const ir::RefTensor& operand, std::span<const int64_t> index) {
  std::vector<int64_t> at(index.end() - operand.dims.size(), index.end());
  for (size_t d = 0; d < at.size(); ++d) at[d] = operand.dims[d] == 1 ? 0 : at[d];
  return at;
}

std::string Range(const ir::RefTensor& tensor) {
  double low = INFINITY, high = -INFINITY;
  int64_t nans = 0;
  const int64_t elements = tensor.elements();
  for (int64_t e = 0; e < elements; ++e) {
    const double value = tensor.Real(e);
    if (std::isnan(value)) ++nans;
    low = std::fmin(low, value);
    high = std::fmax(high, value);
  }
  if (elements == 0) return "empty";
  std::string text = low > high ? "nothing but NaN" : absl::StrFormat("%.9g to %.9g", low, high);
  if (nans > 0 && low <= high) absl::StrAppend(&text, ", ", nans, " NaN");
  return text;
}

std::string ClassOf(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value < 0 ? "negative" : value > 0 ? "positive" : "zero";
}

std::string ClassOf(const ir::RefTensor& tensor) {
  const Special found = Specials(tensor);
  return found.nan ? "NaN" : found.inf ? "infinite" : "finite";
}

std::string NameOf(const ir::Graph& graph, ir::Value value) {
  const ir::Node& node = graph.node(value.node);
  if (node.attributes.Find("name") != nullptr) return node.attributes.String("name");
  return node.op->name;
}

}  // namespace

void Describe(const ir::Graph& graph, ir::Value value, int64_t element, const Evaluation& values, Finding& finding) {
  const ir::Node& node = graph.node(value.node);
  const ir::RefTensor& tensor = values.At(value);
  finding.op = node.op->name;
  if (node.origin >= 0) finding.block = graph.origins()[node.origin].label;
  finding.type = Concrete(tensor);
  finding.index = IndexOf(tensor.dims, element);
  finding.elements = tensor.elements();
  for (const ir::Value& input : node.inputs) {
    const ir::RefTensor& operand = values.At(input);
    if (node.op->kind == ir::OpKind::kElementwise) {
      const std::vector<int64_t> at = Broadcast(operand, finding.index);
      finding.operands.push_back(absl::StrFormat("%s%s = %s", NameOf(graph, input), Text(at), Number(operand.At(at))));
      finding.classes.push_back(ClassOf(operand.At(at)));
    } else {
      finding.operands.push_back(absl::StrCat(NameOf(graph, input), " ", Concrete(operand), ": ", Range(operand)));
      finding.classes.push_back(ClassOf(operand));
    }
  }
}

Finding FindingOf(const ir::Graph& graph, const Difference& difference, const Evaluation& values) {
  Finding finding;
  // Views are no work: what is behind them is to blame.
  ir::Value value = graph.outputs[difference.output];
  while (ir::IsReshape(graph, graph.node(value.node))) value = graph.node(value.node).inputs[0];
  Describe(graph, value, difference.element, values, finding);
  finding.got = difference.got;
  finding.expected = difference.expected;
  finding.got_text = difference.got_text;
  finding.expected_text = difference.expected_text;
  finding.allowed = difference.allowed;
  finding.wrong = difference.wrong;
  int ops = 0;
  for (const ir::Node& node : graph.nodes()) ops += node.op->kind != ir::OpKind::kLeaf;
  finding.fused = ops > 1;
  return finding;
}

std::string Finding::Signature() const {
  if (kind == Kind::kRef) return absl::StrCat(op, " is outside of its contract");
  const char* const what = std::isnan(got) ? "a NaN" : "an inf";
  if (given) return absl::StrCat(op, " reads ", what, " of ", holder);
  return absl::StrCat(op, " makes ", what, alone ? " in its kernel alone" : " of ",
                      alone ? "" : absl::StrJoin(classes, " and "));
}

std::string Finding::ToString() const {
  std::string text = op;
  if (!block.empty()) absl::StrAppend(&text, " of ", block);
  if (kind == Kind::kRef) {
    absl::StrAppendFormat(&text, " is outside of its contract%s: %s at %s is %s, %s expected, at most %.3g off",
                          fused ? " (fused)" : "", type, Text(index), got_text, expected_text, allowed);
  } else {
    absl::StrAppendFormat(&text, " %s %s%s: %s at %s is %s", given ? "reads" : "makes",
                          std::isnan(got) ? "a NaN" : "an inf", fused ? " (fused)" : "", type, Text(index),
                          Number(got));
  }
  const auto line = [&](const char* what, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&text, "\n  ", what, ": ", value);
  };
  line("note", note);
  if (ops.size() > 1) line("region", absl::StrJoin(ops, ", "));
  for (const std::string& kernel : kernels) line("kernel", kernel);
  if (wrong > 0) line("wrong", absl::StrFormat("%d of %d elements", wrong, elements));
  for (const std::string& operand : operands) line("operand", operand);
  line("reproduction", reproduction);
  return text;
}

}  // namespace quern::check
