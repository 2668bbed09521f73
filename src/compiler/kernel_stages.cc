#include "compiler/kernel_stages.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "codegen/cpu/object.h"
#include "hir/module.h"
#include "ir/op.h"
#include "profile/debug_text.h"

namespace quern::compiler {
namespace {

using profile::OpLines;
using Lines = std::vector<std::string>;

Lines LinesOf(const std::string& text) {
  Lines lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

void Add(OpLines& out, const std::string& line, std::vector<int> ops = {}) {
  absl::StrAppend(&out.text, line, "\n");
  out.ops.push_back(std::move(ops));
}

// "  %12 = ..." or "  %12:2 = ...": the definition of node 12.
bool Defines(const std::string& line, std::string_view indent, int node) {
  const std::string start = absl::StrCat(std::string(indent), "%", node);
  return absl::StartsWith(line, start) && line.size() > start.size() &&
         (line[start.size()] == ' ' || line[start.size()] == ':');
}

// "layers.3/ffn/up" and "MatMul" of "layers.3/ffn/up: MatMul".
std::pair<std::string, std::string> LabelAndOp(const std::string& origin) {
  const size_t at = origin.rfind(": ");
  return at == std::string::npos ? std::pair(origin, std::string())
                                 : std::pair(origin.substr(0, at), origin.substr(at + 2));
}

// Where an op of that origin came from: the node of that label and op; where a pass made another op of it, those of the
// label; and all blocks around it.
std::vector<int> NodesOf(const hir::Module& module, const std::string& origin) {
  const auto [label, op] = LabelAndOp(origin);
  std::vector<int> same, labelled, around;
  for (int n = 0; n < static_cast<int>(module.nodes().size()); ++n) {
    const hir::Node& node = module.nodes()[n];
    if (absl::StartsWith(label, node.label + "/")) around.push_back(n);
    if (label != node.label) continue;
    labelled.push_back(n);
    if (node.op == nullptr || op == node.op->name) same.push_back(n);
  }
  const std::vector<int>& own = same.empty() ? labelled : same;
  around.insert(around.end(), own.begin(), own.end());
  return around;
}

// The blocks that the kernel's ops came from, and the leaves they read.
OpLines HirOf(const hir::Module& module, const Lines& lines, const std::vector<std::string>& origins) {
  std::map<int, std::vector<int>> shown;  // by node: rows of origins
  for (int o = 0; o < static_cast<int>(origins.size()); ++o) {
    for (const int n : NodesOf(module, origins[o])) shown[n].push_back(o);
  }
  std::set<int> operands;
  for (const auto& [n, ops] : shown) {
    for (const hir::Value& input : module.nodes()[n].inputs) {
      if (!input.absent() && module.nodes()[input.node].inputs.empty()) operands.insert(input.node);
    }
  }
  for (const int n : operands) shown.try_emplace(n);
  OpLines hir;
  size_t at = 0;
  for (const auto& [n, ops] : shown) {
    while (at < lines.size() && !Defines(lines[at], "  ", n)) ++at;
    if (at < lines.size()) Add(hir, lines[at], ops);
  }
  return hir;
}

// The region with its body, one line a node.
OpLines MirOf(const ir::Graph& fused, const Lines& lines, int region, const std::vector<std::string>& origins) {
  OpLines mir;
  size_t at = 0;
  while (at < lines.size() && !Defines(lines[at], "  ", region)) ++at;
  const ir::Graph& body = fused.node(region).body();
  int node = 0;
  for (; at < lines.size(); ++at) {
    std::vector<int> ops;
    const bool defines = node < static_cast<int>(body.nodes().size()) && Defines(lines[at], "    ", node);
    if (defines) {
      const ir::Node& made = body.node(node++);
      for (int o = 0; o < static_cast<int>(origins.size()); ++o) {
        const auto [label, op] = LabelAndOp(origins[o]);
        if (made.origin >= 0 && label == body.origins()[made.origin].label && op == made.op->name) ops.push_back(o);
      }
    }
    Add(mir, lines[at], std::move(ops));
    if (lines[at] == "  }") break;
  }
  return mir;
}

std::vector<int> KirOps(const kir::Kernel& kernel) {
  std::map<const kir::Stmt*, int> lines;
  const std::string text = kir::Print(kernel, {.lines = &lines});
  std::vector<int> ops(LinesOf(text).size(), -1);
  for (const auto& [stmt, line] : lines) ops[line - 1] = stmt->origin;
  return ops;
}

class VariantStages {
 public:
  static StatusOr<VariantStages> Of(const Profiled& profiled, int variant) {
    VariantStages made(*profiled.executable->plan(variant));
    made.module_ = profiled.module;
    made.hir_ = LinesOf(hir::Print(*profiled.module));
    QUERN_ASSIGN(const ir::Graph* const graph, profiled.graph->Get());
    QUERN_ASSIGN(PlannedVariant fused, FuseVariant(*graph, profiled.executable->guard(variant), profiled.pipeline));
    made.fused_ = std::move(fused.graph);
    const lir::Plan& plan = made.plan_->plan();
    for (int b = 0; b < static_cast<int>(plan.bodies.size()); ++b)
      made.mir_.push_back(LinesOf(ir::Print(lir::GraphOf(made.fused_, plan, b))));
    return made;
  }

  // `specialised`: with the tiles' own code inlined; null: without that.
  StatusOr<profile::Stages> Of(const lir::Launch& launch, cpu::ObjectCompiler& compiler,
                               cpu::ObjectCompiler* specialised) const {
    const kir::Kernel& kernel = plan_->plan().kernels[launch.kernel];
    profile::Stages stages;
    stages.hir = HirOf(*module_, hir_, kernel.origins);
    const ir::Graph& fused = lir::GraphOf(fused_, plan_->plan(), launch.body);
    const bool region = launch.region >= 0 && launch.region < static_cast<int>(fused.nodes().size()) &&
                        fused.node(launch.region).op->kind == ir::OpKind::kRegion;
    if (region) stages.mir = MirOf(fused, mir_[launch.body], launch.region, kernel.origins);
    if (plan_->plan().calls.contains(launch.kernel)) return stages;  // a C function
    stages.kir_ops = KirOps(kernel);
    QUERN_ASSIGN(const cpu::Object object, compiler.Compile(kernel, plan_->kernel_symbols()[launch.kernel]));
    stages.llvm = profile::LinkedIr(object.ir_after);
    stages.assembly = profile::LinkedAssembly(object.assembly);
    // Tiles are functions beside the kernels, in which most of the time of products goes.
    if (specialised != nullptr && absl::StrContains(object.assembly, "qk_")) {
      QUERN_ASSIGN(const cpu::Object inlined, specialised->Compile(kernel, plan_->kernel_symbols()[launch.kernel]));
      stages.tiles = profile::LinkedAssembly(inlined.assembly);
    }
    return stages;
  }

 private:
  explicit VariantStages(const BoundPlan& plan) : plan_(&plan) {}
  const BoundPlan* plan_;
  const hir::Module* module_ = nullptr;
  ir::Graph fused_;
  Lines hir_;
  std::vector<Lines> mir_;  // by body of the plan
};

}  // namespace

Status AddStages(const Profiled& profiled, profile::Profile& profile) {
  cpu::EmitOptions emit;
  emit.specialise = profiled.specialise;
  emit.debug_lines = emit.dump_ir = emit.dump_assembly = true;
  const cpu::Target& target = profiled.executable->cache().engine().target();
  cpu::ObjectCompiler compiler(target, emit);
  emit.specialise = true;
  emit.dump_ir = false;
  cpu::ObjectCompiler specialised(target, emit);
  for (profile::Section& section : profile.sections) {
    QUERN_ASSIGN(const VariantStages variant, VariantStages::Of(profiled, section.variant));
    const std::vector<lir::Launch>& launches = profiled.executable->plan(section.variant)->plan().launches;
    for (size_t l = 0; l < launches.size(); ++l) {
      profile::Kernel& kernel = section.kernels[section.launches[l].kernel];
      if (kernel.stages != nullptr) continue;
      // Tiles are thousands of lines: of kernels that a twentieth of the time goes to.
      const bool often = kernel.sums.wall * 20 >= section.wall;
      QUERN_ASSIGN(profile::Stages stages, variant.Of(launches[l], compiler, often ? &specialised : nullptr));
      kernel.stages = std::make_shared<const profile::Stages>(std::move(stages));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::compiler
