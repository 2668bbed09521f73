// The frame of a kernel's function: parameters, symbols, the loop over chunks; names, scopes, extents.
#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "llvm/IR/MDBuilder.h"

namespace quern::cpu {

Emitter::Emitter(llvm::Module& module, const Target& target, const EmitOptions& options, EmitStats& stats)
    : module_(module), context_(module.getContext()), target_(target), options_(options), stats_(stats), b_(context_) {}

void Emitter::Fail(std::string message) {
  if (status_.ok()) status_ = absl::UnimplementedError(absl::StrFormat("kernel %s: %s", kernel_->name, message));
}

Val Emitter::Poison(DType dtype) { return Uniform(dtype, llvm::PoisonValue::get(ScalarType(dtype))); }

void Emitter::Bind(const std::string& name, Binding binding) { names_.emplace_back(name, std::move(binding)); }

const Emitter::Binding* Emitter::Lookup(std::string_view name) const {
  for (auto it = names_.rbegin(); it != names_.rend(); ++it) {
    if (it->first == name) return &it->second;
  }
  return nullptr;
}

Buffer* Emitter::FindBuffer(std::string_view name) {
  for (auto it = buffers_.rbegin(); it != buffers_.rend(); ++it) {
    if (it->first == name) return &it->second;
  }
  Fail(absl::StrFormat("no buffer named %s", std::string(name)));
  return nullptr;
}

Emitter::Saved Emitter::Enter() const { return {names_.size(), buffers_.size(), live_scopes_.size()}; }

void Emitter::Leave(const Saved& saved) {
  names_.resize(saved.names);
  buffers_.resize(saved.buffers);
  live_scopes_.resize(saved.live);
}

llvm::Value* Emitter::ExtentValue(const Extent& extent) {
  llvm::Value* sum = b_.getInt64(0);
  for (const Extent::Term& term : extent.terms()) {
    llvm::Value* product = b_.getInt64(term.coefficient);
    for (const std::string& name : term.symbols) {
      const Binding* symbol = Lookup(name);
      if (symbol == nullptr || symbol->kind != Binding::kValue || !symbol->value.uniform()) {
        Fail(absl::StrFormat("extent %s names %s, which is no symbol", extent.ToString(), name));
        return b_.getInt64(0);
      }
      product = b_.CreateMul(product, symbol->value.scalar, "", true, true);
    }
    sum = b_.CreateAdd(sum, product, "", false, true);
  }
  return sum;
}

void Emitter::BindSymbol(const std::string& name, llvm::Value* value) {
  Binding binding;
  binding.value = Uniform(DType::kI64, value);
  Bind(name, std::move(binding));
}

llvm::AllocaInst* Emitter::EntryAlloca(llvm::Type* type) {
  Builder entry(entry_, entry_->begin());
  return entry.CreateAlloca(type);
}

void Emitter::SetStrides(Buffer& buffer) {
  const kir::BufferType& type = buffer.type;
  const size_t rank = type.dims.size();
  for (const Extent& dim : type.dims) buffer.dims.push_back(ExtentValue(dim));
  buffer.strides.assign(rank, b_.getInt64(1));
  if (type.layout == kir::Layout::kRow) {
    for (size_t d = rank; d-- > 1;) {
      buffer.strides[d - 1] = b_.CreateMul(buffer.strides[d], buffer.dims[d], "", true, true);
    }
    return;
  }
  // Rows of blocks, planar rows and panels: bytes from row to row. The last dimension has no stride of its own.
  if (rank == 0 || !type.dims.back().is_constant()) {
    Fail("a buffer with a layout needs a constant last dimension");
    return;
  }
  llvm::Value* bytes = b_.getInt64(kir::LayoutRowBytes(type.layout, type.dtype, type.dims.back().constant()));
  for (size_t d = rank - 1; d-- > 0;) {
    buffer.strides[d] = bytes;
    bytes = b_.CreateMul(bytes, buffer.dims[d], "", true, true);
  }
}

void Emitter::DeclareParams(const kir::Kernel& kernel, llvm::Value* args) {
  llvm::Type* pointer = b_.getPtrTy();
  // quern_args is two pointers; both tables are constant during a call.
  llvm::MDNode* empty = llvm::MDNode::get(context_, {});
  auto load = [&](llvm::Type* type, llvm::Value* at) {
    llvm::LoadInst* value = b_.CreateAlignedLoad(type, at, llvm::Align(8));
    value->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
    return value;
  };
  llvm::Value* pointers = load(pointer, args);
  llvm::Value* symbols = load(pointer, b_.CreateConstInBoundsGEP1_64(pointer, args, 1));
  for (size_t i = 0; i < kernel.symbols.size(); ++i) {
    llvm::Value* value = load(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), symbols, i));
    value->setName(kernel.symbols[i].name);
    BindSymbol(kernel.symbols[i].name, value);
  }

  // Nothing aliases, except an output declared to share memory with an input (kir.md, decision 10).
  llvm::MDBuilder metadata(context_);
  alias_domain_ = metadata.createAnonymousAliasScopeDomain(kernel.name);
  for (const kir::Param& param : kernel.params) {
    param_scopes_.push_back(metadata.createAnonymousAliasScope(alias_domain_, param.name));
  }
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const kir::Param& param = kernel.params[i];
    Buffer buffer;
    buffer.type = param.type;
    llvm::LoadInst* pointer_value = load(pointer, b_.CreateConstInBoundsGEP1_64(pointer, pointers, i));
    pointer_value->setName(param.name);
    pointer_value->setMetadata(
        llvm::LLVMContext::MD_align,
        llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt64(std::max(param.align, 1)))));
    buffer.ptr = pointer_value;
    buffer.align = std::max(param.align, 1);
    std::vector<llvm::Metadata*> others;
    for (size_t j = 0; j < kernel.params.size(); ++j) {
      const kir::Param& other = kernel.params[j];
      if (j != i && param.inplace != other.name && other.inplace != param.name) others.push_back(param_scopes_[j]);
    }
    buffer.scope = llvm::MDNode::get(context_, {param_scopes_[i]});
    buffer.noalias = llvm::MDNode::get(context_, others);
    SetStrides(buffer);
    buffers_.emplace_back(param.name, std::move(buffer));
  }
}

void Emitter::EmitGrid(const kir::Kernel& kernel, llvm::Value* begin, llvm::Value* end) {
  // Chunk counts of the dimensions, then one loop over the linearised range, the last dimension fastest.
  struct Dim {
    Val low, high;
    llvm::Value* count;
  };
  std::vector<Dim> dims;
  for (const kir::GridDim& dim : kernel.grid) {
    const Val low = UniformVal(dim.low, "grid bound"), high = UniformVal(dim.high, "grid bound");
    llvm::Value* span = b_.CreateSub(high.scalar, low.scalar, "", false, true);
    llvm::Value* count = b_.CreateUDiv(b_.CreateAdd(span, b_.getInt64(dim.step - 1)), b_.getInt64(dim.step));
    dims.push_back({low, high, count});
  }
  Loop(begin, end, 1, [&](llvm::Value* chunk) {
    const Saved saved = Enter();
    llvm::Value* rest = chunk;
    std::vector<llvm::Value*> at(dims.size());
    for (size_t d = dims.size(); d-- > 0;) {
      if (d == 0) {
        at[d] = rest;
      } else {
        at[d] = b_.CreateURem(rest, dims[d].count);
        rest = b_.CreateUDiv(rest, dims[d].count);
      }
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      Binding binding;
      llvm::Value* offset = b_.CreateMul(at[d], b_.getInt64(kernel.grid[d].step), "", true, true);
      llvm::Value* index = b_.CreateAdd(dims[d].low.scalar, offset, kernel.grid[d].index, false, true);
      binding.value = LoopIndex(index, dims[d].low, dims[d].high, kernel.grid[d].step, 1);
      Bind(kernel.grid[d].index, std::move(binding));
    }
    EmitBlock(kernel.body);
    Leave(saved);
  });
}

Status Emitter::EmitKernel(const kir::Kernel& kernel, const std::string& symbol) {
  kernel_ = &kernel;
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, i64, i64}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  function_->setDoesNotThrow();
  // By it profilers find the callers; no inner loop misses the register.
  function_->addFnAttr("frame-pointer", "all");
  for (unsigned i : {0u, 1u}) {
    function_->getArg(i)->addAttr(llvm::Attribute::NoAlias);
    function_->getArg(i)->addAttr(llvm::Attribute::NoUndef);
  }
  function_->getArg(1)->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
  function_->getArg(0)->setName("args");
  function_->getArg(1)->setName("scratch");
  function_->getArg(2)->setName("begin");
  function_->getArg(3)->setName("end");

  entry_ = llvm::BasicBlock::Create(context_, "entry", function_);
  llvm::BasicBlock* start = llvm::BasicBlock::Create(context_, "start", function_);
  b_.SetInsertPoint(start);
  StartLines(kernel, symbol);
  scratch_ = function_->getArg(1);
  layout_ = kir::LayoutScratch(kernel);
  DeclareParams(kernel, function_->getArg(0));
  EmitGrid(kernel, function_->getArg(2), function_->getArg(3));
  b_.CreateRetVoid();
  b_.SetInsertPoint(entry_);
  b_.CreateBr(start);
  for (const llvm::BasicBlock& block : *function_) stats_.instructions += static_cast<int>(block.size());
  return status_;
}

}  // namespace quern::cpu
