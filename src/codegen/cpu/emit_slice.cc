// Slices: the address, sizes and strides of a part of a buffer; prefetch.
#include "codegen/cpu/emitter.h"
#include "llvm/IR/Intrinsics.h"

namespace quern::cpu {

Emitter::Region Emitter::EmitSlice(const kir::Slice& slice, bool clip) {
  Region region;
  Buffer* found = FindBuffer(slice.buffer);
  if (found == nullptr) {
    region.ptr = llvm::PoisonValue::get(b_.getPtrTy());
    return region;
  }
  region.buffer = *found;
  const Buffer& buffer = region.buffer;
  const kir::BufferType& type = buffer.type;
  const size_t rank = type.dims.size();
  const bool row_layout = type.layout == kir::Layout::kRow;
  const int64_t unit = row_layout ? ScalarBytes(type.dtype) : 1;
  // A slice without dimensions is the whole buffer.
  std::vector<kir::SliceDim> dims = slice.dims;
  if (dims.empty()) dims.resize(rank);
  if (dims.size() != rank) {
    Fail(absl::StrFormat("slice of rank %d of %s", dims.size(), kir::Print(type)));
    region.ptr = llvm::PoisonValue::get(b_.getPtrTy());
    return region;
  }
  llvm::Value* zero = b_.getInt64(0);
  llvm::Value* offset = zero;  // bytes
  region.column = zero;
  region.row_bytes = zero;
  llvm::Value* previous = nullptr;  // stride of the last ranged dimension seen
  for (size_t d = 0; d < rank; ++d) {
    llvm::Value* start = dims[d].start == nullptr ? zero : UniformScalar(dims[d].start, "start of a slice");
    const bool last = d + 1 == rank;
    if (!row_layout && last) {
      region.column = start;
      if (type.layout == kir::Layout::kBlocks) {
        const DTypeRow& row = Row(type.dtype);
        llvm::Value* block = b_.CreateSDiv(start, b_.getInt64(row.block_elements));
        offset = b_.CreateAdd(offset, b_.CreateMul(block, b_.getInt64(row.block_bytes)));
      } else if (type.layout == kir::Layout::kKn32) {
        offset = b_.CreateAdd(offset, b_.CreateMul(start, b_.getInt64(LayoutRowBytes(type.layout, type.dtype, 1))));
        region.column = zero;
      }
    } else {
      llvm::Value* stride = b_.CreateMul(buffer.strides[d], b_.getInt64(unit));
      offset = b_.CreateAdd(offset, b_.CreateMul(start, stride));
    }
    const bool point = dims[d].start != nullptr && dims[d].extent == nullptr;
    if (point) continue;
    llvm::Value* extent = buffer.dims[d];
    if (dims[d].extent != nullptr) {
      extent = UniformScalar(dims[d].extent, "extent of a slice");
      if (clip) {
        llvm::Value* inside =
            b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(buffer.dims[d], start), zero);
        extent = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, extent, inside);
      }
    }
    if (previous != nullptr) region.row_bytes = b_.CreateMul(previous, b_.getInt64(unit));
    previous = buffer.strides[d];
    region.extents.push_back(extent);
    region.strides.push_back(buffer.strides[d]);
  }
  region.ptr = b_.CreateGEP(b_.getInt8Ty(), buffer.ptr, offset);
  return region;
}

void Emitter::Emit(const kir::Prefetch& prefetch) {
  const Region region = EmitSlice(prefetch.slice, false);
  if (!status_.ok() || region.extents.empty()) return;
  const kir::BufferType& type = region.buffer.type;
  const DTypeRow& row = Row(type.dtype);
  llvm::Value* count = region.extents.back();
  llvm::Value* bytes =
      b_.CreateMul(b_.CreateSDiv(count, b_.getInt64(row.block_elements)), b_.getInt64(row.block_bytes));
  // One per cache line of each row; into the second level, since the first is for what runs now.
  auto lines = [&](llvm::Value* start) {
    Loop(b_.getInt64(0), bytes, 64, [&](llvm::Value* line) {
      llvm::Value* at = b_.CreateGEP(b_.getInt8Ty(), start, line);
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {at, b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
    });
  };
  if (region.extents.size() == 2 && region.row_bytes == bytes) {
    bytes = b_.CreateMul(region.extents[0], bytes);  // whole rows: one run of memory
    return lines(region.ptr);
  }
  if (region.extents.size() == 1) return lines(region.ptr);
  if (region.extents.size() > 2) return Fail("prefetch of more than two ranged dimensions");
  Loop(b_.getInt64(0), region.extents[0], 1, [&](llvm::Value* index) {
    lines(b_.CreateGEP(b_.getInt8Ty(), region.ptr, b_.CreateMul(index, region.row_bytes)));
  });
}

}  // namespace quern::cpu
