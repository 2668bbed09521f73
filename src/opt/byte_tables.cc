// Functions of one byte that are a byte again, by way of a function such as exp, are tables of 256: what is between a
// DequantizeLinear and a QuantizeLinear, once it is spelled out.
//
//   %4 = Cast(%3) {to = f32} : f32[1, 28, 28, 64]       %4 = .. of all bytes, a u8[256] once per binding
//   %5 = Mul(%4, 0.1)                              =>   %5 = Cast(%3) {to = i32}
//   %6 = Silu(%5)                                       %6 = Gather(%4, %5)
//   ..
//   %9 = Cast(%8) {to = u8}
//
// Beside the bytes such a function has numbers alone, computed once per binding. Without math it is as quick as it
// stands, and needs no bytes in memory before it.

#include "ir/linear_quantise.h"
#include "ir/product.h"
#include "ir/spelled_out.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

constexpr int64_t kFewest = 1024;  // elements that a table is made for

// What an element of a value depends on alone: the element of `bytes` in its place.
struct Source {
  ir::Value bytes;
  bool calls_math = false;  // on the way
};

class Tables {
 public:
  Tables(const ir::Graph& graph, Rewriter& rewriter)
      : graph_(graph),
        rewriter_(rewriter),
        once_(OncePerBinding(graph)),
        sources_(graph.nodes().size()),
        tables_(graph.nodes().size()) {}

  // Notes what node n is a function of. Nodes come in order.
  void Note(int n) {
    const ir::Node& node = graph_.node(n);
    if (node.op->kind != ir::OpKind::kElementwise || once_[n]) return;
    std::optional<Source> source;
    for (const ir::Value& input : node.inputs) {
      if (IsNumber(input)) continue;
      const std::optional<Source> own = SourceOf(input);
      if (!own || (source && source->bytes != own->bytes) || graph_.type(input).dims != node.results[0].dims) return;
      source = {own->bytes, own->calls_math || (source && source->calls_math)};
    }
    if (source) source->calls_math |= ir::CallsMath(node);
    sources_[n] = source;
  }

  // Whether a table takes the place of node n.
  bool IsTable(int n) const {
    const ir::TensorType& type = graph_.node(n).results[0];
    return sources_[n] && sources_[n]->calls_math && ir::IsByte(type.dtype) &&
           type.elements().UpperBound(graph_.symbols).value_or(kFewest) >= kFewest;
  }

  StatusOr<ir::Value> LookedUp(int n) {
    const ir::MakeNode make = rewriter_.Maker(n);
    QUERN_ASSIGN(ir::Value table, TableOf(make, {n, 0}, sources_[n]->bytes));
    const std::vector<Extent> flat = {Extent(256)};  // numbers of more dimensions made it [1, 1, 256]
    if (rewriter_.to.type(table).dims != flat) {
      QUERN_ASSIGN(table, ir::MakeReshaped(make, table, flat));
    }
    return ir::MakeLookedUp(make, table, rewriter_.Now(sources_[n]->bytes));
  }

 private:
  bool IsNumber(ir::Value value) const { return once_[value.node] && graph_.type(value).elements() == Extent(1); }

  std::optional<Source> SourceOf(ir::Value value) const {
    if (once_[value.node]) return std::nullopt;
    if (sources_[value.node]) return sources_[value.node];
    return ir::IsByte(graph_.type(value).dtype) ? std::optional<Source>({value}) : std::nullopt;
  }

  // What `value` is for each of all bytes.
  StatusOr<ir::Value> TableOf(const ir::MakeNode& make, ir::Value value, ir::Value bytes) {
    if (value == bytes) return ir::MakeAllBytes(make, graph_.type(bytes).dtype);
    if (IsNumber(value)) return rewriter_.Now(value);
    std::optional<ir::Value>& made = tables_[value.node];
    if (made) return *made;
    const ir::Node& node = graph_.node(value.node);
    std::vector<ir::Value> operands;
    for (const ir::Value& input : node.inputs) {
      QUERN_ASSIGN(const ir::Value operand, TableOf(make, input, bytes));
      operands.push_back(operand);
    }
    QUERN_ASSIGN(made, make(node.op->name, operands, node.attributes));
    return *made;
  }

  const ir::Graph& graph_;
  Rewriter& rewriter_;
  const std::vector<bool> once_;
  std::vector<std::optional<Source>> sources_;    // by node
  std::vector<std::optional<ir::Value>> tables_;  // likewise
};

}  // namespace

StatusOr<ir::Graph> ByteTables(const ir::Graph& graph) {
  Rewriter rewriter(graph, "byte_tables", ByteTables);
  Tables tables(graph, rewriter);
  for (int n = 0; n < rewriter.size(); ++n) {
    tables.Note(n);
    if (!tables.IsTable(n)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    QUERN_ASSIGN(const ir::Value looked_up, tables.LookedUp(n));
    rewriter.Replace({n, 0}, looked_up);
  }
  QUERN_ASSIGN(const ir::Graph with_tables, rewriter.Finish());
  return Dce(with_tables);  // the functions that tables stand for
}

}  // namespace quern::opt
