#include "aot/level.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "aot/steps.h"
#include "aot/support/support.h"
#include "base/cpu_features.h"

namespace quern::aot {
namespace {

class LevelEmitter {
 public:
  LevelEmitter(IrWriter& w, const Model& model, size_t index, const KernelTable& kernels, const Workspace& workspace)
      : w_(w), model_(model), level_(model.levels[index]), kernels_(kernels), at_(workspace) {}

  StatusOr<llvm::Constant*> Run() {
    QUERN_ASSIGN(llvm::Function * once, Once());
    std::vector<llvm::Function*> steps;
    for (size_t v = 0; v < level_.variants.size(); ++v) {
      QUERN_ASSIGN(llvm::Function * step, Step(v));
      steps.push_back(step);
    }
    llvm::Function* choose = Choose(steps);
    QUERN_ASSIGN(const CpuNeeds needs, CpuNeedsOf(level_.target->required));
    std::vector<uint32_t> words(std::begin(needs.words.word), std::end(needs.words.word));
    words.push_back(needs.words.state);
    static_assert(sizeof(cpu_words) == (CPU_WORDS + 1) * sizeof(uint32_t));
    llvm::Constant* permit = w_.Null();
    if (needs.permission) {
      permit = llvm::cast<llvm::Constant>(
          w_.module.getOrInsertFunction("quern_permit_amx", llvm::FunctionType::get(w_.i32, false)).getCallee());
    }
    return llvm::ConstantStruct::getAnon({w_.String(level_.target->name),
                                          llvm::ConstantDataArray::get(w_.module.getContext(), words), permit,
                                          w_.b.getInt64(level_.variants.size()), once, choose});
  }

 private:
  FillContext Context(llvm::Value* self) {
    FillContext context{model_, at_, w_.pool, w_.names, {}, self, nullptr, nullptr, nullptr};
    context.names.insert(context.names.end(), w_.found.begin(), w_.found.end());
    context.names.insert(context.names.end(), w_.inner.begin(), w_.inner.end());
    llvm::Value* field = w_.b.CreateConstInBoundsGEP1_64(w_.b.getInt8Ty(), self, offsetof(quern_instance, weights));
    context.weights = w_.b.CreateAlignedLoad(w_.ptr, field, llvm::Align(8));
    return context;
  }

  StatusOr<llvm::Function*> Once() {
    llvm::Function* function = w_.Define(absl::StrCat("once.", level_.target->name), w_.i64, {w_.ptr, w_.i64}, false);
    for (size_t v = 0; v < level_.variants.size(); ++v) {
      const lir::Plan& plan = level_.variants[v].plan;
      if (plan.once.empty()) continue;
      llvm::BasicBlock* after = w_.Branch(w_.b.CreateICmpEQ(function->getArg(1), w_.b.getInt64(v)));
      FillContext context = Context(function->getArg(0));
      // Nothing of it depends on a symbol: any value does.
      context.values.assign(context.names.size(), w_.b.getInt64(1));
      QUERN_RETURN_IF_ERROR(Filler(context, plan, plan.once, kernels_, kernels_.rows[v], w_.b).Fill().status());
      w_.b.CreateRet(w_.b.getInt64(plan.once.size()));
      w_.b.SetInsertPoint(after);
    }
    w_.b.CreateRet(w_.b.getInt64(0));
    return function;
  }

  StatusOr<llvm::Function*> Step(size_t v) {
    const Variant& variant = level_.variants[v];
    llvm::Function* function = DefineStep(absl::StrCat("step.", level_.target->name, ".", v));
    FillContext context = Context(function->getArg(0));
    context.inputs = function->getArg(1);
    context.outputs = function->getArg(2);
    context.values = w_.LoadValues(function->getArg(3));
    // What the guard fixes is a constant, and with it most of what follows.
    for (size_t s = 0; s < w_.names.size(); ++s) {
      const auto guard = variant.guard.find(w_.names[s]);
      if (guard != variant.guard.end() && guard->second.low == guard->second.high)
        context.values[s] = w_.b.getInt64(guard->second.low);
    }
    context.values.resize(context.names.size(), w_.b.getInt64(0));
    QUERN_RETURN_IF_ERROR(EmitRequirements(w_, context, variant.plan.requirements));
    Filler filler(context, variant.plan, variant.plan.launches, kernels_, kernels_.rows[v], w_.b);
    QUERN_RETURN_IF_ERROR(EmitSteps(w_, context, function->getArg(3), variant.plan, filler));
    w_.b.CreateRet(w_.b.getInt32(QUERN_OK));
    return function;
  }

  llvm::Function* Choose(const std::vector<llvm::Function*>& steps) {
    llvm::Function* function = DefineStep(absl::StrCat("step.", level_.target->name));
    const std::vector<llvm::Value*> values = w_.LoadValues(function->getArg(3));
    for (size_t v = 0; v < steps.size(); ++v) {
      llvm::Value* holds = w_.b.getTrue();
      for (size_t s = 0; s < w_.names.size(); ++s) {
        const auto guard = level_.variants[v].guard.find(w_.names[s]);
        if (guard == level_.variants[v].guard.end()) continue;
        holds = w_.b.CreateAnd(holds, w_.b.CreateICmpSGE(values[s], w_.b.getInt64(guard->second.low)));
        holds = w_.b.CreateAnd(holds, w_.b.CreateICmpSLE(values[s], w_.b.getInt64(guard->second.high)));
      }
      llvm::BasicBlock* after = w_.Branch(holds);
      w_.b.CreateRet(w_.b.CreateCall(
          steps[v], {function->getArg(0), function->getArg(1), function->getArg(2), function->getArg(3)}));
      w_.b.SetInsertPoint(after);
    }
    w_.b.CreateRet(w_.b.getInt32(QUERN_ERROR_SIZES));
    return function;
  }

  llvm::Function* DefineStep(const std::string& name) {
    return w_.Define(name, w_.i32, {w_.ptr, w_.ptr, w_.ptr, w_.ptr}, false);
  }

  IrWriter& w_;
  const Model& model_;
  const Level& level_;
  const KernelTable& kernels_;
  const Workspace& at_;
};

}  // namespace

StatusOr<llvm::Constant*> EmitLevel(IrWriter& w, const Model& model, size_t level, const KernelTable& kernels,
                                    const Workspace& workspace) {
  return LevelEmitter(w, model, level, kernels, workspace).Run();
}

}  // namespace quern::aot
