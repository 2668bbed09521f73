// Helpers of composite ops: a chain of Graph::Add calls that stops at the first error, and row-wise references.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"

namespace quern::ir {

// Appends nodes that share one origin. After an error every further call does nothing; Finish reports it.
//   Expansion e(graph, origin);
//   Value sum = e.Add("Reduce", {x}, {{"op", "sum"}, {"axes", ...}});
//   return e.Finish({sum});
class Expansion {
 public:
  Expansion(Graph& graph, int origin) : graph_(graph), origin_(origin) {}

  Value Add(std::string_view op, std::vector<Value> inputs, Attributes attributes = {}) {
    if (!status_.ok()) return {};
    return Take(graph_.Add(op, std::move(inputs), std::move(attributes), origin_));
  }
  // The value in f32 where it is of halves, which are stored, never computed with; and back in the dtype that it had.
  Value Wide(Value value);
  Value Stored(Value value, DType dtype);
  // The same elements with other extents, which the graph requires to be equal to those that it has.
  Value Sized(Value value, std::vector<Extent> dims);
  // Its sums, means, or the largest over `axes`, with extents of 1 left there.
  Value Reduced(const char* op, Value value, const std::vector<int64_t>& axes);
  // A scalar constant of a float dtype.
  Value Scalar(double value, DType dtype);
  // Where an element stands along `axis`: 0, 1, ..
  Value Iota(std::vector<Extent> shape, int64_t axis = 0, DType dtype = DType::kI64);
  // A vector of i64, or of a float dtype.
  Value Integers(const std::vector<int64_t>& values);
  Value Floats(const std::vector<double>& values, DType dtype);
  // The results of a Scan: `make` adds its body over the carries, a row of each of the xs and the captures, and gives
  // the next carries, then what is stacked.
  using Step = std::function<std::vector<Value>(Expansion& body, std::span<const Value> inputs)>;
  std::vector<Value> Scan(const Extent& length, std::vector<Value> carries, const std::vector<Value>& xs,
                          const Step& make, const std::vector<Value>& captures = {}, bool reverse = false);
  const TensorType& type(Value value) const { return graph_.type(value); }
  bool ok() const { return status_.ok(); }
  StatusOr<std::vector<Value>> Finish(std::vector<Value> results) {
    if (!status_.ok()) return status_;
    return results;
  }

 private:
  Value Take(StatusOr<Value> value) {
    if (value.ok()) return *value;
    status_ = value.status();
    return {};
  }
  Graph& graph_;
  int origin_;
  Status status_;
};

// Calls `row` on the elements of each line of `x` along `axis`: (line values, where to put the results).
void ForEachLine(const RefTensor& x, int64_t axis,
                 const std::function<void(const std::vector<int64_t>& offsets)>& line);

}  // namespace quern::ir
