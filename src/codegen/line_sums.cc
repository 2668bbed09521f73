#include "codegen/line_sums.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kir/rewrite.h"

namespace quern::codegen {

namespace kb = kir::build;
using namespace kir::build::operators;

namespace {

// An index as a polynomial of the names in it.
std::optional<Extent> PolynomialOf(const kir::ExprRef& index) {
  if (const std::optional<int64_t> known = kir::KnownInteger(index)) return Extent(*known);
  if (const auto* name = std::get_if<kir::NameRef>(&index->node)) return Extent::Symbol(name->name);
  const auto* apply = std::get_if<kir::Apply>(&index->node);
  if (apply == nullptr || apply->args.size() != 2) return std::nullopt;
  const std::optional<Extent> a = PolynomialOf(apply->args[0]), b = PolynomialOf(apply->args[1]);
  if (!a || !b) return std::nullopt;
  if (apply->op == kir::Op::kAdd) return *a + *b;
  if (apply->op == kir::Op::kSub) return *a - *b;
  if (apply->op == kir::Op::kMul) return *a * *b;
  return std::nullopt;
}

// The expression with the indices of its loads in one form: (q + 1) * 2 + 3 - 1 is 2 * q + 4.
kir::ExprRef WithPlainIndices(const kir::ExprRef& expr) {
  return kir::Rewrite(expr, [](const kir::ExprRef& node) -> kir::ExprRef {
    const auto* load = std::get_if<kir::Load>(&node->node);
    if (load == nullptr) return nullptr;
    kir::Index index;
    for (const kir::ExprRef& at : load->index) {
      const std::optional<Extent> plain = PolynomialOf(at);
      index.push_back(plain ? kb::FromExtent(*plain) : at);
    }
    return kb::At(load->buffer, node->dtype, std::move(index), load->otherwise);
  });
}

}  // namespace

std::vector<kir::ExprRef> SumLines(const std::vector<LineTerm>& terms, int lines, kir::Block& block) {
  std::map<int64_t, std::vector<const LineTerm*>> places;
  for (const LineTerm& term : terms) places[term.place].push_back(&term);
  std::vector<kir::ExprRef> sums(lines);
  std::vector<int> counts(lines);
  const auto add = [&](const LineTerm& term) {
    const kir::ExprRef product = kb::Term(term.left * WithPlainIndices(term.right));
    kir::ExprRef& sum = sums[term.line];
    sum = sum == nullptr ? product : kb::Term(sum + product);
    const std::string name = absl::StrCat("a", term.line, "_", counts[term.line]++);
    block.push_back(kb::Let(name, sum));
    sum = kb::Ref(name, sum->dtype);
  };
  for (const auto& [place, beside] : places) {
    for (const LineTerm* term : beside) add(*term);
  }
  return sums;
}

}  // namespace quern::codegen
