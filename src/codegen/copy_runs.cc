#include "codegen/copy_runs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "kir/build.h"
#include "kir/multiple.h"
#include "kir/parts.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using kir::Block;
using kir::ExprRef;

constexpr int64_t kDecoded = 8;   // neighbours of a block format that share their scale
constexpr int64_t kUnrolled = 8;  // runs of a thread that are written one after the other rather than looped over
// No name of a kernel has a dot.
const char* const kThread = "copy.thread";
const char* const kNumber = "copy.number";

// A slice, its omitted starts and extents filled in.
struct Side {
  kir::BufferType type;
  std::string buffer;
  std::vector<ExprRef> starts;  // of all dimensions
  std::vector<size_t> ranged;   // those with a range, and its length as asked for and as clipped
  std::vector<ExprRef> asked, live;
  bool rows = false;  // the last range is that of neighbours in memory, and
  int64_t whole = 1;  // a power of two that divides where each row of it begins and, clipped or not, how long it is
};

class CopyWriter {
 public:
  CopyWriter(int64_t threads, int64_t bytes) : threads_(threads), bytes_(bytes) {}

  kir::Kernel Run(kir::Kernel kernel) {
    for (const kir::Param& param : kernel.params) types_[param.name] = param.type;
    for (const kir::GridDim& dim : kernel.grid) multiples_[dim.index] = Stride(dim.low, dim.step);
    kernel.body = Visit(kernel.body);
    return kernel;
  }

 private:
  int64_t Multiple(const ExprRef& expr) const {
    return kir::MultipleOf(expr, [this](const std::string& name) {
      const auto found = multiples_.find(name);
      return found == multiples_.end() ? 1 : found->second;
    });
  }
  int64_t Stride(const ExprRef& low, int64_t step) const { return std::min(Multiple(low), kir::MultipleOf(step)); }

  // Names of buffers are unique in a kernel; others may stand for something else behind their block.
  Block Visit(const Block& block) {
    const auto outer = multiples_;
    Block written;
    for (const kir::StmtRef& stmt : block) {
      kir::Stmt copy = *stmt;
      if (const auto* node = std::get_if<kir::Copy>(&stmt->node)) {
        copy.node = kir::Loop{.kind = kir::LoopKind::kThread,
                              .index = kThread,
                              .low = kb::Int(0),
                              .high = kb::Int(threads_),
                              .body = Runs(*node)};
      } else {
        const auto around = multiples_;
        Note(*stmt);
        Inside inside(*this);
        kir::Parts(copy, inside);
        if (inside.bodies) multiples_ = around;  // what it declares is known inside alone
      }
      written.push_back(std::make_shared<const kir::Stmt>(std::move(copy)));
    }
    multiples_ = outer;
    return written;
  }
  struct Inside : kir::NoParts {
    CopyWriter& writer;
    bool bodies = false;
    explicit Inside(CopyWriter& writer) : writer(writer) {}
    void Body(Block& body) { bodies = true, body = writer.Visit(body); }
  };

  // What a statement says of the names that it declares.
  void Note(const kir::Stmt& stmt) {
    if (const auto* loop = std::get_if<kir::Loop>(&stmt.node))
      multiples_[loop->index] = loop->kind == kir::LoopKind::kThread ? 1 : Stride(loop->low, loop->step);
    if (const auto* pipeline = std::get_if<kir::Pipeline>(&stmt.node))
      multiples_[pipeline->index] = Stride(pipeline->low, pipeline->step);
    if (const auto* let = std::get_if<kir::Let>(&stmt.node)) multiples_[let->name] = Multiple(let->value);
    if (const auto* alloc = std::get_if<kir::Alloc>(&stmt.node)) types_[alloc->name] = alloc->type;
  }

  Side SideOf(const kir::Slice& slice) const {
    Side side;
    side.type = types_.at(slice.buffer);
    side.buffer = slice.buffer;
    const size_t rank = side.type.dims.size();
    for (size_t d = 0; d < rank; ++d) {
      const kir::SliceDim dim = slice.dims.empty() ? kir::SliceDim{} : slice.dims[d];
      const ExprRef start = dim.start == nullptr ? kb::Int(0) : dim.start;
      side.starts.push_back(start);
      if (dim.start != nullptr && dim.extent == nullptr) continue;
      const Extent& size = side.type.dims[d];
      const ExprRef rest = kb::FromExtent(size) - start;
      const ExprRef asked = dim.extent == nullptr ? rest : dim.extent;
      // Parts of a dimension that they divide are never clipped.
      const std::optional<int64_t> part = kir::KnownInteger(asked), room = kir::KnownInteger(rest);
      const bool divides = part && *part > 0 && *part == kir::MultipleOf(*part) && kir::MultipleOf(size) >= *part &&
                           Multiple(start) >= *part;
      const bool fits = part && room && *part <= *room;
      side.ranged.push_back(d);
      side.asked.push_back(asked);
      side.live.push_back(dim.extent == nullptr || divides || fits ? asked
                          : part && room                           ? rest
                                                                   : kb::Min(asked, rest));
      if (d + 1 < rank) continue;
      side.rows = true;
      side.whole = std::min(Multiple(start), kir::MultipleOf(size));
      if (dim.extent != nullptr) side.whole = std::min(side.whole, Multiple(dim.extent));
    }
    return side;
  }

  int64_t RunOf(const Side& dst, const Side& src) const {
    if (!dst.rows || !src.rows) return 1;
    if (IsBlock(src.type.dtype)) return std::min(dst.whole, src.whole) >= kDecoded ? kDecoded : 1;
    return std::max<int64_t>(1, std::min({dst.whole, src.whole, bytes_ / ScalarBytes(dst.type.dtype)}));
  }

  // What one thread does.
  Block Runs(const kir::Copy& copy) const {
    const Side dst = SideOf(copy.dst), src = SideOf(copy.src);
    const int64_t run = RunOf(dst, src);
    std::vector<ExprRef> counts = dst.live;
    if (run > 1) counts.back() = counts.back() / kb::Int(run);
    ExprRef total = kb::Int(1);
    for (const ExprRef& count : counts) total = total * count;
    const ExprRef thread = kb::Ref(kThread);
    const std::optional<int64_t> known = kir::KnownInteger(total);
    if (!known || *known > kUnrolled * threads_) {
      return {std::make_shared<const kir::Stmt>(
          kir::Stmt{kir::Loop{.kind = kir::LoopKind::kFor,
                              .index = kNumber,
                              .low = thread,
                              .high = total,
                              .step = threads_,
                              .body = OneRun(dst, src, kb::Ref(kNumber), counts, run)}})};
    }
    const int64_t full = *known / threads_, rest = *known % threads_;
    Block runs;
    if (full == 1) runs = OneRun(dst, src, thread, counts, run);
    if (full > 1) {
      Block each = OneRun(dst, src, kb::Ref(kNumber), counts, run);
      each.insert(each.begin(), kb::Let(kNumber, thread + kb::Ref("copy.n") * static_cast<double>(threads_)));
      runs.push_back(kb::Unroll("copy.n", kb::Int(0), kb::Int(full), std::move(each)));
    }
    if (rest == 0) return runs;
    Block last = OneRun(dst, src, kb::Ref(kNumber), counts, run);
    last.insert(last.begin(), kb::Let(kNumber, thread + static_cast<double>(full * threads_)));
    runs.push_back(kb::If(kb::Call(kir::Op::kLt, {thread, kb::Int(rest)}), std::move(last)));
    return runs;
  }

  // Run `number` of those that `counts` are the numbers of, the last dimension running fastest.
  static Block OneRun(const Side& dst, const Side& src, const ExprRef& number, const std::vector<ExprRef>& counts,
                      int64_t run) {
    Block body;
    auto named = [&](const char* name, size_t r, ExprRef value) {
      if (!std::holds_alternative<kir::Apply>(value->node)) return value;
      std::string unique = absl::StrFormat("copy.%s%d", name, r);
      body.push_back(kb::Let(unique, std::move(value)));
      return kb::Ref(std::move(unique));
    };
    ExprRef rest = number, inside;
    std::vector<kir::SliceDim> to, from;
    for (const ExprRef& start : dst.starts) to.push_back(kb::Point(start));
    for (const ExprRef& start : src.starts) from.push_back(kb::Point(start));
    auto require = [&](const ExprRef& at, const ExprRef& end) {
      const ExprRef before = kb::Call(kir::Op::kLt, {at, end});
      inside = inside == nullptr ? before : kb::Call(kir::Op::kAnd, {inside, before});
    };
    for (size_t r = counts.size(); r-- > 0;) {
      ExprRef at = rest;
      if (kir::KnownInteger(counts[r]) == 1) {
        at = kb::Int(0);
      } else if (r > 0) {
        at = named("at", r, rest % counts[r]);
        rest = named("rest", r, rest / counts[r]);
      }
      if (r + 1 == counts.size() && run > 1) at = named("first", r, at * static_cast<double>(run));
      const size_t d = src.ranged[r];
      to[dst.ranged[r]].start = dst.starts[dst.ranged[r]] + at;
      from[d].start = src.starts[d] + at;
      if (src.live[r] != src.asked[r]) require(from[d].start, kb::FromExtent(src.type.dims[d]));
      const std::optional<int64_t> room = kir::KnownInteger(dst.asked[r]), given = kir::KnownInteger(src.asked[r]);
      const bool same = room && given ? *given >= *room : Print(src.asked[r]) == Print(dst.asked[r]);
      if (!same) require(at, src.asked[r]);
    }
    if (!counts.empty()) {
      const ExprRef length = kb::Int(run);
      to[dst.ranged.back()].extent = length;
      from[src.ranged.back()].extent = inside == nullptr ? length : kb::Select(inside, length, kb::Int(0));
    }
    body.push_back(kb::Copy(kb::SliceOf(dst.buffer, std::move(to)), kb::SliceOf(src.buffer, std::move(from))));
    return body;
  }

  const int64_t threads_, bytes_;
  std::map<std::string, kir::BufferType> types_;
  std::map<std::string, int64_t> multiples_;
};

}  // namespace

CopiedRun RunOf(const kir::Copy& copy) {
  for (size_t d = 0; d < copy.dst.dims.size(); ++d) {
    if (copy.dst.dims[d].extent == nullptr) continue;
    CopiedRun run{.length = *kir::KnownInteger(copy.dst.dims[d].extent), .inside = nullptr};
    for (const kir::SliceDim& dim : copy.src.dims) {
      const auto* select = dim.extent == nullptr ? nullptr : std::get_if<kir::Apply>(&dim.extent->node);
      if (select != nullptr) run.inside = select->args[0];
    }
    return run;
  }
  return {};
}

kir::Kernel WriteOutCopies(const kir::Kernel& kernel, int64_t threads, int64_t bytes) {
  return CopyWriter(threads, bytes).Run(kernel);
}

}  // namespace quern::codegen
