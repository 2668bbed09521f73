// Tiles, tile ops and packs: calls of the level's precompiled functions by the conventions of kir/tile_op.h.
#include <algorithm>

#include "base/check.h"
#include "codegen/cpu/emitter.h"
#include "kir/build.h"
#include "kir/tile_op.h"
#include "llvm/IR/Intrinsics.h"
#include "simd/library.h"

namespace quern::cpu {

namespace kb = kir::build;

namespace {

int64_t Elements(const Buffer& buffer) {
  int64_t count = 1;
  for (llvm::Value* dim : buffer.dims) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(dim);
    count *= constant == nullptr ? 0 : constant->getSExtValue();
  }
  return count;
}

}  // namespace

void Emitter::Emit(const kir::Tile& tile) {
  EmitAlloc(tile.name, tile.type);
  if (!status_.ok()) return;
  const Buffer buffer = buffers_.back().second;
  const Val init = Emit(tile.init);
  if (Elements(buffer) == 0 || !init.uniform() || ScalarBytes(tile.type.dtype) < 4)
    return Fail("a tile needs elements of 32 or 64 bits, constant extents and a uniform start");
  const auto* start = llvm::dyn_cast<llvm::Constant>(init.scalar);
  if (start == nullptr || !start->isNullValue()) started_by_call_.erase(tile.name);
  if (!started_by_call_.contains(tile.name)) Fill(buffer, init.scalar);
}

// A tile of zeros whose next use is a call that can start from zeros need not have them in memory.
void Emitter::FindStart(const kir::Tile& tile, std::span<const kir::StmtRef> next) {
  for (const kir::StmtRef& stmt : next) {
    if (std::holds_alternative<kir::Tile>(stmt->node) || std::holds_alternative<kir::Prefetch>(stmt->node)) continue;
    const auto* call = std::get_if<kir::TileCall>(&stmt->node);
    if (call == nullptr) return;
    if (std::find(call->tiles.begin(), call->tiles.end(), tile.name) == call->tiles.end()) continue;
    const kir::TileOp* op = kir::FindTileOp(call->op);
    if (op != nullptr && op->starts && IsBound(op->symbol) && !options_.expand_tiles)
      started_by_call_.insert(tile.name);
    return;
  }
}

// Tiles end at a multiple of 64 bytes in scratch, so whole vectors may be stored.
void Emitter::Fill(const Buffer& buffer, llvm::Value* value) {
  const int bytes = ScalarBytes(buffer.type.dtype), lanes = target_.lanes * 4 / bytes;
  llvm::Value* splat = b_.CreateVectorSplat(lanes, value);
  auto store = [&](llvm::Value* index) {
    llvm::Value* at = b_.CreateInBoundsGEP(MemoryType(buffer.type.dtype), buffer.ptr, index);
    llvm::StoreInst* stored = b_.CreateAlignedStore(splat, at, llvm::Align(bytes * lanes));
    stored->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.scope);
    stored->setMetadata(llvm::LLVMContext::MD_noalias, buffer.noalias);
  };
  const int64_t elements = Elements(buffer);
  if (elements <= 4 * lanes) {
    for (int64_t i = 0; i < elements; i += lanes) store(b_.getInt64(i));
  } else {
    Loop(b_.getInt64(0), b_.getInt64(elements), lanes, store);
  }
}

bool Emitter::IsBound(const char* symbol) const {
  return symbol != nullptr && simd::Exists(std::string(symbol) + "_" + target_.name);
}

llvm::FunctionCallee Emitter::Tile(const char* symbol, llvm::FunctionType* type) {
  if (!IsBound(symbol)) return {};
  llvm::FunctionCallee callee = module_.getOrInsertFunction(std::string(symbol) + "_" + target_.name, type);
  // Touches only what its arguments point to, so loads of other memory stay in registers across the call.
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotThrow();
    function->setOnlyAccessesArgMemory();
  }
  return callee;
}

void Emitter::Emit(const kir::TileCall& call) {
  const kir::TileOp* op = kir::FindTileOp(call.op);
  if (op == nullptr) return Fail("no tile op named " + call.op);
  if (call.tiles.size() != op->tiles.size() || call.operands.size() > op->operands.size()) {
    return Fail("wrong number of operands of " + call.op);
  }
  std::vector<Region> tiles, operands;
  for (const std::string& tile : call.tiles) tiles.push_back(EmitSlice({tile, {}}, true));
  for (const kir::Slice& operand : call.operands) operands.push_back(EmitSlice(operand, true));
  if (!status_.ok()) return;

  // A size is the least extent among the dimensions that carry its name.
  std::vector<llvm::Value*> sizes(op->sizes.size(), nullptr);
  auto lower = [&](const std::vector<const char*>& dims, const Region& region) {
    size_t ranged = 0;
    for (const char* dim : dims) {
      if (*dim == '\0') continue;
      if (ranged == region.extents.size()) return Fail("rank of an operand of " + call.op);
      for (size_t s = 0; s < sizes.size(); ++s) {
        if (std::string_view(op->sizes[s]) != dim) continue;
        llvm::Value* extent = region.extents[ranged];
        sizes[s] = sizes[s] == nullptr || sizes[s] == extent
                       ? extent
                       : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, sizes[s], extent);
      }
      ++ranged;
    }
  };
  for (size_t t = 0; t < tiles.size(); ++t) lower(op->tiles[t].dims, tiles[t]);
  for (size_t o = 0; o < operands.size(); ++o) {
    if (!call.operands[o].buffer.empty()) lower(op->operands[o].dims, operands[o]);
  }
  for (size_t s = 0; s < sizes.size(); ++s) {
    if (sizes[s] == nullptr)
      return Fail(absl::StrFormat("size %s of %s follows from no operand", op->sizes[s], call.op));
  }
  std::vector<llvm::Value*> attributes;
  for (const kir::TileAttribute& attribute : op->attributes) {
    const bool integer = attribute.dtype == DType::kI64;
    llvm::Value* value = integer ? static_cast<llvm::Value*>(b_.getInt64(static_cast<int64_t>(attribute.default_value)))
                                 : FloatConstant(b_.getFloatTy(), attribute.default_value);
    for (const auto& [name, expr] : call.attributes) {
      if (name != attribute.name) continue;
      const Val given = Emit(expr);
      if (!given.uniform()) return Fail("attribute " + name + " differs between lanes");
      value = Convert(given.scalar, given.dtype, attribute.dtype);
    }
    attributes.push_back(value);
  }
  if (!status_.ok()) return;

  std::vector<llvm::Value*> args;
  for (const Region& tile : tiles) {
    args.push_back(tile.ptr);
    args.push_back(tile.strides.size() > 1 ? tile.strides[tile.strides.size() - 2] : b_.getInt64(1));
  }
  for (size_t o = 0; o < op->operands.size(); ++o) {
    const bool absent = o >= operands.size();
    args.push_back(absent ? llvm::ConstantPointerNull::get(b_.getPtrTy()) : operands[o].ptr);
    args.push_back(absent ? b_.getInt64(0) : operands[o].row_bytes);
  }
  args.insert(args.end(), sizes.begin(), sizes.end());
  args.insert(args.end(), attributes.begin(), attributes.end());
  if (op->starts) args.push_back(EmitStart(*op, call, tiles, sizes));
  if (op->workspace_bytes != nullptr) args.push_back(scratch_);
  std::vector<llvm::Type*> types;
  for (llvm::Value* arg : args) types.push_back(arg->getType());
  llvm::FunctionCallee callee;
  if (!options_.expand_tiles && op->symbol != nullptr)
    callee = Tile(op->symbol, llvm::FunctionType::get(b_.getVoidTy(), types, false));
  if (!callee) return ExpandTileCall(*op, tiles, operands, sizes, attributes);
  // A column offset inside a planar row or a panel has no single address.
  for (const Region& operand : operands) {
    const auto* column = llvm::dyn_cast<llvm::ConstantInt>(operand.column);
    const kir::Layout layout = operand.buffer.type.layout;
    const bool split = layout == kir::Layout::kPlanar || IsPanel(layout);
    if (split && (column == nullptr || !column->isZero()))
      return Fail("an operand of " + call.op + " starts inside a row");
  }
  b_.CreateCall(callee, args);
}

// Whether the binding is to start from zeros: where its sizes are those of its tiles. Else they have zeros after this,
// for what it leaves alone, unless they had a start of their own.
llvm::Value* Emitter::EmitStart(const kir::TileOp& op, const kir::TileCall& call, std::span<const Region> tiles,
                                std::span<llvm::Value* const> sizes) {
  std::vector<const Region*> unfilled;
  for (size_t t = 0; t < tiles.size(); ++t) {
    if (started_by_call_.erase(call.tiles[t]) != 0) unfilled.push_back(&tiles[t]);
  }
  const auto fill = [&] {
    for (const Region* tile : unfilled)
      Fill(tile->buffer, llvm::Constant::getNullValue(MemoryType(tile->buffer.type.dtype)));
  };
  if (unfilled.size() < tiles.size()) {
    fill();
    return b_.getInt64(0);
  }
  llvm::Value* whole = b_.getTrue();
  for (size_t d = 0; d < op.tiles[0].dims.size(); ++d) {
    const auto size = std::find_if(op.sizes.begin(), op.sizes.end(),
                                   [&](std::string_view name) { return name == op.tiles[0].dims[d]; });
    whole = b_.CreateAnd(whole, b_.CreateICmpEQ(sizes[size - op.sizes.begin()], tiles[0].buffer.dims[d]));
  }
  if (!llvm::isa<llvm::ConstantInt>(whole) || !llvm::cast<llvm::ConstantInt>(whole)->isOne()) {
    llvm::BasicBlock* part = llvm::BasicBlock::Create(context_, "part", function_);
    llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", function_);
    b_.CreateCondBr(whole, join, part);
    b_.SetInsertPoint(part);
    fill();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
  }
  return b_.CreateZExt(whole, b_.getInt64Ty());
}

Buffer Emitter::PartOf(const Region& region) {
  Buffer part = region.buffer;
  const Extent row = part.type.dims.empty() ? Extent(1) : part.type.dims.back();
  part.type.dims.assign(region.extents.size(), Extent(1));
  if (!part.type.dims.empty()) part.type.dims.back() = row;  // what the layout of a row follows from
  part.ptr = region.ptr;
  part.align = 1;
  part.dims = region.extents;
  part.strides = region.strides;
  return part;
}

void Emitter::ExpandTileCall(const kir::TileOp& op, std::span<const Region> tiles, std::span<const Region> operands,
                             std::span<llvm::Value* const> sizes, std::span<llvm::Value* const> attributes) {
  // The meaning's names are bound to what the call passes, and its statements emitted in place.
  ++stats_.expanded_tiles;
  const Saved saved = Enter();
  auto bind_scalar = [&](const char* name, DType dtype, llvm::Value* value) {
    Binding binding;
    binding.value = Uniform(dtype, value);
    Bind(name, std::move(binding));
  };
  for (size_t s = 0; s < sizes.size(); ++s) bind_scalar(op.sizes[s], DType::kI64, sizes[s]);
  for (size_t a = 0; a < attributes.size(); ++a)
    bind_scalar(op.attributes[a].name, op.attributes[a].dtype, attributes[a]);
  auto bind_buffer = [&](const kir::TileOperand& operand, const Region* region) {
    Buffer buffer;
    if (region == nullptr) {
      // Absent: one zero, whatever the index.
      llvm::AllocaInst* zero = EntryAlloca(MemoryType(operand.dtype));
      b_.CreateStore(llvm::Constant::getNullValue(MemoryType(operand.dtype)), zero);
      buffer.type = {operand.dtype, std::vector<Extent>(operand.dims.size(), Extent(1)), kir::Layout::kRow};
      buffer.ptr = zero;
      buffer.dims.assign(operand.dims.size(), b_.getInt64(1));
      buffer.strides.assign(operand.dims.size(), b_.getInt64(0));
    } else {
      buffer = PartOf(*region);
    }
    buffers_.emplace_back(operand.name, std::move(buffer));
  };
  for (size_t t = 0; t < op.tiles.size(); ++t) bind_buffer(op.tiles[t], &tiles[t]);
  for (size_t o = 0; o < op.operands.size(); ++o)
    bind_buffer(op.operands[o], o < operands.size() ? &operands[o] : nullptr);
  EmitBlock(kir::Meaning(op));
  Leave(saved);
}

void Emitter::Emit(const kir::Pack& pack) {
  const Region dst = EmitSlice(pack.dst, true);
  const Region src = EmitSlice(pack.src, true);
  if (!status_.ok()) return;
  const kir::BufferType& to = dst.buffer.type;
  const kir::BufferType& from = src.buffer.type;
  const kir::PackRow* row = kir::FindPack(from.dtype, from.layout, to.dtype, to.layout);
  if (row == nullptr) return Fail(absl::StrFormat("no pack from %s to %s", kir::Print(from), kir::Print(to)));
  if (src.extents.empty() || dst.extents.empty()) return Fail("a pack needs a ranged dimension");

  // Rows are clipped alike on both sides. More than one dimension of rows is a loop around the call.
  auto rows_of = [&](const Region& region) {
    return region.extents.size() > 1 ? region.extents[region.extents.size() - 2] : b_.getInt64(1);
  };
  if (src.extents.size() > 2 || dst.extents.size() > 2) return Fail("a pack of more than two ranged dimensions");
  const bool turns = kir::Turns(from.layout, to.layout);
  const auto both = [&](llvm::Value* a, llvm::Value* b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  };
  llvm::Value* room = b_.CreateMul(dst.extents.back(), b_.getInt64(row->merges));
  llvm::Value* k = both(src.extents.back(), turns ? rows_of(dst) : room);
  llvm::Value* rows = both(rows_of(src), turns ? dst.extents.back() : rows_of(dst));
  std::vector<llvm::Value*> args = {dst.ptr, dst.row_bytes, src.ptr, src.row_bytes, rows, k};
  if (to.layout == kir::Layout::kPlanar) {
    args.push_back(dst.buffer.dims.back());
    args.push_back(dst.column);
  }
  std::vector<llvm::Type*> types;
  for (llvm::Value* arg : args) types.push_back(arg->getType());
  llvm::FunctionCallee callee = Tile(row->symbol, llvm::FunctionType::get(b_.getVoidTy(), types, false));
  if (!callee && from.layout == kir::Layout::kBlocks && to.dtype == DType::kF32) return ExpandPack(dst, src, rows, k);
  if (!callee)
    return Fail(absl::StrFormat("the pack from %s to %s has no code at level %s", kir::Print(from), kir::Print(to),
                                target_.name));
  b_.CreateCall(callee, args);
}

// Blocks to floats, element by element.
void Emitter::ExpandPack(const Region& dst, const Region& src, llvm::Value* rows, llvm::Value* k) {
  ++stats_.expanded_tiles;
  const kir::BufferType& type = dst.buffer.type;
  if (type.layout == kir::Layout::kKn32) {  // missing rows are zero
    const int64_t bytes = LayoutRowBytes(type.layout, type.dtype, type.dims.back().constant());
    b_.CreateMemSet(dst.ptr, b_.getInt8(0), static_cast<uint64_t>(bytes), llvm::Align(4));
  }
  const Saved saved = Enter();
  for (const auto& [name, value] : {std::pair("rows", rows), std::pair("k", k)}) {
    Binding binding;
    binding.value = Uniform(DType::kI64, value);
    Bind(name, std::move(binding));
  }
  buffers_.emplace_back("dst", PartOf(dst));
  buffers_.emplace_back("src", PartOf(src));
  const kir::ExprRef r = kb::Ref("r"), c = kb::Ref("c");
  auto at = [&](const Region& region) { return region.extents.size() > 1 ? kir::Index{r, c} : kir::Index{c}; };
  EmitBlock(
      {kb::For("r", kb::Int(0), kb::Ref("rows"),
               {kb::Vec("c", kb::Int(0), kb::Ref("k"), {kb::Store("dst", at(dst), kb::DecodeAt("src", at(src)))})})});
  Leave(saved);
}

}  // namespace quern::cpu
