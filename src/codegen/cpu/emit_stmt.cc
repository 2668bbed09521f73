// Statements other than loops and tile ops.
#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "kir/describe.h"
#include "llvm/IR/MDBuilder.h"

namespace quern::cpu {

void Emitter::EmitBlock(const kir::Block& block) {
  const Saved saved = Enter();
  for (const kir::StmtRef& stmt : block) EmitStmt(*stmt);
  Leave(saved);
}

void Emitter::EmitStmt(const kir::Stmt& stmt) {
  const llvm::DebugLoc outside = EnterLine(stmt);
  EmitStmtNode(stmt);
  b_.SetCurrentDebugLocation(outside);
}

void Emitter::EmitStmtNode(const kir::Stmt& stmt) {
  if (const auto* loop = std::get_if<kir::Loop>(&stmt.node)) return EmitLoopNode(*loop);
  if (const auto* node = std::get_if<kir::If>(&stmt.node)) return EmitIf(*node);
  if (const auto* let = std::get_if<kir::Let>(&stmt.node)) {
    Binding binding;
    binding.value = Emit(let->value);
    return Bind(let->name, std::move(binding));
  }
  if (const auto* var = std::get_if<kir::Var>(&stmt.node)) {
    const Val value = Emit(var->value);
    Binding binding;
    binding.kind = Binding::kVar;
    binding.value.dtype = value.dtype;
    binding.slot = EntryAlloca(LanesOf(ScalarType(value.dtype)));
    b_.CreateStore(Lanes(value), binding.slot);
    return Bind(var->name, std::move(binding));
  }
  if (const auto* assign = std::get_if<kir::Assign>(&stmt.node)) {
    const Val value = Emit(assign->value);
    const Binding* binding = Lookup(assign->name);
    if (binding == nullptr || binding->kind != Binding::kVar)
      return Fail("assignment to " + assign->name + ", which is no var");
    const bool vector = binding->slot->getAllocatedType()->isVectorTy();
    if (!vector && lanes_ != 1) return Fail("a vec loop assigns " + assign->name + ", which its iterations share");
    b_.CreateStore(Lanes(value), binding->slot);
    return;
  }
  if (const auto* store = std::get_if<kir::Store>(&stmt.node)) {
    const std::vector<Val> index = EmitIndex(store->index);
    const Val value = Emit(store->value);
    Buffer* buffer = FindBuffer(store->buffer);
    if (buffer != nullptr) StoreElement(*buffer, index, value);
    return;
  }
  if (const auto* alloc = std::get_if<kir::Alloc>(&stmt.node)) return EmitAlloc(alloc->name, alloc->type);
  if (const auto* tile = std::get_if<kir::Tile>(&stmt.node)) return EmitTile(*tile);
  if (const auto* call = std::get_if<kir::TileCall>(&stmt.node)) return EmitTileCall(*call);
  if (const auto* map = std::get_if<kir::Map>(&stmt.node)) return EmitMap(*map);
  if (const auto* pack = std::get_if<kir::Pack>(&stmt.node)) return EmitPack(*pack);
  if (const auto* prefetch = std::get_if<kir::Prefetch>(&stmt.node)) return EmitPrefetch(*prefetch);
  Fail(kir::Describe(stmt) + ": a CPU has no blocks of threads");
}

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

void Emitter::EmitIf(const kir::If& node) {
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

void Emitter::EmitMap(const kir::Map& map) {
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
      binding.value.dtype = DType::kF32;
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
    std::vector<std::string> varying = {map.indices[d]};
    varying.insert(varying.end(), map.tiles.begin(), map.tiles.end());
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
