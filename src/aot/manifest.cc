#include "aot/manifest.h"

#include <nlohmann/json.hpp>

#include "aot/support/support.h"

namespace quern::aot {
namespace {

using Json = nlohmann::ordered_json;

Json Shape(const ir::TensorType& type) {
  Json shape = Json::array();
  for (const Extent& dim : type.dims) {
    if (dim.is_constant())
      shape.push_back(dim.constant());
    else
      shape.push_back(dim.ToString());
  }
  return shape;
}

// Bytes are those of the memory that a port is given.
Json Ports(const Signature& signature, const std::vector<Port>& ports) {
  Json rows = Json::array();
  for (const Port& port : ports) {
    rows.push_back({{"name", port.name},
                    {"dtype", std::string(Name(port.type.dtype))},
                    {"shape", Shape(port.type)},
                    {"bytes", BytesOf(RoomFor(signature, port), false).ToString()}});
  }
  return rows;
}

}  // namespace

StatusOr<std::string> Manifest(const Model& model, const Workspace& workspace, const std::vector<KernelTable>& kernels,
                               const std::vector<std::vector<std::string>>& tiles, const std::string& object,
                               const ObjectSymbols& symbols_of, const Options& options) {
  const auto size_of = [&](const std::string& symbol) {
    const auto found = symbols_of.sizes.find(symbol);
    return found == symbols_of.sizes.end() ? uint64_t{0} : found->second;
  };
  Json json;
  json["name"] = model.name;
  json["abi_version"] = QUERN_ABI_VERSION;
  json["target"] = model.levels[0].target->platform->triple;
  Json symbols = Json::object();
  for (const auto& [name, range] : model.signature.symbols) symbols[name] = {range.low, range.high};
  json["symbols"] = symbols;
  Json found = Json::object();
  for (const auto& [name, most] : model.signature.counted) found[name] = most.ToString();
  json["found_symbols"] = found;
  json["inputs"] = Ports(model.signature, model.signature.inputs);
  json["outputs"] = Ports(model.signature, model.signature.outputs);
  json["states"] = Ports(model.signature, model.signature.states);
  json["workspace"] = {{"fixed_bytes", workspace.fixed},
                       {"scratch_bytes_per_worker", workspace.scratch},
                       {"state_bytes", workspace.state_bytes},
                       {"arena_bytes", workspace.arena_bytes}};
  const WeightFile& weights = model.weights;
  json["weights"] = {
      {"bytes", weights.bytes.size()},
      {"header_bytes", weights.header_bytes},
      {"header_hash", absl::StrFormat("%016x", quern_header_hash(weights.bytes.data(), weights.header_bytes))},
      {"embedded", options.embed_weights}};
  if (model.tokens.has_value()) {
    const Tokens& tokens = *model.tokens;
    json["vocabulary"] = {{"tokens", tokens.count},
                          {"begin", tokens.begin},
                          {"end", tokens.end},
                          {"embedded_bytes", tokens.vocabulary.size()}};
  }
  Json params = Json::array();
  for (const Port& port : model.signature.params) {
    const auto param =
        std::find_if(model.params.begin(), model.params.end(), [&](const Param& p) { return p.name == port.name; });
    if (param == model.params.end()) return absl::InternalError(absl::StrFormat("parameter %s has no data", port.name));
    Json row = {{"name", port.name},
                {"dtype", std::string(Name(port.type.dtype))},
                {"shape", Shape(port.type)},
                {"bytes", param->bytes.size()}};
    if (param->file_offset >= 0)
      row["file_offset"] = param->file_offset;
    else
      row["embedded"] = true;
    params.push_back(std::move(row));
  }
  json["params"] = std::move(params);
  Json calls = Json::array();
  for (const ir::CustomDef* call : CallsOf(kernels))
    calls.push_back({{"symbol", call->symbol}, {"op", call->name}, {"version", call->version}});
  json["calls"] = std::move(calls);
  json["libraries"] = symbols_of.needs_mathematics() ? Json::array({"m"}) : Json::array();
  Json levels = Json::array();
  for (size_t l = 0; l < model.levels.size(); ++l) {
    const Level& level = model.levels[l];
    Json row;
    row["name"] = level.target->name;
    row["requires"] = level.target->required;
    Json variants = Json::array();
    for (const Variant& variant : level.variants) {
      Json guard = Json::object();
      for (const auto& [symbol, range] : variant.guard) guard[symbol] = {range.low, range.high};
      variants.push_back(
          {{"guard", guard}, {"launches", variant.plan.launches.size()}, {"once", variant.plan.once.size()}});
    }
    row["variants"] = std::move(variants);
    Json functions = Json::array();
    for (const KernelTable::Entry& entry : kernels[l].entries) {
      if (entry.call != nullptr) continue;
      functions.push_back({{"symbol", entry.symbol},
                           {"label", entry.label},
                           {"launches", entry.launches},
                           {"bytes", size_of(entry.symbol)}});
    }
    row["kernels"] = std::move(functions);
    Json used = Json::array();
    for (const std::string& tile : tiles[l]) used.push_back({{"symbol", tile}, {"bytes", size_of(tile)}});
    row["tiles"] = std::move(used);
    levels.push_back(std::move(row));
  }
  json["levels"] = std::move(levels);
  json["object_bytes"] = object.size();
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quern::aot
