// Graphs of quern/c.h.

#include <algorithm>
#include <span>
#include <string_view>

#include "c/handles.h"
#include "c/json_options.h"
#include "quern/onnx.h"
#include "quern/text.h"

namespace quern::c {
namespace {

std::span<const std::byte> Bytes(const void* data, size_t size) { return {static_cast<const std::byte*>(data), size}; }

std::vector<Value> Values(const quern_value* values, size_t count) {
  std::vector<Value> all;
  for (size_t i = 0; i < count; ++i) all.push_back({values[i].node, values[i].result});
  return all;
}

quern_value Out(Value value) { return {value.node, value.result}; }

template <typename Owner>
quern_graph* Wrap(Owner made) {
  auto owner = std::make_shared<const Owner>(std::move(made));
  const Graph* const graph = &owner->graph();
  return new quern_graph{std::make_shared<Kept>(Kept{std::move(owner)}), graph, nullptr};
}

quern_graph* Own(Graph graph) {
  auto owned = std::make_shared<Graph>(std::move(graph));
  Graph* const write = owned.get();
  return new quern_graph{std::make_shared<Kept>(Kept{std::move(owned)}), write, write};
}

// A refusal where the graph is null, or a file's.
quern_error* NeedsWritable(const char* function, const quern_graph* graph) {
  if (quern_error* error = Needs(function, {{"graph", graph}})) return error;
  if (graph->write != nullptr) return nullptr;
  return Refused(function, "the graph of a file is finished: quern_graph_inline takes it into another");
}

// The bytes of another graph's parameters are this one's as well.
void Keep(quern_graph* graph, const quern_graph* other) {
  if (graph != other) graph->kept->insert(graph->kept->end(), other->kept->begin(), other->kept->end());
}

// Runs one step of building; its error does not stay.
template <typename Step>
quern_error* Build(quern_graph* graph, const Step& step) {
  step(*graph->write);
  return ErrorOf(graph->write->Recover());
}

// The same of a step with results.
struct Operands {
  const quern_value* inputs;
  size_t input_count;
  const char* attributes;
  quern_value* values;
  size_t room;
  size_t* count;
};
template <typename Step>
quern_error* BuildResults(const char* function, quern_graph* graph, const Operands& operands, const Step& step) {
  if (quern_error* error = NeedsWritable(function, graph)) return error;
  if (quern_error* error = NeedsArray(function, "inputs", operands.inputs, operands.input_count)) return error;
  if (quern_error* error = NeedsArray(function, "values", operands.values, operands.room)) return error;
  std::vector<Attribute> attributes;
  if (quern_error* error = ReadAttributes(function, operands.attributes, &attributes)) return error;
  std::vector<Value> results;
  quern_error* error =
      Build(graph, [&](Graph& g) { results = step(g, Values(operands.inputs, operands.input_count), attributes); });
  if (error != nullptr) return error;
  for (size_t i = 0; i < std::min(results.size(), operands.room); ++i) operands.values[i] = Out(results[i]);
  if (operands.count != nullptr) *operands.count = results.size();
  return nullptr;
}

const char* OrEmpty(const char* text) { return text == nullptr ? "" : text; }

}  // namespace
}  // namespace quern::c

using namespace quern::c;  // NOLINT: the functions below are C's

quern_graph* quern_graph_new(const char* name) { return name == nullptr ? nullptr : Own(quern::Graph(name)); }
void quern_graph_free(quern_graph* graph) { delete graph; }

quern_error* quern_graph_parse(const char* text, size_t size, quern_graph** graph) {
  if (quern_error* error = Needs(__func__, {{"text", text}, {"graph", graph}})) return error;
  const std::string_view all(text, size);
  quern::Result<quern::Graph> made =
      all.starts_with("QUERNGRF") ? quern::Graph::FromBinary(Bytes(text, size)) : quern::Graph::Parse(all);
  if (!made.ok()) return Failed(made.details());
  *graph = Own(std::move(*made));
  return nullptr;
}

quern_error* quern_graph_open(const char* path, const char* options, quern_graph** graph) {
  if (quern_error* error = Needs(__func__, {{"path", path}, {"graph", graph}})) return error;
  quern::TextOptions text;
  if (quern_error* error = ReadOptions(
          __func__, options, {{"sizes", &text.sizes}, {"values", &text.values}, {"fix_sizes", &text.fix_sizes}}))
    return error;
  if (quern::OnnxModel::Is(path)) {
    quern::Result<quern::OnnxModel> made =
        quern::OnnxModel::Open(path, {.sizes = text.sizes, .values = text.values, .fix_sizes = text.fix_sizes});
    if (!made.ok()) return Failed(made.details());
    *graph = Wrap(std::move(*made));
    return nullptr;
  }
  quern::Result<quern::TextGraph> made = quern::TextGraph::Open(path, text);
  if (!made.ok()) return Failed(made.details());
  *graph = Wrap(std::move(*made));
  return nullptr;
}

quern_error* quern_graph_symbol(quern_graph* graph, const char* name, int64_t low, int64_t high) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"name", name}})) return error;
  return Build(graph, [&](quern::Graph& g) { g.Symbol(name, low, high); });
}

quern_error* quern_graph_specialise(quern_graph* graph, const char* symbol, int64_t low, int64_t high) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"symbol", symbol}})) return error;
  return Build(graph, [&](quern::Graph& g) { g.Specialise(symbol, low, high); });
}

quern_error* quern_graph_input(quern_graph* graph, const char* name, const char* type, quern_value* value) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"name", name}, {"type", type}, {"value", value}})) return error;
  quern::Value made;
  quern_error* error = Build(graph, [&](quern::Graph& g) { made = g.Input(name, type); });
  if (error == nullptr) *value = Out(made);
  return error;
}

quern_error* quern_graph_param(quern_graph* graph, const char* name, const char* type, const void* bytes, size_t size,
                               quern_value* value) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"name", name}, {"type", type}, {"value", value}})) return error;
  if (quern_error* error = NeedsArray(__func__, "bytes", bytes, size)) return error;
  quern::Value made;
  quern_error* error = Build(graph, [&](quern::Graph& g) {
    made = bytes == nullptr ? g.Param(name, type) : g.Param(name, type, Bytes(bytes, size));
  });
  if (error == nullptr) *value = Out(made);
  return error;
}

quern_error* quern_graph_bind(quern_graph* graph, const char* param, const void* bytes, size_t size) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"param", param}, {"bytes", bytes}})) return error;
  return ErrorOf(graph->write->Bind(param, Bytes(bytes, size)));
}

quern_error* quern_graph_constant(quern_graph* graph, const char* type, const void* bytes, size_t size,
                                  quern_value* value) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"type", type}, {"value", value}})) return error;
  if (quern_error* error = NeedsArray(__func__, "bytes", bytes, size)) return error;
  quern::Value made;
  quern_error* error = Build(graph, [&](quern::Graph& g) { made = g.Constant(type, Bytes(bytes, size)); });
  if (error == nullptr) *value = Out(made);
  return error;
}

quern_error* quern_graph_block(quern_graph* graph, const char* block, const quern_value* inputs, size_t input_count,
                               const char* attributes, const char* label, quern_value* values, size_t room,
                               size_t* count) {
  if (quern_error* error = Needs(__func__, {{"block", block}})) return error;
  return BuildResults(__func__, graph, {inputs, input_count, attributes, values, room, count},
                      [&](quern::Graph& g, const auto& operands, const auto& read) {
                        return g.Blocks(block, operands, read, OrEmpty(label));
                      });
}

quern_error* quern_graph_op(quern_graph* graph, const char* op, const quern_value* inputs, size_t input_count,
                            const char* attributes, const char* label, const quern_graph* const* bodies,
                            size_t body_count, quern_value* values, size_t room, size_t* count) {
  if (quern_error* error = Needs(__func__, {{"op", op}})) return error;
  if (quern_error* error = NeedsArray(__func__, "bodies", bodies, body_count)) return error;
  std::vector<const quern::Graph*> graphs;
  for (size_t i = 0; i < body_count; ++i) {
    if (quern_error* error = Needs(__func__, {{"a body", bodies[i]}})) return error;
    graphs.push_back(bodies[i]->read);
  }
  return BuildResults(__func__, graph, {inputs, input_count, attributes, values, room, count},
                      [&](quern::Graph& g, const auto& operands, const auto& read) {
                        for (size_t i = 0; i < body_count; ++i) Keep(graph, bodies[i]);
                        return g.Ops(op, operands, read, OrEmpty(label), graphs);
                      });
}

quern_error* quern_graph_promoted(quern_graph* graph, const char* op, const quern_value* inputs, size_t input_count,
                                  const char* attributes, const char* label, quern_value* value) {
  if (quern_error* error = Needs(__func__, {{"op", op}, {"value", value}})) return error;
  return BuildResults(__func__, graph, {inputs, input_count, attributes, value, 1, nullptr},
                      [&](quern::Graph& g, const auto& operands, const auto& read) {
                        return std::vector<quern::Value>{g.Promoted(op, operands, read, OrEmpty(label))};
                      });
}

quern_error* quern_graph_inline(quern_graph* graph, const quern_graph* other, const quern_value* inputs,
                                size_t input_count, const char* label, quern_value* values, size_t room,
                                size_t* count) {
  if (quern_error* error = Needs(__func__, {{"other", other}})) return error;
  return BuildResults(__func__, graph, {inputs, input_count, nullptr, values, room, count},
                      [&](quern::Graph& g, const auto& operands, const auto&) {
                        Keep(graph, other);
                        return g.Inline(*other->read, operands, OrEmpty(label));
                      });
}

quern_error* quern_graph_output(quern_graph* graph, const char* name, quern_value value) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"name", name}})) return error;
  return Build(graph, [&](quern::Graph& g) { g.Output(name, {value.node, value.result}); });
}

quern_error* quern_graph_carry(quern_graph* graph, const char* input, quern_value value) {
  if (quern_error* error = NeedsWritable(__func__, graph)) return error;
  if (quern_error* error = Needs(__func__, {{"input", input}})) return error;
  return Build(graph, [&](quern::Graph& g) { g.Carry(input, {value.node, value.result}); });
}

quern_error* quern_graph_type(const quern_graph* graph, quern_value value, quern_text** type) {
  if (quern_error* error = Needs(__func__, {{"graph", graph}, {"type", type}})) return error;
  std::string text = graph->read->TypeOf({value.node, value.result});
  if (text.empty()) {
    return Refused(__func__,
                   "the graph has no value %" + std::to_string(value.node) + "." + std::to_string(value.result));
  }
  *type = MakeText(std::move(text));
  return nullptr;
}

quern_error* quern_graph_text(const quern_graph* graph, quern_text** text) {
  if (quern_error* error = Needs(__func__, {{"graph", graph}, {"text", text}})) return error;
  *text = MakeText(graph->read->Text());
  return nullptr;
}

quern_error* quern_graph_binary(const quern_graph* graph, quern_text** bytes) {
  if (quern_error* error = Needs(__func__, {{"graph", graph}, {"bytes", bytes}})) return error;
  return TakeText(graph->read->Binary(), bytes);
}

quern_error* quern_graph_fingerprint(const quern_graph* graph, quern_text** digits) {
  if (quern_error* error = Needs(__func__, {{"graph", graph}, {"digits", digits}})) return error;
  return TakeText(graph->read->Fingerprint(), digits);
}

quern_error* quern_graph_compile(const quern_graph* graph, const char* options, const quern_cancel* cancel,
                                 quern_program** program) {
  if (quern_error* error = Needs(__func__, {{"graph", graph}, {"program", program}})) return error;
  quern::Options read;
  if (quern_error* error = ReadOptions(__func__, options, FieldsOf(read))) return error;
  std::shared_ptr<const quern::CancelToken> token = cancel == nullptr ? nullptr : cancel->token;
  read.cancel = token.get();
  quern::Result<quern::Program> made = graph->read->Compile(read);
  if (!made.ok()) return Failed(made.details());
  auto dtypes = [](const std::vector<quern::TensorInfo>& ports) {
    std::vector<std::string> all;
    for (const quern::TensorInfo& port : ports) all.push_back(port.type.substr(0, port.type.find('[')));
    return all;
  };
  auto owned = std::make_shared<OwnedProgram>(
      OwnedProgram{std::make_shared<Kept>(*graph->kept), std::move(token), std::move(*made), {}});
  const quern::Program& p = owned->program;
  size_t kind = 0;
  for (const auto* ports : {&p.inputs(), &p.outputs(), &p.params(), &p.states()})
    owned->dtypes[kind++] = dtypes(*ports);
  *program = new quern_program{std::move(owned)};
  return nullptr;
}
