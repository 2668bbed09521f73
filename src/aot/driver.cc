#include "aot/driver.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "aot/cpu_needs.h"
#include "aot/fill.h"
#include "aot/support/library.h"
#include "aot/support/support.h"
#include "codegen/cpu/module.h"
#include "codegen/cpu/optimise.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"

namespace quern::aot {
namespace {

constexpr const char* kModel = "quern_model";          // the description of this model
constexpr const char* kEmbedded = "quern_weights";     // the model file, when it is in the object

class Driver {
 public:
  Driver(llvm::Module& module, const Model& model, const std::vector<KernelTable>& kernels, const Workspace& workspace, bool embed)
      : m_(module), b_(module.getContext()), model_(model), kernels_(kernels), at_(workspace), embed_(embed), pool_(module) {
    for (const auto& [name, range] : model.signature.symbols) {
      names_.push_back(name);
      ranges_.push_back(range);
    }
    ptr_ = b_.getPtrTy();
    i32_ = b_.getInt32Ty();
    i64_ = b_.getInt64Ty();
  }

  Status Run() {
    std::vector<llvm::Constant*> levels;
    for (size_t l = 0; l < model_.levels.size(); ++l) {
      QUERN_ASSIGN(llvm::Constant * level, LevelRow(l));
      levels.push_back(level);
    }
    Describe(levels);
    Wrappers();
    QUERN_RETURN_IF_ERROR(PortBytes("input_bytes", model_.signature.inputs));
    QUERN_RETURN_IF_ERROR(PortBytes("output_bytes", model_.signature.outputs));
    Ports("inputs", model_.signature.inputs);
    Ports("outputs", model_.signature.outputs);
    return absl::OkStatus();
  }

 private:
  // ---- pieces

  llvm::Function* Define(const std::string& name, llvm::Type* result, std::vector<llvm::Type*> parameters, bool external) {
    auto* type = llvm::FunctionType::get(result, parameters, false);
    auto* function = llvm::Function::Create(type, external ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, name, m_);
    function->setDoesNotThrow();
    function->addFnAttr("target-cpu", "x86-64");
    b_.SetInsertPoint(llvm::BasicBlock::Create(m_.getContext(), "", function));
    return function;
  }
  std::string Name(const std::string& word) const { return absl::StrCat(model_.name, "_", word); }

  llvm::Constant* Global(llvm::Constant* value, const std::string& name, bool external = false) {
    auto* global = new llvm::GlobalVariable(m_, value->getType(), true, external ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, value, name);
    global->setAlignment(llvm::Align(8));
    return global;
  }
  llvm::Constant* String(const std::string& text) {
    return Global(llvm::ConstantDataArray::getString(m_.getContext(), text), "text");
  }
  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(b_.getPtrTy()); }

  llvm::Value* Call(const char* name, llvm::Type* result, const std::vector<llvm::Value*>& arguments) {
    std::vector<llvm::Type*> types;
    for (llvm::Value* argument : arguments) types.push_back(argument->getType());
    return b_.CreateCall(m_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), arguments);
  }

  // Returns `value` from the function when `condition` holds, and goes on in a new block.
  void ReturnIf(llvm::Value* condition, llvm::Value* value) {
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    llvm::BasicBlock* leave = llvm::BasicBlock::Create(m_.getContext(), "", function);
    llvm::BasicBlock* next = llvm::BasicBlock::Create(m_.getContext(), "", function);
    b_.CreateCondBr(condition, leave, next);
    b_.SetInsertPoint(leave);
    b_.CreateRet(value);
    b_.SetInsertPoint(next);
  }

  std::vector<llvm::Value*> LoadValues(llvm::Value* table) {
    std::vector<llvm::Value*> values;
    for (size_t s = 0; s < names_.size(); ++s) {
      values.push_back(b_.CreateAlignedLoad(i64_, b_.CreateConstInBoundsGEP1_64(i64_, table, s), llvm::Align(8), names_[s]));
    }
    return values;
  }

  FillContext Context(size_t level, size_t variant, llvm::Value* self) {
    FillContext context{model_, at_, pool_, names_, {}, self, nullptr, nullptr, nullptr, at_.once[level][variant]};
    context.weights = b_.CreateAlignedLoad(ptr_, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), self, offsetof(quern_instance, weights)), llvm::Align(8));
    return context;
  }

  // ---- levels

  StatusOr<llvm::Constant*> LevelRow(size_t l) {
    const Level& level = model_.levels[l];
    QUERN_ASSIGN(llvm::Function * once, Once(l));
    std::vector<llvm::Function*> steps;
    for (size_t v = 0; v < level.variants.size(); ++v) {
      QUERN_ASSIGN(llvm::Function * step, Step(l, v));
      steps.push_back(step);
    }
    llvm::Function* choose = Choose(l, steps);
    QUERN_ASSIGN(const CpuNeeds needs, NeedsOf(*level.target));
    std::vector<uint32_t> words(needs.words.begin(), needs.words.end());
    words.push_back(needs.state);
    llvm::Constant* permit = Null();
    if (needs.permission) permit = llvm::cast<llvm::Constant>(m_.getOrInsertFunction("quern_permit_amx", llvm::FunctionType::get(i32_, false)).getCallee());
    static_assert(offsetof(quern_level, state) == offsetof(quern_level, needs) + QUERN_CPUID_WORDS * sizeof(uint32_t));
    return llvm::ConstantStruct::getAnon({String(level.target->name), llvm::ConstantDataArray::get(m_.getContext(), words), permit,
                                          b_.getInt64(static_cast<int64_t>(level.variants.size())), once, choose});
  }

  StatusOr<llvm::Function*> Once(size_t l) {
    const Level& level = model_.levels[l];
    llvm::Function* function = Define(absl::StrCat("once.", level.target->name), i64_, {ptr_, i64_}, false);
    for (size_t v = 0; v < level.variants.size(); ++v) {
      const lir::Plan& plan = level.variants[v].plan;
      if (plan.once.empty()) continue;
      llvm::BasicBlock* fill = llvm::BasicBlock::Create(m_.getContext(), "", function);
      llvm::BasicBlock* next = llvm::BasicBlock::Create(m_.getContext(), "", function);
      b_.CreateCondBr(b_.CreateICmpEQ(function->getArg(1), b_.getInt64(static_cast<int64_t>(v))), fill, next);
      b_.SetInsertPoint(fill);
      FillContext context = Context(l, v, function->getArg(0));
      // Nothing of it depends on a symbol: any value does.
      context.values.assign(names_.size(), b_.getInt64(1));
      QUERN_RETURN_IF_ERROR(EmitFill(context, plan, plan.once, kernels_[l], kernels_[l].rows[v], b_));
      b_.CreateRet(b_.getInt64(static_cast<int64_t>(plan.once.size())));
      b_.SetInsertPoint(next);
    }
    b_.CreateRet(b_.getInt64(0));
    return function;
  }

  StatusOr<llvm::Function*> Step(size_t l, size_t v) {
    const Level& level = model_.levels[l];
    const lir::Plan& plan = level.variants[v].plan;
    llvm::Function* function = Define(absl::StrCat("step.", level.target->name, ".", v), i64_, {ptr_, ptr_, ptr_, ptr_}, false);
    FillContext context = Context(l, v, function->getArg(0));
    context.inputs = function->getArg(1);
    context.outputs = function->getArg(2);
    context.values = LoadValues(function->getArg(3));
    // What the guard fixes is a constant, and with it most of what follows.
    for (size_t s = 0; s < names_.size(); ++s) {
      const auto guard = level.variants[v].guard.find(names_[s]);
      if (guard != level.variants[v].guard.end() && guard->second.low == guard->second.high) context.values[s] = b_.getInt64(guard->second.low);
    }
    for (const lir::Requirement& requirement : plan.requirements) {
      QUERN_ASSIGN(llvm::Value * value, cpu::EmitExtent(requirement.value, names_, context.values, b_));
      llvm::Value* zero = b_.getInt64(0);
      ReturnIf(requirement.exact ? b_.CreateICmpNE(value, zero) : b_.CreateICmpSLT(value, zero), b_.getInt64(-1));
    }
    QUERN_RETURN_IF_ERROR(EmitFill(context, plan, plan.launches, kernels_[l], kernels_[l].rows[v], b_));
    b_.CreateRet(b_.getInt64(static_cast<int64_t>(plan.launches.size())));
    return function;
  }

  llvm::Function* Choose(size_t l, const std::vector<llvm::Function*>& steps) {
    const Level& level = model_.levels[l];
    llvm::Function* function = Define(absl::StrCat("step.", level.target->name), i64_, {ptr_, ptr_, ptr_, ptr_}, false);
    const std::vector<llvm::Value*> values = LoadValues(function->getArg(3));
    for (size_t v = 0; v < steps.size(); ++v) {
      llvm::Value* holds = b_.getTrue();
      for (size_t s = 0; s < names_.size(); ++s) {
        const auto guard = level.variants[v].guard.find(names_[s]);
        if (guard == level.variants[v].guard.end()) continue;
        holds = b_.CreateAnd(holds, b_.CreateAnd(b_.CreateICmpSGE(values[s], b_.getInt64(guard->second.low)),
                                                 b_.CreateICmpSLE(values[s], b_.getInt64(guard->second.high))));
      }
      llvm::BasicBlock* found = llvm::BasicBlock::Create(m_.getContext(), "", function);
      llvm::BasicBlock* next = llvm::BasicBlock::Create(m_.getContext(), "", function);
      b_.CreateCondBr(holds, found, next);
      b_.SetInsertPoint(found);
      llvm::CallInst* call = b_.CreateCall(steps[v], {function->getArg(0), function->getArg(1), function->getArg(2), function->getArg(3)});
      b_.CreateRet(call);
      b_.SetInsertPoint(next);
    }
    b_.CreateRet(b_.getInt64(-1));
    return function;
  }

  // ---- the model

  void Describe(const std::vector<llvm::Constant*>& levels) {
    std::vector<int64_t> ranges;
    for (const SymbolRange& range : ranges_) ranges.insert(ranges.end(), {range.low, range.high});
    llvm::Constant* embedded = Null();
    if (embed_) {
      embedded = new llvm::GlobalVariable(m_, b_.getInt8Ty(), true, llvm::GlobalValue::ExternalLinkage, nullptr, kEmbedded);
      llvm::cast<llvm::GlobalVariable>(embedded)->setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
    auto number = [&](int64_t value) { return b_.getInt64(value); };
    const WeightFile& weights = model_.weights;
    const int64_t header = std::min<int64_t>(weights.header_bytes, weights.bytes.size());
    auto* rows = llvm::ConstantArray::get(llvm::ArrayType::get(levels[0]->getType(), levels.size()), levels);
    // The order of the fields of the struct in support.h; all are eight bytes.
    const std::vector<llvm::Constant*> fields = {
        number(at_.fixed), number(at_.scratch), number(at_.state), number(at_.state_bytes),
        number(static_cast<int64_t>(weights.bytes.size())), number(header),
        number(static_cast<int64_t>(quern_header_hash(weights.bytes.data(), header))), embedded,
        number(static_cast<int64_t>(names_.size())), Global(llvm::ConstantDataArray::get(m_.getContext(), ranges), "ranges"),
        number(static_cast<int64_t>(levels.size())), Global(rows, "levels")};
    static_assert(sizeof(quern_model) == 12 * 8 && offsetof(quern_model, embedded) == 7 * 8 && offsetof(quern_model, level) == 11 * 8);
    described_ = Global(llvm::ConstantStruct::getAnon(fields), kModel);
  }

  void Wrappers() {
    llvm::Function* f = Define(Name("workspace_bytes"), i64_, {i64_}, true);
    b_.CreateRet(Call("quern_model_workspace_bytes", i64_, {described_, f->getArg(0)}));
    f = Define(Name("init"), i32_, {ptr_, ptr_, i64_, ptr_, i64_, ptr_}, true);
    b_.CreateRet(Call("quern_model_init", i32_, {described_, f->getArg(0), f->getArg(1), f->getArg(2), f->getArg(3), f->getArg(4), f->getArg(5)}));
    std::vector<llvm::Type*> types = {ptr_, ptr_, ptr_};
    types.insert(types.end(), names_.size(), i64_);
    f = Define(Name("step"), i32_, types, true);
    b_.CreateRet(Call("quern_model_step", i32_, {described_, f->getArg(0), f->getArg(1), f->getArg(2), Spill(f, 3)}));
    f = Define(Name("reset"), i32_, {ptr_}, true);
    b_.CreateRet(Call("quern_model_reset", i32_, {described_, f->getArg(0)}));
    f = Define(Name("level"), ptr_, {ptr_}, true);
    b_.CreateRet(Call("quern_model_level", ptr_, {f->getArg(0)}));
    f = Define(Name("error"), ptr_, {i32_}, true);
    b_.CreateRet(Call("quern_model_error", ptr_, {f->getArg(0)}));
  }

  // The symbols, arguments from `first` on, as a table.
  llvm::Value* Spill(llvm::Function* function, unsigned first) {
    llvm::Value* table = b_.CreateAlloca(llvm::ArrayType::get(i64_, std::max<size_t>(names_.size(), 1)));
    for (size_t s = 0; s < names_.size(); ++s) {
      b_.CreateAlignedStore(function->getArg(first + s), b_.CreateConstInBoundsGEP1_64(i64_, table, s), llvm::Align(8));
    }
    return table;
  }

  Status PortBytes(const std::string& word, const std::vector<Port>& ports) {
    std::vector<llvm::Type*> types = {i64_};
    types.insert(types.end(), names_.size(), i64_);
    llvm::Function* f = Define(Name(word), i64_, types, true);
    std::vector<llvm::Value*> values;
    for (size_t s = 0; s < names_.size(); ++s) values.push_back(f->getArg(1 + s));
    llvm::Value* in_range = Call("quern_model_in_range", i32_, {described_, Spill(f, 1)});
    ReturnIf(b_.CreateICmpEQ(in_range, b_.getInt32(0)), b_.getInt64(-1));
    llvm::Value* bytes = b_.getInt64(-1);
    for (size_t p = 0; p < ports.size(); ++p) {
      QUERN_ASSIGN(llvm::Value * own, cpu::EmitExtent(BytesOf(ports[p], false), names_, values, b_));
      bytes = b_.CreateSelect(b_.CreateICmpEQ(f->getArg(0), b_.getInt64(static_cast<int64_t>(p))), own, bytes);
    }
    b_.CreateRet(bytes);
    return absl::OkStatus();
  }

  void Ports(const std::string& word, const std::vector<Port>& ports) {
    std::vector<llvm::Constant*> rows;
    for (const Port& port : ports) {
      const std::string text = port.type.ToString();
      const size_t bracket = text.find('[');
      rows.push_back(llvm::ConstantStruct::getAnon({String(port.name), String(text.substr(0, bracket)), String(text.substr(bracket))}));
    }
    // An array of no rows is legal here but not in C: one of nulls ends the table.
    rows.push_back(llvm::ConstantStruct::getAnon({Null(), Null(), Null()}));
    Global(llvm::ConstantArray::get(llvm::ArrayType::get(rows[0]->getType(), rows.size()), rows), Name(word), true);
  }

  llvm::Module& m_;
  llvm::IRBuilder<> b_;
  const Model& model_;
  const std::vector<KernelTable>& kernels_;
  const Workspace& at_;
  const bool embed_;
  ConstantPool pool_;
  std::vector<std::string> names_;
  std::vector<SymbolRange> ranges_;
  llvm::Constant* described_ = nullptr;
  llvm::Type *ptr_, *i32_, *i64_;
};

// Everything the driver calls becomes a function of its own.
Status LinkSupport(llvm::Module& module) {
  const std::span<const uint8_t> bytes = SupportBitcode();
  const llvm::StringRef text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto support = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(text, "support"), module.getContext());
  if (!support) return absl::InternalError("support bitcode: " + llvm::toString(support.takeError()));
  (*support)->setDataLayout(module.getDataLayout());
  (*support)->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(*support), llvm::Linker::LinkOnlyNeeded)) {
    return absl::InternalError("support bitcode does not link");
  }
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() && function.getName().starts_with("quern_")) function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<llvm::Module>> EmitDriver(llvm::LLVMContext& context, llvm::TargetMachine& machine, const Model& model,
                                                   const std::vector<KernelTable>& kernels, const Workspace& workspace,
                                                   bool embed_weights) {
  auto module = std::make_unique<llvm::Module>(model.name, context);
  module->setDataLayout(machine.createDataLayout());
  module->setTargetTriple(machine.getTargetTriple().str());
  Driver driver(*module, model, kernels, workspace, embed_weights);
  QUERN_RETURN_IF_ERROR(driver.Run());
  QUERN_RETURN_IF_ERROR(LinkSupport(*module));
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*module, &problems)) return absl::InternalError("driver: " + problem);
  cpu::Optimiser(&machine).Run(*module);
  return module;
}

}  // namespace quern::aot
