// The interpreter's memory: bytes with a shadow of what has been written, and views that give elements of any layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "kir/layout.h"

namespace quern::kir::interpret {

// One value: which member is in use follows from the static dtype (floats: real; integers and bool: integer, wrapped).
union Value {
  double real;
  int64_t integer;
};

int64_t WrapInteger(DType dtype, int64_t value);
// The nearest value that `dtype` holds, halves to even; exact from double, without rounding twice.
double RoundReal(DType dtype, double value);
// Saturating, toward zero; NaN gives 0.
int64_t RealToInteger(DType dtype, double value);

// Who accesses memory: threads [first, first + count) of a block; in CPU kernels, threads is 0 and nothing is watched.
// `moment` differs before and after a barrier, and between chunks.
struct Watch {
  int threads = 0;
  int first = 0, count = 0;
  int64_t moment = 0, chunk = 0;
};
// "thread 5", "warp 2" or "the block".
std::string ThreadsText(int first, int count);

// The last accesses of a byte. readers -1: of several agents.
struct ByteUse {
  int64_t write_moment = -1, read_moment = -1, write_chunk = -1;
  int writer = 0, writers = 0, reader = 0, readers = 0;
};

struct Memory {
  std::string name;
  uint8_t* data = nullptr;
  int64_t bytes = 0;
  bool writable = false;
  std::vector<uint8_t> storage;  // for scratch
  std::vector<uint8_t> defined;  // 1 for each byte that holds a value; empty: all do
  const Watch* watch = nullptr;  // null: not shared between agents
  std::vector<ByteUse> uses;     // by byte, where watched
  std::string race;              // after Fault::kRace: "is read, but thread 3 wrote it since the last barrier"

  void Undefine() { defined.assign(static_cast<size_t>(bytes), 0); }
};

inline constexpr int kMaxRank = 8;

// A rectangle of a buffer. Positions count elements in @row buffers; elsewhere all dimensions but the last count rows,
// and the last is a column of the row (of a panel: row and column inside the panel).
struct View {
  Memory* memory = nullptr;
  DType dtype = DType::kF32;
  Layout layout = Layout::kRow;
  int rank = 0;
  int64_t size[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};  // in elements (@row) or rows; of the last dimension of other layouts: 1
  int64_t offset = 0;             // element or row of index 0
  int64_t column = 0;             // layouts other than @row: column of index 0
  int64_t row_elements = 0;       // length of the buffer's last dimension
};

// The whole of a buffer with these extents.
View WholeView(Memory* memory, DType dtype, Layout layout, const std::vector<int64_t>& dims);

// What went wrong in an access; kNone: nothing.
enum class Fault : uint8_t { kNone, kUndefined, kReadOnly, kRace };

// Scalar elements (@row of any scalar dtype, @kn32). Precondition: `index` is inside the view.
Fault ReadElement(const View& view, const int64_t* index, Value& value);
Fault WriteElement(const View& view, const int64_t* index, Value value);
// As WriteElement with a value that nobody knows: the element counts as not written.
Fault ForgetElement(const View& view, const int64_t* index);
// Element of a block format in any layout, as f32.
Fault DecodeElementOf(const View& view, const int64_t* index, double& value);

// An element of a block format as its f32, any other as it is.
Fault ReadConverted(const View& view, const int64_t* index, Value& value);

// dst = src by the scalar encoders: both of rank 1 or 2 (rows, columns), the same number of columns; a panel has all
// its rows, those past src's are zero. Where the pack turns, the two dimensions of dst are exchanged already. False
// when no pack joins the two types.
bool PackViews(const View& dst, const View& src, Fault& fault);

}  // namespace quern::kir::interpret
