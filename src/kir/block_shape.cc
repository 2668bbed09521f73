// How many threads a block of a kernel has, and how much memory they share; see kir.h.
#include <array>
#include <map>
#include <optional>
#include <string>

#include "kir/kir.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

constexpr std::array<ThreadLevelRow, 4> kLevels = {
    {{"block", 1}, {"warp", kWarpThreads}, {"group", 4 * kWarpThreads}, {"lane", 1}}};
constexpr int64_t kAlignment = 128;
constexpr int64_t kMaxBytes = int64_t{1} << 40;

class ShapeFinder {
 public:
  explicit ShapeFinder(const Kernel& kernel) : kernel_(kernel) {}

  StatusOr<BlockShape> Run() {
    QUERN_RETURN_IF_ERROR(Visit(kernel_.body, {}));
    return shape_;
  }

 private:
  Status Fail(const std::string& message) const {
    return absl::InvalidArgumentError(absl::StrFormat("kernel %s: %s", kernel_.name, message));
  }

  Status Visit(const Block& block, std::optional<ThreadLevel> scope) {
    for (const StmtRef& stmt : block) {
      if (stmt == nullptr) continue;  // the verifier asks for the shape before it has looked at every statement
      std::optional<ThreadLevel> inner = scope;
      const auto* loop = std::get_if<Loop>(&stmt->node);
      if (loop != nullptr && loop->kind == LoopKind::kThread) {
        QUERN_RETURN_IF_ERROR(Open(*loop, scope));
        inner = loop->level;
      }
      if (const auto* pipeline = std::get_if<Pipeline>(&stmt->node)) Stage(*pipeline);
      const auto* alloc = std::get_if<Alloc>(&stmt->node);
      if (alloc != nullptr && alloc->space == Space::kShared) QUERN_RETURN_IF_ERROR(Add(*alloc));
      for (const Block* body : Bodies(*stmt)) QUERN_RETURN_IF_ERROR(Visit(*body, inner));
    }
    return absl::OkStatus();
  }

  void Stage(const Pipeline& pipeline) {
    for (const StmtRef& fetched : pipeline.fetch) {
      const auto* copy = fetched == nullptr ? nullptr : std::get_if<Copy>(&fetched->node);
      if (copy == nullptr) continue;
      // Pipelines one after the other use the same buffers.
      int& stages = stages_.try_emplace(copy->dst.buffer, 1).first->second;
      if (pipeline.stages <= stages) continue;
      shape_.shared_bytes += (pipeline.stages - stages) * bytes_[copy->dst.buffer];
      stages = pipeline.stages;
    }
  }

  Status Add(const Alloc& alloc) {
    const Extent bytes = LayoutBytes(alloc.type.layout, alloc.type.dtype, alloc.type.dims);
    if (!bytes.is_constant() || bytes.constant() > kMaxBytes) {
      return Fail(absl::StrFormat("the shared alloc %s has no constant size", alloc.name));
    }
    bytes_[alloc.name] = (bytes.constant() + kAlignment - 1) / kAlignment * kAlignment;
    shape_.shared_bytes += bytes_[alloc.name];
    return absl::OkStatus();
  }

  Status Open(const Loop& loop, std::optional<ThreadLevel> scope) {
    if (loop.low == nullptr || loop.high == nullptr) return Fail("a thread loop has no bounds");
    const auto* low = std::get_if<Const>(&loop.low->node);
    const auto* high = std::get_if<Const>(&loop.high->node);
    const std::string text = absl::StrFormat("thread %s", loop.index);
    if (low == nullptr || low->integer != 0 || high == nullptr || high->integer < 1 || high->integer > 1024 ||
        loop.step != 1) {
      return Fail(text + " needs constant bounds 0..n, n at most 1024");
    }
    if (loop.level == ThreadLevel::kLane) {
      if (scope != ThreadLevel::kWarp) return Fail(text + " @ lane is not inside a warp");
      if (high->integer != kWarpThreads) return Fail(absl::StrFormat("%s: a warp has %d lanes", text, kWarpThreads));
      return absl::OkStatus();
    }
    if (scope) return Fail(text + " is inside another thread loop");
    const int64_t threads = Row(loop.level).threads * high->integer;
    if (threads % kWarpThreads != 0) return Fail(absl::StrFormat("%s: %d threads are no whole warps", text, threads));
    if (shape_.threads != 0 && shape_.threads != threads) {
      return Fail(absl::StrFormat("%s has %d threads, an earlier thread loop %d", text, threads, shape_.threads));
    }
    shape_.threads = threads;
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  BlockShape shape_;
  std::map<std::string, int64_t> bytes_;
  std::map<std::string, int> stages_;  // buffers that pipelines fetch into: the most
};

}  // namespace

const ThreadLevelRow& Row(ThreadLevel level) { return kLevels[static_cast<size_t>(level)]; }

StatusOr<BlockShape> ShapeOfBlock(const Kernel& kernel) { return ShapeFinder(kernel).Run(); }

}  // namespace quern::kir
