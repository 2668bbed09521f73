#include "kir/interpret_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/half.h"
#include "kir/decode.h"
#include "kir/quantise.h"
#include "kir/tile_op.h"

namespace quern::kir::interpret {
namespace {

int64_t PositionOf(const View& view, const int64_t* index, int dims) {
  int64_t position = view.offset;
  for (int d = 0; d < dims; ++d) position += index[d] * view.stride[d];
  return position;
}

// Byte of a scalar element.
int64_t ElementByte(const View& view, const int64_t* index) {
  if (view.layout == Layout::kKn32) {
    return Kn32Offset(PositionOf(view, index, view.rank - 1), view.column + index[view.rank - 1]) *
           ScalarBytes(view.dtype);
  }
  return PositionOf(view, index, view.rank) * ScalarBytes(view.dtype);
}

bool Defined(const Memory& memory, int64_t at, int64_t bytes) {
  QUERN_CHECK(at >= 0 && bytes >= 0 && at + bytes <= memory.bytes);
  if (memory.defined.empty()) return true;
  const auto begin = memory.defined.begin() + at;
  return std::find(begin, begin + bytes, 0) == begin + bytes;
}

// Where bytes may be written; null when the memory is read-only.
uint8_t* Touch(Memory& memory, int64_t at, int64_t bytes) {
  QUERN_CHECK(at >= 0 && bytes >= 0 && at + bytes <= memory.bytes);
  if (!memory.writable) return nullptr;
  if (!memory.defined.empty()) std::memset(memory.defined.data() + at, 1, bytes);
  return memory.data + at;
}

template <typename T>
T ReadAs(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void WriteAs(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

Value LoadScalar(DType dtype, const uint8_t* at) {
  Value value;
  switch (dtype) {
    case DType::kF32: value.real = ReadAs<float>(at); break;
    case DType::kF64: value.real = ReadAs<double>(at); break;
    case DType::kF16: value.real = HalfToFloat(ReadAs<uint16_t>(at)); break;
    case DType::kBF16: value.real = BFloat16ToFloat(ReadAs<uint16_t>(at)); break;
    case DType::kI8: value.integer = ReadAs<int8_t>(at); break;
    case DType::kI16: value.integer = ReadAs<int16_t>(at); break;
    case DType::kI32: value.integer = ReadAs<int32_t>(at); break;
    case DType::kI64: value.integer = ReadAs<int64_t>(at); break;
    case DType::kU8: value.integer = ReadAs<uint8_t>(at); break;
    case DType::kU16: value.integer = ReadAs<uint16_t>(at); break;
    case DType::kU32: value.integer = ReadAs<uint32_t>(at); break;
    case DType::kU64: value.integer = ReadAs<int64_t>(at); break;
    case DType::kBool: value.integer = *at != 0; break;
    case DType::kC64: QUERN_BLOCK_CASES QUERN_CHECK(false);
  }
  return value;
}

void StoreScalar(DType dtype, uint8_t* at, Value value) {
  switch (dtype) {
    case DType::kF32: WriteAs(at, static_cast<float>(value.real)); return;
    case DType::kF64: WriteAs(at, value.real); return;
    case DType::kF16: WriteAs(at, FloatToHalf(RoundToOdd(value.real))); return;
    case DType::kBF16: WriteAs(at, FloatToBFloat16(RoundToOdd(value.real))); return;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: WriteAs(at, static_cast<uint8_t>(value.integer)); return;
    case DType::kI16:
    case DType::kU16: WriteAs(at, static_cast<uint16_t>(value.integer)); return;
    case DType::kI32:
    case DType::kU32: WriteAs(at, static_cast<uint32_t>(value.integer)); return;
    case DType::kI64:
    case DType::kU64: WriteAs(at, value.integer); return;
    case DType::kC64: QUERN_BLOCK_CASES QUERN_CHECK(false);
  }
}

// Element (row, column) as f32: what a pack reads.
Fault ReadAsFloat(const View& view, const int64_t* index, float& value) {
  Value element;
  const Fault fault = ReadConverted(view, index, element);
  if (fault == Fault::kNone) value = static_cast<float>(element.real);
  return fault;
}

int64_t Rows(const View& view) { return view.rank == 2 ? view.size[0] : 1; }
int64_t Columns(const View& view) { return view.size[view.rank - 1]; }
// The row of the buffer that row r of a view is.
int64_t BufferRow(const View& view, int64_t r) { return view.offset + (view.rank == 2 ? r * view.stride[0] : 0); }

// f32 to a format of activations.
Fault PackQuantised(const View& dst, const View& src) {
  const int64_t columns = Columns(dst);
  std::vector<float> values(columns);
  for (int64_t r = 0; r < Rows(dst); ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t index[2] = {r, c};
      if (const Fault fault = ReadAsFloat(src, src.rank == 2 ? index : index + 1, values[c]); fault != Fault::kNone) {
        return fault;
      }
    }
    const int64_t row_bytes = LayoutRowBytes(dst.layout, dst.dtype, dst.row_elements);
    const int64_t at = BufferRow(dst, r) * row_bytes;
    if (dst.layout == Layout::kBlocks) {
      uint8_t* row = Touch(*dst.memory, at + RowBytes(dst.dtype, dst.column), RowBytes(dst.dtype, columns));
      if (row == nullptr) return Fault::kReadOnly;
      QuantiseToBlocks(dst.dtype, values.data(), columns, row);
      continue;
    }
    const PlanarRow planar = PlanarRowOf(dst.dtype, dst.row_elements);
    const int64_t block = Row(dst.dtype).block_elements, group = FormatOf(dst.dtype).sums;
    if (Touch(*dst.memory, at + dst.column, columns) == nullptr) return Fault::kReadOnly;
    Touch(*dst.memory, at + planar.scales + dst.column / block * 4, columns / block * 4);
    Touch(*dst.memory, at + planar.sums + dst.column / group * 2, columns / group * 2);
    if (group < 32) Touch(*dst.memory, at + planar.wide_sums + dst.column / 32 * 2, columns / 32 * 2);
    QuantiseToPlanar(dst.dtype, values.data(), columns, dst.memory->data + at, dst.row_elements, dst.column);
  }
  return Fault::kNone;
}

// Blocks to a panel of the same format; missing rows decode to zero.
Fault PackPanel16(const View& dst, const View& src) {
  const int64_t columns = Columns(dst);
  uint8_t* panel = Touch(*dst.memory, 0, dst.memory->bytes);
  if (panel == nullptr) return Fault::kReadOnly;
  std::memset(panel, 0, dst.memory->bytes);
  const int64_t row_bytes = LayoutRowBytes(src.layout, src.dtype, src.row_elements);
  for (int64_t r = 0; r < Rows(src); ++r) {
    const int64_t at = BufferRow(src, r) * row_bytes;
    if (!Defined(*src.memory, at, row_bytes)) return Fault::kUndefined;
    for (int64_t c = 0; c < columns; ++c) {
      const BlockElement element = ReadBlockElement(src.dtype, src.memory->data + at, src.column + c);
      WritePanel16(dst.dtype, panel, columns, r, c, element);
    }
  }
  return Fault::kNone;
}

// Element by element between two rectangles of a dtype, whose strides say where each lies.
Fault CopyBits(const View& dst, const View& src) {
  const int64_t bytes = ScalarBytes(src.dtype);
  for (int64_t r = 0; r < Rows(src); ++r) {
    for (int64_t c = 0; c < Columns(src); ++c) {
      const int64_t index[2] = {r, c};
      const int64_t from = ElementByte(src, index), to = ElementByte(dst, index);
      if (!Defined(*src.memory, from, bytes)) return Fault::kUndefined;
      uint8_t* at = Touch(*dst.memory, to, bytes);
      if (at == nullptr) return Fault::kReadOnly;
      std::memcpy(at, src.memory->data + from, bytes);
    }
  }
  return Fault::kNone;
}

// Element by element to floats (@row or @kn32).
Fault PackFloats(const View& dst, const View& src) {
  if (dst.layout == Layout::kKn32) {
    uint8_t* panel = Touch(*dst.memory, 0, dst.memory->bytes);
    if (panel == nullptr) return Fault::kReadOnly;
    std::memset(panel, 0, dst.memory->bytes);
  }
  if (src.dtype == dst.dtype) return CopyBits(dst, src);
  for (int64_t r = 0; r < Rows(src); ++r) {
    for (int64_t c = 0; c < Columns(src); ++c) {
      const int64_t index[2] = {r, c};
      float element = 0;
      if (const Fault fault = ReadAsFloat(src, src.rank == 2 ? index : index + 1, element); fault != Fault::kNone) {
        return fault;
      }
      const Value value{.real = element};
      if (const Fault fault = WriteElement(dst, dst.rank == 2 ? index : index + 1, value); fault != Fault::kNone) {
        return fault;
      }
    }
  }
  return Fault::kNone;
}

// Rows of bf16 or bytes to words of two or four neighbours (@kn32).
Fault PackWords(const View& dst, const View& src) {
  uint8_t* panel = Touch(*dst.memory, 0, dst.memory->bytes);
  if (panel == nullptr) return Fault::kReadOnly;
  std::memset(panel, 0, dst.memory->bytes);
  const int64_t bytes = ScalarBytes(src.dtype), merged = 4 / bytes;
  for (int64_t r = 0; r < Rows(src); ++r) {
    for (int64_t c = 0; c < Columns(src); ++c) {
      const int64_t index[2] = {r, c};
      const int64_t at = ElementByte(src, src.rank == 2 ? index : index + 1);
      if (!Defined(*src.memory, at, bytes)) return Fault::kUndefined;
      std::memcpy(panel + Kn32Offset(r, c / merged) * 4 + c % merged * bytes, src.memory->data + at, bytes);
    }
  }
  return Fault::kNone;
}

}  // namespace

int64_t WrapInteger(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kI8: return static_cast<int8_t>(value);
    case DType::kI16: return static_cast<int16_t>(value);
    case DType::kI32: return static_cast<int32_t>(value);
    case DType::kU8: return static_cast<uint8_t>(value);
    case DType::kU16: return static_cast<uint16_t>(value);
    case DType::kU32: return static_cast<uint32_t>(value);
    case DType::kBool: return value & 1;
    default: return value;  // 64 bits
  }
}

double RoundReal(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32: return static_cast<float>(value);
    case DType::kF16: return HalfToFloat(FloatToHalf(RoundToOdd(value)));
    case DType::kBF16: return BFloat16ToFloat(FloatToBFloat16(RoundToOdd(value)));
    default: return value;
  }
}

int64_t RealToInteger(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  if (dtype == DType::kU64) {
    if (whole <= 0) return 0;
    return whole >= 0x1p64 ? -1 : std::bit_cast<int64_t>(static_cast<uint64_t>(whole));
  }
  if (dtype == DType::kI64) {
    if (whole >= 0x1p63) return INT64_MAX;
    return whole < -0x1p63 ? INT64_MIN : static_cast<int64_t>(whole);
  }
  const int bits = 8 * ScalarBytes(dtype);
  const double high = IsUnsigned(dtype) ? std::ldexp(1.0, bits) - 1 : std::ldexp(1.0, bits - 1) - 1;
  const double low = IsUnsigned(dtype) ? 0 : -high - 1;
  return static_cast<int64_t>(std::clamp(whole, low, high));
}

View WholeView(Memory* memory, DType dtype, Layout layout, const std::vector<int64_t>& dims) {
  View view;
  view.memory = memory;
  view.dtype = dtype;
  view.layout = layout;
  view.rank = static_cast<int>(dims.size());
  QUERN_CHECK(view.rank <= kMaxRank);
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.size[d] = dims[d];
    view.stride[d] = stride;
    if (layout == Layout::kRow || d != view.rank - 1) stride *= dims[d];
  }
  view.row_elements = dims.empty() ? 1 : dims.back();
  return view;
}

std::string ThreadsText(int first, int count) {
  if (count == 1) return absl::StrCat("thread ", first);
  if (count == 32) return absl::StrCat("warp ", first / 32);
  return count == 128 ? absl::StrCat("group ", first / 128) : "the block";
}

namespace {

// Whether this access and earlier ones of other agents have no barrier between them; notes it.
bool Races(Memory& memory, int64_t at, int64_t bytes, bool write) {
  if (memory.watch == nullptr || memory.watch->threads == 0 || !memory.writable) return false;
  const Watch& now = *memory.watch;
  memory.uses.resize(static_cast<size_t>(memory.bytes));
  for (int64_t b = at; b < at + bytes; ++b) {
    ByteUse& use = memory.uses[b];
    const char* verb = write ? "is written" : "is read";
    if (use.write_chunk >= 0 && use.write_chunk != now.chunk) {
      memory.race = absl::StrCat(verb, ", but chunk ", use.write_chunk, " wrote it");
      return true;
    }
    if (use.write_moment == now.moment && (use.writer != now.first || use.writers != now.count)) {
      memory.race =
          absl::StrCat(verb, ", but ", ThreadsText(use.writer, use.writers), " wrote it since the last barrier");
      return true;
    }
    if (write && use.read_moment == now.moment && (use.reader != now.first || use.readers != now.count)) {
      memory.race = absl::StrCat("is written, but ", use.readers < 0 ? "others" : ThreadsText(use.reader, use.readers),
                                 " read it since the last barrier");
      return true;
    }
    if (write) {
      use.write_moment = now.moment, use.write_chunk = now.chunk;
      use.writer = now.first, use.writers = now.count;
    } else if (use.read_moment != now.moment) {
      use.read_moment = now.moment;
      use.reader = now.first, use.readers = now.count;
    } else if (use.reader != now.first || use.readers != now.count) {
      use.readers = -1;
    }
  }
  return false;
}

}  // namespace

Fault ReadElement(const View& view, const int64_t* index, Value& value) {
  const int64_t at = ElementByte(view, index);
  if (Races(*view.memory, at, ScalarBytes(view.dtype), /*write=*/false)) return Fault::kRace;
  if (!Defined(*view.memory, at, ScalarBytes(view.dtype))) return Fault::kUndefined;
  value = LoadScalar(view.dtype, view.memory->data + at);
  return Fault::kNone;
}

Fault WriteElement(const View& view, const int64_t* index, Value value) {
  const int64_t byte = ElementByte(view, index);
  if (Races(*view.memory, byte, ScalarBytes(view.dtype), /*write=*/true)) return Fault::kRace;
  uint8_t* at = Touch(*view.memory, byte, ScalarBytes(view.dtype));
  if (at == nullptr) return Fault::kReadOnly;
  StoreScalar(view.dtype, at, value);
  return Fault::kNone;
}

Fault ForgetElement(const View& view, const int64_t* index) {
  const Fault fault = WriteElement(view, index, {.integer = 0});
  if (fault != Fault::kNone) return fault;
  Memory& memory = *view.memory;
  if (memory.defined.empty()) memory.defined.assign(static_cast<size_t>(memory.bytes), 1);
  std::memset(memory.defined.data() + ElementByte(view, index), 0, static_cast<size_t>(ScalarBytes(view.dtype)));
  return Fault::kNone;
}

Fault DecodeElementOf(const View& view, const int64_t* index, double& value) {
  const Memory& memory = *view.memory;
  const int64_t row = PositionOf(view, index, view.rank - 1), j = view.column + index[view.rank - 1];
  const DTypeRow& type = Row(view.dtype);
  if (view.layout == Layout::kPanel16) {
    if (!Defined(memory, Panel16CodeOffset(row, j), 1)) return Fault::kUndefined;
    value = DecodePanel16(view.dtype, memory.data, view.row_elements, row, j);
    return Fault::kNone;
  }
  const int64_t at = row * LayoutRowBytes(view.layout, view.dtype, view.row_elements);
  if (view.layout == Layout::kPlanar) {
    if (!Defined(memory, at + j, 1)) return Fault::kUndefined;
    value = DecodePlanar(view.dtype, memory.data + at, view.row_elements, j);
    return Fault::kNone;
  }
  if (!Defined(memory, at + j / type.block_elements * type.block_bytes, type.block_bytes)) return Fault::kUndefined;
  value = DecodeElement(view.dtype, memory.data + at, j);
  return Fault::kNone;
}

Fault ReadConverted(const View& view, const int64_t* index, Value& value) {
  return IsBlock(view.dtype) ? DecodeElementOf(view, index, value.real) : ReadElement(view, index, value);
}

bool PackViews(const View& dst, const View& src, Fault& fault) {
  const bool quantised = IsBlock(dst.dtype) && FormatOf(dst.dtype).sums > 0;
  if (quantised && IsFloat(src.dtype) && (dst.layout == Layout::kBlocks || dst.layout == Layout::kPlanar)) {
    fault = PackQuantised(dst, src);
    return true;
  }
  if (Turns(src.layout, dst.layout) && src.dtype == dst.dtype) {
    fault = CopyBits(dst, src);
    return true;
  }
  if (dst.layout == Layout::kPanel16 && src.layout == Layout::kBlocks && src.dtype == dst.dtype) {
    fault = PackPanel16(dst, src);
    return true;
  }
  if (dst.layout == Layout::kKn32 && dst.dtype == DType::kU32 && !IsBlock(src.dtype) && ScalarBytes(src.dtype) < 4) {
    fault = PackWords(dst, src);
    return true;
  }
  if (IsFloat(dst.dtype) && (IsFloat(src.dtype) || IsBlock(src.dtype))) {
    fault = PackFloats(dst, src);
    return true;
  }
  return false;
}

}  // namespace quern::kir::interpret
