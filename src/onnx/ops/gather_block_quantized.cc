// GatherBlockQuantized of com.microsoft: rows of a table of 4 or 8 bits a number, in blocks with a scale and a zero
// point each. It becomes a Gather of blocks, as the table of an embedding is; what no block holds, and what is gathered
// along another axis, is first unpacked by DequantizeLinear.

#include "onnx/block_codes.h"
#include "onnx/products.h"

namespace quern::onnx {
namespace {

// The table as numbers, whatever its axes.
Value Unpacked(Call& c, int64_t axis, int64_t block) {
  Values operands = {c.x(0), c.x(2)};
  if (c.Has(3)) operands.push_back(c.x(3));
  return c.Add("DequantizeLinear", operands, {{"axis", axis}, {"block", block}});
}

}  // namespace

void GatherBlockQuantized(Call& c) {
  const Data *const table = c.item(0).data.get(), *const scales = c.item(2).data.get();
  const int64_t bits = c.Int("bits", 4), block = c.Int("block_size", 128);
  if (bits != 4 && bits != 8) return c.Fail("tables of other than 4 or 8 bits have no op");
  if (table == nullptr || scales == nullptr) return c.Fail("tables that are no data of the file have no op");
  const auto rank = static_cast<int64_t>(table->dims.size());
  const int64_t axis = c.Axis(c.Int("quantize_axis", 1), rank), gathered = c.Axis(c.Int("gather_axis", 0), rank);
  if (!c.ok()) return;
  if (rank < 2 || scales->dims.size() != table->dims.size() || block < 16 || block > 1 << 24)
    return c.Fail(absl::InvalidArgumentError("its sizes are none"));
  // A byte of u8 has two codes of 4 bits; of u4 and i4, which are bytes in a graph, one.
  const int64_t n = table->dims[0], bytes = table->dims[1];
  const bool is_plain = rank == 2 && axis == 1 && gathered == 0;
  const bool is_packed =
      is_plain && bits == 4 && table->dtype == DType::kU8 && CeilDiv(bytes * 2, block) == scales->dims[1];
  BlockCodes w = {is_packed ? bytes * 2 : bytes, n, block, bits};
  Value numbers;
  if (is_plain && (w.k == 0 || w.n == 0 || scales->dims != std::vector<int64_t>{n, w.blocks()}))
    return c.Fail(absl::InvalidArgumentError("its scales are not as many as its table and the block say"));
  if (is_plain && w.FitBlocks()) {
    CodeForm form = {.codes = 0, .scales = 2, .zeros = 3, .zero = 0};
    if (is_packed || bits == 8) {
      form.zero = static_cast<double>(w.middle());
      form.row_bytes = bytes;
    }
    ReadBlockCodes(c, form, w);
    if (c.ok()) numbers = BlocksOfFloats(c, c.item(0).name, w);
  } else if (bits == 8 || is_packed) {
    c.Fail("tables of bytes but by rows, in blocks of a multiple of 32, have no op");
  } else {
    numbers = Unpacked(c, axis, block);
  }
  if (c.ok()) c.Return(c.Cast(c.Add("Gather", {numbers, c.x(1)}, {{"axis", gathered}}), scales->dtype));
}

}  // namespace quern::onnx
