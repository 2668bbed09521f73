// Kernels of threads: where each statement may stand, that barriers and what contains them are reached by all threads
// of the block, and that accesses of different thread loops to one element have a barrier between them.
//
//   thread t in 0..64 @ block { s[t] = x[t] }
//   barrier                                        # without it: refused
//   thread t in 0..64 @ block { y[t] = s[63 - t] }
//
// A phase is what lies between two barriers. Phases that some path joins without a barrier count as one: a loop joins
// its first and last, an `if` what is before and after it.
#include "kir/describe.h"
#include "kir/verify_state.h"

namespace quern::kir {
namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxShared = int64_t{48} << 10;

}  // namespace

int Verifier::Phase(int phase) const {
  while (phases_[phase] != phase) phase = phases_[phase];
  return phase;
}

Status Verifier::CheckShape() {
  const StatusOr<BlockShape> shape = ShapeOfBlock(kernel_);
  if (!shape.ok()) return shape.status();
  threads_ = shape->threads;
  if (threads_ > kMaxThreads)
    return Fail(absl::StrFormat("a block of %d threads, more than %d", threads_, kMaxThreads));
  if (shape->shared_bytes <= kMaxShared) return absl::OkStatus();
  return Fail(absl::StrFormat("needs %d bytes of shared memory, more than %d", shape->shared_bytes, kMaxShared));
}

bool Verifier::InThread() const {
  for (const Parallel& scope : parallel_) {
    if (scope.thread) return true;
  }
  return false;
}

Status Verifier::OnlyOutsideThreads(const char* what) {
  return InThread() ? Fail(absl::StrFormat("%s inside a thread loop", what)) : absl::OkStatus();
}
Status Verifier::OnlyInsideThreads(const char* what) {
  return threads_ > 0 && !InThread() ? Fail(absl::StrFormat("%s outside the thread loops", what)) : absl::OkStatus();
}
Status Verifier::NotForThreads(const char* what) {
  return threads_ > 0 ? Fail(absl::StrFormat("%s in a kernel of threads", what)) : absl::OkStatus();
}

Status Verifier::CheckTogether(const char* what) {
  if (threads_ == 0) return Fail(absl::StrFormat("%s in a kernel without threads", what));
  QUERN_RETURN_IF_ERROR(NotInside(what));
  if (divergent_.empty()) return absl::OkStatus();
  return Fail(absl::StrFormat("%s inside \"%s\", which may differ between threads", what, divergent_.back()));
}

// The body of a loop that runs in order, with its barriers: what follows the last meets what precedes the first.
Status Verifier::CheckLoopBody(const std::string& index, const Extent& value, const Block& body, const Block* second) {
  const size_t mark = declared_.size();
  const int phase = phase_;
  QUERN_RETURN_IF_ERROR(Declare(index, {.kind = EntityKind::kIndex,
                                        .type = {DType::kI64, {}, Layout::kRow},
                                        .value = value,
                                        .uniform = divergent_.empty()}));
  QUERN_RETURN_IF_ERROR(CheckBlock(body));
  if (second != nullptr) {
    NextPhase();
    QUERN_RETURN_IF_ERROR(CheckBlock(*second));
    NextPhase();
  }
  JoinPhases(phase, phase_);
  Leave(mark);
  return absl::OkStatus();
}

Status Verifier::CheckThread(const Loop& loop) {
  QUERN_RETURN_IF_ERROR(NotInside("a thread loop"));
  QUERN_RETURN_IF_ERROR(CheckExprOf(loop.low, DType::kI64, "bound"));
  QUERN_RETURN_IF_ERROR(CheckExprOf(loop.high, DType::kI64, "bound"));
  const bool outermost = !InThread();
  const IndexProver::Id own = prover_.size();
  const auto [value, id] = NewIndex(loop.index, ValueOf(loop.low), ValueOf(loop.high), 1);
  if (outermost) scope_ = ++scopes_;
  // Threads of one loop around may be in different iterations of it.
  parallel_.push_back({.text = Describe(*statement_),
                       .thread = true,
                       .level = loop.level,
                       .variables = {id},
                       .first = outermost ? block_loop_.value_or(own) : own,
                       .facts = prover_.fact_count()});
  const size_t mark = declared_.size();
  QUERN_RETURN_IF_ERROR(
      Declare(loop.index, {.kind = EntityKind::kIndex, .type = {DType::kI64, {}, Layout::kRow}, .value = value}));
  QUERN_RETURN_IF_ERROR(CheckBlock(loop.body));
  Leave(mark);
  const Parallel scope = std::move(parallel_.back());
  parallel_.pop_back();
  return CheckRaces(scope);
}

Status Verifier::CheckNode(const Barrier&) {
  QUERN_RETURN_IF_ERROR(CheckTogether("a barrier"));
  NextPhase();
  return absl::OkStatus();
}

Status Verifier::CheckNode(const Copy& copy) {
  QUERN_RETURN_IF_ERROR(CheckTogether("a copy"));
  for (const Slice* slice : {&copy.dst, &copy.src}) {
    for (const SliceDim& dim : slice->dims) {
      for (const ExprRef& expr : {dim.start, dim.extent}) {
        if (expr != nullptr && Varies(expr, true))
          return Fail(absl::StrFormat("%s differs between threads", Print(expr)));
      }
    }
  }
  QUERN_ASSIGN(const Rectangle src, CheckSlice(copy.src, /*hint=*/false));
  QUERN_ASSIGN(const Rectangle dst, CheckSlice(copy.dst, /*hint=*/false));
  const BufferType& from = src.entity->type;
  const BufferType& to = dst.entity->type;
  if (!CanCopy(from.dtype, from.layout, to.dtype, to.layout)) {
    return Fail("a copy is of dense rows of one dtype, or to floats from others or from blocks");
  }
  if (src.sizes.size() != dst.sizes.size()) {
    return Fail(absl::StrFormat("%d ranged dimensions to %d", src.sizes.size(), dst.sizes.size()));
  }
  for (size_t d = 0; d < src.sizes.size(); ++d) {
    if (prover_.AtMost(src.sizes[d], dst.sizes[d])) continue;
    return Fail(absl::StrFormat("%s to copy and room for %s", src.texts[d], dst.texts[d]));
  }
  QUERN_RETURN_IF_ERROR(CheckReadable(copy.src.buffer, *src.entity));
  QUERN_RETURN_IF_ERROR(NoteShared(copy.src.buffer, /*write=*/false, Describe(copy.src)));
  Record(copy.src.buffer, /*write=*/false, src.position, /*by_block=*/true);
  QUERN_RETURN_IF_ERROR(CheckWritable(copy.dst.buffer, *dst.entity));
  QUERN_RETURN_IF_ERROR(NoteShared(copy.dst.buffer, /*write=*/true, Describe(copy.dst)));
  Record(copy.dst.buffer, /*write=*/true, dst.position, /*by_block=*/true);
  written_.insert(copy.dst.buffer);
  return absl::OkStatus();
}

Status Verifier::CheckNode(const Pipeline& pipeline) {
  QUERN_RETURN_IF_ERROR(CheckTogether("a pipeline"));
  if (pipeline.step < 1 || pipeline.stages < 1) return Fail("the step or the number of stages is not positive");
  for (const ExprRef& bound : {pipeline.low, pipeline.high}) {
    QUERN_RETURN_IF_ERROR(CheckExprOf(bound, DType::kI64, "bound"));
    if (Varies(bound, true)) return Fail(absl::StrFormat("the bound %s differs between threads", Print(bound)));
  }
  for (const StmtRef& stmt : pipeline.fetch) {
    const auto* copy = std::get_if<Copy>(&stmt->node);
    if (copy == nullptr) return Fail("fetches by something that is no copy");
    QUERN_ASSIGN(const Entity* dst, FindBuffer(copy->dst.buffer));
    if (dst->kind != EntityKind::kAlloc)
      return Fail(absl::StrFormat("fetches into %s, which is not shared", copy->dst.buffer));
  }
  const IndexProver::Id first = prover_.size();
  const Extent value = NewIndex(pipeline.index, ValueOf(pipeline.low), ValueOf(pipeline.high), pipeline.step).first;
  const bool outermost = !InThread() && !block_loop_;
  if (outermost) block_loop_ = first;
  const Stmt* statement = statement_;
  QUERN_RETURN_IF_ERROR(CheckLoopBody(pipeline.index, value, pipeline.fetch, &pipeline.use));
  statement_ = statement;
  if (outermost) block_loop_.reset();
  // Which of its buffers the last iteration used is the target's business.
  for (const StmtRef& stmt : pipeline.fetch) written_.erase(std::get<Copy>(stmt->node).dst.buffer);
  return absl::OkStatus();
}

Status Verifier::CheckNode(const Shuffle& shuffle) {
  QUERN_RETURN_IF_ERROR(CheckTogether("a shuffle"));
  for (auto scope = parallel_.rbegin(); scope != parallel_.rend(); ++scope) {
    if (!scope->thread) continue;
    if (Row(scope->level).threads > 1) return Fail("a shuffle is between lanes, not warps");
    break;
  }
  QUERN_RETURN_IF_ERROR(OnlyInsideThreads("a shuffle"));
  QUERN_RETURN_IF_ERROR(CheckExpr(shuffle.value));
  QUERN_RETURN_IF_ERROR(CheckExprOf(shuffle.lane, DType::kI64, "lane"));
  const Extent lane = ValueOf(shuffle.lane);
  if (!prover_.NonNegative(lane) || !prover_.AtMost(lane, kWarpThreads - 1)) {
    return Fail(absl::StrFormat("lane %s is not proved to be in 0..%d", Print(shuffle.lane), kWarpThreads - 1));
  }
  return Declare(shuffle.name, {.kind = EntityKind::kLet, .type = {shuffle.value->dtype, {}, Layout::kRow}});
}

Status Verifier::CheckBlockRaces() {
  const Parallel& grid = parallel_[0];
  for (size_t a = 0; a < block_accesses_.size(); ++a) {
    for (size_t b = a + 1; b < block_accesses_.size(); ++b) {
      const Access& first = block_accesses_[a];
      const Access& second = block_accesses_[b];
      if (first.buffer != second.buffer || first.scope == second.scope || (!first.write && !second.write)) continue;
      if (Phase(first.phase) != Phase(second.phase)) continue;
      if (SeparateAlways(grid, first, second, grid.variables, -1, 0)) continue;
      statement_ = second.stmt;
      return Fail(absl::StrFormat("%s may be %s here and %s in %s without a barrier between", second.buffer,
                                  second.write ? "written" : "read", first.write ? "written" : "read",
                                  Describe(*first.stmt)));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::kir
