// From a kernel to object code: emit, link, optimise, generate.
#include "codegen/cpu/object.h"

#include <algorithm>
#include <array>

#include "base/ticks.h"
#include "codegen/cpu/module.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace quern::cpu {
namespace {

// fmaxf and fminf are what the code generator makes of choices between halves where only conversions know these.
constexpr std::array kLibc = {"fma", "fmaf", "fmaxf", "fminf", "fmod", "fmodf", "memcpy", "memset"};

}  // namespace

bool IsLibcSymbol(std::string_view name) { return std::find(kLibc.begin(), kLibc.end(), name) != kLibc.end(); }

struct ObjectCompiler::State {
  const Target& target;
  EmitOptions options;
  StatusOr<std::unique_ptr<llvm::TargetMachine>> machine;
  std::unique_ptr<ModuleEmitter> emitter;
};

ObjectCompiler::ObjectCompiler(const Target& target, const EmitOptions& options)
    : state_(new State{target, options, MakeMachine(target, options.optimise), nullptr}) {
  if (state_->machine.ok())
    state_->emitter = std::make_unique<ModuleEmitter>(target, state_->options, **state_->machine);
}
ObjectCompiler::~ObjectCompiler() = default;

StatusOr<Object> ObjectCompiler::Compile(const kir::Kernel& kernel, const std::string& symbol) {
  if (!state_->machine.ok()) return state_->machine.status();
  llvm::TargetMachine& machine = **state_->machine;
  Object object;
  object.symbol = symbol;

  llvm::LLVMContext context;
  ModuleReport report;
  QUERN_ASSIGN(const std::unique_ptr<llvm::Module> module,
               state_->emitter->Emit(context, {&kernel, 1}, {&symbol, 1}, report));
  object.stats = report.stats[0];
  object.ir_before = std::move(report.ir_before);
  if (state_->options.dump_ir) object.ir_after = Text(*module);
  for (const llvm::Function& function : *module) {
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty()) {
      object.undefined.push_back(function.getName().str());
    }
  }

  if (state_->options.dump_assembly) {
    // The code generator changes the module: assembly is made from a copy.
    QUERN_ASSIGN(object.assembly, Generate(machine, *llvm::CloneModule(*module), llvm::CodeGenFileType::AssemblyFile));
  }
  const int64_t start = SteadyNs();
  QUERN_ASSIGN(object.bytes, Generate(machine, *module, llvm::CodeGenFileType::ObjectFile));
  object.times = report.times;
  object.times.codegen = SteadyNs() - start;
  return object;
}

}  // namespace quern::cpu
