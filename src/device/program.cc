#include "device/program.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "lir/kernel_symbols.h"

namespace quern::device {
namespace {

// "layers.0.ffn.matmul.f16" -> "k_layers_0_ffn_matmul_f16": an identifier, and no word of any language.
std::string Identifier(const std::string& symbol) {
  std::string name = "k_";
  for (const char c : symbol) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

StatusOr<Kernel> Describe(const kir::Kernel& kernel, std::string symbol) {
  QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
  if (shape.threads == 0)
    return absl::InternalError(absl::StrFormat("kernel %s is not scheduled for blocks of threads", symbol));
  Kernel made;
  made.symbol = std::move(symbol);
  made.threads = shape.threads;
  made.shared_bytes = shape.shared_bytes;
  made.symbols = kernel.symbols;
  made.grid = kernel.grid;
  for (const kir::GridDim& dim : kernel.grid) {
    QUERN_RETURN_IF_ERROR(ExtentOf(dim.low).status());
    QUERN_RETURN_IF_ERROR(ExtentOf(dim.high).status());
  }
  for (const kir::Param& param : kernel.params) {
    made.params.push_back(
        {param.name, kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims), param.mode, param.align});
  }
  return made;
}

// Kernels of several plans, identical ones once.
class Collector {
 public:
  explicit Collector(Collected& made) : made_(made) {}

  // The variant, and the kernels that it adds with names that may not be their own yet.
  StatusOr<Variant> Add(const PlannedVariant& planned) {
    const lir::Plan& plan = planned.plan;
    if (!plan.calls.empty()) return absl::UnimplementedError("C functions run on no device");
    const std::vector<std::string> symbols = lir::KernelSymbols(plan, planned.guard);
    std::vector<int> kernels;
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      QUERN_ASSIGN(const int index, Intern(plan.kernels[k], symbols[k]));
      kernels.push_back(index);
    }
    Variant variant{planned.guard, plan.buffers,      plan.once,        plan.launches,
                    plan.bodies,   plan.requirements, plan.arena_bytes, plan.once_bytes};
    for (lir::Body& body : variant.bodies) body.values.clear();
    for (std::vector<lir::Launch>* launches : {&variant.once, &variant.launches}) {
      for (lir::Launch& launch : *launches) launch.kernel = kernels[launch.kernel];
    }
    return variant;
  }

 private:
  StatusOr<int> Intern(const kir::Kernel& kernel, const std::string& symbol) {
    const Hash128 identity = HashBytes(lir::KernelIdentity(kernel, nullptr));
    const auto [known, added] = kernels_.emplace(identity, static_cast<int>(made_.kernels.size()));
    if (!added) return known->second;
    QUERN_ASSIGN(Kernel described, Describe(kernel, symbol));
    made_.program.kernels.push_back(std::move(described));
    made_.kernels.push_back(kernel);
    return known->second;
  }

  Collected& made_;
  std::map<Hash128, int> kernels_;
};

}  // namespace

StatusOr<Extent> ExtentOf(const kir::ExprRef& expr) {
  if (const auto* constant = std::get_if<kir::Const>(&expr->node); constant != nullptr && !IsFloat(expr->dtype))
    return Extent(constant->integer);
  if (const auto* name = std::get_if<kir::NameRef>(&expr->node)) return Extent::Symbol(name->name);
  if (const auto* apply = std::get_if<kir::Apply>(&expr->node); apply != nullptr && apply->args.size() == 2) {
    QUERN_ASSIGN(const Extent a, ExtentOf(apply->args[0]));
    QUERN_ASSIGN(const Extent b, ExtentOf(apply->args[1]));
    if (apply->op == kir::Op::kAdd) return a + b;
    if (apply->op == kir::Op::kSub) return a - b;
    if (apply->op == kir::Op::kMul) return a * b;
  }
  return absl::UnimplementedError(absl::StrFormat("%s is no polynomial in symbols", kir::Print(expr)));
}

std::vector<std::string> EntryNames(std::span<const std::string> symbols) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const std::string& symbol : symbols) {
    const std::string base = Identifier(symbol);
    std::string name = base;
    for (int i = 2; !known.insert(name).second; ++i) name = absl::StrCat(base, "_", i);
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> Collected::symbols() const {
  std::vector<std::string> symbols;
  for (const Kernel& kernel : program.kernels) symbols.push_back(kernel.symbol);
  return symbols;
}

StatusOr<Collected> CollectProgram(Signature signature, std::span<const PlannedVariant> variants) {
  QUERN_RETURN_IF_ERROR(ir::RefuseCounted(signature.counted));
  Collected made;
  made.program.signature = std::move(signature);
  Collector collector(made);
  for (const PlannedVariant& planned : variants) {
    QUERN_ASSIGN(Variant variant, collector.Add(planned));
    made.program.variants.push_back(std::move(variant));
  }
  const std::vector<std::string> names = EntryNames(made.symbols());
  for (size_t k = 0; k < names.size(); ++k) made.program.kernels[k].symbol = names[k];
  QUERN_RETURN_IF_ERROR(Verify(made.program));
  return made;
}

Status AddModule(Program& program, const codegen::DeviceModule& module) {
  if (module.kernels.size() != program.kernels.size()) {
    return absl::InternalError(absl::StrFormat("the text has %u entries, %u kernels were asked for",
                                               module.kernels.size(), program.kernels.size()));
  }
  for (size_t k = 0; k < module.kernels.size(); ++k) {
    const codegen::DeviceKernel& made = module.kernels[k];
    if (made.symbol != program.kernels[k].symbol) {
      return absl::InternalError(
          absl::StrFormat("entry %u is %s, %s was asked for", k, made.symbol, program.kernels[k].symbol));
    }
    program.kernels[k].threads = made.threads;
    program.kernels[k].shared_bytes = made.shared_bytes;
  }
  return Verify(program);
}

}  // namespace quern::device
