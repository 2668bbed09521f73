// Names, grid and statements; see verify_state.h for the rest.
#include <algorithm>
#include <variant>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "kir/describe.h"
#include "kir/running.h"
#include "kir/scratch.h"
#include "kir/verify_state.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

constexpr int64_t kMaxUnroll = 64;
constexpr int64_t kMaxScratch = int64_t{4} << 20;

BufferType ScalarType(DType dtype) { return {dtype, {}, Layout::kRow}; }

}  // namespace

Status Verifier::Fail(const std::string& message) const {
  const std::string where = statement_ == nullptr ? "" : Describe(*statement_) + ": ";
  return absl::InvalidArgumentError(absl::StrFormat("kernel %s: %s%s", kernel_.name, where, message));
}

// Names

Status Verifier::Declare(const std::string& name, Entity entity) {
  if (name.empty()) return Fail("a name is empty");
  if (entity.is_buffer() && !buffer_names_.insert(name).second) {
    return Fail(absl::StrFormat("the name %s is used for two buffers", name));
  }
  entity.depth = parallel_.size();
  if (!names_.emplace(name, std::move(entity)).second) return Fail(absl::StrFormat("the name %s is in use", name));
  declared_.push_back(name);
  return absl::OkStatus();
}

void Verifier::Leave(size_t mark) {
  while (declared_.size() > mark) {
    names_.erase(declared_.back());
    declared_.pop_back();
  }
}

StatusOr<Verifier::Entity*> Verifier::Find(const std::string& name) {
  auto it = names_.find(name);
  if (it == names_.end()) return Fail(absl::StrFormat("%s is not defined", name));
  return &it->second;
}

StatusOr<Verifier::Entity*> Verifier::FindBuffer(const std::string& name) {
  QUERN_ASSIGN(Entity * entity, Find(name));
  if (!entity->is_buffer()) return Fail(absl::StrFormat("%s is not a buffer", name));
  return entity;
}

// An input and the output that may replace it are read and written at one index, and not read once written.
Status Verifier::NoteShared(const std::string& buffer, bool write, const std::string& index) {
  for (auto& [in, pair] : shared_) {
    if (buffer != in && buffer != pair.out) continue;
    pair.indices.insert(index.substr(buffer.size()));
    if (pair.indices.size() > 1) {
      return Fail(absl::StrFormat("%s may share memory with %s, but they are accessed at %s", pair.out, in,
                                  absl::StrJoin(pair.indices, " and ")));
    }
    if (write && pair.first_write == nullptr) pair.first_write = statement_;
    if (!write && buffer == in && pair.first_write != nullptr && pair.first_write != statement_) {
      return Fail(absl::StrFormat("%s is read after %s, which may share its memory, was written", in, pair.out));
    }
  }
  return absl::OkStatus();
}

// Statements

Status Verifier::Run() {
  QUERN_RETURN_IF_ERROR(CheckSymbols());
  QUERN_RETURN_IF_ERROR(CheckParams());
  QUERN_RETURN_IF_ERROR(CheckInplace());
  QUERN_RETURN_IF_ERROR(CheckShape());
  QUERN_RETURN_IF_ERROR(CheckGrid());
  QUERN_RETURN_IF_ERROR(CheckWritten());
  return CheckScratch();
}

Status Verifier::CheckScratch() {
  const StatusOr<int64_t> bytes = ScratchBytes(kernel_, {});
  if (!bytes.ok()) return bytes.status();
  if (*bytes <= kMaxScratch) return absl::OkStatus();
  return Fail(absl::StrFormat("needs up to %d bytes of scratch, more than %d", *bytes, kMaxScratch));
}

Status Verifier::CheckGrid() {
  if (kernel_.grid.empty() || kernel_.grid.size() > 3) {
    return Fail(absl::StrFormat("the grid has %d dimensions, of 1 to 3", kernel_.grid.size()));
  }
  Parallel grid{.text = "the grid", .first = prover_.size(), .facts = prover_.fact_count()};
  std::vector<std::pair<std::string, Extent>> indices;
  for (const GridDim& dim : kernel_.grid) {
    if (dim.step < 1) return Fail(absl::StrFormat("%s: the step is not positive", Describe(dim)));
    QUERN_RETURN_IF_ERROR(CheckExprOf(dim.low, DType::kI64, "bound"));
    QUERN_RETURN_IF_ERROR(CheckExprOf(dim.high, DType::kI64, "bound"));
    const auto [value, id] = NewIndex(dim.index, ValueOf(dim.low), ValueOf(dim.high), dim.step);
    grid.variables.push_back(id);
    indices.emplace_back(dim.index, value);
  }
  parallel_.push_back(std::move(grid));
  for (auto& [name, value] : indices) {
    QUERN_RETURN_IF_ERROR(Declare(name, {.kind = EntityKind::kIndex, .type = ScalarType(DType::kI64), .value = value}));
  }
  QUERN_RETURN_IF_ERROR(CheckBlock(kernel_.body));
  QUERN_RETURN_IF_ERROR(CheckRaces(parallel_.back()));
  QUERN_RETURN_IF_ERROR(CheckBlockRaces());
  statement_ = nullptr;
  return absl::OkStatus();
}

// What has no meaning in lanes or in a tile's elements.
Status Verifier::NotInside(const char* what) {
  for (const Parallel& scope : parallel_) {
    if (scope.vec || scope.map) return Fail(absl::StrFormat("%s inside %s", what, scope.text));
  }
  return absl::OkStatus();
}

// Whether an expression mentions anything that the iterations of a vec loop do not share.
bool Verifier::Varies(const ExprRef& expr, bool between_threads) const {
  auto named = [&](const std::string& name) {
    auto it = names_.find(name);
    if (between_threads && it != names_.end() && it->second.uniform) return false;
    for (size_t s = 0; it != names_.end() && s < parallel_.size(); ++s) {
      if ((between_threads ? parallel_[s].thread : parallel_[s].vec) && it->second.depth > s) return true;
    }
    return false;
  };
  return AnyExpr(expr, [&](const ExprRef& node) {
    if (const auto* name = std::get_if<NameRef>(&node->node)) return named(name->name);
    const auto* load = std::get_if<Load>(&node->node);
    return load != nullptr && between_threads && named(load->buffer);  // a tile of each thread's own
  });
}

Status Verifier::CheckUniform(const ExprRef& expr, const char* what) {
  for (const Parallel& scope : parallel_) {
    if (scope.vec && Varies(expr))
      return Fail(absl::StrFormat("%s differs between iterations of %s", what, scope.text));
  }
  return absl::OkStatus();
}

// A let of a block or of a reduction.
Status Verifier::CheckLet(const std::string& name, const ExprRef& value) {
  QUERN_RETURN_IF_ERROR(CheckExpr(value));
  Entity entity{.kind = EntityKind::kLet, .type = ScalarType(value->dtype)};
  entity.uniform = threads_ > 0 && !Varies(value, true);
  if (IsInteger(value->dtype)) entity.value = ValueOf(value);
  return Declare(name, std::move(entity));
}

Status Verifier::CheckWritable(const std::string& buffer, const Entity& entity) {
  if (entity.kind != EntityKind::kParam || entity.mode != Mode::kIn) return absl::OkStatus();
  return Fail(absl::StrFormat("%s is an input", buffer));
}

namespace {

class StatementVerifier : public Verifier {
 public:
  using Verifier::Verifier;

 private:
  using Verifier::CheckNode;

  Status CheckBlock(const Block& block) override {
    const size_t mark = declared_.size();
    const Stmt* outer = statement_;
    for (const StmtRef& stmt : block) {
      if (stmt == nullptr) return Fail("a statement is missing");
      statement_ = stmt.get();
      QUERN_RETURN_IF_ERROR(std::visit([this](const auto& node) { return CheckNode(node); }, stmt->node));
    }
    statement_ = outer;
    Leave(mark);
    return absl::OkStatus();
  }

  Status CheckNode(const Loop& loop) {
    if (loop.kind == LoopKind::kThread) return CheckThread(loop);
    if (loop.step < 1) return Fail("the step is not positive");
    QUERN_RETURN_IF_ERROR(CheckExprOf(loop.low, DType::kI64, "bound"));
    QUERN_RETURN_IF_ERROR(CheckExprOf(loop.high, DType::kI64, "bound"));
    QUERN_RETURN_IF_ERROR(CheckUniform(loop.low, "a loop bound"));
    QUERN_RETURN_IF_ERROR(CheckUniform(loop.high, "a loop bound"));
    const Extent low = ValueOf(loop.low), high = ValueOf(loop.high);
    if (loop.kind == LoopKind::kUnroll) {
      const Extent length = high - low;
      if (!length.is_constant() || length.constant() > kMaxUnroll * loop.step) {
        return Fail(absl::StrFormat("unroll needs a constant number of at most %d iterations", kMaxUnroll));
      }
    }
    const IndexProver::Id first = prover_.size();
    const auto [value, id] = NewIndex(loop.index, low, high, loop.step);
    if (loop.kind != LoopKind::kVec && threads_ > 0) {
      const bool differs = Varies(loop.low, true) || Varies(loop.high, true);
      if (differs) divergent_.push_back(Describe(*statement_));
      const bool outermost = !InThread() && !block_loop_;
      if (outermost) block_loop_ = first;
      QUERN_RETURN_IF_ERROR(CheckLoopBody(loop.index, value, loop.body, nullptr));
      if (outermost) block_loop_.reset();
      if (differs) divergent_.pop_back();
      return absl::OkStatus();
    }
    const size_t mark = declared_.size();
    if (loop.kind == LoopKind::kVec) {
      QUERN_RETURN_IF_ERROR(NotForThreads("a vec loop"));
      for (const Parallel& scope : parallel_) {
        if (scope.vec) return Fail(absl::StrFormat("a vec loop inside %s", scope.text));
      }
      parallel_.push_back({.text = Describe(*statement_),
                           .vec = true,
                           .variables = {id},
                           .first = first,
                           .facts = prover_.fact_count()});
    }
    QUERN_RETURN_IF_ERROR(
        Declare(loop.index, {.kind = EntityKind::kIndex, .type = ScalarType(DType::kI64), .value = value}));
    QUERN_RETURN_IF_ERROR(CheckBlock(loop.body));
    Leave(mark);
    if (loop.kind != LoopKind::kVec) return absl::OkStatus();
    const Parallel scope = std::move(parallel_.back());
    parallel_.pop_back();
    return CheckRaces(scope);
  }

  Status CheckNode(const If& branch) {
    QUERN_RETURN_IF_ERROR(CheckExprOf(branch.condition, DType::kBool, "condition"));
    QUERN_RETURN_IF_ERROR(CheckUniform(branch.condition, "the condition"));
    const bool differs = InThread() && Varies(branch.condition, true);
    if (differs) divergent_.push_back(Describe(*statement_));
    const int phase = phase_;
    const size_t facts = prover_.fact_count();
    const std::set<std::string> before = written_;
    Assume(branch.condition, true);
    QUERN_RETURN_IF_ERROR(CheckBlock(branch.then_body));
    prover_.PopFacts(facts);
    const std::set<std::string> after_then = std::exchange(written_, before);
    const int then_end = std::exchange(phase_, phase);  // both branches go on from what is before them
    Assume(branch.condition, false);
    QUERN_RETURN_IF_ERROR(CheckBlock(branch.else_body));
    prover_.PopFacts(facts);
    JoinPhases(then_end, phase_);
    if (differs) {
      // Other threads may take the branch that writes.
      divergent_.pop_back();
      written_.insert(after_then.begin(), after_then.end());
      return absl::OkStatus();
    }
    // Written afterwards is what both branches write.
    std::set<std::string> both;
    std::set_intersection(written_.begin(), written_.end(), after_then.begin(), after_then.end(),
                          std::inserter(both, both.end()));
    written_ = std::move(both);
    return absl::OkStatus();
  }

  Status CheckNode(const Let& let) { return CheckLet(let.name, let.value); }

  Status CheckNode(const Var& var) {
    QUERN_RETURN_IF_ERROR(CheckExpr(var.value));
    return Declare(var.name, {.kind = EntityKind::kVar, .type = ScalarType(var.value->dtype)});
  }

  Status CheckNode(const Assign& assign) {
    QUERN_ASSIGN(const Entity* entity, Find(assign.name));
    if (entity->kind != EntityKind::kVar) return Fail(absl::StrFormat("%s is not a var", assign.name));
    QUERN_RETURN_IF_ERROR(CheckExprOf(assign.value, entity->type.dtype, "value"));
    // A running value is what iterations of a vec loop may share.
    const bool runs = entity->depth + 1 == parallel_.size() && parallel_.back().vec && RunningOp(assign);
    if (entity->depth < parallel_.size() && !runs) {
      return Fail(
          absl::StrFormat("%s is assigned in every iteration of %s", assign.name, parallel_[entity->depth].text));
    }
    return absl::OkStatus();
  }

  Status CheckNode(const Store& store) {
    QUERN_RETURN_IF_ERROR(OnlyInsideThreads("a store"));
    QUERN_ASSIGN(const Entity* entity, FindBuffer(store.buffer));
    const DType dtype = entity->type.dtype;
    if (IsBlock(dtype)) {
      return Fail(
          absl::StrFormat("%s has the format %s and is written by pack", store.buffer, std::string(Name(dtype))));
    }
    QUERN_RETURN_IF_ERROR(CheckWritable(store.buffer, *entity));
    QUERN_RETURN_IF_ERROR(CheckExprOf(store.value, dtype, "value"));
    QUERN_ASSIGN(const std::vector<Extent> position,
                 CheckIndex(store.buffer, *entity, store.index, /*anywhere=*/false));
    const ExprRef element = std::make_shared<const Expr>(Expr{Load{store.buffer, store.index, nullptr}, dtype});
    QUERN_RETURN_IF_ERROR(NoteShared(store.buffer, /*write=*/true, Print(element)));
    Record(store.buffer, /*write=*/true, position);
    written_.insert(store.buffer);
    return absl::OkStatus();
  }

  Status CheckNode(const Alloc& alloc) {
    QUERN_RETURN_IF_ERROR(NotInside("an alloc"));
    if (alloc.space == Space::kShared && threads_ == 0) return Fail("shared memory in a kernel without threads");
    if (alloc.space == Space::kShared) QUERN_RETURN_IF_ERROR(OnlyOutsideThreads("a shared alloc"));
    if (alloc.space == Space::kScratch) QUERN_RETURN_IF_ERROR(NotForThreads("scratch"));
    QUERN_RETURN_IF_ERROR(CheckType(alloc.name, alloc.type));
    return Declare(alloc.name, {.kind = EntityKind::kAlloc, .type = alloc.type});
  }

  Status CheckNode(const Tile& tile) {
    QUERN_RETURN_IF_ERROR(NotInside("a tile"));
    QUERN_RETURN_IF_ERROR(OnlyInsideThreads("a tile"));
    QUERN_RETURN_IF_ERROR(CheckType(tile.name, tile.type));
    if (tile.type.layout != Layout::kRow || tile.type.dims.empty()) return Fail("a tile is dense and has dimensions");
    for (const Extent& dim : tile.type.dims) {
      if (!dim.is_constant()) return Fail(absl::StrFormat("the extent %s of a tile is not constant", dim.ToString()));
    }
    QUERN_RETURN_IF_ERROR(CheckExprOf(tile.init, tile.type.dtype, "initial value"));
    return Declare(tile.name, {.kind = EntityKind::kTile, .type = tile.type});
  }

  Status CheckNode(const Map& map) {
    QUERN_RETURN_IF_ERROR(NotInside("a map"));
    QUERN_RETURN_IF_ERROR(OnlyInsideThreads("a map"));
    if (map.tiles.empty() || map.indices.size() != map.extents.size()) {
      return Fail(absl::StrFormat("%d indices for %d extents and %d tiles", map.indices.size(), map.extents.size(),
                                  map.tiles.size()));
    }
    std::vector<Extent> extents;
    for (const ExprRef& extent : map.extents) {
      QUERN_RETURN_IF_ERROR(CheckExprOf(extent, DType::kI64, "extent"));
      extents.push_back(ValueOf(extent));
    }
    for (const std::string& name : map.tiles) {
      QUERN_ASSIGN(const Entity* tile, FindBuffer(name));
      if (tile->kind != EntityKind::kTile) return Fail(absl::StrFormat("%s is not a tile", name));
      if (tile->type.dims.size() != extents.size()) {
        return Fail(absl::StrFormat("tile %s has %d dimensions, not %d", name, tile->type.dims.size(), extents.size()));
      }
      for (size_t d = 0; d < extents.size(); ++d) {
        if (prover_.AtMost(extents[d], tile->type.dims[d])) continue;
        return Fail(absl::StrFormat("extent %s is not proved to be at most the %s of tile %s", Print(map.extents[d]),
                                    tile->type.dims[d].ToString(), name));
      }
    }
    Parallel scope{.text = Describe(*statement_), .map = true, .first = prover_.size(), .facts = prover_.fact_count()};
    std::vector<Extent> indices;
    for (size_t d = 0; d < extents.size(); ++d) {
      const auto [value, id] = NewIndex(map.indices[d], 0, extents[d], 1);
      // Of min(32, SEQ - 32 w) with SEQ in 9..32 the extent is the second alone, which says less of one iteration.
      prover_.SetHigh(id, names_.find(map.tiles[0])->second.type.dims[d] - 1);
      indices.push_back(value);
      scope.variables.push_back(id);
    }
    parallel_.push_back(std::move(scope));
    const size_t mark = declared_.size();
    for (size_t d = 0; d < indices.size(); ++d) {
      QUERN_RETURN_IF_ERROR(
          Declare(map.indices[d], {.kind = EntityKind::kIndex, .type = ScalarType(DType::kI64), .value = indices[d]}));
    }
    for (const std::string& name : map.tiles) names_[name].elements.push_back(indices);
    QUERN_RETURN_IF_ERROR(CheckBlock(map.body));
    for (const std::string& name : map.tiles) names_[name].elements.pop_back();
    Leave(mark);
    const Parallel done = std::move(parallel_.back());
    parallel_.pop_back();
    return CheckRaces(done);
  }
};

}  // namespace

Status Verify(const Kernel& kernel) { return StatementVerifier(kernel).Run(); }

}  // namespace quern::kir
