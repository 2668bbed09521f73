// Statements other than loops and tile ops.
#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "kir/describe.h"
#include "llvm/IR/MDBuilder.h"

namespace quern::cpu {

void Emitter::EmitBlock(const kir::Block& block) {
  const Saved saved = Enter();
  for (auto stmt = block.begin(); stmt != block.end(); ++stmt) {
    const llvm::DebugLoc outside = EnterLine(**stmt);
    if (const auto* tile = std::get_if<kir::Tile>(&(*stmt)->node)) FindStart(*tile, {stmt + 1, block.end()});
    EmitStatement(**stmt);
    b_.SetCurrentDebugLocation(outside);
  }
  Leave(saved);
}

void Emitter::Refuse(const kir::Stmt& stmt) { Fail(kir::Describe(stmt) + ": a CPU has no blocks of threads"); }

void Emitter::Emit(const kir::Let& let) { BindLet(let.name, let.value); }

void Emitter::BindLet(const std::string& name, const kir::ExprRef& value) {
  Binding binding;
  binding.value = Emit(value);
  Bind(name, std::move(binding));
}

void Emitter::Emit(const kir::Var& var) {
  const Val value = Emit(var.value);
  Binding binding;
  binding.kind = Binding::kVar;
  binding.value.dtype = value.dtype;
  binding.slot = EntryAlloca(LanesOf(ScalarType(value.dtype)));
  b_.CreateStore(Lanes(value), binding.slot);
  Bind(var.name, std::move(binding));
}

void Emitter::Emit(const kir::Assign& assign) {
  if (lanes_ != 1 && running_.contains(assign.name)) {
    running_.at(assign.name).passed = true;
    EmitRunning(assign.name);
    return;
  }
  const Val value = Emit(assign.value);
  const Binding* binding = Lookup(assign.name);
  if (binding == nullptr || binding->kind != Binding::kVar)
    return Fail("assignment to " + assign.name + ", which is no var");
  const bool vector = binding->slot->getAllocatedType()->isVectorTy();
  if (!vector && lanes_ != 1) return Fail("a vec loop assigns " + assign.name + ", which its iterations share");
  b_.CreateStore(Lanes(value), binding->slot);
}

void Emitter::Emit(const kir::Store& store) {
  const std::vector<Val> index = EmitIndex(store.index);
  const Val value = Emit(store.value);
  Buffer* buffer = FindBuffer(store.buffer);
  if (buffer != nullptr) StoreElement(*buffer, index, value);
}

void Emitter::Emit(const kir::Alloc& alloc) { EmitAlloc(alloc.name, alloc.type); }

void Emitter::EmitAlloc(const std::string& name, const kir::BufferType& type) {
  Buffer buffer;
  buffer.type = type;
  buffer.align = 64;
  auto offset = layout_.offset.find(name);
  if (offset == layout_.offset.end()) return Fail("no place in scratch for " + name);
  buffer.ptr = b_.CreateInBoundsGEP(b_.getInt8Ty(), scratch_, ExtentValue(offset->second), name);
  SetStrides(buffer);
  // Distinct from every parameter, and from the allocs and tiles that are alive here; blocks side by side share bytes.
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* scope = metadata.createAnonymousAliasScope(alias_domain_, name);
  std::vector<llvm::Metadata*> others = param_scopes_;
  others.insert(others.end(), live_scopes_.begin(), live_scopes_.end());
  buffer.scope = llvm::MDNode::get(context_, {scope});
  buffer.noalias = llvm::MDNode::get(context_, others);
  live_scopes_.push_back(scope);
  buffers_.emplace_back(name, std::move(buffer));
}

void Emitter::Emit(const kir::If& node) {
  llvm::Value* condition = UniformScalar(node.condition, "condition");
  llvm::BasicBlock* then_block = llvm::BasicBlock::Create(context_, "then", function_);
  llvm::BasicBlock* else_block =
      node.else_body.empty() ? nullptr : llvm::BasicBlock::Create(context_, "else", function_);
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", function_);
  b_.CreateCondBr(condition, then_block, else_block == nullptr ? join : else_block);
  b_.SetInsertPoint(then_block);
  EmitBlock(node.then_body);
  b_.CreateBr(join);
  if (else_block != nullptr) {
    b_.SetInsertPoint(else_block);
    EmitBlock(node.else_body);
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
}

void Emitter::Emit(const kir::Map& map) {
  // Loops over the tiles' memory, the last dimension over the lanes. Inside, a tile's name is its element.
  std::vector<llvm::Value*> extents;
  for (const kir::ExprRef& extent : map.extents) extents.push_back(UniformScalar(extent, "extent of a map"));
  if (extents.empty() || extents.size() != map.indices.size()) return Fail("a map needs one extent an index");
  std::vector<Val> at(extents.size());
  auto body = [&] {
    const Saved saved = Enter();
    for (size_t d = 0; d < at.size(); ++d) {
      Binding binding;
      binding.value = at[d];
      Bind(map.indices[d], std::move(binding));
    }
    for (const std::string& tile : map.tiles) {
      Binding binding;
      binding.kind = Binding::kTileElement;
      if (const Buffer* buffer = FindBuffer(tile)) binding.value.dtype = buffer->type.dtype;
      binding.index = at;
      Bind(tile, std::move(binding));
    }
    EmitBlock(map.body);
    Leave(saved);
  };
  const std::function<void(size_t)> nest = [&](size_t d) {
    if (d + 1 < extents.size()) {
      Loop(b_.getInt64(0), extents[d], 1, [&](llvm::Value* index) {
        at[d] = Uniform(DType::kI64, index);
        nest(d + 1);
      });
      return;
    }
    NameSet varying = {map.indices[d]};
    varying.insert(map.tiles.begin(), map.tiles.end());
    if (Widens(map.body, varying)) {
      VecLoop(b_.getInt64(0), extents[d], 1, [&](const Val& index) {
        at[d] = index;
        body();
      });
      return;
    }
    ++stats_.scalarised;
    Loop(b_.getInt64(0), extents[d], 1, [&](llvm::Value* index) {
      at[d] = Uniform(DType::kI64, index);
      body();
    });
  };
  nest(0);
}

}  // namespace quern::cpu
