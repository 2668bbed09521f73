// The parts of a Decoder that carry a state from token to token.

#include "models/decoder.h"

namespace quern::models {
namespace {

std::string StateName(const Layer& layer, const char* name) {
  return absl::StrFormat("layers.%d.%s", layer.index, name);
}

}  // namespace

Value Decoder::State(const Layer& layer, const char* name, std::vector<int64_t> dims) {
  if (many()) {
    graph_.Fail(absl::UnimplementedError(absl::StrFormat(
        "the architecture %s carries a state from token to token: one sequence at a time", spec_.architecture)));
    return {};
  }
  const Value state =
      graph_.Input(StateName(layer, name), {DType::kF32, std::vector<Extent>(dims.begin(), dims.end())});
  // What a text before this one has left counts for nothing.
  const Value past =
      graph_.Cast(DType::kF32, graph_.Mir("Size", {}, {{"extent", std::vector<Extent>{Extent::Symbol(kPastSymbol)}}}));
  return graph_.Where(graph_.Mir("Gt", {past, graph_.Scalar(0)}), state, graph_.Scalar(0));
}

void Decoder::Carry(const Layer& layer, const char* name, Value next) {
  spec_.carries = true;
  states_.push_back(next);
  spec_.module.donations.push_back({static_cast<int>(states_.size()), StateName(layer, name)});
}

Value Decoder::CausalConvolution(Value x, const Layer& layer, const std::string& name, int64_t kernel) {
  if (!graph_.status().ok()) return {};
  const int64_t channels = graph_.type(x).dims.back().constant();
  const Extent rows = Extent::Symbol(kSequenceSymbol);
  const Value weight = tensors_.Vector(name + ".weight", {channels, kernel});
  const Value all = graph_.Concat({State(layer, "convolution", {kernel - 1, channels}), x}, 0);
  Value sum = tensors_.Has(name + ".bias") ? tensors_.Vector(name + ".bias", {channels}) : Value{};
  for (int64_t j = 0; j < kernel; ++j) {
    const Value column = graph_.Reshape(graph_.Narrow(weight, 1, Extent(j), Extent(1)), {Extent(channels)});
    const Value term = graph_.Mul(graph_.Narrow(all, 0, Extent(j), rows), column);
    sum = sum.absent() ? term : graph_.Add(sum, term);
  }
  Carry(layer, "convolution", graph_.Narrow(all, 0, rows, Extent(kernel - 1)));
  return sum;
}

}  // namespace quern::models
