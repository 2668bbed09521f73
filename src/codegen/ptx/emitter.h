// Emitter: one kernel of threads to one LLVM function. Internal to codegen/ptx.
//
// Every thread runs the function. Names are values, slots (variables, which LLVM puts into registers), buffers or
// tiles. A tile's elements are a slot each, so maps over tiles are unrolled here, and an element is named by constant
// indices: of a thread's own tile its own, of a warp's tile those of the fragment that the matrix unit gives to a lane.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/ptx/math.h"
#include "codegen/statement_emitter.h"
#include "kir/kir.h"
#include "kir/multiple.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace quern::ptx {

class Emitter : public codegen::StatementEmitter {
 public:
  // `groups`: the target multiplies by groups of warps.
  Emitter(const kir::Kernel& kernel, llvm::Module& module, MathLibrary& math, int64_t threads, bool groups);
  Status Run(const std::string& symbol);

 private:
  using StatementEmitter::Emit;
  struct Buffer {
    llvm::Value* pointer = nullptr;
    DType dtype = DType::kF32;
    std::vector<llvm::Value*> dims;
    int align = 128;       // bytes, of the first element
    int64_t multiple = 1;  // a power of two that divides the last dimension
    int64_t bytes = 0;     // shared memory: of one stage
    bool core = false;     // parts of 8 x 8 halves, 128 bytes each, those of a row of parts one after the other
  };
  struct TileValue {
    std::vector<llvm::AllocaInst*> slots;
    std::vector<int64_t> dims;
    int together = 1;  // threads that hold it: one, a warp or a group
  };
  struct Name {
    llvm::Value* value = nullptr;
    llvm::AllocaInst* slot = nullptr;
    DType dtype = DType::kI64;
    int buffer = -1, tile = -1;
    int64_t multiple = 1;  // a power of two that divides the value
    int element = -1;      // inside a map: the slot that a tile's bare name stands for
  };
  using Names = std::map<std::string, Name>;
  // A slice: where it starts, and its ranged dimensions.
  struct Region {
    Buffer buffer;
    std::vector<llvm::Value*> starts, asked;  // of all dimensions; sizes of ranged ones
    std::vector<size_t> ranged;
    int64_t apart = 1;  // a power of two that divides where its rows begin, in elements
  };

  // ---- emit_ptx.cc
  void Fail(const std::string& what);
  void Unimplemented(const std::string& what);
  llvm::Type* MemoryType(DType dtype);
  llvm::Type* ValueType(DType dtype);
  llvm::Value* I64(int64_t value) { return b_.getInt64(value); }
  llvm::Value* FromExtent(const Extent& extent);
  llvm::AllocaInst* Slot(llvm::Type* type);
  void EmitGrid();
  template <typename Body>
  void LoopOver(llvm::Value* low, llvm::Value* high, llvm::Value* step, const Body& body);
  template <typename Body>
  void Guarded(llvm::Value* condition, const Body& body);
  void Block(const kir::Block& block);
  void Refuse(const kir::Stmt& stmt) override;
  void Emit(const kir::Loop& loop) override;
  void Emit(const kir::If& branch) override;
  void Emit(const kir::Let& let) override;
  void DefineLet(const std::string& name, const kir::ExprRef& value);  // of a block or of a reduction
  void Emit(const kir::Var& var) override;
  void Emit(const kir::Assign& assign) override;
  void Emit(const kir::Store& store) override;
  void Emit(const kir::Alloc& alloc) override;
  void Emit(const kir::Tile& tile) override;
  void Emit(const kir::TileCall& call) override;
  void Emit(const kir::Map& map) override;
  void Emit(const kir::Barrier&) override { BlockBarrier(); }
  void Emit(const kir::Copy& copy) override;
  void Emit(const kir::Pipeline& pipeline) override;
  void Emit(const kir::Shuffle& shuffle) override;

  // ---- emit_ptx_expr.cc
  llvm::Value* Value(const kir::ExprRef& expr);
  llvm::Value* ValueOf(const kir::NameRef& ref, DType dtype);
  llvm::Value* Constant(const kir::Const& constant, DType dtype);
  llvm::Value* Operator(const kir::Apply& apply);
  llvm::Value* Arithmetic(kir::Op op, DType dtype, const std::vector<llvm::Value*>& args);
  llvm::Value* FloatOperator(kir::Op op, DType dtype, const std::vector<llvm::Value*>& args);
  llvm::Value* Called(kir::Op op, DType dtype, const std::vector<llvm::Value*>& args);
  llvm::Value* Reduction(const kir::Reduce& reduce, DType dtype);
  llvm::Value* Convert(llvm::Value* value, DType from, DType to);
  llvm::Value* ToMemory(llvm::Value* value, DType dtype);
  llvm::Value* FromMemory(llvm::Value* value, DType dtype);
  llvm::Value* Address(const Buffer& buffer, const std::vector<llvm::Value*>& index);
  llvm::Value* LoadElement(const Buffer& buffer, const std::vector<llvm::Value*>& index);
  llvm::Value* LoadFrom(const kir::Load& load, DType dtype);
  llvm::AllocaInst* TileSlot(const TileValue& tile, const std::vector<llvm::Value*>& index);

  llvm::Value* Decoded(const Buffer& buffer, const std::vector<llvm::Value*>& index, llvm::Value* run, llvm::Value* at);
  llvm::Value* DecodeOf(const kir::Decode& decode);
  // A power of two that divides the value, and what divides low, low + step, ...
  int64_t MultipleOf(const kir::ExprRef& expr) const;
  int64_t Stride(const kir::ExprRef& low, int64_t step) const {
    return std::min(MultipleOf(low), kir::MultipleOf(step));
  }

  // ---- emit_ptx_block.cc
  void BlockBarrier();
  Region Cut(const kir::Slice& slice);
  llvm::Value* Converted(const Buffer& from, const std::vector<llvm::Value*>& index, int64_t run, DType to);
  void Survey();

  const kir::Kernel& kernel_;
  llvm::Module& module_;
  MathLibrary& math_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  llvm::Value* thread_ = nullptr;  // number in the block, i64
  const int64_t threads_;
  const bool groups_;
  int64_t fragments_ = 0;              // registers of a lane for the tiles of warps
  int together_ = 1;                   // threads that run this as one: one, a warp or a group
  bool async_ = false;                 // copies are those of a pipeline
  bool fetched_ = false;               // something is under way that wait_group waits for
  std::map<std::string, int> stages_;  // of each alloc that pipelines fetch into
  std::set<std::string> cores_;        // allocs that groups multiply from
  Names names_;
  std::vector<Buffer> buffers_;
  std::vector<TileValue> tiles_;
  Status status_;
};

template <typename Body>
void Emitter::LoopOver(llvm::Value* low, llvm::Value* high, llvm::Value* step, const Body& body) {
  llvm::AllocaInst* index = Slot(b_.getInt64Ty());
  b_.CreateStore(low, index);
  auto* head = llvm::BasicBlock::Create(b_.getContext(), "loop", function_);
  auto* inside = llvm::BasicBlock::Create(b_.getContext(), "body", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "after", function_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::Value* i = b_.CreateLoad(b_.getInt64Ty(), index);
  b_.CreateCondBr(b_.CreateICmpSLT(i, high), inside, after);
  b_.SetInsertPoint(inside);
  body(i);
  b_.CreateStore(b_.CreateNSWAdd(i, step), index);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

template <typename Body>
void Emitter::Guarded(llvm::Value* condition, const Body& body) {
  auto* inside = llvm::BasicBlock::Create(b_.getContext(), "then", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "after", function_);
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace quern::ptx
