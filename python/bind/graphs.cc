// Graphs, files of graphs, programs and their profiles.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#include <quern/compile.h>
#include <quern/graph.h>
#include <quern/onnx.h>
#include <quern/profile.h>
#include <quern/text.h>

#include <cstring>
#include <optional>
#include <string>

#include "bind.h"

namespace quern::python {
namespace {

using Node = std::pair<int, int>;
using AttributeValue = decltype(Attribute::value);
using Named = std::tuple<std::string, nb::object, std::string>;  // an array with its name and dtype

std::vector<Value> Values(const std::vector<Node>& nodes) {
  std::vector<Value> values;
  for (const auto& [node, result] : nodes) values.push_back({node, result});
  return values;
}

std::vector<Node> Nodes(const std::vector<Value>& values) {
  std::vector<Node> nodes;
  for (const Value& value : values) nodes.emplace_back(value.node, value.result);
  return nodes;
}

std::vector<Attribute> Attributes(const std::map<std::string, AttributeValue>& given) {
  std::vector<Attribute> attributes;
  for (const auto& [name, value] : given) attributes.push_back({name, value});
  return attributes;
}

std::span<const std::byte> Bytes(const Input& array) {
  return {static_cast<const std::byte*>(array.data()), array.nbytes()};
}

// One step of building; its error does not stay.
template <typename Step>
auto Build(Graph& graph, const Step& step) {
  auto made = step();
  Take(graph.Recover());
  return made;
}
template <typename Step>
void BuildNothing(Graph& graph, const Step& step) {
  step();
  Take(graph.Recover());
}

// A program with what asks it to stop.
struct OwnedProgram {
  std::unique_ptr<CancelToken> cancel = std::make_unique<CancelToken>();
  std::optional<Program> program;
  mutable std::atomic<bool> taken{false};
};

std::unique_ptr<OwnedProgram> Compile(Options options, auto&& compile) {
  auto owned = std::make_unique<OwnedProgram>();
  options.cancel = owned->cancel.get();
  owned->program = Unlocked(owned->cancel.get(), [&] { return compile(options); });
  return owned;
}

template <typename Tensor, typename Array>
std::vector<Tensor> Tensors(const std::vector<Named>& named, std::vector<Array>& kept) {
  std::vector<Tensor> tensors;
  for (const auto& [name, object, dtype] : named) {
    Array& array = kept.emplace_back(nb::cast<Array>(object, false));
    std::vector<int64_t> shape;
    for (size_t d = 0; d < array.ndim(); ++d) shape.push_back(static_cast<int64_t>(array.shape(d)));
    tensors.push_back({name, array.data(), array.nbytes(), dtype.c_str(), std::move(shape)});
  }
  return tensors;
}

std::vector<std::pair<std::string, std::string>> Ports(const std::vector<TensorInfo>& infos) {
  std::vector<std::pair<std::string, std::string>> ports;
  for (const TensorInfo& info : infos) ports.emplace_back(info.name, info.type);
  return ports;
}

nb::dict Counters(const OwnedProgram& p) {
  const Turn turn(p.taken);
  const Program::Counters c = p.program->counters();
  nb::dict all;
  all["variants"] = c.variants;
  all["kernels"] = c.kernels;
  all["code_bytes"] = c.code_bytes;
  all["launches"] = c.launches;
  all["arena_bytes"] = c.arena_bytes;
  all["packed_bytes"] = c.packed_bytes;
  all["compile"] = c.compile;
  all["bind"] = c.bind;
  all["run"] = c.run;
  return all;
}

// What DLPack calls the dtype, as Quern does; empty: neither has it.
std::string DTypeOf(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  if (dtype.lanes != 1) return "";
  const std::string bits = std::to_string(dtype.bits);
  switch (static_cast<Code>(dtype.code)) {
    case Code::Int: return "i" + bits;
    case Code::UInt: return "u" + bits;
    case Code::Float: return "f" + bits;
    case Code::Bfloat: return "bf16";
    case Code::Bool: return "bool";
    case Code::Complex: return "c" + bits;
    default: return "";
  }
}

// Memory that something with __dlpack__ has, as a numpy array over it: of bf16, which numpy has not, its bits as u16.
// `Access`: nb::ro, or none to write.
template <typename... Access>
std::pair<nb::object, std::string> View(const nb::object& object) {
  using Array = nb::ndarray<nb::device::cpu, Access...>;
  auto kept = std::make_unique<Array>(nb::cast<Array>(object, false));
  nb::dlpack::dtype dtype = kept->dtype();
  const std::string name = DTypeOf(dtype);
  if (name == "bf16") dtype.code = static_cast<uint8_t>(nb::dlpack::dtype_code::UInt);
  std::vector<size_t> shape(kept->ndim());
  std::vector<int64_t> strides(kept->ndim());
  for (size_t d = 0; d < kept->ndim(); ++d) shape[d] = kept->shape(d), strides[d] = kept->stride(d);
  auto* const data = kept->data();
  nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<Array*>(p); });
  const nb::ndarray<nb::numpy, Access...> view(data, shape.size(), shape.data(), owner, strides.data(), dtype);
  return {nb::cast(view), name};
}

}  // namespace

void BindGraphs(nb::module_& m) {
  m.def("view", &View<nb::ro>);
  m.def("writable_view", &View<>);

  nb::class_<Graph>(m, "Graph")
      .def(nb::init<std::string>())
      .def_static("parse", [](std::string_view text) { return Take(Graph::Parse(text)); })
      .def_static("from_binary",
                  [](nb::bytes bytes) {
                    return Take(Graph::FromBinary({reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()}));
                  })
      .def("symbol", [](Graph& g, std::string_view name, int64_t low,
                        int64_t high) { BuildNothing(g, [&] { g.Symbol(name, low, high); }); })
      .def("specialise", [](Graph& g, std::string_view symbol, int64_t low,
                            int64_t high) { BuildNothing(g, [&] { g.Specialise(symbol, low, high); }); })
      .def("input", [](Graph& g, std::string_view name,
                       std::string_view type) { return Nodes({Build(g, [&] { return g.Input(name, type); })})[0]; })
      .def("param", [](Graph& g, std::string_view name,
                       std::string_view type) { return Nodes({Build(g, [&] { return g.Param(name, type); })})[0]; })
      .def("bind", [](Graph& g, std::string_view name, const Input& bytes) { Take(g.Bind(name, Bytes(bytes))); })
      .def("constant",
           [](Graph& g, std::string_view type, const Input& bytes) {
             return Nodes({Build(g, [&] { return g.Constant(type, Bytes(bytes)); })})[0];
           })
      .def("block",
           [](Graph& g, std::string_view name, const std::vector<Node>& inputs,
              const std::map<std::string, AttributeValue>& attributes, std::string_view label) {
             return Nodes(Build(g, [&] { return g.Blocks(name, Values(inputs), Attributes(attributes), label); }));
           })
      .def("op",
           [](Graph& g, std::string_view name, const std::vector<Node>& inputs,
              const std::map<std::string, AttributeValue>& attributes, std::string_view label,
              const std::vector<const Graph*>& bodies) {
             return Nodes(Build(g, [&] { return g.Ops(name, Values(inputs), Attributes(attributes), label, bodies); }));
           })
      .def("promoted",
           [](Graph& g, std::string_view name, const std::vector<Node>& inputs,
              const std::map<std::string, AttributeValue>& attributes, std::string_view label) {
             return Nodes({Build(g, [&] { return g.Promoted(name, Values(inputs), Attributes(attributes), label); })});
           })
      .def("inline",
           [](Graph& g, const Graph& other, const std::vector<Node>& inputs, std::string_view label) {
             return Nodes(Build(g, [&] { return g.Inline(other, Values(inputs), label); }));
           })
      .def("output", [](Graph& g, std::string_view name,
                        Node node) { BuildNothing(g, [&] { g.Output(name, {node.first, node.second}); }); })
      .def("carry", [](Graph& g, std::string_view input,
                       Node node) { BuildNothing(g, [&] { g.Carry(input, {node.first, node.second}); }); })
      .def("type_of", [](const Graph& g, Node node) { return g.TypeOf({node.first, node.second}); })
      .def("text", &Graph::Text)
      .def("binary",
           [](const Graph& g) {
             const std::string bytes = Take(g.Binary());
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("fingerprint", [](const Graph& g) { return Take(g.Fingerprint()); })
      .def("dump",
           [](const Graph& g, const std::string& stage, const std::string& kernel, const Options& options) {
             return Unlocked([&] { return g.Dump({.stage = stage, .kernel = kernel}, options); });
           })
      .def("compile_files",
           [](const Graph& g, const Options& options, const std::string& folder, const std::string& name) {
             const CompiledFiles files =
                 Unlocked([&] { return CompileGraph(g, options, {.folder = folder, .name = name}); });
             return std::vector<std::string>{files.body, files.header, files.manifest};
           })
      .def("compile", [](const Graph& g, const Options& options) {
        return Compile(options, [&](const Options& o) { return g.Compile(o); });
      });

  nb::class_<OnnxModel>(m, "OnnxModel")
      .def_static("open",
                  [](const std::string& path, const std::map<std::string, int64_t>& sizes,
                     const std::vector<std::string>& values, bool fix_sizes) {
                    return Unlocked([&] {
                      return OnnxModel::Open(path, {.sizes = sizes, .values = values, .fix_sizes = fix_sizes});
                    });
                  })
      .def_static("is_onnx", &OnnxModel::Is)
      .def_static("not_covered",
                  [](const std::string& path) { return Unlocked([&] { return OnnxModel::NotCovered(path); }); })
      .def("graph", &OnnxModel::graph, nb::rv_policy::reference_internal)
      .def("outputs", &OnnxModel::outputs)
      .def("fixed_sizes", &OnnxModel::fixed_sizes)
      .def("fixed_inputs", &OnnxModel::fixed_inputs);

  nb::class_<TextGraph>(m, "TextGraph")
      .def_static("open",
                  [](const std::string& path, const std::map<std::string, int64_t>& sizes,
                     const std::vector<std::string>& values) {
                    return Unlocked([&] { return TextGraph::Open(path, {.sizes = sizes, .values = values}); });
                  })
      .def_static("is_graph", &TextGraph::Is)
      .def("graph", &TextGraph::graph, nb::rv_policy::reference_internal);

  nb::class_<OwnedProgram>(m, "Program")
      .def("inputs", [](const OwnedProgram& p) { return Ports(p.program->inputs()); })
      .def("outputs", [](const OwnedProgram& p) { return Ports(p.program->outputs()); })
      .def("params", [](const OwnedProgram& p) { return Ports(p.program->params()); })
      .def("states", [](const OwnedProgram& p) { return Ports(p.program->states()); })
      .def("bind", [](OwnedProgram& p, std::string_view name,
                      const Input& bytes) { Take(p.program->Bind(name, Bytes(bytes))); })
      .def("output_shapes",
           [](const OwnedProgram& p, const std::vector<Named>& inputs, const std::map<std::string, int64_t>& symbols) {
             std::vector<Input> kept;
             return Take(p.program->OutputShapes(Tensors<ConstTensor>(inputs, kept), symbols));
           })
      .def("last_shapes", [](const OwnedProgram& p) { return Take(p.program->LastShapes()); })
      .def("run",
           [](OwnedProgram& p, const std::vector<Named>& inputs, const std::vector<Named>& outputs,
              const std::map<std::string, int64_t>& symbols) {
             std::vector<Input> kept;
             std::vector<Output> written;
             const auto in = Tensors<ConstTensor>(inputs, kept);
             const auto out = Tensors<MutableTensor>(outputs, written);
             const Turn turn(p.taken);
             Unlocked(p.cancel.get(), [&] { return p.program->Run(in, out, symbols); });
           })
      .def("state",
           [](OwnedProgram& p, std::string_view name) {
             const Turn turn(p.taken);
             const std::span<std::byte> bytes = Take(p.program->State(name));
             const size_t size = bytes.size();
             return nb::ndarray<nb::numpy, uint8_t>(bytes.data(), 1, &size, nb::find(&p));
           })
      .def("reset_state",
           [](OwnedProgram& p) {
             const Turn turn(p.taken);
             p.program->ResetState();
           })
      .def("counters", &Counters)
      .def("check_summary", [](const OwnedProgram& p) { return p.program->CheckSummary(); })
      .def("cancel", [](OwnedProgram& p) { p.cancel->Cancel(); })
      .def("uncancel", [](OwnedProgram& p) { p.cancel->Reset(); })
      .def(
          "profiler",
          [](OwnedProgram& p, bool counters) {
            const Turn turn(p.taken);
            return Unlocked([&] { return Profiler::Attach(*p.program, {.counters = counters}); });
          },
          nb::keep_alive<0, 1>());

  nb::class_<Profiler>(m, "Profiler")
      .def("phase", &Profiler::Phase)
      .def("clear", &Profiler::Clear)
      .def("table", [](Profiler& p, int top) { return Take(p.Table(top)); })
      .def("json", [](Profiler& p) { return Take(p.Json()); })
      .def("trace", [](Profiler& p) { return Take(p.Trace()); })
      .def("html", [](Profiler& p) { return Unlocked([&] { return p.Html(); }); });
}

}  // namespace quern::python
