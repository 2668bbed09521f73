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

  bool operator==(const Range&) const = default;
};

using Ranges = std::map<std::string, Range>;  // by loop

// index * times + more, of a name: a range of the latter, where loops inside have a part in it.
struct Linear {
  int64_t times;
  Range more;
};

std::optional<Linear> LinearIn(const ExprRef& expr, const std::string& index, const Ranges& inner) {
  if (const std::optional<int64_t> known = kir::KnownInteger(expr)) return Linear{0, {*known, *known}};
  if (kir::IsName(expr, index)) return Linear{1, {0, 0}};
  if (const auto* name = std::get_if<kir::NameRef>(&expr->node); name != nullptr) {
    const auto found = inner.find(name->name);
    return found == inner.end() ? std::nullopt : std::optional(Linear{0, found->second});
  }
  const auto* apply = std::get_if<kir::Apply>(&expr->node);
  if (apply == nullptr || apply->args.size() != 2) return std::nullopt;
  const std::optional<Linear> a = LinearIn(apply->args[0], index, inner), b = LinearIn(apply->args[1], index, inner);
  if (!a || !b) return std::nullopt;
  const auto times = [](const Linear& of, int64_t by) {
    const Range scaled = {of.more.low * by, of.more.high * by};
    return Linear{of.times * by, by < 0 ? Range{scaled.high, scaled.low} : scaled};
  };
  const auto is_known = [](const Linear& of) { return of.times == 0 && of.more.low == of.more.high; };
  if (apply->op == kir::Op::kAdd)
    return Linear{a->times + b->times, {a->more.low + b->more.low, a->more.high + b->more.high}};
  if (apply->op == kir::Op::kSub)
    return Linear{a->times - b->times, {a->more.low - b->more.high, a->more.high - b->more.low}};
  if (apply->op == kir::Op::kMul && is_known(*a)) return times(*b, a->more.low);
  if (apply->op == kir::Op::kMul && is_known(*b)) return times(*a, b->more.low);
  return std::nullopt;
}

// Loops in `block` between constants, and the last number of each.
Ranges RangesIn(const Block& block) {
  Ranges ranges;
  kir::ForEach(block, [&](const kir::Stmt& stmt) {
    const auto* loop = std::get_if<kir::Loop>(&stmt.node);
    if (loop == nullptr) return;
    const std::optional<int64_t> low = kir::KnownInteger(loop->low), high = kir::KnownInteger(loop->high);
    if (low && high && *low < *high) ranges[loop->index] = {*low, *high - 1};
  });
  return ranges;
}

class Splitter {
 public:
  explicit Splitter(const kir::Kernel& kernel) {
    for (const kir::Param& param : kernel.params) dims_[param.name] = param.type.dims;
    for (const kir::GridDim& dim : kernel.grid) starts_[dim.index] = kir::KnownInteger(dim.low);
  }

  Block Visit(const Block& block) const {
    Block written;
    for (const kir::StmtRef& stmt : block) {
      kir::Stmt copy = *stmt;
      auto* loop = std::get_if<kir::Loop>(&copy.node);
      const std::optional<Range> all = loop == nullptr ? std::nullopt : Ends(*loop);
      const std::optional<Range> inside = all ? Inside(*loop, *all) : std::nullopt;
      Bodies bodies(*this);
      kir::Parts(copy, bodies);
      if (!inside) {
        written.push_back(std::make_shared<const kir::Stmt>(std::move(copy)));
        continue;
      }
      const ExprRef low = loop->low, high = loop->high;
      const auto part = [&](int64_t from, int64_t to) {
        if (from == to) return;
        loop->low = from == all->low ? low : AtLeast(low, from);
        loop->high = to == all->high ? high : AtMost(high, to);
        written.push_back(std::make_shared<const kir::Stmt>(copy));
      };
      part(all->low, inside->low);
      part(inside->low, inside->high);
      part(inside->high, all->high);
    }
    return written;
  }

 private:
  struct Bodies : kir::NoParts {
    explicit Bodies(const Splitter& splitter) : splitter(splitter) {}
    void Body(Block& block) { block = splitter.Visit(block); }
    const Splitter& splitter;
  };

  // The operand of a minimum or maximum that is a constant, and the other.
  struct Limited {
    int64_t limit;
    ExprRef other;
  };
  static std::optional<Limited> Limit(const ExprRef& bound, kir::Op op) {
    const auto* apply = std::get_if<kir::Apply>(&bound->node);
    if (apply == nullptr || apply->op != op) return std::nullopt;
    for (const int i : {1, 0}) {
      if (const std::optional<int64_t> known = kir::KnownInteger(apply->args[i]))
        return Limited{*known, apply->args[1 - i]};
    }
    return std::nullopt;
  }

  // Whether there are buffers or tiles in it: more than rows of elements, whose names would be there twice.
  static bool Declares(const Block& block) {
    return kir::Any(block, [](const kir::Stmt& stmt) {
      return std::holds_alternative<kir::Alloc>(stmt.node) || std::holds_alternative<kir::Tile>(stmt.node);
    });
  }

  // Between which constants the loop runs, of a vector loop from one to the other: from q0 to min(q0 + 36, 112) it is
  // from where the grid's q0 begins to 112, from max(0, .. ) it is from 0.
  std::optional<Range> Ends(const kir::Loop& loop) const {
    std::optional<int64_t> low = kir::KnownInteger(loop.low), high = kir::KnownInteger(loop.high);
    if (loop.kind == kir::LoopKind::kFor) {
      if (Declares(loop.body)) return std::nullopt;
      const auto* name = std::get_if<kir::NameRef>(&loop.low->node);
      const auto start = name == nullptr ? starts_.end() : starts_.find(name->name);
      if (start != starts_.end()) low = start->second;
      if (const auto limit = Limit(loop.low, kir::Op::kMax); !low && limit) low = limit->limit;
      if (const auto limit = Limit(loop.high, kir::Op::kMin); !high && limit) high = limit->limit;
    } else if (loop.kind != kir::LoopKind::kVec) {
      return std::nullopt;
    }
    return low && high && loop.step == 1 ? std::optional(Range{*low, *high}) : std::nullopt;
  }

  static ExprRef AtLeast(const ExprRef& bound, int64_t least) {
    return kir::KnownInteger(bound) ? kb::Int(least) : kb::Max(bound, kb::Int(least));
  }
  // min(q0 + 36, 112), at most 111, is min(q0 + 36, 111).
  static ExprRef AtMost(const ExprRef& bound, int64_t most) {
    if (kir::KnownInteger(bound)) return kb::Int(most);
    return kb::Min(Limit(bound, kir::Op::kMin)->other, kb::Int(most));
  }

  // Where between `all` every guard that looks at the loop's index holds, of a vector loop in whole vectors; nothing
  // where that is everywhere or nowhere.
  std::optional<Range> Inside(const kir::Loop& loop, const Range& all) const {
    Range range = all;
    const Ranges inner = RangesIn(loop.body);
    kir::ForEachExpr(loop.body, [&](const ExprRef& expr) {
      const auto* load = std::get_if<kir::Load>(&expr->node);
      if (load == nullptr || load->otherwise == nullptr) return;
      const auto dims = dims_.find(load->buffer);
      for (size_t d = 0; dims != dims_.end() && d < load->index.size(); ++d) {
        const std::optional<Linear> at = LinearIn(load->index[d], loop.index, inner);
        if (!at || at->times < 1 || !dims->second[d].is_constant()) continue;
        range.low = std::max(range.low, CeilDiv(-at->more.low, at->times));
        range.high = std::min(range.high, FloorDiv(dims->second[d].constant() - 1 - at->more.high, at->times) + 1);
      }
    });
    if (range == all) return std::nullopt;
    if (loop.kind == kir::LoopKind::kVec) {
      range.low = all.low + CeilDiv(range.low - all.low, kWhole) * kWhole;
      if (range.high < all.high) range.high = all.low + FloorDiv(range.high - all.low, kWhole) * kWhole;
    }
    return range.low < range.high ? std::optional(range) : std::nullopt;
  }

  std::map<std::string, std::vector<Extent>> dims_;
  std::map<std::string, std::optional<int64_t>> starts_;  // of the grid's loops
};

}  // namespace

Block SplitGuards(const kir::Kernel& kernel) { return Splitter(kernel).Visit(kernel.body); }

}  // namespace quern::codegen
