// The parts of a Decoder that carry a state from token to token.

#include "models/decoder.h"

namespace quern::models {
namespace {

std::string StateName(const Layer& layer, const char* name) {
  return absl::StrFormat("layers.%d.%s", layer.index, name);
}

}  // namespace

Value Decoder::State(const Layer& layer, const char* name, std::vector<int64_t> dims) {
  if (!graph_.status().ok()) return {};
  std::vector<Extent> all = {many() ? Extent(room_.states) : Extent(1)};
  all.insert(all.end(), dims.begin(), dims.end());
  const Value state = graph_.Input(StateName(layer, name), {DType::kF32, std::move(all)});
  carried_[StateName(layer, name)] = state;
  if (many()) return graph_.Gather(state, before_);
  // What a text before this one has left counts for nothing.
  const Value past =
      graph_.Cast(DType::kF32, graph_.Mir("Size", {}, {{"extent", std::vector<Extent>{Extent::Symbol(kPastSymbol)}}}));
  return graph_.Where(graph_.Mir("Gt", {past, graph_.Scalar(0)}), state, graph_.Scalar(0));
}

void Decoder::Carry(const Layer& layer, const char* name, Value next) {
  const std::string state = StateName(layer, name);
  if (many()) next = graph_.Mir("Update", {carried_[state], next, after_}, {{"axis", int64_t{0}}});
  spec_.carried.push_back(state);
  states_.push_back(next);
  spec_.module.donations.push_back({static_cast<int>(states_.size()), state});
}

Value Decoder::CausalConvolution(Value x, const Layer& layer, const std::string& name, int64_t kernel) {
  if (!graph_.status().ok()) return {};
  const int64_t channels = graph_.type(x).dims.back().constant();
  const Extent each = Extent::Symbol(kSequenceSymbol);
  const Value weight = tensors_.Vector(name + ".weight", {channels, kernel});
  const Value own = graph_.Reshape(x, {batch(), each, Extent(channels)});
  const Value all = graph_.Concat({State(layer, "convolution", {kernel - 1, channels}), own}, 1);
  Value sum = tensors_.Has(name + ".bias") ? tensors_.Vector(name + ".bias", {channels}) : Value{};
  for (int64_t j = 0; j < kernel; ++j) {
    const Value column = graph_.Reshape(graph_.Narrow(weight, 1, Extent(j), Extent(1)), {Extent(channels)});
    const Value term = graph_.Mul(graph_.Narrow(all, 1, Extent(j), each), column);
    sum = sum.absent() ? term : graph_.Add(sum, term);
  }
  Carry(layer, "convolution", graph_.Narrow(all, 1, each, Extent(kernel - 1)));
  return graph_.Reshape(sum, {rows(), Extent(channels)});
}

}  // namespace quern::models
