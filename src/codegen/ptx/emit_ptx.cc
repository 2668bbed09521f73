// The frame of an entry (parameters, symbols, grid) and all statements.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/ptx/emitter.h"
#include "kir/describe.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace quern::ptx {

constexpr int64_t kRegisters = 65536;  // of a multiprocessor

Emitter::Emitter(const kir::Kernel& kernel, llvm::Module& module, MathLibrary& math, int64_t threads, bool groups)
    : kernel_(kernel), module_(module), math_(math), b_(module.getContext()), threads_(threads), groups_(groups) {}

void Emitter::Fail(const std::string& what) {
  if (status_.ok()) status_ = absl::InternalError(absl::StrCat("kernel ", kernel_.name, ", in PTX: ", what));
}
void Emitter::Unimplemented(const std::string& what) {
  if (status_.ok()) status_ = absl::UnimplementedError(absl::StrCat("kernel ", kernel_.name, ": PTX of ", what));
}

Status Emitter::Run(const std::string& symbol) {
  llvm::LLVMContext& context = module_.getContext();
  std::vector<llvm::Type*> types(kernel_.params.size(), llvm::PointerType::get(context, 1));
  types.insert(types.end(), kernel_.symbols.size(), b_.getInt64Ty());
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, symbol, module_);
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const kir::Param& param = kernel_.params[i];
    function_->addParamAttr(i, llvm::Attribute::getWithAlignment(context, llvm::Align(param.align)));
    if (param.mode == kir::Mode::kIn) function_->addParamAttr(i, llvm::Attribute::ReadOnly);
    const bool alone = std::none_of(kernel_.params.begin(), kernel_.params.end(), [&](const kir::Param& other) {
      return !other.inplace.empty() && (other.inplace == param.name || other.name == param.name);
    });
    if (alone) function_->addParamAttr(i, llvm::Attribute::NoAlias);
  }
  auto* annotations = module_.getOrInsertNamedMetadata("nvvm.annotations");
  auto annotate = [&](const char* key, int64_t value) {
    annotations->addOperand(
        llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(context, key),
                                    llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(value)))}));
  };
  annotate("kernel", 1);
  annotate("maxntidx", threads_);

  b_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function_));
  for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
    names_[kernel_.symbols[i].name] = {.value = function_->getArg(static_cast<unsigned>(kernel_.params.size() + i))};
  }
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const kir::BufferType& type = kernel_.params[i].type;
    if (type.layout != (IsBlock(type.dtype) ? kir::Layout::kBlocks : kir::Layout::kRow))
      Unimplemented(kir::Print(type));
    Buffer buffer{function_->getArg(static_cast<unsigned>(i)), type.dtype, {}, kernel_.params[i].align};
    for (const Extent& dim : type.dims) buffer.dims.push_back(FromExtent(dim));
    if (!type.dims.empty()) buffer.multiple = kir::MultipleOf(type.dims.back());
    names_[kernel_.params[i].name] = {.buffer = static_cast<int>(buffers_.size())};
    buffers_.push_back(std::move(buffer));
  }
  if (!status_.ok()) return status_;
  thread_ = b_.CreateZExt(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {}), b_.getInt64Ty());
  EmitGrid();
  Survey();
  Block(kernel_.body);
  b_.CreateRetVoid();
  // Left to itself the assembler spills a little to have one block more at a time. It is told how many must fit: one,
  // or as many as leave 64 registers beside the tiles of warps.
  annotate("minctasm", fragments_ == 0 ? 1 : std::max<int64_t>(1, kRegisters / (threads_ * (fragments_ + 64))));
  return status_;
}

llvm::Value* Emitter::FromExtent(const Extent& extent) {
  llvm::Value* sum = I64(0);
  for (const Extent::Term& term : extent.terms()) {
    llvm::Value* product = I64(term.coefficient);
    for (const std::string& symbol : term.symbols) product = b_.CreateNSWMul(product, names_[symbol].value);
    sum = b_.CreateNSWAdd(sum, product);
  }
  return sum;
}

// In the entry block, where LLVM makes registers of them.
llvm::AllocaInst* Emitter::Slot(llvm::Type* type) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  return at.CreateAlloca(type);
}

// The last dimension runs fastest.
void Emitter::EmitGrid() {
  llvm::Value* chunk =
      b_.CreateZExt(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {}), b_.getInt64Ty());
  Names values;
  for (size_t d = kernel_.grid.size(); d-- > 0;) {
    const kir::GridDim& dim = kernel_.grid[d];
    llvm::Value* low = Value(dim.low);
    llvm::Value* length = b_.CreateNSWAdd(b_.CreateNSWSub(Value(dim.high), low), I64(dim.step - 1));
    llvm::Value* count = b_.CreateUDiv(length, I64(dim.step));
    llvm::Value* number = d == 0 ? chunk : b_.CreateURem(chunk, count);
    if (d > 0) chunk = b_.CreateUDiv(chunk, count);
    values[dim.index] = {.value = b_.CreateNSWAdd(low, b_.CreateNSWMul(number, I64(dim.step))),
                         .multiple = Stride(dim.low, dim.step)};
  }
  for (const auto& [name, value] : values) names_[name] = value;
}

void Emitter::Block(const kir::Block& block) {
  const Names outer = names_;
  for (const kir::StmtRef& stmt : block) {
    if (!status_.ok()) return;
    EmitStatement(*stmt);
  }
  names_ = outer;
}

void Emitter::Refuse(const kir::Stmt& stmt) { Unimplemented(kir::Describe(stmt)); }

void Emitter::Emit(const kir::Loop& loop) {
  const Names outer = names_;
  if (loop.kind == kir::LoopKind::kThread) {
    llvm::Value* number = thread_;
    const int together = std::exchange(together_, kir::Row(loop.level).threads);
    if (together_ > 1) number = b_.CreateUDiv(thread_, I64(together_));
    if (loop.level == kir::ThreadLevel::kLane) number = b_.CreateAnd(thread_, 31);
    names_[loop.index] = {.value = number};
    Block(loop.body);
    together_ = together;
  } else {
    llvm::Value* low = Value(loop.low);
    llvm::Value* high = Value(loop.high);
    const int64_t multiple = Stride(loop.low, loop.step);
    auto body = [&](llvm::Value* i) {
      names_[loop.index] = {.value = i, .multiple = multiple};
      Block(loop.body);
    };
    const auto* first = llvm::dyn_cast<llvm::ConstantInt>(low);
    const auto* end = llvm::dyn_cast<llvm::ConstantInt>(high);
    if (loop.kind == kir::LoopKind::kUnroll && first != nullptr && end != nullptr) {
      // Here rather than by LLVM: an element of a tile is named by constants.
      for (int64_t i = first->getSExtValue(); i < end->getSExtValue() && status_.ok(); i += loop.step) body(I64(i));
    } else {
      LoopOver(low, high, I64(loop.step), body);
    }
  }
  names_ = outer;
}

void Emitter::Emit(const kir::If& branch) {
  llvm::Value* condition = Value(branch.condition);
  Guarded(condition, [&] { Block(branch.then_body); });
  if (!branch.else_body.empty()) Guarded(b_.CreateNot(condition), [&] { Block(branch.else_body); });
}

void Emitter::Emit(const kir::Let& let) { DefineLet(let.name, let.value); }

void Emitter::DefineLet(const std::string& name, const kir::ExprRef& value) {
  names_[name] = {.value = Value(value), .multiple = MultipleOf(value)};
}

void Emitter::Emit(const kir::Var& var) {
  llvm::AllocaInst* slot = Slot(ValueType(var.value->dtype));
  b_.CreateStore(Value(var.value), slot);
  names_[var.name] = {.slot = slot};
}

void Emitter::Emit(const kir::Assign& assign) { b_.CreateStore(Value(assign.value), names_[assign.name].slot); }

void Emitter::Emit(const kir::Store& store) {
  std::vector<llvm::Value*> index;
  for (const kir::ExprRef& at : store.index) index.push_back(Value(at));
  llvm::Value* value = Value(store.value);
  if (!status_.ok()) return;
  const Name& name = names_[store.buffer];
  if (name.slot != nullptr) {  // the result of a function
    b_.CreateStore(value, name.slot);
    return;
  }
  if (name.tile >= 0) {
    b_.CreateStore(value, TileSlot(tiles_[name.tile], index));
    return;
  }
  // What a warp or a group stores as one, its first thread does.
  const Buffer buffer = buffers_[name.buffer];
  auto write = [&] { b_.CreateStore(ToMemory(value, buffer.dtype), Address(buffer, index)); };
  if (together_ == 1) return write();
  Guarded(b_.CreateICmpEQ(b_.CreateAnd(thread_, I64(together_ - 1)), I64(0)), write);
}

void Emitter::Emit(const kir::Alloc& alloc) {
  Buffer buffer{nullptr, alloc.type.dtype, {}};
  uint64_t count = 1;
  for (const Extent& dim : alloc.type.dims) {
    if (!dim.is_constant()) return Fail("a shared alloc without a constant size");
    count *= static_cast<uint64_t>(dim.constant());
    buffer.dims.push_back(I64(dim.constant()));
    buffer.multiple = kir::MultipleOf(dim);
  }
  if (alloc.space != kir::Space::kShared || alloc.type.layout != kir::Layout::kRow)
    return Unimplemented("alloc " + alloc.name);
  buffer.bytes = (static_cast<int64_t>(count) * ScalarBytes(alloc.type.dtype) + 127) / 128 * 128;
  const auto stages = static_cast<uint64_t>(std::max(1, stages_[alloc.name]));
  if (stages > 1) count = stages * static_cast<uint64_t>(buffer.bytes / ScalarBytes(alloc.type.dtype));
  llvm::Type* type = llvm::ArrayType::get(MemoryType(alloc.type.dtype), count);
  auto* global = new llvm::GlobalVariable(
      module_, type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type),
      absl::StrCat(function_->getName().str(), "_", alloc.name), nullptr, llvm::GlobalValue::NotThreadLocal, 3);
  global->setAlignment(llvm::Align(128));
  buffer.pointer = global;
  buffer.core = cores_.contains(alloc.name);
  names_[alloc.name] = {.buffer = static_cast<int>(buffers_.size())};
  buffers_.push_back(std::move(buffer));
}

void Emitter::Emit(const kir::Tile& tile) {
  TileValue made;
  int64_t count = 1;
  for (const Extent& dim : tile.type.dims) {
    made.dims.push_back(dim.constant());
    count *= dim.constant();
  }
  made.together = together_;
  const int64_t rows = together_ / 2;  // 16 for a warp, 64 for a group
  if (together_ > 1 && (made.dims.size() != 2 || made.dims[0] % rows != 0 || made.dims[1] % 8 != 0)) {
    return Unimplemented(absl::StrFormat("a tile of %d threads that is not of %d x 8 elements", together_, rows));
  }
  count /= together_;
  if (together_ > 1) fragments_ += count;
  if (count > 128) return Unimplemented("a tile of more than 128 elements a thread");
  llvm::Value* init = Value(tile.init);
  for (int64_t i = 0; i < count; ++i) {
    made.slots.push_back(Slot(ValueType(tile.type.dtype)));
    b_.CreateStore(init, made.slots.back());
  }
  names_[tile.name] = {.tile = static_cast<int>(tiles_.size())};
  tiles_.push_back(std::move(made));
}

// Every element of the tiles that this thread has, unrolled; those that are not live are skipped.
void Emitter::Emit(const kir::Map& map) {
  std::vector<llvm::Value*> extents;
  for (const kir::ExprRef& extent : map.extents) extents.push_back(Value(extent));
  const TileValue& first = tiles_[names_[map.tiles[0]].tile];
  const std::vector<int64_t> dims = first.dims;
  const int together = first.together;
  const int count = static_cast<int>(first.slots.size());
  for (const std::string& tile : map.tiles) {
    const TileValue& other = tiles_[names_[tile].tile];
    if (other.dims != dims || other.together != together) return Unimplemented("a map over tiles of several shapes");
  }
  const int outside = std::exchange(together_, 1);
  llvm::Value* lane = b_.CreateAnd(thread_, 31);
  const Names outer = names_;
  for (int e = 0; e < count && status_.ok(); ++e) {
    std::vector<llvm::Value*> index(dims.size());
    if (together > 1) {
      // Of each 16 x 8 elements a lane has four; the warps of a group have 16 rows of 64 each.
      const int64_t part = e / 4, columns = dims[1] / 8;
      llvm::Value* warp = b_.CreateLShr(b_.CreateAnd(thread_, I64(together - 1)), 5);
      llvm::Value* row = b_.CreateOr(b_.CreateShl(warp, 4), b_.CreateLShr(lane, 2));
      index[0] = b_.CreateNSWAdd(row, I64(part / columns * (together / 2) + e % 4 / 2 * 8));
      index[1] = b_.CreateNSWAdd(b_.CreateShl(b_.CreateAnd(lane, 3), 1), I64(part % columns * 8 + e % 2));
    } else {
      int64_t rest = e;
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = I64(rest % dims[d]);
    }
    llvm::Value* live = b_.getTrue();
    for (size_t d = 0; d < dims.size(); ++d) {
      names_[map.indices[d]] = {.value = index[d]};
      live = b_.CreateAnd(live, b_.CreateICmpSLT(index[d], extents[d]));
    }
    for (const std::string& tile : map.tiles) names_[tile].element = e;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(live);
    if (constant != nullptr && constant->isOne())
      Block(map.body);
    else
      Guarded(live, [&] { Block(map.body); });
    names_ = outer;
  }
  together_ = outside;
}

void Emitter::Emit(const kir::Shuffle& shuffle) {
  llvm::Value* lane = b_.CreateTrunc(Value(shuffle.lane), b_.getInt32Ty());
  const llvm::Intrinsic::ID id = shuffle.kind == kir::ShuffleKind::kXor    ? llvm::Intrinsic::nvvm_shfl_sync_bfly_i32
                                 : shuffle.kind == kir::ShuffleKind::kDown ? llvm::Intrinsic::nvvm_shfl_sync_down_i32
                                                                           : llvm::Intrinsic::nvvm_shfl_sync_idx_i32;
  auto exchanged = [&](llvm::Value* word) {
    return b_.CreateIntrinsic(id, {}, {b_.getInt32(0xffffffff), word, lane, b_.getInt32(31)});
  };
  // In 32-bit words.
  llvm::Value* value = Value(shuffle.value);
  llvm::Type* type = value->getType();
  const unsigned bits = type->getPrimitiveSizeInBits();
  llvm::Value* word = b_.CreateBitCast(value, b_.getIntNTy(bits));
  if (bits <= 32) {
    word = b_.CreateTrunc(exchanged(b_.CreateZExt(word, b_.getInt32Ty())), b_.getIntNTy(bits));
  } else {
    llvm::Value* low = exchanged(b_.CreateTrunc(word, b_.getInt32Ty()));
    llvm::Value* high = exchanged(b_.CreateTrunc(b_.CreateLShr(word, 32), b_.getInt32Ty()));
    word = b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()), b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32));
  }
  names_[shuffle.name] = {.value = b_.CreateBitCast(word, type)};
}

}  // namespace quern::ptx
