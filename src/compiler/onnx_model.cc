// OnnxModel of the public interface.

#include "quern/onnx.h"

#include <filesystem>
#include <fstream>

#include "compiler/graph_state.h"
#include "compiler/public_error.h"
#include "compiler/value_files.h"
#include "onnx/import.h"

namespace quern {

struct OnnxModel::State {
  std::shared_ptr<const onnx::ModelFile> file;
  onnx::Imported imported;
  std::optional<Graph> graph;
  std::vector<std::string> outputs, fixed_inputs;
  std::map<std::string, int64_t> fixed_sizes;

  Status Load(const std::string& path, const OnnxOptions& options) {
    QUERN_ASSIGN(file, onnx::ModelFile::Open(path));
    onnx::ImportOptions import{.fix_sizes = options.fix_sizes, .usual_size = options.fix_sizes ? 1 : 0};
    import.sizes.insert(options.sizes.begin(), options.sizes.end());
    for (const std::string& given : options.values) {
      QUERN_ASSIGN(FileTensors tensors, compiler::ReadValueFile(given));
      import.values.merge(tensors);
    }
    QUERN_ASSIGN(imported, onnx::Import(*file, import));
    outputs = imported.graph.output_names;
    fixed_sizes.insert(imported.fixed_sizes.begin(), imported.fixed_sizes.end());
    fixed_inputs.assign(imported.fixed_inputs.begin(), imported.fixed_inputs.end());
    return absl::OkStatus();
  }
};

OnnxModel::OnnxModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;
OnnxModel::~OnnxModel() = default;

bool OnnxModel::Is(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  std::ifstream file(path, std::ios::binary);
  uint8_t mark[8] = {};
  file.read(reinterpret_cast<char*>(mark), sizeof(mark));
  return onnx::LooksLikeModel({mark, static_cast<size_t>(file.gcount())});
}

Result<OnnxModel> OnnxModel::Open(const std::string& path, const OnnxOptions& options) {
  auto state = std::make_unique<State>();
  if (const Status loaded = state->Load(path, options); !loaded.ok())
    return Result<OnnxModel>::Failed(compiler::ErrorOf(loaded, path));
  Result<Graph> graph = compiler::GraphAccess::Wrap(state->imported.graph);
  if (!graph.ok()) return Result<OnnxModel>::Failed(graph.details());
  for (const auto& [name, bytes] : state->imported.params) {
    const Result<void> bound = graph->Bind(name, std::as_bytes(bytes));
    if (!bound.ok()) return Result<OnnxModel>::Failed(bound.details());
  }
  state->graph = std::move(*graph);
  return OnnxModel(std::move(state));
}

const Graph& OnnxModel::graph() const { return *state_->graph; }
const std::vector<std::string>& OnnxModel::outputs() const { return state_->outputs; }
const std::map<std::string, int64_t>& OnnxModel::fixed_sizes() const { return state_->fixed_sizes; }
const std::vector<std::string>& OnnxModel::fixed_inputs() const { return state_->fixed_inputs; }

Result<std::vector<std::string>> OnnxModel::NotCovered(const std::string& path) {
  const StatusOr<std::shared_ptr<const onnx::ModelFile>> file = onnx::ModelFile::Open(path);
  if (!file.ok()) return Result<std::vector<std::string>>::Failed(compiler::ErrorOf(file.status(), path));
  return onnx::NotCovered(**file);
}

}  // namespace quern
