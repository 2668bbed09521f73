#include "codegen/kernel_writer.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/cut_loops.h"
#include "codegen/split_guards.h"
#include "kir/declare_sizes.h"
#include "kir/share.h"

namespace quern::codegen {

namespace kb = kir::build;

KernelWriter::KernelWriter(const RegionView& view, std::string name) : view_(view) { kernel.name = std::move(name); }

std::string KernelWriter::Declare(Operand operand, const kir::BufferType& type, kir::Mode mode, int align,
                                  std::string prefix) {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].kind == operand.kind && operands_[i].index == operand.index) return kernel.params[i].name;
  }
  kir::Param param;
  param.name = absl::StrCat(prefix, operand.index);
  param.type = type;
  param.mode = mode;
  param.align = align;
  kernel.params.push_back(param);
  operands_.push_back(operand);
  return param.name;
}

std::string KernelWriter::Input(int index) {
  const int leaf = view_.inputs()[index];
  const bool param = view_.scope.IsParam(leaf);
  kir::BufferType type = BufferTypeOf(view_.node(leaf).results[0], param);
  if (const auto found = declared_as_.find(index); found != declared_as_.end()) {
    const DeclaredAs& as = found->second;
    type = {as.dtype.value_or(type.dtype), as.dims, as.layout.value_or(type.layout)};
  }
  // At most; the plan lowers it to what the memory has.
  return Declare({Operand::Kind::kInput, index}, type, kir::Mode::kIn, param ? 32 : 64, param ? "w" : "x");
}

std::string KernelWriter::UpdatedInput(int index) {
  const kir::BufferType type = BufferTypeOf(view_.node(view_.inputs()[index]).results[0], false);
  return Declare({Operand::Kind::kInput, index}, type, kir::Mode::kInOut, 64, "s");
}

std::string KernelWriter::Result(int index) {
  return Declare({Operand::Kind::kResult, index}, BufferTypeOf(view_.type(view_.results()[index]), false),
                 kir::Mode::kOut, 64, "y");
}

std::string KernelWriter::Temporary(int index, const kir::BufferType& type, bool written) {
  return Declare({Operand::Kind::kTemporary, index}, type, written ? kir::Mode::kOut : kir::Mode::kIn, 64, "tmp");
}

void KernelWriter::Redeclare(const std::string& buffer, std::vector<Extent> dims) {
  for (kir::Param& param : kernel.params) {
    if (param.name == buffer) param.type.dims = std::move(dims);
  }
}

void KernelWriter::ProvideInputs(FusedExpr& expr) {
  for (size_t i = 0; i < view_.inputs().size(); ++i) {
    const ir::TensorType type = view_.node(view_.inputs()[i]).results[0];
    expr.Provide({view_.inputs()[i], 0}, [this, i, type](const kir::Index& at, const kir::ExprRef& otherwise) {
      const std::string buffer = Input(static_cast<int>(i));
      if (IsBlock(type.dtype)) return kb::DecodeAt(buffer, at);
      return kb::At(buffer, type.dtype, at, otherwise);
    });
  }
}

int KernelWriter::Origin(int node) {
  std::string text = OriginText(view_.graph, node);
  for (size_t i = 0; i < kernel.origins.size(); ++i) {
    if (kernel.origins[i] == text) return static_cast<int>(i);
  }
  kernel.origins.push_back(std::move(text));
  last_origin_ = node;
  return static_cast<int>(kernel.origins.size()) - 1;
}

StatusOr<KernelUse> KernelWriter::Finish() {
  if (!view_.facts.blocks) {
    kernel.body = SplitGuards(kernel);
    kernel = CutLoops(std::move(kernel), view_.facts);
  }
  kernel = kir::ShareValues(std::move(kernel));
  std::vector<kir::SizeFact> facts;
  for (const ir::ExtentConstraint& constraint : view_.graph.constraints) {
    if (constraint.Always(view_.ranges)) continue;
    facts.push_back(constraint.difference());
    if (constraint.relation == ir::SizeRelation::kEqual) facts.push_back(Extent(0) - constraint.difference());
  }
  // Most proofs need what is known of the kernel's own sizes alone, and are long with more.
  const kir::Kernel bare = facts.empty() ? kir::Kernel{} : kernel;
  kir::DeclareSizes(kernel, view_.ranges, facts, /*own_quotients=*/true);
  Status verified = kir::Verify(kernel);
  if (!verified.ok() && !facts.empty()) {
    kernel = bare;
    kir::DeclareSizes(kernel, view_.ranges, facts);
    verified = kir::Verify(kernel);
  }
  if (!verified.ok()) {
    return Status(absl::StatusCode::kInternal, absl::StrCat("a generated kernel does not verify: ",
                                                            std::string(verified.message()), "\n", kir::Print(kernel)));
  }
  return KernelUse{std::move(kernel), last_origin_, std::move(operands_)};
}

StatusOr<LoweredRegion> KernelWriter::FinishRegion() {
  LoweredRegion lowered;
  QUERN_ASSIGN(KernelUse use, Finish());
  lowered.kernels.push_back(std::move(use));
  return lowered;
}

}  // namespace quern::codegen
