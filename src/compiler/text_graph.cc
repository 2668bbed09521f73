// TextGraph of the public interface: a graph in a file, its sizes and its values.

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "base/mapped_file.h"
#include "base/memory.h"
#include "base/output_file.h"
#include "check/draw.h"
#include "check/reproduction.h"
#include "check/value.h"
#include "compiler/graph_state.h"
#include "compiler/public_error.h"
#include "compiler/qdq.h"
#include "compiler/value_files.h"
#include "hir/module.h"
#include "ir/binary.h"
#include "ir/counted.h"
#include "ir/describe.h"
#include "ir/diff.h"
#include "onnx/import.h"
#include "opt/insert_qdq.h"
#include "quern/text.h"

namespace quern {
namespace {

constexpr int64_t kUsualSize = 8, kShownElements = 8;

struct Tensor {
  std::string name, dtype;
  ir::TensorType type;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
};

}  // namespace

struct TextGraph::State {
  check::Reproduction file;
  std::optional<Graph> graph;
  std::string blocks;           // the text, where the file has blocks
  std::vector<Tensor> outputs;  // what a run writes
  bool ran = false;
  std::vector<std::vector<int64_t>> shapes;  // of the outputs of the last run
  bool finds_sizes = false;                  // runs do, or all shapes are those of `outputs`
  // What each run is given: of the file's values and the outputs, where vectors are whole, as the arrays of a program
  // that cares are. What std::vector gives differs from run to run by a fifth of the time that copies take.
  std::vector<Memory> memory;  // of `arguments`, then of `results`
  std::vector<ConstTensor> arguments;
  std::vector<MutableTensor> results;
  std::vector<std::pair<std::string, const std::vector<uint8_t>*>> states;
  std::map<std::string, int64_t> symbols;
  FileTensors values;     // from files of the caller's, by input or parameter
  bool has_data = false;  // the graph's file names a file with all values
  // Of a model in ONNX: its file, which has the bytes of parameters, and what its names stand for.
  std::shared_ptr<const onnx::ModelFile> model;
  onnx::Imported imported;
  std::string path;
  TextOptions options;

  // What a file says, but for values.
  Status Read(std::span<const uint8_t> bytes, std::string* data) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (ir::IsBinary(bytes)) {
      QUERN_ASSIGN(file.graph, ir::Decode(bytes));
    } else if (hir::IsModuleText(text)) {
      QUERN_ASSIGN(file, check::ParseComments(text, data));
      QUERN_ASSIGN(const hir::Module module, hir::Parse(text));
      QUERN_ASSIGN(file.graph, hir::Lower(module));
      blocks = hir::Print(module);
    } else {
      QUERN_ASSIGN(file, check::ParseText(text, data));
    }
    return ir::CheckStorage(file.graph);
  }
  Result<Graph> MakeGraph() const {
    if (model != nullptr) return compiler::GraphAccess::Wrap(file.graph);
    if (!blocks.empty()) return Graph::Parse(blocks);
    const std::string binary = ir::Encode(file.graph);
    return Graph::FromBinary(std::as_bytes(std::span(binary)));
  }

  // The bytes of parameters that were not drawn.
  opt::ParamBytes GivenParams() const {
    opt::ParamBytes params;
    for (const ir::Node* param : ir::AllParams(file.graph)) {
      const std::string& name = param->attributes.String("name");
      const auto bytes = file.bytes.find(name);
      if (bytes != file.bytes.end() && (has_data || values.contains(name)))
        params[name] = bytes->second;
      else if (const auto of_model = imported.params.find(name); of_model != imported.params.end())
        params[name] = of_model->second;
    }
    return params;
  }

  // Writes a graph made of this one, with the parameters that have bytes as constants.
  Status SaveWhole(const std::string& to, const StatusOr<ir::Graph>& made, const opt::ParamBytes& params) const {
    QUERN_RETURN_IF_ERROR(made.status());
    QUERN_ASSIGN(const ir::Graph whole, opt::EmbedParams(*made, params));
    return WriteFile(to, to.ends_with(".qir") ? ir::Print(whole) : ir::Encode(whole), {&path, 1});
  }

  // The Input or Param of that name, or null.
  const ir::Node* Leaf(std::string_view name) const {
    for (const ir::Node* leaf : Leaves()) {
      if (leaf->attributes.String("name") == name) return leaf;
    }
    return nullptr;
  }
  std::vector<const ir::Node*> Leaves() const {
    std::vector<const ir::Node*> leaves = ir::AllParams(file.graph);
    for (const int input : file.graph.Inputs()) leaves.push_back(&file.graph.node(input));
    return leaves;
  }

  // A model in ONNX, for the sizes and values that there are where it needs them.
  Status ReadOnnx(const std::string& path, const TextOptions& options) {
    QUERN_ASSIGN(model, onnx::ModelFile::Open(path));
    onnx::ImportOptions import{.fix_sizes = options.fix_sizes, .usual_size = kUsualSize};
    import.sizes.insert(options.sizes.begin(), options.sizes.end());
    for (const std::string& given : options.values) {
      QUERN_ASSIGN(FileTensors tensors, compiler::ReadValueFile(given));
      import.values.merge(tensors);
    }
    QUERN_ASSIGN(imported, onnx::Import(*model, import));
    file.graph = imported.graph;
    return absl::OkStatus();
  }

  // Takes the tensors of such files; sizes that their shapes say are those of the run.
  Status ReadValues(const std::vector<std::string>& files) {
    for (const std::string& given : files) {
      QUERN_ASSIGN(FileTensors tensors, compiler::ReadValueFile(given));
      for (auto& [name, tensor] : tensors) {
        const ir::Node* const leaf = Leaf(name);
        if (leaf == nullptr) {
          std::vector<std::string_view> known;
          for (const ir::Node* other : Leaves()) known.emplace_back(other->attributes.String("name"));
          return UnknownName("input or parameter", name, known, given);
        }
        const std::vector<Extent>& dims = leaf->results[0].dims;
        for (size_t d = 0; d < std::min(dims.size(), tensor.shape.size()); ++d) {
          for (const std::string& symbol : dims[d].Symbols()) {
            if (dims[d] == Extent::Symbol(symbol)) file.sizes[symbol] = tensor.shape[d];
          }
        }
        values[name] = std::move(tensor);
      }
    }
    return absl::OkStatus();
  }
  // Puts them in the place of what was drawn.
  Status TakeValues() {
    for (auto& [name, tensor] : values) {
      QUERN_RETURN_IF_ERROR(
          check::TakeTensor(*Leaf(name), file.sizes, file.graph.name, std::move(tensor), file.bytes[name]));
    }
    return absl::OkStatus();
  }

  Status Size(const TextOptions& options) {
    const SymbolRanges given = ir::GivenSymbols(file.graph);
    for (const auto& [symbol, size] : options.sizes) {
      if (imported.fixed_sizes.contains(symbol)) continue;
      if (!given.contains(symbol)) {
        std::vector<std::string_view> known;
        for (const auto& [name, range] : given) known.emplace_back(name);
        return UnknownName("symbol", symbol, known, file.graph.name);
      }
      file.sizes[symbol] = size;
    }
    for (const auto& [symbol, range] : given) {
      const int64_t size = file.sizes.emplace(symbol, std::clamp(kUsualSize, range.low, range.high)).first->second;
      if (size >= range.low && size <= range.high) continue;
      return ToStatus({DiagnosticCode::kOutOfRange, "", absl::StrCat("symbol ", symbol),
                       absl::StrCat(range.low, "..", range.high), absl::StrCat(size), file.graph.name});
    }
    return absl::OkStatus();
  }

  bool IsState(const std::string& input) const {
    const std::vector<ir::Donation>& donations = file.graph.donations;
    return std::any_of(donations.begin(), donations.end(), [&](const ir::Donation& d) { return d.input == input; });
  }

  Status MakeOutputs() {
    const ir::CountedSizes counted = ir::CountedSizesOf(file.graph);
    finds_sizes = !counted.empty();
    int64_t left = check::kMostElements;  // what is allocated is bounded, whatever the file says
    for (size_t o = 0; o < file.graph.outputs.size(); ++o) {
      const bool state = std::any_of(file.graph.donations.begin(), file.graph.donations.end(),
                                     [&](const ir::Donation& d) { return d.output == static_cast<int>(o); });
      if (state) continue;
      ir::TensorType type = file.graph.type(file.graph.outputs[o]);
      for (Extent& dim : type.dims) dim = ir::AtMost(dim, counted);
      Tensor& made = outputs.emplace_back(
          Tensor{ir::OutputName(file.graph.output_names, o), std::string(Name(type.dtype)), type, {}, {}});
      QUERN_ASSIGN(made.dims, check::SizesOf(type, file.sizes));
      left -= ir::RefTensor{type.dtype, made.dims, {}}.elements();
      if (left < 0) {
        return absl::InvalidArgumentError(
            absl::StrFormat("the outputs have more than the %d elements that are shown", check::kMostElements));
      }
      shapes.push_back(made.dims);
    }
    return absl::OkStatus();
  }

  // What the last run computed, of the sizes that it found. A copy: a run that is timed makes none.
  std::vector<Tensor> Shown() const {
    if (!ran) return {};
    std::vector<Tensor> shown = outputs;
    for (size_t o = 0; o < shown.size(); ++o) {
      shown[o].dims = shapes[o];
      const auto* const data = static_cast<const uint8_t*>(results[o].data);
      shown[o].bytes.assign(
          data, data + RowBytes(shown[o].type.dtype, ir::RefTensor{shown[o].type.dtype, shapes[o], {}}.elements()));
    }
    return shown;
  }

  // More memory, as long as this lives.
  StatusOr<uint8_t*> Held(int64_t bytes) {
    QUERN_ASSIGN(Memory held, Memory::Allocate(bytes));
    return memory.emplace_back(std::move(held)).data();
  }

  Status MakeArguments() {
    for (const int n : file.graph.Inputs()) {
      const ir::Node& input = file.graph.node(n);
      const std::string& name = input.attributes.String("name");
      const std::vector<uint8_t>& bytes = file.bytes.find(name)->second;
      if (IsState(name)) {
        states.emplace_back(name, &bytes);
        continue;
      }
      QUERN_ASSIGN(std::vector<int64_t> dims, check::SizesOf(input.results[0], file.sizes));
      QUERN_ASSIGN(uint8_t* const held, Held(static_cast<int64_t>(bytes.size())));
      std::copy(bytes.begin(), bytes.end(), held);
      arguments.push_back({name, held, bytes.size(), nullptr, std::move(dims)});
    }
    for (const Tensor& output : outputs) {
      QUERN_ASSIGN(const int64_t bytes, check::BytesOf(output.type, false, file.sizes));
      QUERN_ASSIGN(uint8_t* const held, Held(bytes));
      results.push_back({output.name, held, static_cast<size_t>(bytes), nullptr, output.dims});
    }
    symbols.insert(file.sizes.begin(), file.sizes.end());
    return absl::OkStatus();
  }
};

TextGraph::TextGraph(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextGraph::TextGraph(TextGraph&&) noexcept = default;
TextGraph& TextGraph::operator=(TextGraph&&) noexcept = default;
TextGraph::~TextGraph() = default;

bool TextGraph::Is(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;  // a pipe would be waited for
  std::ifstream file(path, std::ios::binary);
  uint8_t mark[8] = {};
  file.read(reinterpret_cast<char*>(mark), sizeof(mark));
  const std::span<const uint8_t> begin(mark, static_cast<size_t>(file.gcount()));
  if (ir::IsBinary(begin) || onnx::LooksLikeModel(begin)) return true;
  file.clear();
  file.seekg(0);
  while (file.good()) {
    char next = static_cast<char>(file.get());
    if (next == '#') {
      while (file.good() && next != '\n') next = static_cast<char>(file.get());
    } else if (std::isspace(static_cast<unsigned char>(next)) == 0) {
      std::string word(1, next);
      while (word.size() < 7 && file.get(next) && std::isspace(static_cast<unsigned char>(next)) == 0) word += next;
      return file.good() && (word == "graph" || word == "module");
    }
  }
  return false;
}

Result<TextGraph> TextGraph::Open(const std::string& path, const TextOptions& options) {
  auto open = [&]() -> StatusOr<std::unique_ptr<State>> {
    auto state = std::make_unique<State>();
    state->path = path;
    state->options = options;
    check::Reproduction& file = state->file;
    std::string data;
    QUERN_ASSIGN(const MappedFile text, MappedFile::Open(path));
    if (onnx::LooksLikeModel(text.bytes())) {
      QUERN_RETURN_IF_ERROR(state->ReadOnnx(path, options));
    } else if (const Status read = state->Read(text.bytes(), &data); !read.ok()) {
      return WithMessage(read, absl::StrCat(path, ": ", std::string(read.message())));
    }
    QUERN_RETURN_IF_ERROR(state->ReadValues(options.values));
    QUERN_RETURN_IF_ERROR(state->Size(options));
    if (data.empty()) {
      QUERN_ASSIGN(file.bytes, check::DrawBytes(file.graph, file.sizes, options.seed, state->model == nullptr));
    } else {
      QUERN_ASSIGN(const MappedFile values,
                   MappedFile::Open((std::filesystem::path(path).parent_path() / data).string()));
      QUERN_RETURN_IF_ERROR(check::ParseData(values.bytes(), file));
      QUERN_RETURN_IF_ERROR(check::Check(file));
      state->has_data = true;
    }
    QUERN_RETURN_IF_ERROR(state->TakeValues());
    QUERN_RETURN_IF_ERROR(state->MakeOutputs());
    QUERN_RETURN_IF_ERROR(state->MakeArguments());
    return state;
  };
  StatusOr<std::unique_ptr<State>> state = open();
  if (!state.ok()) return Result<TextGraph>::Failed(compiler::ErrorOf(state.status(), path));
  Result<Graph> graph = (*state)->MakeGraph();
  if (!graph.ok()) return Result<TextGraph>::Failed(graph.details());
  for (const ir::Node* param : ir::AllParams((*state)->file.graph)) {
    const std::string& name = param->attributes.String("name");
    const auto given = (*state)->file.bytes.find(name);
    const std::span<const uint8_t> bytes =
        given != (*state)->file.bytes.end() ? std::span(std::as_const(given->second)) : (*state)->imported.params[name];
    const Result<void> bound = graph->Bind(name, std::as_bytes(bytes));
    if (!bound.ok()) return Result<TextGraph>::Failed(bound.details());
  }
  (*state)->graph = std::move(*graph);
  return TextGraph(*std::move(state));
}

const Graph& TextGraph::graph() const { return *state_->graph; }

Result<bool> TextGraph::FixSizes() {
  if (state_->model == nullptr || state_->options.fix_sizes || state_->file.graph.symbols.empty()) return false;
  TextOptions options = state_->options;
  options.fix_sizes = true;
  Result<TextGraph> again = Open(state_->path, options);
  if (!again.ok()) return Result<bool>::Failed(again.details());
  state_ = std::move(again->state_);
  return true;
}

Result<Program> TextGraph::Compile(const Options& options) {
  Result<Program> program = graph().Compile(options);
  if (program.ok() || (program.code() != ErrorCode::kUnsupported && program.code() != ErrorCode::kInternal &&
                       program.code() != ErrorCode::kInvalid))
    return program;
  Result<bool> fixed = FixSizes();
  return fixed.ok() && *fixed ? graph().Compile(options) : std::move(program);
}

Result<void> TextGraph::Run(Program& program) {
  for (const auto& [name, bytes] : state_->states) {
    Result<std::span<std::byte>> memory = program.State(name);
    if (!memory.ok()) return Result<void>::Failed(memory.details());
    std::memcpy(memory->data(), bytes->data(), std::min(memory->size(), bytes->size()));
  }
  Result<void> ran = program.Run(state_->arguments, state_->results, state_->symbols);
  state_->ran = ran.ok();
  if (ran.ok() && state_->finds_sizes) state_->shapes = *program.LastShapes();
  return ran;
}

Result<void> TextGraph::Save(const std::string& path) const {
  const ir::Graph& graph = state_->file.graph;
  const bool text = path.ends_with(".qir");
  const std::string bytes = !text ? ir::Encode(graph) : state_->blocks.empty() ? ir::Print(graph) : state_->blocks;
  return compiler::ToResult(WriteFile(path, bytes));
}

Result<void> TextGraph::Calibrate(Calibrator& calibrator) const {
  return calibrator.Run(state_->arguments, state_->symbols);
}

Result<void> TextGraph::SaveQuantised(const std::string& path, const QuantisationMap& map) const {
  const opt::ParamBytes params = state_->GivenParams();
  const auto pairs = [&]() -> StatusOr<ir::Graph> {
    QUERN_ASSIGN(const ir::Graph mapped, compiler::Mapped(compiler::GraphAccess::Of(graph()).module, map));
    return opt::InsertQdq(mapped, params);
  };
  return compiler::ToResult(state_->SaveWhole(path, pairs(), params), state_->path);
}

Result<void> TextGraph::SaveWithQuantisation(const std::string& path, const QuantisationMap& map) const {
  return compiler::ToResult(
      state_->SaveWhole(path, compiler::Mapped(compiler::GraphAccess::Of(graph()).module, map), state_->GivenParams()),
      state_->path);
}

Result<void> TextGraph::SaveOutputs(const std::string& file) const {
  std::vector<std::pair<std::string, FileTensor>> tensors;
  for (const Tensor& output : state_->Shown()) {
    tensors.emplace_back(output.name, FileTensor{output.type.dtype, output.dims, output.bytes});
  }
  return compiler::ToResult(compiler::WriteValueFile(file, tensors, state_->file.graph.name));
}

std::string TextGraph::Describe() const {
  const onnx::Imported& imported = state_->imported;
  std::string text = ir::Describe(state_->file.graph);
  for (const auto& [symbol, size] : imported.fixed_sizes)
    absl::StrAppend(&text, "only for    ", symbol, " = ", size, "\n");
  for (const std::string& input : imported.fixed_inputs)
    absl::StrAppend(&text, "only for    the value of ", input, "\n");
  return text;
}

std::string TextGraph::Diff(const TextGraph& other, const DiffOptions& options) const {
  return ir::Diff(state_->file.graph, other.state_->file.graph,
                  {.names = options.names, .constants = options.constants, .origins = options.origins});
}

std::string TextGraph::Outputs() const {
  std::string text;
  for (const Tensor& output : state_->Shown()) {
    absl::StrAppend(&text, "output ", output.name, "  ", output.dtype, check::Text(output.dims), " ");
    const StatusOr<ir::RefTensor> values = ir::RefTensorFromBytes(output.type.dtype, output.dims, output.bytes);
    const int64_t elements = values.ok() ? values->elements() : 0, shown = std::min(elements, kShownElements);
    for (int64_t e = 0; e < shown; ++e) {
      if (output.type.dtype == DType::kU64)
        absl::StrAppend(&text, " ", static_cast<uint64_t>(values->integers[e]));
      else if (IsInteger(output.type.dtype))
        absl::StrAppend(&text, " ", values->integers[e]);
      else
        absl::StrAppendFormat(&text, " %g", values->data[e]);
    }
    absl::StrAppend(&text, elements > shown ? " ...\n" : "\n");
  }
  return text;
}

}  // namespace quern
