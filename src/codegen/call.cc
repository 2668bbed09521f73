// The call family: one op of the caller's own, computed by a C function. What is made of it has the parameters, sizes
// and grid of a kernel, and no body: its dispatches are those of a kernel, of which that function is the code.
// quern/call.h says what the function finds: first a buffer of constants, then operands and results; the table of
// symbols ends with the extents of all of them.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "codegen/families.h"
#include "codegen/kernel_writer.h"
#include "ir/custom.h"
#include "kir/declare_sizes.h"
#include "quern/call.h"

namespace quern::codegen {
namespace {

namespace kb = kir::build;

class CallWriter {
 public:
  CallWriter(const RegionView& view, const ir::CustomDef& def)
      : view_(view), node_(view.node(view.nodes()[0])), def_(def) {}

  StatusOr<LoweredRegion> Run() {
    use_.kernel.name = "call";
    use_.call = &def_;
    Add({Operand::Kind::kConstant, 0}, {}, kir::Mode::kIn, sizeof(quern_call));  // its bytes follow, below
    for (const ir::Value& input : node_.inputs) AddOperand(input);
    for (int r = 0; r < static_cast<int>(node_.results.size()); ++r) AddResult(r);
    AddSizes();
    lowered_.constants[0] = Bytes(Constants());
    use_.kernel.params[0].type = lowered_.constants[0].type;
    use_.kernel.grid = {{"part", kb::Int(0), kb::Int(def_.parts), 1}};
    use_.kernel.sequential = def_.parts == 1;
    use_.kernel.origins = {OriginText(view_.graph, view_.nodes()[0])};
    use_.last_origin = view_.nodes()[0];
    lowered_.kernels.push_back(std::move(use_));
    return std::move(lowered_);
  }

 private:
  void Add(Operand operand, kir::BufferType type, kir::Mode mode, int64_t align) {
    if (operand.kind == Operand::Kind::kConstant) lowered_.constants.resize(operand.index + 1);
    use_.kernel.params.push_back({.name = absl::StrCat("p", use_.operands.size()),
                                  .type = std::move(type),
                                  .mode = mode,
                                  .align = static_cast<int>(align),
                                  .inplace = ""});
    use_.operands.push_back(operand);
  }

  void AddOperand(ir::Value value) {
    const ir::TensorType& type = view_.type(value);
    if (const int input = view_.InputIndex(value); input >= 0) {
      Add({Operand::Kind::kInput, input}, BufferTypeOf(type, view_.scope.IsParam(value.node)), kir::Mode::kIn,
          def_.alignment);
      return;
    }
    // Constants of one element are part of the body.
    const int constant = static_cast<int>(lowered_.constants.size());
    Add({Operand::Kind::kConstant, constant}, BufferTypeOf(type, false), kir::Mode::kIn, def_.alignment);
    lowered_.constants[constant] = {BufferTypeOf(type, false), view_.node(value.node).data};
  }

  void AddResult(int r) {
    const kir::BufferType type = BufferTypeOf(node_.results[r], false);
    for (size_t result = 0; result < view_.results().size(); ++result) {
      if (view_.results()[result] != ir::Value{view_.nodes()[0], r}) continue;
      Add({Operand::Kind::kResult, static_cast<int>(result)}, type, kir::Mode::kOut, def_.alignment);
      return;
    }
    // Nobody reads it, but the function writes it.
    Add({Operand::Kind::kTemporary, static_cast<int>(lowered_.temporaries.size())}, type, kir::Mode::kOut,
        def_.alignment);
    lowered_.temporaries.push_back(type);
  }

  // The sizes that occur, and then the extents. No symbol of a graph has a dot in its name.
  void AddSizes() {
    kir::Kernel& kernel = use_.kernel;
    kir::DeclareSizes(kernel, view_.ranges);
    for (size_t p = 1; p < kernel.params.size(); ++p) {
      first_.push_back(static_cast<int64_t>(kernel.symbols.size()));
      for (const Extent& dim : kernel.params[p].type.dims) {
        const std::string name = absl::StrCat("extent.", kernel.symbols.size());
        kernel.symbols.push_back(kir::DerivedSymbol(name, dim, 1, kernel.symbols));
      }
    }
    first_.push_back(static_cast<int64_t>(kernel.symbols.size()));
  }

  std::string Constants() const {
    const std::string& attributes = node_.attributes.String("attrs");
    const quern_call call = {static_cast<int64_t>(node_.inputs.size()), static_cast<int64_t>(node_.results.size()),
                             def_.parts, static_cast<int64_t>(attributes.size())};
    std::string bytes(reinterpret_cast<const char*>(&call), sizeof(call));
    bytes.append(reinterpret_cast<const char*>(first_.data()), first_.size() * sizeof(int64_t));
    return bytes + attributes;
  }
  static family::ConstantBytes Bytes(const std::string& text) {
    return {{DType::kU8, {Extent(static_cast<int64_t>(text.size()))}, kir::Layout::kRow},
            std::make_shared<const std::vector<uint8_t>>(text.begin(), text.end())};
  }

  const RegionView& view_;
  const ir::Node& node_;
  const ir::CustomDef& def_;
  KernelUse use_;
  LoweredRegion lowered_;
  std::vector<int64_t> first_;  // by operand, then by result: the position of its first extent; then where they end
};

}  // namespace

family::Matched MatchCall(const RegionView& view) {
  if (view.nodes().size() != 1)
    return family::No("%s is computed by a function of its own", view.Describe(view.nodes()[0]));
  if (view.facts.blocks) return family::No("%s is a C function, which no device runs", view.Describe(view.nodes()[0]));
  return family::Matched(std::make_unique<RegionPlan>());
}

StatusOr<LoweredRegion> LowerCall(const RegionView& view, const RegionPlan&) {
  QUERN_ASSIGN(const ir::CustomDef* const def, ir::CustomOf(view.node(view.nodes()[0]).attributes));
  return CallWriter(view, *def).Run();
}

}  // namespace quern::codegen
