// Quantisation of graphs in the public interface.

#include "compiler/qdq.h"

#include <algorithm>

#include "compiler/graph_state.h"
#include "compiler/public_error.h"
#include "ir/op.h"
#include "opt/insert_qdq.h"

namespace quern {
namespace {

StatusOr<DType> ByteType(std::string_view where, const std::string& name) {
  if (name == "u8") return DType::kU8;
  if (name == "i8") return DType::kI8;
  return absl::InvalidArgumentError(absl::StrCat(std::string(where), ": dtype ", name, ", u8 or i8 expected"));
}

std::optional<ir::ValueRange> RangeOf(const std::optional<ValueRange>& range) {
  if (!range) return std::nullopt;
  return ir::ValueRange{range->low, range->high};
}

QuantisationMap PublicMap(const ir::QuantisationMap& map) {
  QuantisationMap made;
  for (const auto& [name, scheme] : map) {
    ValueScheme& as = made[name];
    as = {std::string(Name(scheme.dtype)), scheme.symmetric, scheme.axis, {}};
    if (scheme.range) as.range = ValueRange{scheme.range->low, scheme.range->high};
  }
  return made;
}

StatusOr<QuantisationMap> Made(const hir::Module& module, const ValueRanges& ranges, const QdqOptions& options) {
  opt::QdqOptions to{
      .symmetric = options.symmetric, .per_channel = options.per_channel, .ops = options.ops, .keep = options.keep};
  QUERN_ASSIGN(to.activations, ByteType("activations", options.activations));
  for (const std::string& op : options.ops) {
    if (ir::FindOp(op) == nullptr) return ir::UnknownOp(op);
  }
  ir::ValueRanges given;
  for (const auto& [name, range] : ranges) given[name] = {range.low, range.high};
  QUERN_ASSIGN(const ir::Graph graph, hir::LowerForAutodiff(module));
  QUERN_ASSIGN(const ir::QuantisationMap map, opt::QuantisationMapOf(graph, given, to));
  return PublicMap(map);
}

}  // namespace

namespace compiler {

StatusOr<ir::Graph> Mapped(const hir::Module& module, const QuantisationMap& map) {
  ir::QuantisationMap schemes;
  for (const auto& [name, scheme] : map) {
    QUERN_ASSIGN(const DType dtype, ByteType(name, scheme.dtype));
    schemes[name] = {dtype, scheme.symmetric, scheme.axis, RangeOf(scheme.range)};
  }
  QUERN_ASSIGN(ir::Graph graph, hir::LowerForAutodiff(module));
  graph.quantisation = std::move(schemes);
  QUERN_RETURN_IF_ERROR(opt::CheckSchemes(graph));
  return graph;
}

}  // namespace compiler

void Widen(ValueRanges& ranges, const ValueRanges& more) {
  for (const auto& [name, range] : more) {
    const auto [known, added] = ranges.emplace(name, range);
    if (added) continue;
    known->second.low = std::min(known->second.low, range.low);
    known->second.high = std::max(known->second.high, range.high);
  }
}

Result<QuantisationMap> MakeQuantisationMap(const Graph& graph, const ValueRanges& ranges, const QdqOptions& options) {
  const compiler::GraphAccess::State& state = compiler::GraphAccess::Of(graph);
  if (!state.ok()) return Result<QuantisationMap>::Failed(state.error);
  return compiler::ToResult(Made(state.module, ranges, options), state.module.name);
}

Result<Graph> InsertQdq(const Graph& graph, const QuantisationMap& map) {
  const compiler::GraphAccess::State& state = compiler::GraphAccess::Of(graph);
  if (!state.ok()) return Result<Graph>::Failed(state.error);
  opt::ParamBytes params;
  for (const auto& [name, bytes] : state.params)
    params[name] = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  const auto inserted = [&]() -> StatusOr<ir::Graph> {
    QUERN_ASSIGN(const ir::Graph mapped, compiler::Mapped(state.module, map));
    return opt::InsertQdq(mapped, params);
  };
  return state.InOps(inserted());
}

Result<Graph> WithQuantisation(const Graph& graph, const QuantisationMap& map) {
  const compiler::GraphAccess::State& state = compiler::GraphAccess::Of(graph);
  if (!state.ok()) return Result<Graph>::Failed(state.error);
  return state.InOps(compiler::Mapped(state.module, map));
}

Result<QuantisationMap> QuantisationOf(const Graph& graph) {
  const compiler::GraphAccess::State& state = compiler::GraphAccess::Of(graph);
  if (!state.ok()) return Result<QuantisationMap>::Failed(state.error);
  return PublicMap(state.module.quantisation);
}

}  // namespace quern
