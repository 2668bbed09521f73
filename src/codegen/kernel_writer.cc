#include "codegen/kernel_writer.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kir/share.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;

// Names that occur in expressions, which include the symbols.
class NameCollector {
 public:
  std::set<std::string, std::less<>> names;

  void Visit(const kir::Block& block) {
    for (const kir::StmtRef& stmt : block) std::visit([&](const auto& node) { Statement(node); }, stmt->node);
  }
  void Visit(const kir::ExprRef& expr) {
    if (expr != nullptr) std::visit([&](const auto& node) { Expression(node); }, expr->node);
  }
  void Visit(const kir::BufferType& type) {
    for (const Extent& dim : type.dims) {
      for (const std::string& symbol : dim.Symbols()) names.insert(symbol);
    }
  }

 private:
  void Visit(const kir::Slice& slice) {
    for (const kir::SliceDim& dim : slice.dims) {
      Visit(dim.start);
      Visit(dim.extent);
    }
  }
  void Visit(const std::vector<kir::ExprRef>& exprs) {
    for (const kir::ExprRef& expr : exprs) Visit(expr);
  }

  void Expression(const kir::Const&) {}
  void Expression(const kir::NameRef& node) { names.insert(node.name); }
  void Expression(const kir::Load& node) { Visit(node.index), Visit(node.otherwise); }
  void Expression(const kir::Apply& node) { Visit(node.args); }
  void Expression(const kir::Cast& node) { Visit(node.value); }
  void Expression(const kir::Bits& node) { Visit(node.value); }
  void Expression(const kir::Reduce& node) {
    Visit(node.low), Visit(node.high), Visit(node.body);
    for (const auto& [name, value] : node.lets) Visit(value);
  }
  void Expression(const kir::Decode& node) { Visit(node.index); }

  void Statement(const kir::Loop& node) { Visit(node.low), Visit(node.high), Visit(node.body); }
  void Statement(const kir::If& node) { Visit(node.condition), Visit(node.then_body), Visit(node.else_body); }
  void Statement(const kir::Let& node) { Visit(node.value); }
  void Statement(const kir::Var& node) { Visit(node.value); }
  void Statement(const kir::Assign& node) { Visit(node.value); }
  void Statement(const kir::Store& node) { Visit(node.index), Visit(node.value); }
  void Statement(const kir::Alloc& node) { Visit(node.type); }
  void Statement(const kir::Tile& node) { Visit(node.init); }
  void Statement(const kir::TileCall& node) {
    for (const kir::Slice& slice : node.operands) Visit(slice);
    for (const auto& [name, value] : node.attributes) Visit(value);
  }
  void Statement(const kir::Map& node) { Visit(node.extents), Visit(node.body); }
  void Statement(const kir::Pack& node) { Visit(node.dst), Visit(node.src); }
  void Statement(const kir::Barrier&) {}
  void Statement(const kir::Copy& node) { Visit(node.dst), Visit(node.src); }
  void Statement(const kir::Pipeline& node) { Visit(node.low), Visit(node.high), Visit(node.fetch), Visit(node.use); }
  void Statement(const kir::Shuffle& node) { Visit(node.value), Visit(node.lane); }
  void Statement(const kir::Prefetch& node) { Visit(node.slice); }
};

}  // namespace

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
  if (const auto dims = input_dims_.find(index); dims != input_dims_.end()) type.dims = dims->second;
  // A mapped weight is aligned as its file says; GGUF's default, and what the loader checks, is 32.
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
  return Declare({Operand::Kind::kTemporary, index}, type, written ? kir::Mode::kOut : kir::Mode::kIn, 64, "t");
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
  kernel = kir::ShareValues(std::move(kernel));
  NameCollector collector;
  collector.Visit(kernel.body);
  for (const kir::GridDim& dim : kernel.grid) {
    collector.Visit(dim.low);
    collector.Visit(dim.high);
  }
  for (const kir::Param& param : kernel.params) collector.Visit(param.type);
  for (const kir::SymbolDecl& decl : kernel.symbols) {
    if (decl.derived) {
      for (const std::string& symbol : decl.derived->first.Symbols()) collector.names.insert(symbol);
    }
  }
  std::vector<kir::SymbolDecl> free;
  for (const auto& [name, range] : view_.ranges) {
    if (collector.names.contains(name)) free.push_back({name, range, std::nullopt});
  }
  kernel.symbols.insert(kernel.symbols.begin(), free.begin(), free.end());
  const Status verified = kir::Verify(kernel);
  if (!verified.ok()) {
    return Status(absl::StatusCode::kInternal, absl::StrCat("a generated kernel does not verify: ",
                                                            std::string(verified.message()), "\n", kir::Print(kernel)));
  }
  return KernelUse{std::move(kernel), last_origin_, std::move(operands_)};
}

}  // namespace quern::codegen
