// Values between the bytes that kernels see and the doubles that the interpreter computes with.
//
// A value of a plan lies dense and row-major; a parameter of a block format as rows of blocks, as in a GGUF file;
// quantised activations planar (kir/layout.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/interpret.h"

namespace quern::check {

// Elements that all values of a graph may have together: what a check allocates is bounded, whatever a file says.
inline constexpr int64_t kMostElements = int64_t{1} << 28;

// Sizes for the symbols in `binding`. Errors: an unbound symbol, a negative size, more than kMostElements elements,
// rows of a block format that are not whole blocks.
StatusOr<std::vector<int64_t>> SizesOf(const ir::TensorType& type, const Binding& binding);
// Bytes of such a value; `parameter`: in the form of a model file.
StatusOr<int64_t> BytesOf(const ir::TensorType& type, bool parameter, const Binding& binding);

StatusOr<ir::RefTensor> Decode(const ir::TensorType& type, bool parameter, const Binding& binding,
                               std::span<const uint8_t> bytes);
// The bytes of an activation: scalars rounded to their dtype, q8_0 and q8_K quantised again. Error: another block
// format.
StatusOr<std::vector<uint8_t>> Encode(const ir::RefTensor& tensor);

// Whether the bytes of a float hold what is asked; other dtypes hold neither.
struct Special {
  bool nan = false, inf = false;
};
Special Specials(DType dtype, std::span<const uint8_t> bytes);
Special Specials(const ir::RefTensor& tensor);

// "[0, 3]" of a row-major position; "[]" for one element.
std::vector<int64_t> IndexOf(std::span<const int64_t> dims, int64_t element);
std::string Text(std::span<const int64_t> index);

}  // namespace quern::check
