// Graphs of floats whose products are over bytes, as ONNX Runtime's static quantisation makes them: the ranges that
// values have in some runs, a quantisation map made of those or written by hand, and pairs of QuantizeLinear and
// DequantizeLinear by it, which compiling keeps in integers (docs/quantise-graphs.md). A map can be a part of a graph,
// too, which is then compiled as if its pairs stood there. Functions here may run at one time in any number of threads
// on one graph; a Calibrator is for one thread at a time.
//
//   quern::Result<quern::Calibrator> calibrator = quern::Calibrator::Make(g);
//   for (const auto& batch : batches)
//     if (quern::Result<void> ran = calibrator->Run({quern::In("x", batch, {8, 48})}); !ran.ok()) return ran;
//   quern::Result<quern::QuantisationMap> map = quern::MakeQuantisationMap(g, calibrator->ranges());
//   quern::Result<quern::Graph> bytes = quern::InsertQdq(g, *map);
//   quern::Result<quern::Program> program = bytes->Compile();
//
// Values are called by their names where they are inputs or parameters, by the label of the node that makes them, with
// "#2" and on where others have it too, or by its number, "%4"; further results of a node have ".1" and on behind.
// Those inside of bodies (If, While, Scan) have no names, and stay as they are.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/graph.h"
#include "quern/result.h"

namespace quern {

// The least and the greatest number of a value; infinite where one of them is, or is a NaN.
struct ValueRange {
  double low = 0, high = 0;
};
using ValueRanges = std::map<std::string, ValueRange>;

// Each range as wide as both have it.
void Widen(ValueRanges& ranges, const ValueRanges& more);
// {"x": [-1.5, 2], ..}; an infinite one is null. Errors: kInvalid, with the name.
std::string RangesJson(const ValueRanges& ranges);
Result<ValueRanges> ParseRanges(std::string_view json);

// Runs a graph and looks at the floats that it computes: every value that not only parameters decide, as the graph was
// given, but without a quantisation map that it has. It is compiled with outputs of its own for that, and otherwise as
// Graph::Compile does.
class Calibrator {
 public:
  // The graph, and the bytes of its parameters, outlive it. Errors: those of Graph::Compile.
  static Result<Calibrator> Make(const Graph& graph, const Options& options = {});
  Calibrator(Calibrator&&) noexcept;
  Calibrator& operator=(Calibrator&&) noexcept;
  ~Calibrator();

  // Widens the ranges by what a run on these inputs computes; state is carried from run to run. Errors: those of
  // Program::Run.
  Result<void> Run(const std::vector<ConstTensor>& inputs, const std::map<std::string, int64_t>& symbols = {});
  // Of all runs so far.
  const ValueRanges& ranges() const;

 private:
  struct State;
  explicit Calibrator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// How bytes stand for the floats of a value.
struct ValueScheme {
  std::string dtype = "u8";  // or "i8"
  bool symmetric = false;    // about 0; of i8 -128 is not used
  // One scale for each index along it: of weights, without a range.
  std::optional<int64_t> axis = {};
  // Widened to hold 0. None: max |w| of weights, in i8, symmetric.
  std::optional<ValueRange> range = {};
};
using QuantisationMap = std::map<std::string, ValueScheme>;

// {"x": {"dtype": "u8", "range": [-1.5, 2]}, "w": {"dtype": "i8", "symmetric": true, "axis": 1}}. Errors: kInvalid,
// with the name and the field.
std::string QuantisationMapJson(const QuantisationMap& map);
Result<QuantisationMap> ParseQuantisationMap(std::string_view json);

struct QdqOptions {
  std::string activations = "u8";      // or "i8"
  bool symmetric = false;              // of activations; weights always are
  bool per_channel = true;             // weights have a scale for each output channel
  std::vector<std::string> ops = {};   // "MatMul", "Conv": operands of these alone; empty: of both
  std::vector<std::string> keep = {};  // what has a label that begins so stays as it is: "layers.0", "lm_head"
};

// Both operands of each product of f32, where the other is weights or a range of it is known. Errors: that of the
// graph; kUnknownName, a range of no value; kOutOfRange, one that is none; kInvalid (an option), kUnknownOp.
Result<QuantisationMap> MakeQuantisationMap(const Graph& graph, const ValueRanges& ranges,
                                            const QdqOptions& options = {});

// The graph in ops, as Graph::LowerForAutodiff gives it, with a pair of QuantizeLinear and DequantizeLinear between
// products and those of their operands that the map has, in the place of a map of its own. Weights that have bytes
// become constants of i8, others i8 when they are bound. Inputs, outputs and other parameters are the same. Errors:
// that of the graph; kUnknownName; kBadAttribute, with the value and the field; kOutOfRange, weights that are no finite
// numbers.
Result<Graph> InsertQdq(const Graph& graph, const QuantisationMap& map);

// The graph in ops, as Graph::LowerForAutodiff gives it, with the map as a part of it, in the place of one that it has:
// text, binary form and fingerprint say it, and compiling does what InsertQdq would. Weights that are constants become
// constants of i8 then, parameters i8 when they are bound. Errors: those of InsertQdq, but that weights which are no
// finite numbers are one of Graph::Compile.
Result<Graph> WithQuantisation(const Graph& graph, const QuantisationMap& map);
// The map that is a part of the graph; empty where it has none. Error: that of the graph.
Result<QuantisationMap> QuantisationOf(const Graph& graph);

}  // namespace quern
