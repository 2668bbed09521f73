#include "aot/ir_writer.h"

#include <algorithm>

namespace quern::aot {

IrWriter::IrWriter(llvm::Module& to, const Model& model)
    : module(to),
      b(to.getContext()),
      pool(to),
      ptr(b.getPtrTy()),
      i32(b.getInt32Ty()),
      i64(b.getInt64Ty()),
      platform_(*model.levels[0].target->platform) {
  for (const auto& [name, range] : model.signature.symbols) names.push_back(name);
  for (const auto& [name, most] : model.signature.counted) found.push_back(name);
  inner = model.signature.counted_in_bodies;
}

llvm::Function* IrWriter::Define(const std::string& name, llvm::Type* result,
                                 const std::vector<llvm::Type*>& parameters, bool external) {
  const auto linkage = external ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage;
  auto* function = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false), linkage, name, module);
  function->setDoesNotThrow();
  function->addFnAttr("target-cpu", platform_.base_cpu);
  function->addFnAttr("target-features", platform_.base_features);
  function->addFnAttr("frame-pointer", "all");
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", function));
  return function;
}

llvm::Constant* IrWriter::Global(llvm::Constant* value, const std::string& name, bool external) {
  const auto linkage = external ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage;
  auto* global = new llvm::GlobalVariable(module, value->getType(), true, linkage, value, name);
  global->setAlignment(llvm::Align(8));
  return global;
}

llvm::Constant* IrWriter::String(const std::string& text) {
  return Global(llvm::ConstantDataArray::getString(module.getContext(), text), "text");
}

llvm::Value* IrWriter::Call(const char* name, llvm::Type* result, const std::vector<llvm::Value*>& arguments) {
  std::vector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  return b.CreateCall(module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), arguments);
}

llvm::BasicBlock* IrWriter::Branch(llvm::Value* condition) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(module.getContext(), "", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(module.getContext(), "", function);
  b.CreateCondBr(condition, inside, after);
  b.SetInsertPoint(inside);
  return after;
}

void IrWriter::ReturnIf(llvm::Value* condition, llvm::Value* value) {
  llvm::BasicBlock* after = Branch(condition);
  b.CreateRet(value);
  b.SetInsertPoint(after);
}

std::vector<llvm::Value*> IrWriter::LoadValues(llvm::Value* table) {
  std::vector<llvm::Value*> values;
  for (size_t s = 0; s < names.size(); ++s) {
    values.push_back(b.CreateAlignedLoad(i64, b.CreateConstInBoundsGEP1_64(i64, table, s), llvm::Align(8), names[s]));
  }
  return values;
}

llvm::Value* IrWriter::Spill(llvm::Function* function, unsigned first) {
  const size_t size = names.size() + found.size() + inner.size();
  llvm::Value* table = b.CreateAlloca(llvm::ArrayType::get(i64, std::max<size_t>(size, 1)));
  for (size_t s = 0; s < size; ++s) {
    llvm::Value* value = b.getInt64(0);
    if (s < names.size()) value = function->getArg(first + s);
    b.CreateAlignedStore(value, b.CreateConstInBoundsGEP1_64(i64, table, s), llvm::Align(8));
  }
  return table;
}

}  // namespace quern::aot
