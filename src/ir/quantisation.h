// A quantisation map: which values and parameters of a graph are bytes where products read them, and which bytes. It is
// made of ranges that runs were seen to have (opt/quantisation_map.cc), or written by hand, and a part of the graph
// until insert_qdq makes pairs of it.
//
//   quantise "image" {dtype = u8, high = 2.64, low = 0.0, symmetric = false}
//   quantise "conv1.weight" {axis = 0, dtype = i8, symmetric = true}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/attributes.h"

namespace quern::ir {

class Graph;

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

// A scheme as text and bytes have it: its dtype, symmetric, where there is one the axis, and low and high of the range.
Attributes AttributesOf(const Scheme& scheme);
// Back, of the value of that name. Errors: kBadAttribute, one that no scheme has, or that has another kind or lacks.
StatusOr<Scheme> SchemeOf(std::string_view name, const Attributes& attributes);

// Whether each is a scheme of a value of the graph, bodies apart. Errors: kUnknownName; kBadAttribute, with the value
// and the field.
Status CheckQuantisation(const Graph& graph, const QuantisationMap& map);

}  // namespace quern::ir
