// Rows and maps: the whole chunk becomes one thread loop. Threads share out each `vec` loop and each `vec` reduction
// and do the rest alike; what a chunk kept in scratch is shared memory, with barriers around the loop that fills it.
#include "codegen/block_schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "codegen/block_tiles.h"
#include "kir/build.h"
#include "kir/canonical.h"
#include "kir/describe.h"
#include "kir/rewrite.h"
#include "kir/symbols.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;

template <typename Node, typename... Kinds>
constexpr bool kIsOneOf = (std::is_same_v<Node, Kinds> || ...);

// Inside what a thread does alone, a reduction is its own.
kir::ExprRef Sequential(const kir::ExprRef& node) {
  const auto* reduce = std::get_if<kir::Reduce>(&node->node);
  if (reduce == nullptr || !reduce->vec) return nullptr;
  return kb::ReduceFor(reduce->op, reduce->index, reduce->low, reduce->high, reduce->body, reduce->lets);
}
kir::ExprRef InOrder(const kir::ExprRef& expr) { return kir::Rewrite(expr, nullptr, Sequential); }

kir::ExprRef ChunkEnd(const kir::GridDim& dim) {
  return kb::Min(kb::Ref(dim.index) + static_cast<double>(dim.step), dim.high);
}

// The loop over a chunk of the last dimension of the grid, which is the whole body; or null.
const kir::Loop* ChunkLoop(const kir::Kernel& kernel) {
  const kir::GridDim& dim = kernel.grid.back();
  if (dim.step == 1 || kernel.body.size() != 1) return nullptr;
  const auto* loop = std::get_if<kir::Loop>(&kernel.body[0]->node);
  if (loop == nullptr || loop->step != 1) return nullptr;
  return kir::Same(loop->low, kb::Ref(dim.index)) && kir::Same(loop->high, ChunkEnd(dim)) ? loop : nullptr;
}

// A chunk of rows becomes a row:
//   grid b in 0..M by 7 { for i in b..min(b + 7, M) { ... } }    =>    grid i in 0..M { ... }
kir::Kernel RowByRow(kir::Kernel kernel) {
  const kir::Loop* loop = ChunkLoop(kernel);
  if (loop == nullptr || loop->kind != kir::LoopKind::kFor) return kernel;
  kernel.grid.back().index = loop->index;
  kernel.grid.back().step = 1;
  const kir::Block body = loop->body;
  kernel.body = body;
  return kernel;
}

class ThreadSchedule {
 public:
  ThreadSchedule(const kir::Kernel& plain, const family::BlockFacts& facts)
      : kernel_(plain), facts_(facts), ranges_(kir::RangesOf(plain)) {}

  StatusOr<kir::Kernel> Run() {
    longest_ = 0;
    Measure(kernel_.body);
    threads_ = std::clamp<int64_t>((longest_ + 31) / 32 * 32, 32, facts_.threads);
    tiles_.emplace(kernel_, threads_, shared_);
    Regrid();
    QUERN_ASSIGN(kir::Block body, Of(kernel_.body));
    kir::Block block = std::move(shared_);
    block.push_back(kb::Thread(kir::ThreadLevel::kBlock, "t", threads_, std::move(body)));
    kernel_.body = std::move(block);
    QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel_));
    if (shape.shared_bytes > facts_.shared_bytes) {
      return absl::UnimplementedError(
          absl::StrFormat("kernel %s: %d bytes of shared memory", kernel_.name, shape.shared_bytes));
    }
    QUERN_RETURN_IF_ERROR(kir::Verify(kernel_));
    return std::move(kernel_);
  }

 private:
  static Status Cannot(const kir::Stmt& stmt) {
    return absl::UnimplementedError(absl::StrCat(kir::Describe(stmt), ": not for blocks of threads"));
  }

  // The longest constant extent that threads may share out; one that is not constant counts as long.
  void Measure(const kir::ExprRef& low, const kir::ExprRef& high) {
    const std::optional<int64_t> first = kir::KnownInteger(low), last = kir::KnownInteger(high);
    longest_ = std::max(longest_, first && last ? *last - *first : facts_.threads);
  }
  void Measure(const kir::Block& block) {
    kir::ForEach(block, [this](const kir::Stmt& stmt) {
      const auto* loop = std::get_if<kir::Loop>(&stmt.node);
      if (loop != nullptr && loop->kind == kir::LoopKind::kVec) Measure(loop->low, loop->high);
      if (std::holds_alternative<kir::TileCall>(stmt.node) || std::holds_alternative<kir::Pack>(stmt.node))
        longest_ = std::max<int64_t>(longest_, facts_.threads);
    });
    kir::ForEachExpr(block, [this](const kir::ExprRef& node) {
      const auto* reduce = std::get_if<kir::Reduce>(&node->node);
      if (reduce != nullptr && reduce->vec) Measure(reduce->low, reduce->high);
    });
  }

  // A chunk of a flat map becomes what the threads of a block take.
  void Regrid() {
    const kir::Loop* loop = ChunkLoop(kernel_);
    if (loop == nullptr || loop->kind != kir::LoopKind::kVec) return;
    kir::GridDim& dim = kernel_.grid.back();
    kir::Stmt copy = *kernel_.body[0];
    dim.step = std::min(dim.step, threads_ * facts_.elements);
    std::get<kir::Loop>(copy.node).high = ChunkEnd(dim);
    kernel_.body = {std::make_shared<const kir::Stmt>(std::move(copy))};
  }

  StatusOr<kir::Block> Of(const kir::Block& block) {
    kir::Block result;
    for (const kir::StmtRef& stmt : block) {
      const size_t first = result.size();
      QUERN_RETURN_IF_ERROR(Add(*stmt, result));
      for (size_t i = first; i < result.size(); ++i) {
        if (result[i]->origin < 0) result[i] = kb::WithOrigin(result[i], stmt->origin);
      }
    }
    return result;
  }

  Status Add(const kir::Stmt& stmt, kir::Block& out) {
    kir::Stmt copy = stmt;
    const auto keep = [&] {
      out.push_back(std::make_shared<const kir::Stmt>(std::move(copy)));
      return absl::OkStatus();
    };
    const auto together = [&](auto& node) {
      node.value = Together(node.value, out);
      return keep();
    };
    return std::visit(kir::Overloaded{
                          [&](kir::Loop& loop) -> Status {
                            if (loop.kind == kir::LoopKind::kVec) return Share(loop, out);
                            if (loop.kind == kir::LoopKind::kThread) return Cannot(stmt);
                            tiles_->FillAll(out);
                            ++loops_;
                            QUERN_ASSIGN(loop.body, Of(loop.body));
                            --loops_;
                            return keep();
                          },
                          [&](kir::If& branch) -> Status {
                            tiles_->FillAll(out);
                            QUERN_ASSIGN(branch.then_body, Of(branch.then_body));
                            QUERN_ASSIGN(branch.else_body, Of(branch.else_body));
                            return keep();
                          },
                          [&](kir::Let& let) -> Status { return together(let); },
                          [&](kir::Var& var) -> Status { return together(var); },
                          [&](kir::Assign& assign) -> Status { return together(assign); },
                          [&](kir::Store& store) -> Status {
                            store.value = Together(store.value, out);
                            const bool shared = kept_.contains(store.buffer);
                            if (shared) out.push_back(kb::Barrier());
                            out.push_back(kb::If(kb::Call(kir::Op::kEq, {kb::Ref("t"), kb::Int(0)}),
                                                 {std::make_shared<const kir::Stmt>(copy)}));
                            if (shared) out.push_back(kb::Barrier());
                            return absl::OkStatus();
                          },
                          [&](const kir::Alloc& alloc) -> Status { return Keep(stmt, alloc); },
                          [&](const kir::Prefetch&) -> Status { return absl::OkStatus(); },
                          [&](const kir::Pack& pack) -> Status { return Decode(stmt, pack, out); },
                          [&](const kir::Tile& tile) -> Status {
                            tiles_->Add(tile, out);
                            return absl::OkStatus();
                          },
                          [&](const kir::TileCall& call) -> Status { return tiles_->Add(call, out); },
                          [&](const kir::Map& map) -> Status {
                            bool fills = false;
                            QUERN_ASSIGN(kir::Block body, Alone(map.body, fills));
                            tiles_->Add(map, std::move(body), out);
                            if (fills) out.push_back(kb::Barrier());
                            return absl::OkStatus();
                          },
                          [&](const auto&) -> Status { return Cannot(stmt); },
                      },
                      copy.node);
  }

  // Scratch of the chunk: shared memory for the largest sizes.
  Status Keep(const kir::Stmt& stmt, const kir::Alloc& alloc) {
    kir::BufferType type = alloc.type;
    if (type.layout != kir::Layout::kRow) return Cannot(stmt);
    for (Extent& dim : type.dims) {
      const std::optional<int64_t> bound = dim.UpperBound(ranges_);
      if (!bound || *bound > facts_.shared_bytes) return Cannot(stmt);
      dim = Extent(*bound);
    }
    // Branches may have scratch of one name each: of one type it is the same memory.
    const auto [kept, added] = kept_.try_emplace(alloc.name, type);
    if (!added) return kept->second == type ? absl::OkStatus() : Cannot(stmt);
    tiles_->Keep(alloc.name, alloc.type);  // what of it is live, not what it has room for
    shared_.push_back(kb::Alloc(alloc.name, type, kir::Space::kShared));
    return absl::OkStatus();
  }

  // A pack to plain floats in scratch is a copy that decodes.
  Status Decode(const kir::Stmt& stmt, const kir::Pack& pack, kir::Block& out) {
    const auto param = std::find_if(kernel_.params.begin(), kernel_.params.end(),
                                    [&](const kir::Param& p) { return p.name == pack.src.buffer; });
    if (!kept_.contains(pack.dst.buffer) || param == kernel_.params.end() ||
        !kir::CanCopy(param->type.dtype, param->type.layout, DType::kF32, kir::Layout::kRow)) {
      return Cannot(stmt);
    }
    out.push_back(kb::Barrier());
    out.push_back(kb::Copy(pack.dst, pack.src));
    out.push_back(kb::Barrier());
    return absl::OkStatus();
  }

  // vec i in a..b { }  =>  for i in a + t..b by T { }
  Status Share(const kir::Loop& loop, kir::Block& out) {
    bool fills = false;
    QUERN_ASSIGN(kir::Block body, Alone(loop.body, fills));
    if (fills) out.push_back(kb::Barrier());
    out.push_back(kb::For(loop.index, loop.low + kb::Ref("t"), loop.high, std::move(body), threads_ * loop.step));
    if (fills) out.push_back(kb::Barrier());
    return absl::OkStatus();
  }

  StatusOr<kir::Block> Alone(const kir::Block& block, bool& fills) {
    const kir::Stmt* other = nullptr;
    std::set<std::string> own;  // registers of an iteration; those around the loop run through all of them
    kir::ForEach(block, [&](const kir::Stmt& stmt) {
      const auto* store = std::get_if<kir::Store>(&stmt.node);
      fills = fills || (store != nullptr && kept_.contains(store->buffer));
      if (const auto* var = std::get_if<kir::Var>(&stmt.node)) own.insert(var->name);
      const auto* assign = std::get_if<kir::Assign>(&stmt.node);
      const bool alone = std::visit(
          []<typename Node>(const Node&) {
            return kIsOneOf<Node, kir::Loop, kir::If, kir::Let, kir::Var, kir::Assign, kir::Store>;
          },
          stmt.node);
      const bool shares = assign != nullptr && !own.contains(assign->name);
      if ((!alone || shares) && other == nullptr) other = &stmt;
    });
    if (other != nullptr) return Cannot(*other);
    return kir::Rewrite(block, nullptr, Sequential);
  }

  // The value with its vec reductions computed by the whole block before it.
  kir::ExprRef Together(const kir::ExprRef& value, kir::Block& out) {
    return kir::Rewrite(value, [&](const kir::ExprRef& node) -> kir::ExprRef {
      const auto* reduce = std::get_if<kir::Reduce>(&node->node);
      if (reduce == nullptr) return nullptr;
      if (!reduce->vec) return InOrder(node);  // an index of its own: each thread does it alone
      return Reduced(*reduce, node->dtype, out);
    });
  }

  kir::ExprRef Reduced(const kir::Reduce& reduce, DType dtype, kir::Block& out) {
    const int number = reductions_++;
    const std::string own = absl::StrCat("own", number), part = absl::StrCat("part", number);
    const kir::Op combine = kir::CombineOp(reduce.op);
    const auto* product = std::get_if<kir::Apply>(&reduce.body->node);
    const bool fuse = product != nullptr && product->op == kir::Op::kMul && product->contract;
    auto joined = [&](const kir::ExprRef& a, const kir::ExprRef& b, bool contract = false) {
      return kir::MakeApply(combine, {a, b}, contract);
    };
    const kir::ExprRef mine = kb::Ref(own, dtype), t = kb::Ref("t");
    kir::Block each;
    for (const auto& [name, value] : reduce.lets) each.push_back(kb::Let(name, InOrder(value)));
    each.push_back(kb::Assign(own, joined(mine, InOrder(reduce.body), fuse)));
    out.push_back(kb::Var(own, kb::IdentityOf(reduce.op, dtype)));
    out.push_back(kb::For(reduce.index, reduce.low + t, reduce.high, std::move(each), threads_));
    JoinLanes(own, dtype, combine, absl::StrCat("from", number), out);
    const int64_t warps = threads_ / kir::kWarpThreads;
    if (warps == 1) return mine;
    shared_.push_back(kb::Alloc(part, {dtype, {Extent(warps)}, kir::Layout::kRow}, kir::Space::kShared));
    if (loops_ > 0) out.push_back(kb::Barrier());  // the sums of the iteration before have been read
    const kir::ExprRef lane = t % 32.0, warp = t / 32.0;
    out.push_back(kb::If(kb::Call(kir::Op::kEq, {lane, kb::Int(0)}), {kb::Store(part, {warp}, mine)}));
    out.push_back(kb::Barrier());
    std::vector<kir::ExprRef> sums;
    for (int64_t w = 0; w < warps; ++w) sums.push_back(kb::At(part, dtype, {kb::Int(w)}));
    while (sums.size() > 1) {
      std::vector<kir::ExprRef> pairs;
      for (size_t i = 0; i < sums.size(); i += 2)
        pairs.push_back(i + 1 < sums.size() ? joined(sums[i], sums[i + 1]) : sums[i]);
      sums = std::move(pairs);
    }
    const std::string all = absl::StrCat("all", number);
    out.push_back(kb::Let(all, sums[0]));
    return kb::Ref(all, dtype);
  }

  kir::Kernel kernel_;
  const family::BlockFacts& facts_;
  const SymbolRanges ranges_;
  int64_t longest_ = 0, threads_ = 0;
  int loops_ = 0, reductions_ = 0;
  kir::Block shared_;                            // allocs before the thread loop
  std::map<std::string, kir::BufferType> kept_;  // buffers that were scratch
  std::optional<TileSchedule> tiles_;
};

}  // namespace

StatusOr<kir::Kernel> ScheduleBlocks(const kir::Kernel& kernel, const family::BlockFacts& facts) {
  QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
  if (shape.threads > 0) return kernel;
  const kir::Kernel plain = RowByRow(kernel);
  StatusOr<kir::Kernel> product = ScheduleProduct(plain, facts);
  if (product.ok() || !absl::IsUnimplemented(product.status())) return product;
  return ThreadSchedule(plain, facts).Run();
}

}  // namespace quern::codegen
