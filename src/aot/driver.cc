#include "aot/driver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "aot/ir_writer.h"
#include "aot/level.h"
#include "aot/support/library.h"
#include "aot/support/support.h"
#include "codegen/cpu/module.h"
#include "codegen/cpu/optimise.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"

namespace quern::aot {
namespace {

class Driver {
 public:
  Driver(llvm::Module& module, const Model& model, const Workspace& workspace, bool embed)
      : w_(module, model), model_(model), at_(workspace), embed_(embed) {}

  Status Run(const std::vector<KernelTable>& kernels) {
    std::vector<llvm::Constant*> levels;
    for (size_t l = 0; l < model_.levels.size(); ++l) {
      QUERN_ASSIGN(llvm::Constant * level, EmitLevel(w_, model_, l, kernels[l], at_));
      levels.push_back(level);
    }
    Describe(levels);
    Wrappers();
    QUERN_RETURN_IF_ERROR(PortBytes("input_bytes", model_.signature.inputs));
    std::vector<Port> rooms;
    for (const Port& port : model_.signature.outputs) rooms.push_back(RoomFor(model_.signature, port));
    QUERN_RETURN_IF_ERROR(PortBytes("output_bytes", rooms));
    Ports("inputs", model_.signature.inputs);
    Ports("outputs", model_.signature.outputs);
    Vocabulary();
    return absl::OkStatus();
  }

 private:
  std::string Name(const std::string& word) const { return absl::StrCat(model_.name, "_", word); }

  void Describe(const std::vector<llvm::Constant*>& levels) {
    std::vector<int64_t> ranges;
    for (const auto& [symbol, range] : model_.signature.symbols) ranges.insert(ranges.end(), {range.low, range.high});
    llvm::Constant* embedded = w_.Null();
    if (embed_) {
      auto* file = new llvm::GlobalVariable(w_.module, w_.b.getInt8Ty(), true, llvm::GlobalValue::ExternalLinkage,
                                            nullptr, "quern_weights");
      file->setVisibility(llvm::GlobalValue::HiddenVisibility);
      embedded = file;
    }
    auto number = [&](int64_t value) { return w_.b.getInt64(value); };
    const WeightFile& weights = model_.weights;
    const Signature& signature = model_.signature;
    auto* rows = llvm::ConstantArray::get(llvm::ArrayType::get(levels[0]->getType(), levels.size()), levels);
    // The order of the fields of the struct in support.h; all are eight bytes.
    const std::vector<llvm::Constant*> fields = {
        number(at_.fixed),
        number(at_.scratch),
        number(at_.state),
        number(at_.state_bytes),
        number(weights.bytes.size()),
        number(weights.header_bytes),
        number(static_cast<int64_t>(quern_header_hash(weights.bytes.data(), weights.header_bytes))),
        embedded,
        number(signature.inputs.size()),
        number(signature.outputs.size()),
        number(signature.symbols.size()),
        w_.Global(llvm::ConstantDataArray::get(w_.module.getContext(), ranges), "ranges"),
        number(levels.size()),
        w_.Global(rows, "levels")};
    static_assert(sizeof(quern_model) == 14 * 8 && offsetof(quern_model, embedded) == 7 * 8 &&
                  offsetof(quern_model, ranges) == 11 * 8 && offsetof(quern_model, level) == 13 * 8);
    described_ = w_.Global(llvm::ConstantStruct::getAnon(fields), "quern_model");
  }

  void Wrappers() {
    llvm::IRBuilder<>& b = w_.b;
    llvm::Type *ptr = w_.ptr, *i32 = w_.i32, *i64 = w_.i64;
    llvm::Function* f = w_.Define(Name("workspace_bytes"), i64, {i64}, true);
    b.CreateRet(w_.Call("quern_model_workspace_bytes", i64, {described_, f->getArg(0)}));
    for (const bool zeroed : {false, true}) {
      f = w_.Define(Name(zeroed ? "init_zeroed" : "init"), i32, {ptr, ptr, i64, ptr, i64, ptr}, true);
      b.CreateRet(w_.Call("quern_model_init", i32,
                          {described_, f->getArg(0), f->getArg(1), f->getArg(2), f->getArg(3), f->getArg(4),
                           f->getArg(5), b.getInt32(zeroed)}));
    }
    Step();
    f = w_.Define(Name("reset"), i32, {ptr}, true);
    b.CreateRet(w_.Call("quern_model_reset", i32, {described_, f->getArg(0)}));
    f = w_.Define(Name("cancel_when"), b.getVoidTy(), {ptr, ptr}, true);
    w_.Call("quern_model_cancel_when", b.getVoidTy(), {f->getArg(0), f->getArg(1)});
    b.CreateRetVoid();
    f = w_.Define(Name("level"), ptr, {ptr}, true);
    b.CreateRet(w_.Call("quern_model_level", ptr, {f->getArg(0)}));
    f = w_.Define(Name("error"), ptr, {i32}, true);
    b.CreateRet(w_.Call("quern_model_error", ptr, {f->getArg(0)}));
  }

  void Step() {
    llvm::IRBuilder<>& b = w_.b;
    std::vector<llvm::Type*> types = WithSymbols({w_.ptr, w_.ptr, w_.ptr});
    const size_t given = types.size();
    types.insert(types.end(), w_.found.size(), w_.ptr);
    llvm::Function* f = w_.Define(Name("step"), w_.i32, types, true);
    llvm::Value* table = w_.Spill(f, 3);
    llvm::Value* code =
        w_.Call("quern_model_step", w_.i32, {described_, f->getArg(0), f->getArg(1), f->getArg(2), table});
    if (!w_.found.empty()) w_.ReturnIf(b.CreateICmpNE(code, b.getInt32(QUERN_OK)), code);
    for (size_t s = 0; s < w_.found.size(); ++s) {
      llvm::Value* to = f->getArg(given + s);
      llvm::Value* size =
          b.CreateAlignedLoad(w_.i64, b.CreateConstInBoundsGEP1_64(w_.i64, table, w_.names.size() + s), llvm::Align(8));
      llvm::BasicBlock* after = w_.Branch(b.CreateIsNotNull(to));
      b.CreateAlignedStore(size, to, llvm::Align(8));
      b.CreateBr(after);
      b.SetInsertPoint(after);
    }
    b.CreateRet(code);
  }

  std::vector<llvm::Type*> WithSymbols(std::vector<llvm::Type*> types) const {
    types.insert(types.end(), w_.names.size(), w_.i64);
    return types;
  }

  Status PortBytes(const std::string& word, const std::vector<Port>& ports) {
    llvm::IRBuilder<>& b = w_.b;
    llvm::Function* f = w_.Define(Name(word), w_.i64, WithSymbols({w_.i64}), true);
    std::vector<llvm::Value*> values;
    for (size_t s = 0; s < w_.names.size(); ++s) values.push_back(f->getArg(1 + s));
    llvm::Value* in_range = w_.Call("quern_model_in_range", w_.i32, {described_, w_.Spill(f, 1)});
    w_.ReturnIf(b.CreateICmpEQ(in_range, b.getInt32(0)), b.getInt64(-1));
    llvm::Value* bytes = b.getInt64(-1);
    for (size_t p = 0; p < ports.size(); ++p) {
      QUERN_ASSIGN(llvm::Value * own, cpu::EmitExtent(BytesOf(ports[p], false), w_.names, values, b));
      bytes = b.CreateSelect(b.CreateICmpEQ(f->getArg(0), b.getInt64(p)), own, bytes);
    }
    b.CreateRet(bytes);
    return absl::OkStatus();
  }

  void Ports(const std::string& word, const std::vector<Port>& ports) {
    std::vector<llvm::Constant*> rows;
    for (const Port& port : ports) {
      const std::string text = port.type.ToString();
      const size_t bracket = text.find('[');
      rows.push_back(llvm::ConstantStruct::getAnon(
          {w_.String(port.name), w_.String(text.substr(0, bracket)), w_.String(text.substr(bracket))}));
    }
    // An array of no rows is legal here but not in C: one of nulls ends the table.
    rows.push_back(llvm::ConstantStruct::getAnon({w_.Null(), w_.Null(), w_.Null()}));
    w_.Global(llvm::ConstantArray::get(llvm::ArrayType::get(rows[0]->getType(), rows.size()), rows), Name(word), true);
  }

  void Vocabulary() {
    if (!model_.tokens.has_value() || model_.tokens->vocabulary.empty()) return;
    const std::string& bytes = model_.tokens->vocabulary;
    llvm::Constant* made = llvm::ConstantDataArray::getString(w_.module.getContext(), bytes, false);
    w_.Global(made, Name("vocabulary"), true);
    w_.module.getGlobalVariable(Name("vocabulary"))->setAlignment(llvm::Align(64));
  }

  IrWriter w_;
  const Model& model_;
  const Workspace& at_;
  const bool embed_;
  llvm::Constant* described_ = nullptr;  // a quern_model
};

// Everything the driver calls becomes a function of its own.
Status LinkSupport(llvm::Module& module, const cpu::Platform& platform) {
  const std::span<const uint8_t> bytes = SupportBitcode(platform.triple);
  if (bytes.empty()) return absl::InternalError(absl::StrFormat("no support code was built for %s", platform.triple));
  const llvm::StringRef text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto support = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(text, "support"), module.getContext());
  if (!support) return absl::InternalError("support bitcode: " + llvm::toString(support.takeError()));
  (*support)->setDataLayout(module.getDataLayout());
  (*support)->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(*support), llvm::Linker::LinkOnlyNeeded)) {
    return absl::InternalError("support bitcode does not link");
  }
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() && function.getName().starts_with("quern_"))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<llvm::Module>> EmitDriver(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                                   const Model& model, const std::vector<KernelTable>& kernels,
                                                   const Workspace& workspace, bool embed_weights) {
  auto module = std::make_unique<llvm::Module>(model.name, context);
  module->setDataLayout(machine.createDataLayout());
  module->setTargetTriple(machine.getTargetTriple().str());
  QUERN_RETURN_IF_ERROR(Driver(*module, model, workspace, embed_weights).Run(kernels));
  QUERN_RETURN_IF_ERROR(LinkSupport(*module, *model.levels[0].target->platform));
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*module, &problems)) return absl::InternalError("driver: " + problem);
  cpu::Optimiser(&machine).Run(*module);
  return module;
}

}  // namespace quern::aot
