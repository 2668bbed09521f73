// Programs of quern/c.h.

#include <algorithm>
#include <map>
#include <span>

#include "c/handles.h"
#include "c/json_options.h"

namespace quern::c {
namespace {

const std::vector<TensorInfo>* Ports(const quern_program* program, quern_port_kind kind) {
  if (program == nullptr) return nullptr;
  const Program& p = program->owned->program;
  switch (static_cast<int>(kind)) {
    case QUERN_INPUT: return &p.inputs();
    case QUERN_OUTPUT: return &p.outputs();
    case QUERN_PARAM: return &p.params();
    case QUERN_STATE: return &p.states();
    default: return nullptr;  // C's enums hold any number
  }
}

const TensorInfo* PortOf(const quern_program* program, quern_port_kind kind, size_t index) {
  const std::vector<TensorInfo>* const ports = Ports(program, kind);
  return ports == nullptr || index >= ports->size() ? nullptr : &(*ports)[index];
}

// The extents of one of the shapes, to a caller who has room for so many.
quern_error* GiveShape(const char* function, const std::vector<std::vector<int64_t>>& shapes, size_t output,
                       int64_t* shape, size_t room, size_t* rank) {
  if (output >= shapes.size()) {
    return Refused(function,
                   "there is no output " + std::to_string(output) + ": there are " + std::to_string(shapes.size()));
  }
  const std::vector<int64_t>& extents = shapes[output];
  std::copy_n(extents.begin(), std::min(room, extents.size()), shape);
  *rank = extents.size();
  return nullptr;
}

// The tensors as the C++ interface has them, or a refusal of a null pointer among them.
template <typename Tensor>
quern_error* ReadTensors(const char* function, const char* what, const quern_tensor* tensors, size_t count,
                         std::vector<Tensor>* read) {
  if (quern_error* error = NeedsArray(function, what, tensors, count)) return error;
  for (size_t i = 0; i < count; ++i) {
    const quern_tensor& tensor = tensors[i];
    const std::string place = std::string(what) + "[" + std::to_string(i) + "].";
    if (tensor.name == nullptr) return Refused(function, place + "name is null");
    if (quern_error* error = NeedsArray(function, (place + "shape").c_str(), tensor.shape, tensor.rank)) return error;
    read->push_back({tensor.name, tensor.data, tensor.bytes, tensor.dtype, {tensor.shape, tensor.shape + tensor.rank}});
  }
  return nullptr;
}

quern_error* ReadSizes(const char* function, const quern_size* sizes, size_t count,
                       std::map<std::string, int64_t>* read) {
  if (quern_error* error = NeedsArray(function, "sizes", sizes, count)) return error;
  for (size_t i = 0; i < count; ++i) {
    if (sizes[i].symbol == nullptr) return Refused(function, "sizes[" + std::to_string(i) + "].symbol is null");
    (*read)[sizes[i].symbol] = sizes[i].value;
  }
  return nullptr;
}

}  // namespace
}  // namespace quern::c

using namespace quern::c;  // NOLINT: the functions below are C's

void quern_program_free(quern_program* program) { delete program; }

size_t quern_program_ports(const quern_program* program, quern_port_kind kind) {
  const std::vector<quern::TensorInfo>* const ports = Ports(program, kind);
  return ports == nullptr ? 0 : ports->size();
}

const char* quern_program_port_name(const quern_program* program, quern_port_kind kind, size_t index) {
  const quern::TensorInfo* const port = PortOf(program, kind, index);
  return port == nullptr ? "" : port->name.c_str();
}

const char* quern_program_port_type(const quern_program* program, quern_port_kind kind, size_t index) {
  const quern::TensorInfo* const port = PortOf(program, kind, index);
  return port == nullptr ? "" : port->type.c_str();
}

const char* quern_program_port_dtype(const quern_program* program, quern_port_kind kind, size_t index) {
  return PortOf(program, kind, index) == nullptr ? "" : program->owned->dtypes[kind][index].c_str();
}

quern_error* quern_program_output_shape(const quern_program* program, const quern_tensor* inputs, size_t input_count,
                                        const quern_size* sizes, size_t size_count, size_t output, int64_t* shape,
                                        size_t room, size_t* rank) {
  if (quern_error* error = Needs(__func__, {{"program", program}, {"rank", rank}})) return error;
  if (quern_error* error = NeedsArray(__func__, "shape", shape, room)) return error;
  std::vector<quern::ConstTensor> in;
  std::map<std::string, int64_t> symbols;
  if (quern_error* error = ReadTensors(__func__, "inputs", inputs, input_count, &in)) return error;
  if (quern_error* error = ReadSizes(__func__, sizes, size_count, &symbols)) return error;
  const quern::Result<std::vector<std::vector<int64_t>>> shapes = program->owned->program.OutputShapes(in, symbols);
  if (quern_error* error = ErrorOf(shapes)) return error;
  return GiveShape(__func__, *shapes, output, shape, room, rank);
}

quern_error* quern_program_last_shape(const quern_program* program, size_t output, int64_t* shape, size_t room,
                                      size_t* rank) {
  if (quern_error* error = Needs(__func__, {{"program", program}, {"rank", rank}})) return error;
  if (quern_error* error = NeedsArray(__func__, "shape", shape, room)) return error;
  const quern::Result<std::vector<std::vector<int64_t>>> shapes = program->owned->program.LastShapes();
  if (quern_error* error = ErrorOf(shapes)) return error;
  return GiveShape(__func__, *shapes, output, shape, room, rank);
}

quern_error* quern_program_run(quern_program* program, const quern_tensor* inputs, size_t input_count,
                               const quern_tensor* outputs, size_t output_count, const quern_size* sizes,
                               size_t size_count) {
  if (quern_error* error = Needs(__func__, {{"program", program}})) return error;
  std::vector<quern::ConstTensor> in;
  std::vector<quern::MutableTensor> out;
  std::map<std::string, int64_t> symbols;
  if (quern_error* error = ReadTensors(__func__, "inputs", inputs, input_count, &in)) return error;
  if (quern_error* error = ReadTensors(__func__, "outputs", outputs, output_count, &out)) return error;
  if (quern_error* error = ReadSizes(__func__, sizes, size_count, &symbols)) return error;
  return ErrorOf(program->owned->program.Run(in, out, symbols));
}

quern_error* quern_program_bind(quern_program* program, const char* param, const void* bytes, size_t size) {
  if (quern_error* error = Needs(__func__, {{"program", program}, {"param", param}, {"bytes", bytes}})) return error;
  return ErrorOf(program->owned->program.Bind(param, std::span(static_cast<const std::byte*>(bytes), size)));
}

quern_error* quern_program_state(quern_program* program, const char* name, void** data, size_t* bytes) {
  if (quern_error* error = Needs(__func__, {{"program", program}, {"name", name}, {"data", data}, {"bytes", bytes}}))
    return error;
  const quern::Result<std::span<std::byte>> state = program->owned->program.State(name);
  if (quern_error* error = ErrorOf(state)) return error;
  *data = state->data();
  *bytes = state->size();
  return nullptr;
}

quern_error* quern_program_reset_state(quern_program* program) {
  if (quern_error* error = Needs(__func__, {{"program", program}})) return error;
  program->owned->program.ResetState();
  return nullptr;
}

quern_error* quern_program_counters(const quern_program* program, quern_text** json) {
  if (quern_error* error = Needs(__func__, {{"program", program}, {"json", json}})) return error;
  const quern::Program::Counters c = program->owned->program.counters();
  *json = ReportText({{"variants", int64_t{c.variants}},
                      {"kernels", int64_t{c.kernels}},
                      {"code_bytes", c.code_bytes},
                      {"launches", int64_t{c.launches}},
                      {"arena_bytes", c.arena_bytes},
                      {"packed_bytes", c.packed_bytes},
                      {"compile", c.compile},
                      {"bind", c.bind},
                      {"run", c.run}});
  return nullptr;
}
