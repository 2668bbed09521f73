// Tile ops of CPUs on a block of threads: the tiles lie in shared memory, and all threads of the block do each op
// together.
//
//   tile y : f32[1, 8] = 0
//   dot_q4_K_x y += w[n0 : +8, :], x[:, :]
// becomes, a warp a row of w,
//   for j0 in 0..8 by 8 {
//     var a0 : f32 = 0.0
//     for g in t % 32..256 by 32 { ... decode(w, n0 + j0 + t / 32, 8 * g + u) ... }
//     a0 = a0 + (of the other lanes, by shuffles)
//     if t % 32 == 0 { y[0, j0 + t / 32] = a0 }
//   }
// The statements belong inside a thread loop over the block whose index is "t", where all threads come by.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/status.h"
#include "kir/kir.h"

namespace quern::codegen {

// Statements that leave in the variable `name`, of every lane, what the lanes of its warp have, joined by `op`. What
// comes from others is called `other`_16, `other`_8, ...
void JoinLanes(const std::string& name, DType dtype, kir::Op op, const std::string& other, kir::Block& out);

class TileSchedule {
 public:
  // `threads` of the block, whole warps. Allocs of shared memory are added to `shared`, which outlives this.
  TileSchedule(const kir::Kernel& kernel, int64_t threads, kir::Block& shared);

  // A buffer of the kernel that is shared memory now. `type`: with the extents that hold values.
  void Keep(const std::string& name, const kir::BufferType& type) { types_[name] = type; }
  bool IsTile(const std::string& name) const { return tiles_.contains(name); }

  // The tile's elements are written when they are first needed: a dot right after it writes its own.
  void Add(const kir::Tile& tile, kir::Block& out);
  // Before a statement with a body of its own, which may run again or not at all: every tile so far is in memory.
  void FillAll(kir::Block& out);
  // Errors: Unimplemented for ops that are neither dots of f32 rows nor attention steps.
  Status Add(const kir::TileCall& call, kir::Block& out);
  // `body`: that of the map, as one thread runs it.
  void Add(const kir::Map& map, kir::Block body, kir::Block& out);

 private:
  struct TileState {
    std::vector<int64_t> dims;  // as declared; in memory there are whole groups of `warps` rows
    kir::ExprRef init;
    bool filled = false;  // in memory; else every element is `init` still
  };
  // The element `index` of the slice's ranged dimensions; those named in `clamp` are kept inside the buffer.
  kir::ExprRef Element(const kir::Slice& slice, const std::vector<kir::ExprRef>& index,
                       const std::vector<bool>& clamp) const;
  void Fill(const std::string& name, kir::Block& out);
  void AddDot(const kir::TileCall& call, kir::Block& out);
  Status AddFlash(const kir::TileCall& call, kir::Block& out);
  // for i in ..rows { for c in ..columns { body } }, shared out over the threads in two dimensions; columns null: one.
  kir::Block Rectangle(const std::string& row, const kir::ExprRef& rows, const std::string& column,
                       const kir::ExprRef& columns, int64_t width, kir::Block body) const;

  std::map<std::string, kir::BufferType> types_;
  std::map<std::string, TileState> tiles_;
  const int64_t threads_, warps_;
  kir::Block& shared_;
  int number_ = 0;  // of names so far
};

}  // namespace quern::codegen
