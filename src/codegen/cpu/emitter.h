// Emitter: one KIR kernel into one function of an LLVM module. Internal to codegen/cpu.
//
//   void NAME(const quern_args*, void* scratch, i64 begin, i64 end)
// loops over the linearised chunks. A vec loop is widened to the level's lanes by emitting its body once with values
// that know how they vary over the lanes (Val). Errors are collected in status_; emission goes on with poison, so that
// the code needs no error path at every step.
// The class is spread over emit_*.cc by subject: kernel frame, expressions, conversions, memory, statements, loops and
// reductions, tiles and packs, block decoders.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/cpu/module.h"
#include "codegen/cpu/object.h"
#include "codegen/cpu/target.h"
#include "codegen/statement_emitter.h"
#include "kir/kir.h"
#include "kir/scratch.h"
#include "kir/tile_op.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace quern::cpu {

// A scalar of KIR over the lanes of the enclosing vec loop. Exactly one form is primary:
//   uniform: `scalar`, no offsets;  pattern (i64): lane l holds scalar + offsets[l];  varying: `vector`.
// A loop index is the pattern 0, 1, 2, ..; quotients and remainders of one stay patterns where `multiple` shows that
// they do (c / 2 is 0, 0, 1, 1, ..), and so loads of them are loads and permutes instead of gathers.
// f16 and bf16 are held and computed as f32, rounded by stores and casts; bool is held as i1.
struct Val {
  DType dtype = DType::kF32;
  llvm::Value* scalar = nullptr;
  llvm::Value* vector = nullptr;
  std::vector<int64_t> offsets = {};
  int64_t multiple = 1;                                             // a power of two that divides `scalar`
  std::optional<std::pair<int64_t, int64_t>> range = std::nullopt;  // of `scalar`, both ends included

  bool varying() const { return scalar == nullptr; }
  bool uniform() const { return scalar != nullptr && offsets.empty(); }
  // Whether lane l holds scalar + l * step.
  bool Steps(int64_t step) const;
};
// The largest power of two, within reason, that divides `value`.
int64_t PowerIn(int64_t value);
// What is known of the scalar of a value: a constant's own, or what was found as it was made.
using Range = std::optional<std::pair<int64_t, int64_t>>;
int64_t MultipleOf(const Val& value);
Range RangeOf(const Val& value);

// Memory a name stands for: a parameter, an alloc or a tile.
struct Buffer {
  kir::BufferType type;
  llvm::Value* ptr = nullptr;
  std::vector<llvm::Value*> dims;     // extents
  std::vector<llvm::Value*> strides;  // kRow: elements; other layouts: bytes, for all dimensions but the last
  int64_t align = 1;                  // of ptr
  llvm::MDNode* scope = nullptr;      // alias scope list holding this buffer's own scope
  llvm::MDNode* noalias = nullptr;    // scopes of buffers that share no byte with it
};

class Emitter : public codegen::StatementEmitter {
 public:
  Emitter(llvm::Module& module, const Target& target, const EmitOptions& options, EmitStats& stats);
  // Adds the kernel's function, named `symbol`. The kernel has passed kir::Verify.
  Status EmitKernel(const kir::Kernel& kernel, const std::string& symbol);
  // Sizes as a launch of the kernel needs them, in a function of the caller's (module.h).
  StatusOr<SizeValues> EmitSizes(const kir::Kernel& kernel, std::span<const std::string> names,
                                 std::span<llvm::Value* const> values, llvm::IRBuilder<>& builder);

 private:
  using StatementEmitter::Emit;
  using Builder = llvm::IRBuilder<>;
  // What a name means in an expression.
  struct Binding {
    enum Kind : uint8_t { kValue, kVar, kTileElement } kind = kValue;
    Val value;                         // kValue; its dtype also for kVar
    llvm::AllocaInst* slot = nullptr;  // kVar
    bool vector_slot = false;          // kVar: one element a lane
    std::vector<Val> index;            // kTileElement
  };
  // A register from outside of a widened loop that runs along it (emit_running.cc).
  struct Running {
    const kir::Assign* assign = nullptr;
    kir::ReduceOp op = kir::ReduceOp::kSum;
    bool before = false;                // read in front of the assignment, too
    llvm::AllocaInst* carry = nullptr;  // what ran up before the vector, in all lanes
    // Of this round: with each lane's own term, and without; null until one is asked for.
    llvm::Value *with = nullptr, *without = nullptr;
    bool passed = false;  // the assignment
  };
  // What is visible, to return to at the end of a block.
  struct Saved {
    size_t names, buffers, live;
  };

  // ---- emit.cc: the function's frame
  void DeclareParams(const kir::Kernel& kernel, llvm::Value* args);
  void EmitGrid(const kir::Kernel& kernel, llvm::Value* begin, llvm::Value* end);
  void Fail(std::string message);
  Val Poison(DType dtype);
  void Bind(const std::string& name, Binding binding);
  const Binding* Lookup(std::string_view name) const;
  Buffer* FindBuffer(std::string_view name);
  Saved Enter() const;
  void Leave(const Saved& saved);
  llvm::Value* ExtentValue(const Extent& extent);
  void BindSymbol(const std::string& name, llvm::Value* value);
  llvm::AllocaInst* EntryAlloca(llvm::Type* type);
  void SetStrides(Buffer& buffer);

  // ---- emit_debug.cc
  void StartLines(const kir::Kernel& kernel, const std::string& symbol);
  // What is emitted from here on belongs to the statement's line. The location before, to go back to.
  llvm::DebugLoc EnterLine(const kir::Stmt& stmt);

  // ---- emit_value.cc: lanes
  llvm::Type* ScalarType(DType dtype);  // in registers
  llvm::Type* MemoryType(DType dtype);
  llvm::Type* LanesOf(llvm::Type* type) const;  // vector of lanes_, or the type itself outside vec
  llvm::Value* Lanes(const Val& value);         // as a vector over the lanes (a scalar outside vec)
  Val Uniform(DType dtype, llvm::Value* scalar) const { return {dtype, scalar, nullptr}; }
  Val FromLanes(DType dtype, llvm::Value* value) const;
  Val I64(int64_t value);
  // The index of a loop from `low` in steps of `step`, below `high`: `lanes` rounds at once.
  Val LoopIndex(llvm::Value* index, const Val& low, const Val& high, int64_t step, int lanes);
  Val UniformVal(const kir::ExprRef& expr, const char* what);
  llvm::Value* UniformScalar(const kir::ExprRef& expr, const char* what);
  llvm::Value* LaneIds();  // <0, 1, .. lanes-1> as i64
  llvm::Constant* FloatConstant(llvm::Type* type, double value);

  // ---- emit_index.cc: 64-bit arithmetic on Val that keeps patterns
  Val AddI64(const Val& a, const Val& b);
  Val SubI64(const Val& a, const Val& b);
  Val MulI64(const Val& a, const Val& b);
  // Of operators that stay patterns for these operands, or nullopt.
  Val AddConstant(Val value, int64_t constant);  // to the offsets, where there are some
  Val Normal(Val value);
  // The same with offsets that begin at 0.
  Val FromFirst(Val value);
  // Whether all lanes that are live are known to lie below `extent`, and none of them below 0.
  bool IsWithin(const Val& index, llvm::Value* extent) const;
  // Whether `mask`, where it is a constant, leaves the lane; and the least and the most of the offsets of such lanes.
  static bool MayBeLive(llvm::Value* mask, size_t lane);
  static std::pair<int64_t, int64_t> LiveOffsets(const Val& value, llvm::Value* mask);
  // The same with offsets within 0 and `unit`, a power of two that divides the scalar and goes on doing so; or nullopt.
  std::optional<Val> WithinUnit(const Val& value, int64_t unit);
  std::optional<Val> PatternOf(kir::Op op, std::span<const Val> args);
  std::optional<Val> QuotientOf(kir::Op op, const Val& a, int64_t divisor);

  // ---- emit_expr.cc
  Val Emit(const kir::ExprRef& expr);
  Val EmitApply(const kir::Expr& expr, const kir::Apply& apply);
  Val EmitName(const kir::Expr& expr, const kir::NameRef& name);
  llvm::Value* FloatOp(kir::Op op, DType dtype, std::span<llvm::Value* const> args);
  llvm::Value* IntegerOp(kir::Op op, DType dtype, std::span<llvm::Value* const> args);
  llvm::Value* Combine(kir::ReduceOp op, DType dtype, llvm::Value* a, llvm::Value* b, bool contract);
  // ---- emit_math.cc
  llvm::Value* MathCall(kir::Op op, DType dtype, std::span<llvm::Value* const> args);
  llvm::Value* Primitive(const std::string& name, std::span<llvm::Value* const> args);
  llvm::Value* LibmPerLane(const std::string& name, std::span<llvm::Value* const> args);
  llvm::Value* Fmod(std::span<llvm::Value* const> args);

  // ---- emit_convert.cc; on scalars and vectors alike
  llvm::Value* Convert(llvm::Value* value, DType from, DType to);
  llvm::Value* FloatToInt(llvm::Value* value, DType to);
  llvm::Value* RoundTo(llvm::Value* f32, DType half);     // nearest value of f16 or bf16, as f32
  llvm::Value* NarrowHalf(llvm::Value* f32, DType half);  // bits as i16
  llvm::Value* WidenHalf(llvm::Value* bits, DType half);
  llvm::Value* ToMemory(llvm::Value* value, DType dtype);
  llvm::Value* FromMemory(llvm::Value* value, DType dtype);
  llvm::Value* BitCast(llvm::Value* value, DType from, DType to);

  // ---- emit_quantise.cc
  // round(quotient), and FloatToInt(value, to), in fewer instructions; null where they do not know how.
  llvm::Value* RoundedQuotient(llvm::Value* quotient);
  llvm::Value* RoundedToBytes(llvm::Value* value, DType to);
  llvm::Value* CorrectedQuotient(llvm::Value* x, float by, llvm::Value* near);
  struct Quotient {
    llvm::Value* x;
    float by;
  };
  std::map<const llvm::Value*, Quotient> quotients_;  // by what RoundedQuotient made of each
  // An integer of 32 bits, bytes of RoundedToBytes less what those had added, as f32; else null.
  llvm::Value* FloatOfBytes(llvm::Value* integer);
  struct RoundedBytes {
    llvm::Value* number;  // f32: the bytes less `zero`
    int64_t zero;
  };
  std::map<const llvm::Value*, RoundedBytes> bytes_;  // by what RoundedToBytes made of each

  // ---- emit_memory.cc
  Val FlatIndex(const Buffer& buffer, const std::vector<Val>& index);
  Val LoadElement(const Buffer& buffer, const std::vector<Val>& index);
  Val LoadOr(const Buffer& buffer, const std::vector<Val>& index, const Val& otherwise);
  void StoreElement(const Buffer& buffer, const std::vector<Val>& index, const Val& value);
  // The same under a mask that is known, from vectors that windows beside each other share; null where that may not be.
  llvm::Value* LoadFromRow(const Buffer& buffer, const std::vector<Val>& index, llvm::Type* element, llvm::Value* mask,
                           llvm::Value* passed);
  llvm::Value* LoadPattern(const Buffer& buffer, const Val& flat, llvm::Type* element);
  // Lanes two elements apart under `mask`; `passed` for the others.
  llvm::Value* LoadEverySecond(const Buffer& buffer, const Val& flat, llvm::Type* element, llvm::Value* mask,
                               llvm::Value* passed);
  std::vector<Val> EmitIndex(const kir::Index& index);
  template <typename Instruction>
  Instruction* Tag(Instruction* access, const Buffer& buffer);
  llvm::Align ElementAlign(const Buffer& buffer, llvm::Value* flat, int64_t bytes) const;
  llvm::Value* FullMask();

  // ---- emit_stmt.cc
  void EmitBlock(const kir::Block& block);
  void Refuse(const kir::Stmt& stmt) override;
  void Emit(const kir::If& node) override;
  void Emit(const kir::Let& let) override;
  void BindLet(const std::string& name, const kir::ExprRef& value);
  void Emit(const kir::Var& var) override;
  void Emit(const kir::Assign& assign) override;
  void Emit(const kir::Store& store) override;
  void Emit(const kir::Alloc& alloc) override;
  void EmitAlloc(const std::string& name, const kir::BufferType& type);
  void Emit(const kir::Map& map) override;

  // ---- emit_loop.cc
  void Emit(const kir::Loop& loop) override;
  // i = low, low + step, ... < high; known_nonempty leaves out the guard.
  void Loop(llvm::Value* low, llvm::Value* high, int64_t step, const std::function<void(llvm::Value*)>& body);
  // Runs `body` over low..high in steps of `step`, widened; the index is a Val of linear or uniform form.
  // Vectors of `times` as many lanes as the level has come first.
  void VecLoop(llvm::Value* low, llvm::Value* high, int64_t step, const std::function<void(const Val&)>& body,
               int times = 1);
  bool IsOfBytes(const kir::Loop& loop);
  Val EmitReduce(const kir::Expr& expr, const kir::Reduce& reduce);
  // ---- emit_running.cc
  // The registers that run along a loop with this body, and may do so by vectors.
  std::map<std::string, Running> RunningOf(const kir::Block& body);
  void StartRunning(std::map<std::string, Running> running);
  // The value of one of them where the round has come to.
  Val EmitRunning(const std::string& name);
  void RunOn(Running& running, llvm::AllocaInst* slot);
  // `next`, or what comes of joining lane by lane; so `running`.
  llvm::Value* InOrderUnlessFinite(Running& running, llvm::Value* terms, llvm::Value* sums, llvm::Value* carry,
                                   llvm::Value* next);
  llvm::Value* CombineLanes(kir::ReduceOp op, DType dtype, llvm::Value* vector);

  // ---- emit_widens.cc
  using NameSet = std::set<std::string, std::less<>>;
  bool Widens(const kir::Block& block, NameSet& varying);
  bool Varies(const kir::ExprRef& expr, const NameSet& varying);
  bool Widens(const kir::ExprRef& expr, const NameSet& varying);
  bool Widens(const kir::Reduce& reduce);
  void AddVarying(const kir::Lets& lets, NameSet& varying);

  // ---- emit_slice.cc
  // Where a slice starts and the sizes of its ranged dimensions, outermost first.
  struct Region {
    Buffer buffer;                      // of the whole
    llvm::Value* ptr = nullptr;         // first element; a column offset inside a planar row is left to `column`
    llvm::Value* column = nullptr;      // start in the last dimension, elements
    std::vector<llvm::Value*> extents;  // clipped to the buffer
    std::vector<llvm::Value*> strides;  // of the ranged dimensions, in the buffer's unit
    llvm::Value* row_bytes = nullptr;   // between rows of the second-to-last ranged dimension; 0 for one row
  };
  Region EmitSlice(const kir::Slice& slice, bool clip);
  void Emit(const kir::Prefetch& prefetch) override;
  // ---- emit_tile.cc
  void Emit(const kir::Tile& tile) override;
  void FindStart(const kir::Tile& tile, std::span<const kir::StmtRef> next);
  void Fill(const Buffer& buffer, llvm::Value* value);
  void Emit(const kir::TileCall& call) override;
  llvm::Value* EmitStart(const kir::TileOp& op, const kir::TileCall& call, std::span<const Region> tiles,
                         std::span<llvm::Value* const> sizes);
  void ExpandTileCall(const kir::TileOp& op, std::span<const Region> tiles, std::span<const Region> operands,
                      std::span<llvm::Value* const> sizes, std::span<llvm::Value* const> attributes);
  void Emit(const kir::Pack& pack) override;
  void ExpandPack(const Region& dst, const Region& src, llvm::Value* rows, llvm::Value* k);
  static Buffer PartOf(const Region& region);  // as a buffer of its own
  bool IsBound(const char* symbol) const;      // whether src/simd has it at this level
  // `symbol` at this level as a callee, or null where src/simd has none.
  llvm::FunctionCallee Tile(const char* symbol, llvm::FunctionType* type);

  // ---- emit_decode.cc
  Val EmitDecode(const kir::Decode& decode);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const Target& target_;
  const EmitOptions& options_;
  EmitStats& stats_;
  Builder b_;
  Status status_;

  const kir::Kernel* kernel_ = nullptr;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;       // allocas only
  std::map<const kir::Stmt*, int> lines_;   // of the printed text, where line tables are asked for
  int lanes_ = 1;                           // 1 outside vec loops
  llvm::Value* mask_ = nullptr;             // live lanes, or null for all
  std::map<std::string, Running> running_;  // of the widened loop
  std::vector<std::pair<std::string, Binding>> names_;
  std::vector<std::pair<std::string, Buffer>> buffers_;
  llvm::Value* scratch_ = nullptr;
  kir::ScratchLayout layout_;
  llvm::MDNode* alias_domain_ = nullptr;
  std::vector<llvm::Metadata*> live_scopes_;  // of every visible alloc and tile
  std::vector<llvm::Metadata*> param_scopes_;
  std::set<std::string> started_by_call_;  // tiles of zeros that the call next to them begins with, and no memory has
};

}  // namespace quern::cpu
