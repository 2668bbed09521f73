#include "lir/copy_kernel.h"

#include "kir/build.h"
#include "kir/declare_sizes.h"

namespace quern::lir {

namespace kb = kir::build;
using namespace kir::build::operators;

StatusOr<kir::Kernel> CopyKernel(const ir::TensorType& type, const SymbolRanges& ranges) {
  if (IsBlock(type.dtype)) return absl::UnimplementedError(absl::StrFormat("a copy of %s", type.ToString()));
  constexpr int64_t kChunk = 65536;
  const Extent elements = type.elements();
  kir::Kernel kernel;
  kernel.name = "copy";
  const kir::BufferType flat = {type.dtype, {elements}, kir::Layout::kRow};
  kernel.params = {{"x", flat, kir::Mode::kIn, ScalarBytes(type.dtype), ""},
                   {"y", flat, kir::Mode::kOut, ScalarBytes(type.dtype), ""}};
  const kir::ExprRef begin = kb::Ref("b"), end = kb::FromExtent(elements), i = kb::Ref("i");
  kernel.grid = {{"b", kb::Int(0), end, kChunk}};
  const kir::ExprRef stop = kb::Min(begin + static_cast<double>(kChunk), end);
  kernel.body = {kb::Vec("i", begin, stop, {kb::Store("y", {i}, kb::At("x", type.dtype, {i}))})};
  const std::optional<int64_t> bound = elements.UpperBound(ranges);
  kernel.sequential = bound && *bound <= kChunk;
  kir::DeclareSizes(kernel, ranges);
  QUERN_RETURN_IF_ERROR(kir::Verify(kernel));
  return kernel;
}

}  // namespace quern::lir
