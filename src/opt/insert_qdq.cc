// Operands of products through bytes:
//
//   %2 = MatMul(%0, %1) : f32[S, 80]   =>   %2 = QuantizeLinear(%0, scale, zero) : u8[S, 48]
//                                           %3 = DequantizeLinear(%2, scale, zero) : f32[S, 48]
//                                           %4 = Constant() : i8[48, 80]                        # of the weights %1
//                                           %5 = DequantizeLinear(%4, scales) {axis = 1} : f32[48, 80]
//                                           %6 = MatMul(%3, %5) : f32[S, 80]
//
// by the graph's quantisation map, which has a scheme of %0 and one of %1. Each value has one pair, whichever products
// read it. The product of two such is then one of bytes (integer_products).

#include "opt/insert_qdq.h"

#include <algorithm>
#include <cmath>

#include "ir/interpret.h"
#include "ir/linear_quantise.h"
#include "ir/shape.h"
#include "ir/value_names.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

// For each node, whether Constants and these parameters alone decide it.
std::vector<bool> KnownNow(const ir::Graph& graph, const ParamBytes& params) {
  std::vector<bool> known = OncePerBinding(graph);
  for (size_t n = 0; n < known.size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    known[n] = known[n] && (!ir::IsParam(node) || params.contains(node.attributes.String("name")));
    for (const ir::Value& input : node.inputs) known[n] = known[n] && known[input.node];
  }
  return known;
}

// `value`, and what it is made of, in a graph by itself; with feeds for its parameters.
StatusOr<ir::Value> CopyApart(const ir::Graph& graph, ir::Value value, const ParamBytes& params, ir::Graph& apart,
                              ir::Feeds& feeds) {
  std::vector<bool> needed(static_cast<size_t>(value.node) + 1);
  needed[value.node] = true;
  std::vector<int> now(needed.size(), -1);
  for (int n = value.node; n >= 0; --n) {
    if (!needed[n]) continue;
    for (const ir::Value& input : graph.node(n).inputs) needed[input.node] = true;
  }
  for (int n = 0; n <= value.node; ++n) {
    if (!needed[n]) continue;
    std::vector<ir::Value> inputs;
    for (const ir::Value& input : graph.node(n).inputs) inputs.push_back({now[input.node], input.result});
    QUERN_ASSIGN(const ir::Value made, apart.AddCopy(graph.node(n), std::move(inputs)));
    now[n] = made.node;
    if (!ir::IsParam(graph.node(n))) continue;
    const std::string& name = graph.node(n).attributes.String("name");
    const ir::TensorType& type = graph.node(n).results[0];
    std::vector<int64_t> dims;
    for (const Extent& dim : type.dims) dims.push_back(dim.constant());
    QUERN_ASSIGN(feeds[name], ir::RefTensorFromBytes(type.dtype, std::move(dims), params.find(name)->second));
  }
  return ir::Value{now[value.node], value.result};
}

std::vector<uint8_t> Stored(DType dtype, double number) {
  ir::RefTensor tensor{dtype, {}, {}};
  tensor.Allocate();
  if (IsInteger(dtype))
    tensor.SetInteger(0, static_cast<int64_t>(number));
  else
    tensor.data[0] = number;
  return ir::BytesOf(tensor);
}

class Inserter {
 public:
  Inserter(const ir::Graph& graph, const ParamBytes& params)
      : graph_(graph),
        params_(params),
        schemes_(ir::SchemesOf(graph)),
        known_(KnownNow(graph, params)),
        rewriter_(graph, "insert_qdq", nullptr) {}

  StatusOr<ir::Graph> Run() {
    for (int n = 0; n < rewriter_.size(); ++n) {
      const ir::Node& node = graph_.node(n);
      if (!ReadsBytes(graph_, node)) {
        QUERN_RETURN_IF_ERROR(rewriter_.Copy(n));
        continue;
      }
      // The product reads the pairs; everything else what they were made of.
      std::vector<std::pair<ir::Value, ir::Value>> plain;
      for (const ir::Value& value : {node.inputs[0], node.inputs[1]}) {
        const auto scheme = schemes_.find(value);
        if (scheme == schemes_.end()) continue;
        plain.emplace_back(value, rewriter_.Now(value));
        QUERN_ASSIGN(const ir::Value pair, PairOf(n, value, scheme->second));
        rewriter_.Replace(value, pair);
      }
      QUERN_RETURN_IF_ERROR(rewriter_.Copy(n));
      for (size_t i = plain.size(); i-- > 0;) rewriter_.Replace(plain[i].first, plain[i].second);
    }
    QUERN_ASSIGN(const ir::Graph inserted, rewriter_.Finish());
    return Dce(inserted);
  }

 private:
  StatusOr<ir::Value> Constant(int n, DType dtype, double number) {
    return rewriter_.to.AddConstant({dtype, {}}, Stored(dtype, number), rewriter_.OriginOf(n));
  }

  StatusOr<ir::Value> PairOf(int n, ir::Value value, const ir::Scheme& scheme) {
    const auto [known, added] = pairs_.emplace(value, ir::Value{});
    if (!added) return known->second;
    ir::LinearForm form{{}, {}, scheme.axis.value_or(0), scheme.dtype};
    ir::Value bytes;
    if (scheme.range) {
      const ir::ScaleAndZero steps = ir::ScaleAndZeroOf(scheme, *scheme.range);
      QUERN_ASSIGN(form.scale, Constant(n, DType::kF32, static_cast<double>(steps.scale)));
      QUERN_ASSIGN(form.zero, Constant(n, scheme.dtype, static_cast<double>(steps.zero)));
      QUERN_ASSIGN(bytes, ir::MakeQuantized(rewriter_.Maker(n), rewriter_.Now(value), form));
    } else if (known_[value.node]) {
      QUERN_ASSIGN(bytes, BytesNow(n, value, scheme, form));
    } else {
      ir::Expansion e(rewriter_.to, rewriter_.OriginOf(n));
      const ir::Value scale = ir::SymmetricScale(e, rewriter_.Now(value), scheme.axis, ir::kMostSymmetric);
      QUERN_ASSIGN(const std::vector<ir::Value> made, e.Finish({scale}));
      form.scale = made[0];
      QUERN_ASSIGN(bytes, ir::MakeQuantized(rewriter_.Maker(n), rewriter_.Now(value), form));
    }
    QUERN_ASSIGN(known->second, ir::MakeDequantized(rewriter_.Maker(n), bytes, form));
    return known->second;
  }

  // Both the scales and the bytes as Constants. Sets form.scale.
  StatusOr<ir::Value> BytesNow(int n, ir::Value value, const ir::Scheme& scheme, ir::LinearForm& form) {
    ir::Graph apart;
    ir::Feeds feeds;
    QUERN_ASSIGN(const ir::Value weights, CopyApart(graph_, value, params_, apart, feeds));
    ir::Expansion e(apart, -1);
    ir::LinearForm there = form;
    there.scale = ir::SymmetricScale(e, weights, scheme.axis, ir::kMostSymmetric);
    QUERN_RETURN_IF_ERROR(e.Finish({}).status());
    const ir::MakeNode make = [&](std::string_view op, std::vector<ir::Value> operands, ir::Attributes attributes) {
      return apart.Add(op, std::move(operands), std::move(attributes));
    };
    QUERN_ASSIGN(const ir::Value quantised, ir::MakeQuantized(make, weights, there));
    apart.outputs = {there.scale, quantised, weights};
    QUERN_ASSIGN(const std::vector<ir::RefTensor> made, ir::Interpret(apart, {}, feeds));
    if (!std::all_of(made[2].data.begin(), made[2].data.end(), [](double number) { return std::isfinite(number); }))
      return ToStatus({DiagnosticCode::kOutOfRange, "",
                       absl::StrCat("the weights of ", ir::ValueNames(graph_).at(value)), "finite numbers",
                       "a NaN or an infinity", graph_.name});
    const int origin = rewriter_.OriginOf(n);
    QUERN_ASSIGN(form.scale, rewriter_.to.AddConstant(apart.type(there.scale), ir::BytesOf(made[0]), origin));
    return rewriter_.to.AddConstant(apart.type(quantised), ir::BytesOf(made[1]), origin);
  }

  const ir::Graph& graph_;
  const ParamBytes& params_;
  const std::map<ir::Value, ir::Scheme> schemes_;
  const std::vector<bool> known_;
  std::map<ir::Value, ir::Value> pairs_;  // of the new graph, by what they are made of
  Rewriter rewriter_;
};

}  // namespace

Status CheckSchemes(const ir::Graph& graph) {
  QUERN_RETURN_IF_ERROR(ir::CheckQuantisation(graph, graph.quantisation));
  const std::vector<bool> once = OncePerBinding(graph);
  for (const auto& [value, scheme] : ir::SchemesOf(graph)) {
    if (scheme.range || once[value.node]) continue;
    return ToStatus({DiagnosticCode::kBadAttribute, absl::StrCat("the scheme of ", ir::ValueNames(graph).at(value)),
                     "range", "that of an activation", "none", graph.name});
  }
  return absl::OkStatus();
}

StatusOr<ir::Graph> InsertQdq(const ir::Graph& graph, const ParamBytes& params) {
  if (graph.quantisation.empty()) return graph;
  QUERN_RETURN_IF_ERROR(CheckSchemes(graph));
  return Inserter(graph, params).Run();
}

}  // namespace quern::opt
