// A quantisation map: which values and parameters of a graph are bytes where products read them, and which bytes. It is
// made of ranges that runs were seen to have (opt/quantisation_map.h), or written by hand, and insert_qdq puts it into
// the graph.
//
//   {"image": {"dtype": "u8", "range": [0, 2.64]}, "conv1.weight": {"dtype": "i8", "axis": 0}}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/status.h"

namespace quern::ir {

// The numbers that a value has, or that a scheme has bytes for. Infinite where some of them are, or none: no bytes
// stand for such.
struct ValueRange {
  double low = 0, high = 0;
  bool operator==(const ValueRange&) const = default;
};

struct Scheme {
  DType dtype = DType::kU8;  // or i8
  bool symmetric = false;    // about 0: no zero point, or the middle of u8; of i8 -128 is not used
  // One scale for each index along it; none: one.
  std::optional<int64_t> axis = {};
  // Of the value; none: that of its own numbers, which are known once parameters are, symmetric.
  std::optional<ValueRange> range = {};
  bool operator==(const Scheme&) const = default;
};

using ValueRanges = std::map<std::string, ValueRange, std::less<>>;
using QuantisationMap = std::map<std::string, Scheme, std::less<>>;  // by ValueNames

// The scale and the zero point of a scheme with a range, which is widened to hold 0: as ONNX Runtime's quantiser has
// them.
struct ScaleAndZero {
  float scale = 1;
  int64_t zero = 0;
};
ScaleAndZero ScaleAndZeroOf(const Scheme& scheme, const ValueRange& range);
// The largest byte of a symmetric scheme, which -most .. most then are: 127.
inline constexpr int64_t kMostSymmetric = 127;

}  // namespace quern::ir
