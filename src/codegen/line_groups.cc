#include "codegen/line_groups.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kir/build.h"
#include "kir/rewrite.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

bool HoldsReduce(const kir::ExprRef& value) {
  return kir::AnyExpr(value, [](const kir::ExprRef& node) { return std::holds_alternative<kir::Reduce>(node->node); });
}

// A part of the body: what follows a fold or a loop over elements and waits for nothing else.
struct Step {
  kir::Block block;
  std::set<std::string> names;  // lets
};

class Groups {
 public:
  explicit Groups(const kir::Loop& loop) : loop_(loop) {}

  // Whether the body is made of parts that are known here, more than one.
  bool Cut() {
    bool folded = false;
    for (const kir::StmtRef& stmt : loop_.body) {
      if (const auto* alloc = std::get_if<kir::Alloc>(&stmt->node)) {
        if (alloc->space != kir::Space::kScratch || alloc->type.layout != kir::Layout::kRow) return false;
        allocs_[alloc->name] = stmt;
        continue;
      }
      const auto* let = std::get_if<kir::Let>(&stmt->node);
      const auto* inner = std::get_if<kir::Loop>(&stmt->node);
      if (let == nullptr && inner == nullptr && !std::holds_alternative<kir::Store>(stmt->node)) return false;
      const bool fold = let != nullptr && HoldsReduce(let->value);
      folded = folded || fold;
      if (steps_.empty() || fold || inner != nullptr) steps_.emplace_back();
      steps_.back().block.push_back(stmt);
      if (let == nullptr) continue;
      steps_.back().names.insert(let->name);
      lets_[let->name] = let->value->dtype;
    }
    const bool plain = !kir::Any(loop_.body, [&](const kir::Stmt& stmt) {
      const auto* inner = std::get_if<kir::Loop>(&stmt.node);
      const bool loops = inner != nullptr && (inner->kind == kir::LoopKind::kFor || inner->kind == kir::LoopKind::kVec);
      return !loops && !std::holds_alternative<kir::Let>(stmt.node) && !std::holds_alternative<kir::Store>(stmt.node) &&
             !std::holds_alternative<kir::Alloc>(stmt.node);
    });
    return plain && folded && steps_.size() > 1;
  }

  kir::Block Emit() {
    const kir::ExprRef group = kb::Ref(kGroupName), line = kb::Ref(loop_.index);
    at_ = line - group;
    kir::Block body;
    for (const auto& [name, stmt] : allocs_) {
      kir::BufferType type = std::get<kir::Alloc>(stmt->node).type;
      type.dims.insert(type.dims.begin(), Extent(kGroup));
      body.push_back(kb::WithOrigin(kb::Alloc(name, std::move(type)), stmt->origin));
    }
    const size_t declared = body.size();
    std::set<std::string> stored;
    for (size_t s = 0; s < steps_.size(); ++s) {
      kir::Block block;
      for (const auto& [name, dtype] : lets_) {
        if (!UsedBy(steps_[s].block, name) || steps_[s].names.contains(name)) continue;
        block.push_back(kb::Let(name, kb::At(LinesOf(name), dtype, {at_})));
      }
      for (const kir::StmtRef& stmt : OfGroup(steps_[s].block)) block.push_back(stmt);
      for (const std::string& name : steps_[s].names) {
        if (!UsedAfter(s, name)) continue;
        block.push_back(kb::Store(LinesOf(name), {at_}, kb::Ref(name, lets_.at(name))));
        stored.insert(name);
      }
      const kir::ExprRef end = kb::Min(group + static_cast<double>(kGroup), loop_.high);
      body.push_back(kb::For(loop_.index, group, end, std::move(block)));
    }
    kir::Block allocs;
    for (const std::string& name : stored)
      allocs.push_back(kb::Alloc(LinesOf(name), {lets_.at(name), {Extent(kGroup)}, kir::Layout::kRow}));
    body.insert(body.begin() + static_cast<int64_t>(declared), allocs.begin(), allocs.end());
    return {kb::For(kGroupName, loop_.low, loop_.high, std::move(body), kGroup)};
  }

 private:
  static constexpr const char* kGroupName = "g";
  static std::string LinesOf(const std::string& name) { return absl::StrCat(name, "_lines"); }

  static bool UsedBy(const kir::Block& block, const std::string& name) {
    bool used = false;
    kir::ForEachExpr(block, [&](const kir::ExprRef& node) {
      const auto* ref = std::get_if<kir::NameRef>(&node->node);
      used = used || (ref != nullptr && ref->name == name);
    });
    return used;
  }
  bool UsedAfter(size_t step, const std::string& name) const {
    for (size_t s = step + 1; s < steps_.size(); ++s) {
      if (UsedBy(steps_[s].block, name)) return true;
    }
    return false;
  }

  // Scratch of one line becomes that of all.
  kir::Block OfGroup(const kir::Block& block) const {
    kir::Block loads = kir::Rewrite(block, nullptr, [&](const kir::ExprRef& node) -> kir::ExprRef {
      const auto* load = std::get_if<kir::Load>(&node->node);
      if (load == nullptr || !allocs_.contains(load->buffer)) return nullptr;
      kir::Expr moved = *node;
      auto& index = std::get<kir::Load>(moved.node).index;
      index.insert(index.begin(), at_);
      return std::make_shared<const kir::Expr>(std::move(moved));
    });
    for (kir::StmtRef& stmt : loads) stmt = Moved(stmt);
    return loads;
  }
  kir::StmtRef Moved(const kir::StmtRef& stmt) const {
    kir::Stmt moved = *stmt;
    if (auto* store = std::get_if<kir::Store>(&moved.node)) {
      if (!allocs_.contains(store->buffer)) return stmt;
      store->index.insert(store->index.begin(), at_);
    } else if (auto* loop = std::get_if<kir::Loop>(&moved.node)) {
      for (kir::StmtRef& inner : loop->body) inner = Moved(inner);
    } else {
      return stmt;
    }
    return std::make_shared<const kir::Stmt>(std::move(moved));
  }

  const kir::Loop& loop_;
  std::vector<Step> steps_;
  std::map<std::string, kir::StmtRef> allocs_;
  std::map<std::string, DType> lets_;
  kir::ExprRef at_;
};

}  // namespace

kir::Block InGroups(kir::Block lines) {
  const auto* loop = lines.size() == 1 ? std::get_if<kir::Loop>(&lines[0]->node) : nullptr;
  if (loop == nullptr || loop->kind != kir::LoopKind::kFor || loop->step != 1) return lines;
  Groups groups(*loop);
  return groups.Cut() ? groups.Emit() : lines;
}

}  // namespace quern::codegen
