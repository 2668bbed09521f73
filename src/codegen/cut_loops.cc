#include "codegen/cut_loops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/choose_cuts.h"
#include "codegen/loop_values.h"
#include "kir/build.h"
#include "kir/intern.h"
#include "kir/parts.h"
#include "kir/rewrite.h"
#include "kir/walk.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;
using namespace kir::build::operators;
using kir::Block;
using kir::ExprRef;

constexpr int kLeastWork = 48;             // instructions of a body that is looked at
constexpr int64_t kLeastRounds = 4;        // of a loop that is cut
constexpr int64_t kStripBytes = 24 << 10;  // of what a strip keeps: about the nearest cache, beside what streams by
constexpr size_t kLongestRun = 32, kLeastTimes = 3;      // of loops that are written once
constexpr int64_t kLeastStrip = 256, kMostStrip = 2048;  // elements

// The last of the parts that the steps are in.
int LastPart(const std::vector<int>& steps, const std::vector<int>& part_of) {
  int part = 0;
  for (const int step : steps) part = std::max(part, part_of[step]);
  return part;
}

// Names of the kernel, and new ones.
struct Names : kir::Visitor {
  std::set<std::string> taken;
  void Declare(const std::string& name, kir::Role) override { taken.insert(name); }
  bool Enter(const ExprRef& expr) override {
    if (const auto* reduce = std::get_if<kir::Reduce>(&expr->node)) taken.insert(reduce->index);
    return true;
  }
  using kir::Visitor::Enter;

  std::string Fresh(const std::string& stem) {
    for (int i = 0;; ++i) {
      std::string name = absl::StrCat(stem, i);
      if (taken.insert(name).second) return name;
    }
  }
};

// Where steps that a later loop reads are kept: each in a buffer of its own, so that writing one says nothing about
// another, and in one that was another's where no later loop reads that.
struct Kept {
  std::map<int, int> buffer;  // by step: a position in dtypes
  std::vector<DType> dtypes;  // of the buffers
  int64_t bytes = 0;          // of an element of each
};

Kept KeepSteps(const LoopValues& values, const std::vector<std::vector<int>>& parts) {
  std::vector<int> made(values.steps().size()), last(values.steps().size());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const int step : parts[p]) made[step] = last[step] = static_cast<int>(p);
  }
  const auto read = [&](const std::vector<int>& steps, int part) {
    for (const int step : steps) last[step] = std::max(last[step], part);
  };
  for (size_t step = 0; step < made.size(); ++step) read(values.steps()[step].operands, made[step]);
  for (size_t store = 0; store < values.stores(); ++store)
    read(values.Under(store), LastPart(values.Under(store), made));
  Kept kept;
  std::map<DType, std::vector<int>> free;
  std::vector<std::vector<int>> ending(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const int step : parts[p]) {
      if (last[step] == made[step]) continue;
      const DType dtype = values.Expr(step)->dtype;
      std::vector<int>& unused = free[dtype];
      if (unused.empty()) {
        unused.push_back(static_cast<int>(kept.dtypes.size()));
        kept.dtypes.push_back(dtype);
        kept.bytes += ScalarBytes(dtype);
      }
      kept.buffer[step] = unused.back();
      unused.pop_back();
      ending[last[step]].push_back(kept.buffer[step]);
    }
    for (const int buffer : ending[p]) free[kept.dtypes[buffer]].push_back(buffer);
  }
  return kept;
}

class Cutter {
 public:
  Cutter(const kir::Kernel& kernel, const family::TargetFacts& facts) : facts_(facts) {
    for (const kir::Param& param : kernel.params) names_.taken.insert(param.name);
    for (const kir::SymbolDecl& symbol : kernel.symbols) names_.taken.insert(symbol.name);
    for (const kir::GridDim& dim : kernel.grid) names_.taken.insert(dim.index);
    names_.Visit(kernel.body);
  }

  Block Of(const Block& block) {
    Block written;
    for (const kir::StmtRef& stmt : block) {
      const auto* loop = std::get_if<kir::Loop>(&stmt->node);
      if (loop != nullptr && loop->kind == kir::LoopKind::kVec && loop->step == 1 && Cut(*loop, written)) continue;
      kir::Stmt copy = *stmt;
      Inside inside(*this);
      kir::Parts(copy, inside);
      written.push_back(std::make_shared<const kir::Stmt>(std::move(copy)));
    }
    return written;
  }

 private:
  struct Inside : kir::NoParts {
    explicit Inside(Cutter& cutter) : cutter(cutter) {}
    void Body(Block& block) { block = cutter.Of(block); }
    Cutter& cutter;
  };

  // Writes the loops that the loop becomes; false: it stays.
  bool Cut(const kir::Loop& loop, Block& written) {
    const std::optional<int64_t> low = kir::KnownInteger(loop.low), high = kir::KnownInteger(loop.high);
    const int64_t trips = low && high ? *high - *low : kMostStrip;
    if (trips < kLeastRounds * facts_.lanes) return false;
    std::optional<LoopValues> values = LoopValues::Of(loop);
    if (!values) return false;
    int64_t work = 0;
    for (const BodyStep& step : values->steps()) work += step.work;
    if (work < kLeastWork) return false;
    // Any number of loops, if few are left of them where those that come again are written once.
    const std::set<std::string> taken = names_.taken;
    for (const size_t most : {values->steps().size(), CutFacts::kMostLoops}) {
      Block cut;
      if (CutInto(most, loop, *values, trips, cut) &&
          (most <= CutFacts::kMostLoops || LoopsOf(cut) <= CutFacts::kMostLoops)) {
        written.insert(written.end(), cut.begin(), cut.end());
        return true;
      }
      names_.taken = taken;
    }
    return false;
  }

  static size_t LoopsOf(const Block& block) {
    size_t loops = 0;
    kir::ForEach(block, [&](const kir::Stmt& stmt) { loops += std::holds_alternative<kir::Loop>(stmt.node) ? 1 : 0; });
    return loops;
  }

  // At most so many loops, as ChooseCuts has it; false: one.
  bool CutInto(size_t most, const kir::Loop& loop, LoopValues& values, int64_t trips, Block& written) {
    const std::optional<int64_t> low = kir::KnownInteger(loop.low), high = kir::KnownInteger(loop.high);
    const int64_t rounds = std::min(trips, int64_t{1024}) / facts_.lanes;
    const std::vector<std::vector<int>> parts = ChooseCuts(
        values.steps(), {.registers = facts_.vector_registers, .rounds = static_cast<double>(rounds), .loops = most});
    if (parts.size() < 2) return false;

    const Kept kept = KeepSteps(values, parts);
    int64_t strip = kMostStrip;
    while (strip > kLeastStrip && strip * kept.bytes > kStripBytes) strip /= 2;
    while (strip * kept.bytes > facts_.scratch_bytes) strip /= 2;
    if (strip < kLeastRounds * facts_.lanes) return false;
    const bool whole = low && high && trips <= strip;
    std::vector<std::string> buffers;
    for (const DType dtype : kept.dtypes) {
      buffers.push_back(names_.Fresh("keep"));
      written.push_back(kb::Alloc(buffers.back(), {dtype, {Extent(whole ? trips : strip)}, kir::Layout::kRow}));
    }
    const std::string index = whole ? "" : names_.Fresh("p");
    const ExprRef start = whole ? loop.low : kb::Ref(index);
    const ExprRef end = whole ? loop.high : kb::Min(start + static_cast<double>(strip), loop.high);
    const ExprRef at = kb::Ref(loop.index) - start;
    Block loops;
    for (Block& body : Bodies(loop, values, parts, kept, buffers, at)) {
      kir::Loop part = loop;
      part.low = start;
      part.high = end;
      part.body = std::move(body);
      loops.push_back(std::make_shared<const kir::Stmt>(kir::Stmt{std::move(part)}));
    }
    loops = Repeated(std::move(loops));
    if (whole) {
      written.insert(written.end(), loops.begin(), loops.end());
    } else {
      written.push_back(kb::For(index, loop.low, loop.high, std::move(loops), strip));
    }
    return true;
  }

  // Runs of loops that come again and again, as those of a long chain of the same ops do, as a loop around one of them:
  //   a, b, c, b, c, b, c    =>    a, b, c, for again in 1..3 { b, c }
  // Behind the first, so that all that is read in the loop is written before it.
  Block Repeated(Block loops) {
    kir::Interner nodes;
    std::map<std::string, size_t> kinds;
    std::vector<size_t> kind;
    for (const kir::StmtRef& loop : loops) {
      std::string all = nodes.Bytes(*loop);
      for (const kir::StmtRef& store : std::get<kir::Loop>(loop->node).body) all += nodes.Bytes(*store);
      kind.push_back(kinds.emplace(std::move(all), kinds.size()).first->second);
    }
    const auto equal = [&](size_t at, size_t other, size_t count) {
      return other + count <= kind.size() && std::equal(&kind[at], &kind[at] + count, &kind[other]);
    };
    Block written;
    for (size_t at = 0; at < loops.size();) {
      size_t period = 0, times = 0;
      while (times < kLeastTimes && period < kLongestRun) {
        ++period;
        for (times = 1; equal(at, at + times * period, period);) ++times;
      }
      if (times < kLeastTimes) {
        written.push_back(loops[at++]);
        continue;
      }
      const auto first = loops.begin() + static_cast<std::ptrdiff_t>(at);
      const Block run(first, first + static_cast<std::ptrdiff_t>(period));
      written.insert(written.end(), run.begin(), run.end());
      written.push_back(kb::For(names_.Fresh("again"), kb::Int(1), kb::Int(static_cast<int64_t>(times)), run));
      at += times * period;
    }
    return written;
  }

  // The body of each part, in which element `at` of the strip is computed.
  static std::vector<Block> Bodies(const kir::Loop& loop, LoopValues& values,
                                   const std::vector<std::vector<int>>& parts, const Kept& kept,
                                   const std::vector<std::string>& buffers, const ExprRef& at) {
    std::vector<int> part_of(values.steps().size());
    for (size_t p = 0; p < parts.size(); ++p) {
      for (const int step : parts[p]) part_of[step] = static_cast<int>(p);
    }
    const auto buffer = [&](int step) { return buffers[kept.buffer.at(step)]; };
    const auto in_part = [&](int p, const ExprRef& value) {
      const auto given = [&, p](int step) -> ExprRef {
        if (part_of[step] == p) return nullptr;
        return kb::At(buffer(step), values.Expr(step)->dtype, {at});
      };
      return kir::Rewrite(value, [&](const ExprRef& expr) { return values.Instead(expr, given); });
    };
    std::vector<Block> bodies(parts.size());
    for (size_t p = 0; p < parts.size(); ++p) {
      for (const int step : parts[p]) {
        if (!kept.buffer.contains(step)) continue;
        bodies[p].push_back(kb::Store(buffer(step), {at}, in_part(static_cast<int>(p), values.Expr(step))));
      }
    }
    for (size_t s = 0; s < loop.body.size(); ++s) {
      const int part = LastPart(values.Under(s), part_of);
      const auto& store = std::get<kir::Store>(loop.body[s]->node);
      bodies[part].push_back(
          kb::WithOrigin(kb::Store(store.buffer, store.index, in_part(part, values.Stored(s))), loop.body[s]->origin));
    }
    return bodies;
  }

  const family::TargetFacts& facts_;
  Names names_;
};

}  // namespace

kir::Kernel CutLoops(kir::Kernel kernel, const family::TargetFacts& facts) {
  kernel.body = Cutter(kernel, facts).Of(kernel.body);
  return kernel;
}

}  // namespace quern::codegen
