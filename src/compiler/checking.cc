// Options::check, Replay and Reduce of the public interface.

#include "compiler/checking.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "check/reduce.h"
#include "check/replay.h"
#include "check/run_command.h"
#include "codegen/cpu/target.h"
#include "compiler/model.h"
#include "compiler/public_error.h"
#include "compiler/runtime_options.h"
#include "hir/module.h"
#include "opt/insert_qdq.h"
#include "opt/passes.h"
#include "opt/rewriter.h"
#include "quern/check.h"

namespace quern {
namespace compiler {

StatusOr<std::shared_ptr<check::Checker>> AttachChecker(const Options& options, const PipelineOptions& pipeline,
                                                        ExecutableOptions& executable) {
  if (options.check.empty()) return std::shared_ptr<check::Checker>();
  if (options.check != "nan" && options.check != "ref") {
    return absl::InvalidArgumentError(
        absl::StrFormat("there is no check \"%s\"; there are nan and ref", options.check));
  }
  QUERN_ASSIGN(const cpu::Target* target, cpu::ResolveTarget(options.cpu));
  check::CheckerOptions checker;
  checker.kind = options.check == "ref" ? check::Kind::kRef : check::Kind::kNan;
  checker.folder = options.check_folder;
  checker.settings = {target->name,  executable.pool->threads(), false, pipeline.fuse,
                      options.exact, options.specialise};
  checker.facts = pipeline.facts;
  checker.cache = executable.cache;
  auto made = std::make_shared<check::Checker>(std::move(checker));
  executable.stepping.observer = made.get();
  return made;
}

VariantHook HookOf(std::shared_ptr<check::Checker> checker) {
  if (checker == nullptr) return nullptr;
  return [checker = std::move(checker)](int index, ir::Graph graph) { checker->SetGraph(index, std::move(graph)); };
}

namespace {

bool HasRegions(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& node) { return ir::IsRegion(node); });
}

}  // namespace

StatusOr<check::Planned> PlanReproduction(const check::Reproduction& reproduction, const PipelineOptions& pipeline) {
  // What a quantisation map means is its pairs.
  QUERN_ASSIGN(ir::Graph graph, opt::InsertQdq(reproduction.graph));
  check::Planned planned{graph, {}, {}};
  if (HasRegions(graph)) {
    planned.fused = graph;
  } else if (!reproduction.settings.passes) {
    QUERN_ASSIGN(planned.fused, opt::FuseRegions(graph, {codegen::Families(), pipeline.facts, pipeline.fuse}));
  } else {
    if (!pipeline.exact) {
      QUERN_ASSIGN(const ir::Graph expanded, opt::ExpandComposites(graph));
      QUERN_ASSIGN(planned.meaning, opt::QuantiseActivations(expanded, QuantiseOptionsOf(pipeline)));
    }
    QUERN_ASSIGN(const hir::Module module, hir::WrapGraph(reproduction.graph));
    QUERN_ASSIGN(const ir::Graph prepared, PrepareGraph(module, pipeline));
    QUERN_ASSIGN(PlannedVariant variant, FuseVariant(prepared, {}, pipeline));
    planned.fused = std::move(variant.graph);
  }
  planned.facts = pipeline.facts;
  QUERN_ASSIGN(planned.plan, lir::BuildPlan(planned.fused, planned.fused.symbols, pipeline.facts));
  return planned;
}

namespace {

StatusOr<Replayed> ReplayFile(const std::string& path, const ReplayOptions& replay) {
  QUERN_ASSIGN(const check::Reproduction reproduction, check::Read(path));
  const check::Settings& settings = reproduction.settings;
  Options options;
  options.cpu = replay.cpu.empty() ? settings.cpu : replay.cpu;
  options.threads = replay.threads > 0 ? replay.threads : settings.threads;
  options.compile_threads = 1;
  options.exact = settings.exact;
  options.specialise = settings.specialise;
  StatusOr<ExecutableOptions> executable = ExecutableOptionsOf(options);
  std::string note;
  if (!executable.ok() && replay.cpu.empty()) {
    // A regression test is of use on any machine.
    note = absl::StrFormat(" (cpu=%s of the file is not to be had here)", options.cpu);
    options.cpu = "native";
    executable = ExecutableOptionsOf(options);
  }
  if (!executable.ok()) return executable.status();
  QUERN_ASSIGN(PipelineOptions pipeline, PipelineOptionsOf(options));
  pipeline.fuse = settings.fuse;
  QUERN_ASSIGN(const check::Planned planned, PlanReproduction(reproduction, pipeline));
  QUERN_ASSIGN(const std::optional<check::Finding> finding,
               check::Replay(reproduction, planned, *std::move(executable)));
  if (finding) return Replayed{false, absl::StrCat(finding->ToString(), note), finding->Signature()};
  const size_t outputs = reproduction.graph.outputs.size();
  return Replayed{true,
                  absl::StrCat("ok: ", outputs, outputs == 1 ? " output" : " outputs", " of ",
                               planned.plan.launches.size() + planned.plan.once.size(), " kernels",
                               reproduction.kind == check::Kind::kRef ? "" : ", no NaN or inf was made", note),
                  ""};
}

// A folder that goes with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "quern-reduce-XXXXXX").string();
    if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

StatusOr<std::string> ReduceFile(const std::string& path, const ReduceOptions& options) {
  QUERN_ASSIGN(check::Reproduction start, check::Read(path));
  QUERN_ASSIGN(start.graph, opt::InsertQdq(start.graph));  // parts of graphs have no quantisation map
  if (options.command.find("{}") == std::string::npos)
    return absl::InvalidArgumentError("the command has no {} for the file");
  const TemporaryFolder folder;
  if (folder.path().empty()) return absl::UnavailableError("cannot make a temporary folder");
  const std::string candidate = absl::StrCat(folder.path(), "/candidate.qir");
  const std::string command = check::WithPath(options.command, candidate);
  const std::string said = options.same_output ? absl::StrCat(folder.path(), "/said") : "";
  Status broken;
  const auto outcome = [&](const check::Reproduction& reproduction) -> check::Outcome {
    if (!broken.ok()) return {};
    if (broken = check::Write(reproduction, candidate); !broken.ok()) return {};
    const StatusOr<check::Outcome> ran = check::RunCommand(command, options.seconds, said);
    broken = ran.status();
    return ran.ok() ? *ran : check::Outcome{};
  };
  const check::Outcome whole = outcome(start);
  QUERN_RETURN_IF_ERROR(broken);
  if (whole.status == 0 && !whole.timed_out)
    return absl::InvalidArgumentError(absl::StrFormat("%s does not fail: there is nothing to reduce", path));
  const auto log = [&](const std::string& line) {
    if (options.log) options.log(line);
  };
  log(absl::StrCat("the whole: ", check::Text(whole, options.seconds)));
  const check::Reproduction reduced =
      check::Reduce(std::move(start), [&](const check::Reproduction& smaller) { return outcome(smaller) == whole; },
                    {options.attempts, log});
  QUERN_RETURN_IF_ERROR(broken);
  std::filesystem::path output = options.output;
  if (options.output.empty()) {
    output = path;
    output.replace_filename(absl::StrCat(output.stem().string(), "-reduced.qir"));
  }
  QUERN_RETURN_IF_ERROR(check::Write(reduced, output.string()));
  return output.string();
}

}  // namespace
}  // namespace compiler

Result<Replayed> Replay(const std::string& path, const ReplayOptions& options) {
  return compiler::ToResult(compiler::ReplayFile(path, options), path);
}

Result<std::string> Reduce(const std::string& path, const ReduceOptions& options) {
  return compiler::ToResult(compiler::ReduceFile(path, options), path);
}

}  // namespace quern
