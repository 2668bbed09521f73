#include "check/checker.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "check/find_nan.h"
#include "check/region_graph.h"
#include "check/value.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::check {
namespace {

constexpr uint64_t kSeed = 1;

std::vector<std::string> OpsOf(const ir::Graph& graph) {
  std::vector<std::string> ops;
  for (const ir::Node& node : graph.nodes()) {
    if (!ir::IsLeaf(node)) ops.push_back(node.op->name);
  }
  return ops;
}

// The node behind views, which are no work.
ir::Value BehindViews(const ir::Graph& graph, ir::Value value) {
  while (ir::IsReshape(graph, graph.node(value.node))) value = graph.node(value.node).inputs[0];
  return value;
}

bool HoldsInfinity(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    for (const auto& [name, value] : node.attributes.values()) {
      const double* number = std::get_if<double>(&value);
      if (number != nullptr && std::isinf(*number)) return true;
    }
    if (node.data != nullptr && Specials(node.results[0].dtype, *node.data).inf) return true;
  }
  return false;
}

// A value of `type` that a plan keeps at `at`.
StatusOr<std::span<const uint8_t>> BytesAt(const RegionStep& step, const lir::Argument& at, const ir::TensorType& type,
                                           bool parameter) {
  QUERN_ASSIGN(const int64_t bytes, BytesOf(type, parameter, *step.symbols));
  QUERN_ASSIGN(const int64_t offset, at.offset.Evaluate(*step.symbols));
  return std::span<const uint8_t>(step.bases[at.buffer] + offset, static_cast<size_t>(bytes));
}

// The region as the node of a graph again, for one that fusion would not make from its ops alone.
StatusOr<ir::Graph> AsRegion(const ir::Graph& graph, const ir::Node& region) {
  ir::Graph made;
  made.name = graph.name;
  made.symbols = graph.symbols;
  std::vector<ir::Value> leaves;
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    const ir::Node& leaf = graph.node(static_cast<int>(i));
    const std::string& name = leaf.attributes.String("name");
    StatusOr<ir::Value> value =
        ir::IsParam(leaf) ? made.AddParam(name, leaf.results[0]) : made.AddInput(name, leaf.results[0]);
    if (!value.ok()) return value.status();
    leaves.push_back(*value);
  }
  QUERN_ASSIGN(const ir::Value node,
               made.AddRegion(region.attributes.String("family"), std::move(leaves), region.bodies[0]));
  for (int r = 0; r < static_cast<int>(region.results.size()); ++r) made.outputs.push_back({node.node, r});
  made.donations = graph.donations;
  return made;
}

// Whether fusion makes that one region of its ops.
bool FusesTo(const ir::Graph& graph, const ir::Graph& body, const CheckerOptions& options) {
  const StatusOr<ir::Graph> fused =
      opt::FuseRegions(graph, {codegen::Families(), options.facts, options.settings.fuse});
  if (!fused.ok()) return false;
  int regions = 0, same = 0;
  for (const ir::Node& node : fused->nodes()) {
    regions += ir::IsRegion(node);
    same += ir::IsRegion(node) && ir::SameGraph(node.body(), body);
  }
  return regions == 1 && same == 1;
}

std::string FileName(std::string_view label) {
  std::string name;
  for (const char c : label) name += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ? c : '-';
  return name;
}

}  // namespace

Status Checker::Before(const RegionStep& step) {
  if (step.region() < 0) {
    const std::vector<lir::Argument>& arguments = step.launches[0].arguments;
    const kir::BufferType& type = step.plan->buffers[arguments[1].buffer].type;
    QUERN_ASSIGN(const std::span<const uint8_t> bytes, BytesAt(step, arguments[0], {type.dtype, type.dims}, false));
    copied_.assign(bytes.begin(), bytes.end());
    return absl::OkStatus();
  }
  if (!graphs_.contains(step.variant)) return absl::InternalError("a variant that is checked has no graph");
  const ir::Graph& graph = GraphOf(step);
  QUERN_ASSIGN(region_, RegionGraph(graph, step.region(), *step.plan, step.values()));
  operands_.clear();
  const std::vector<ir::Value>& inputs = graph.node(step.region()).inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Node& leaf = region_.node(static_cast<int>(i));
    QUERN_ASSIGN(const std::span<const uint8_t> bytes,
                 BytesAt(step, step.values()[inputs[i].node][inputs[i].result], leaf.results[0], ir::IsParam(leaf)));
    operands_[leaf.attributes.String("name")].assign(bytes.begin(), bytes.end());
  }
  return options_.kind == Kind::kNan ? CheckOperands(step) : absl::OkStatus();
}

// What was computed has been looked at: a NaN that is here comes from outside.
Status Checker::CheckOperands(const RegionStep& step) {
  const std::vector<ir::Value>& inputs = GraphOf(step).node(step.region()).inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Node& leaf = region_.node(static_cast<int>(i));
    const bool parameter = ir::IsParam(leaf);
    const uint8_t* const memory = step.bases[step.values()[inputs[i].node][inputs[i].result].buffer];
    if (parameter && clean_params_.contains(memory)) continue;
    const std::string& name = leaf.attributes.String("name");
    QUERN_ASSIGN(const ir::RefTensor value, Decode(leaf.results[0], parameter, *step.symbols, operands_[name]));
    const auto nan = std::find_if(value.data.begin(), value.data.end(), [](double v) { return std::isnan(v); });
    if (nan == value.data.end()) {
      if (parameter) clean_params_.insert(memory);
      continue;
    }
    const ir::Value reader = FirstReader(region_, name).value_or(region_.outputs[0]);
    QUERN_ASSIGN(const ir::Feeds feeds, FeedsOf(region_, *step.symbols, operands_));
    QUERN_ASSIGN(const Evaluation values, Evaluate(region_, *step.symbols, feeds));
    Finding finding{.kind = Kind::kNan};
    Describe(region_, reader, 0, values, finding);
    finding.type = absl::StrCat(name, " ", std::string(Name(value.dtype)), Text(value.dims));
    finding.index = IndexOf(value.dims, nan - value.data.begin());
    finding.got = *nan;
    finding.given = true;
    finding.holder = name;
    finding.note = absl::StrCat(parameter ? "parameter " : "input ", name, " holds it");
    finding.operands.clear();
    finding.wrong = std::count_if(value.data.begin(), value.data.end(), [](double v) { return std::isnan(v); });
    finding.elements = value.elements();
    return Report(step, std::move(finding));
  }
  return absl::OkStatus();
}

Status Checker::After(const RegionStep& step) {
  if (step.region() < 0) return CheckCopy(step);
  ++counts_.regions;
  return options_.kind == Kind::kRef ? CheckReference(step) : CheckSpecials(step);
}

Status Checker::CheckCopy(const RegionStep& step) {
  const lir::Argument& to = step.launches[0].arguments[1];
  const kir::BufferType& type = step.plan->buffers[to.buffer].type;
  QUERN_ASSIGN(const std::span<const uint8_t> bytes, BytesAt(step, to, {type.dtype, type.dims}, false));
  if (std::equal(bytes.begin(), bytes.end(), copied_.begin(), copied_.end())) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrFormat("the copy to %s has other bytes than what it copies", step.launches[0].label));
}

Status Checker::CheckReference(const RegionStep& step) {
  QUERN_ASSIGN(const ir::Feeds feeds, FeedsOf(region_, *step.symbols, operands_));
  QUERN_ASSIGN(GraphOracle oracle, GraphOracle::Create(region_, *step.symbols, feeds, kSeed));
  for (int r = 0; r < static_cast<int>(region_.outputs.size()); ++r) {
    const ir::TensorType& type = region_.type(region_.outputs[r]);
    QUERN_ASSIGN(const std::span<const uint8_t> bytes, BytesAt(step, step.values()[step.region()][r], type, false));
    QUERN_ASSIGN(const ir::RefTensor got, Decode(type, false, *step.symbols, bytes));
    QUERN_ASSIGN(const std::optional<Difference> worst, oracle.Worst(r, got));
    counts_.elements += got.elements();
    if (!worst) continue;
    std::optional<Finding> finding = Blame(step);
    if (!finding) {
      QUERN_ASSIGN(const Evaluation values, Evaluate(region_, *step.symbols, feeds));
      finding = FindingOf(region_, *worst, values);
    }
    return Report(step, *std::move(finding));
  }
  counts_.doubted += oracle.doubted();
  return absl::OkStatus();
}

Status Checker::CheckSpecials(const RegionStep& step) {
  for (int r = 0; r < static_cast<int>(region_.outputs.size()); ++r) {
    const ir::TensorType& type = region_.type(region_.outputs[r]);
    if (!IsFloat(type.dtype) && !IsBlock(type.dtype)) continue;
    QUERN_ASSIGN(const std::span<const uint8_t> bytes, BytesAt(step, step.values()[step.region()][r], type, false));
    QUERN_ASSIGN(const int64_t elements, type.elements().Evaluate(*step.symbols));
    counts_.elements += elements;
    Special found = Specials(type.dtype, bytes);
    if (!IsBlock(type.dtype) && !found.nan && !found.inf) continue;
    QUERN_ASSIGN(const ir::RefTensor got, Decode(type, false, *step.symbols, bytes));
    found = Specials(got);
    if (!found.nan && !found.inf) continue;
    QUERN_ASSIGN(const ir::Feeds feeds, FeedsOf(region_, *step.symbols, operands_));
    QUERN_ASSIGN(const Evaluation values, Evaluate(region_, *step.symbols, feeds));
    Finding finding{.kind = Kind::kNan};
    if (const std::optional<MadeSpecial> made = FirstMade(region_, values, region_.outputs[r])) {
      const ir::RefTensor& at = values.At(made->value);
      Describe(region_, made->value, made->element, values, finding);
      finding.got = at.data[made->element];
      finding.wrong = std::count_if(at.data.begin(), at.data.end(), [](double v) { return !std::isfinite(v); });
      return Report(step, std::move(finding));
    }
    const bool given = HoldsInfinity(region_) || std::any_of(feeds.begin(), feeds.end(), [](const auto& feed) {
                         return Specials(feed.second).inf;
                       });
    if (!found.nan && given) continue;
    // By its definition the region makes none: its kernel does.
    const auto bad = std::find_if(got.data.begin(), got.data.end(),
                                  [&](double v) { return found.nan ? std::isnan(v) : std::isinf(v); });
    if (std::optional<Finding> one = Blame(step)) return Report(step, *std::move(one));
    const int64_t element = bad - got.data.begin();
    Describe(region_, BehindViews(region_, region_.outputs[r]), element, values, finding);
    finding.got = *bad;
    finding.fused = OpsOf(region_).size() > 1;
    finding.alone = true;
    finding.note = absl::StrFormat("the kernel alone makes it: the double interpreter has %.9g there",
                                   values.At(region_.outputs[r]).data[element]);
    return Report(step, std::move(finding));
  }
  return absl::OkStatus();
}

std::optional<Finding> Checker::Blame(const RegionStep& step) const {
  if (options_.cache == nullptr || OpsOf(region_).size() < 2) return std::nullopt;
  const StatusOr<ir::Graph> single = opt::FuseRegions(region_, {codegen::Families(), options_.facts, false});
  if (!single.ok()) return std::nullopt;
  StatusOr<lir::Plan> plan = lir::BuildPlan(*single, single->symbols, options_.facts);
  if (!plan.ok()) return std::nullopt;
  if (options_.edit_plan) options_.edit_plan(*plan);
  Checker inner({.kind = options_.kind});
  inner.SetGraph(0, *single);
  Binding sizes;
  for (const auto& [symbol, range] : single->symbols) sizes[symbol] = step.symbols->at(symbol);
  ExecutableOptions options;
  options.cache = options_.cache;
  options.pool = std::make_shared<ThreadPool>(1);
  options.stepping = {&inner, 0, options_.substitute};
  // An error that is no finding tells nothing of the ops.
  RunCase(*single, *plan, sizes, operands_, std::move(options)).status().IgnoreError();
  return inner.finding();
}

Status Checker::Report(const RegionStep& step, Finding finding) {
  finding.ops = OpsOf(region_);
  finding.kernels.clear();
  for (const lir::Launch& launch : step.launches) {
    finding.kernels.push_back(absl::StrCat(step.plan->kernels[launch.kernel].name, " (", launch.label, ")"));
  }
  if (!options_.folder.empty()) {
    const StatusOr<std::string> path = WriteReproduction(step, finding);
    finding.reproduction =
        path.ok() ? absl::StrCat("quern replay ", *path) : absl::StrCat("none: ", path.status().message());
  }
  const std::string text = finding.ToString();
  finding_ = std::move(finding);
  return absl::AbortedError(text);
}

StatusOr<std::string> Checker::WriteReproduction(const RegionStep& step, const Finding& finding) const {
  Reproduction reproduction;
  reproduction.graph = region_;
  const ir::Node& region = GraphOf(step).node(step.region());
  if (!FusesTo(region_, region.body(), options_)) {
    QUERN_ASSIGN(reproduction.graph, AsRegion(region_, region));
  }
  for (const auto& [symbol, range] : region_.symbols) reproduction.sizes[symbol] = step.symbols->at(symbol);
  reproduction.bytes = operands_;
  reproduction.kind = finding.kind;
  reproduction.settings = options_.settings;
  reproduction.settings.passes = false;
  reproduction.notes = {finding.ToString()};
  const std::string where = finding.block.empty() ? finding.op : absl::StrCat(finding.block, "-", finding.op);
  const std::string path =
      (std::filesystem::path(options_.folder) / absl::StrCat("check-", FileName(where), ".qir")).string();
  std::error_code error;
  std::filesystem::create_directories(options_.folder, error);
  QUERN_RETURN_IF_ERROR(Write(reproduction, path));
  return path;
}

std::string Checker::Summary() const {
  std::string text = absl::StrCat("checked ", counts_.regions, " regions, ", counts_.elements, " elements: ");
  if (finding_) return absl::StrCat(text, "the last one failed");
  absl::StrAppend(&text, options_.kind == Kind::kRef ? "all inside their contracts" : "no NaN or inf was made");
  if (counts_.doubted > 0) absl::StrAppend(&text, " (", counts_.doubted, " beside a jump)");
  return text;
}

}  // namespace quern::check
