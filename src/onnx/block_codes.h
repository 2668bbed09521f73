// Weights of 4 or 8 bits a number, as ONNX models have them: in blocks along a row with a scale and a zero point each,
// w = (code - zero) scale.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/divide.h"
#include "onnx/importer.h"

namespace quern::onnx {

struct BlockCodes {
  int64_t k, n, block, bits;
  std::vector<uint8_t> codes = {};  // [N, K]
  std::vector<double> scales = {};  // [N, blocks]
  std::vector<double> zeros = {};   // likewise

  int64_t blocks() const { return CeilDiv(k, block); }
  int64_t middle() const { return int64_t{1} << (bits - 1); }
  bool AreZerosInTheMiddle() const;
  // Whether rows are whole blocks of 32 of a format, each of one scale.
  bool FitBlocks() const { return block % 32 == 0 && k % 32 == 0; }
};

// Numbers [rows, columns] as [columns, rows].
std::vector<double> Turned(const std::vector<double>& numbers, int64_t columns);

// How a node has them. i8 counts from the middle: so i4, which is i8 in a graph, does.
struct CodeForm {
  int codes, scales, zeros;  // operands
  double zero;               // where no zero points are given, as codes are stored
  // Codes of 4 bits: two a byte, the low one first, in rows of so many bytes; 0: each has a byte.
  int64_t row_bytes = 0;
  bool turned = false;  // [K, N] and [blocks, N]; of a byte each
};

// Reads what `w` has sizes of, all of it data of the file. Zero points are packed as codes are, each row of them padded
// to whole bytes, or numbers. Errors stick to the call.
void ReadBlockCodes(Call& c, const CodeForm& form, BlockCodes& w);

// The weight [N, K] as a parameter of `format`, blocks of 32 codes each behind what `head` puts of its block of scales.
// Precondition: FitBlocks().
Value BlocksOf(Call& c, const std::string& name, const BlockCodes& w, DType format,
               absl::FunctionRef<void(int64_t block, std::vector<uint8_t>& data)> head);
// The same of a format with scales of f32 (n4_0 and its like), which has just these numbers.
Value BlocksOfFloats(Call& c, const std::string& name, const BlockCodes& w);

}  // namespace quern::onnx
