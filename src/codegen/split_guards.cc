#include "codegen/split_guards.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/divide.h"
#include "kir/build.h"
#include "kir/parts.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using kir::Block;
using kir::ExprRef;

constexpr int64_t kWhole = 16;  // elements that the widest vectors hold: parts are whole vectors of any level

struct Range {
  int64_t low, high;
};

// index * times + more, of a name.
struct Linear {
  int64_t times, more;
};

std::optional<Linear> LinearIn(const ExprRef& expr, const std::string& index) {
  if (const std::optional<int64_t> known = kir::KnownInteger(expr)) return Linear{0, *known};
  if (kir::IsName(expr, index)) return Linear{1, 0};
  const auto* apply = std::get_if<kir::Apply>(&expr->node);
  if (apply == nullptr || apply->args.size() != 2) return std::nullopt;
  const std::optional<Linear> a = LinearIn(apply->args[0], index), b = LinearIn(apply->args[1], index);
  if (!a || !b) return std::nullopt;
  if (apply->op == kir::Op::kAdd) return Linear{a->times + b->times, a->more + b->more};
  if (apply->op == kir::Op::kSub) return Linear{a->times - b->times, a->more - b->more};
  if (apply->op == kir::Op::kMul && a->times == 0) return Linear{b->times * a->more, b->more * a->more};
  if (apply->op == kir::Op::kMul && b->times == 0) return Linear{a->times * b->more, a->more * b->more};
  return std::nullopt;
}

class Splitter {
 public:
  explicit Splitter(const kir::Kernel& kernel) {
    for (const kir::Param& param : kernel.params) dims_[param.name] = param.type.dims;
  }

  Block Visit(const Block& block) const {
    Block written;
    for (const kir::StmtRef& stmt : block) {
      const auto* loop = std::get_if<kir::Loop>(&stmt->node);
      const std::optional<Range> inside =
          loop != nullptr && loop->kind == kir::LoopKind::kVec ? Inside(*loop) : std::nullopt;
      if (inside) {
        const ExprRef cuts[] = {loop->low, kb::Int(inside->low), kb::Int(inside->high), loop->high};
        for (int part = 0; part < 3; ++part) {
          if (kir::KnownInteger(cuts[part]) == kir::KnownInteger(cuts[part + 1])) continue;
          kir::Loop piece = *loop;
          piece.low = cuts[part];
          piece.high = cuts[part + 1];
          written.push_back(std::make_shared<const kir::Stmt>(kir::Stmt{std::move(piece), stmt->origin}));
        }
        continue;
      }
      kir::Stmt copy = *stmt;
      Bodies bodies(*this);
      kir::Parts(copy, bodies);
      written.push_back(std::make_shared<const kir::Stmt>(std::move(copy)));
    }
    return written;
  }

 private:
  struct Bodies : kir::NoParts {
    explicit Bodies(const Splitter& splitter) : splitter(splitter) {}
    void Body(Block& block) { block = splitter.Visit(block); }
    const Splitter& splitter;
  };

  // Where along the loop every guard that looks at its index holds, in whole vectors; nothing where that is everywhere
  // or nowhere.
  std::optional<Range> Inside(const kir::Loop& loop) const {
    const std::optional<int64_t> low = kir::KnownInteger(loop.low), high = kir::KnownInteger(loop.high);
    if (!low || !high || loop.step != 1) return std::nullopt;
    Range range = {*low, *high};
    kir::ForEachExpr(loop.body, [&](const ExprRef& expr) {
      const auto* load = std::get_if<kir::Load>(&expr->node);
      if (load == nullptr || load->otherwise == nullptr) return;
      const auto dims = dims_.find(load->buffer);
      for (size_t d = 0; dims != dims_.end() && d < load->index.size(); ++d) {
        const std::optional<Linear> at = LinearIn(load->index[d], loop.index);
        if (!at || at->times < 1 || !dims->second[d].is_constant()) continue;
        range.low = std::max(range.low, CeilDiv(-at->more, at->times));
        range.high = std::min(range.high, FloorDiv(dims->second[d].constant() - 1 - at->more, at->times) + 1);
      }
    });
    if (range.low == *low && range.high == *high) return std::nullopt;
    range.low = *low + CeilDiv(range.low - *low, kWhole) * kWhole;
    if (range.high < *high) range.high = *low + FloorDiv(range.high - *low, kWhole) * kWhole;
    return range.low < range.high ? std::optional(range) : std::nullopt;
  }

  std::map<std::string, std::vector<Extent>> dims_;
};

}  // namespace

Block SplitGuards(const kir::Kernel& kernel) { return Splitter(kernel).Visit(kernel.body); }

}  // namespace quern::codegen
