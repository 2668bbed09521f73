// Emitter: one KIR kernel of threads to one MSL function. Internal to codegen/metal.
//
// Spread over emit_metal.cc (the frame and plain statements), emit_metal_block.cc (what threads do together: barriers, copies,
// pipelines, shuffles, matrices of a warp) and emit_metal_expr.cc (expressions); the helper functions that the text calls are in
// prelude.cc. The language has no reductions, so the loop of one is written out before the statement that holds it, and its
// accumulator stands for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "codegen/metal/code.h"
#include "kir/kir.h"

namespace quern::metal {

// Where the elements of a view lie: in memory of the device, of the threadgroup, or in registers, of a thread or as 8 x 8
// matrices of a simdgroup.
enum class Place : uint8_t { kDevice, kShared, kThread, kMatrices };

// A buffer, or a tile.
struct View {
  DType dtype = DType::kF32;
  Place place = Place::kDevice;
  std::string pointer;
  std::vector<Code> sizes, strides;  // strides count elements; of a block format rows, but for the last
  int64_t row_elements = 0;          // of a block format
  bool writable = false;
};

class Emitter {
 public:
  explicit Emitter(const kir::Kernel& kernel, int64_t threads) : kernel_(kernel), threads_(threads) {}
  StatusOr<std::string> Run(const std::string& symbol);
  // Of the threadgroup memory that the text declares.
  int64_t shared_bytes() const { return shared_bytes_; }

 private:
  // What a KIR name stands for.
  struct Entity {
    std::string name;
    std::optional<Code> scalar = {};
    std::optional<View> view = {};
    std::vector<Code> element = {};  // inside map: the current index of a tile
    std::string staged = {};         // inside map, of matrices: the place of the current element
  };
  struct Mark { size_t entities, names; };
  // The part of a buffer that a slice names: an entry a ranged dimension.
  struct Cut {
    View view;
    std::vector<Code> starts;   // one a dimension of the buffer
    std::vector<size_t> ranged; // its dimensions
    std::vector<Code> asked;    // sizes as written
    std::vector<Code> live;     // clipped
  };

  // ---- emit_metal.cc
  void Fail(const std::string& message);
  void Unimplemented(const std::string& what);
  void Line(const std::string& text);
  void Open(const std::string& text);  // a line that ends in '{'; what follows is indented
  void Close();
  Mark Enter() const { return {entities_.size(), names_.size()}; }
  void Leave(const Mark& mark);
  std::string Fresh(std::string_view name);  // an identifier that nothing visible has
  void Define(const std::string& name, Code scalar);
  void Define(const std::string& name, View view);
  const Entity* Find(const std::string& name);
  View FindView(const std::string& name);
  // Declares a constant that holds `value`, and gives its name as code.
  Code Constant(std::string_view name, DType dtype, const Code& value);
  Code FromExtent(const Extent& extent);
  View ViewOf(std::string pointer, Place place, const kir::BufferType& type);
  std::string Parameters();
  void EmitGrid();
  void EmitBlock(const kir::Block& block);
  // for (name = low; name < high; name += step) {, in a new scope that EndLoop leaves.
  Code BeginLoop(const std::string& name, const Code& low, const Code& high, int64_t step, bool unroll = false);
  void EndLoop(const Mark& mark);
  void Emit(const kir::Loop& loop);
  void Emit(const kir::If& branch);
  void Emit(const kir::Let& let);
  void Emit(const kir::Var& var);
  void Emit(const kir::Assign& assign);
  void Emit(const kir::Store& store);
  void Emit(const kir::Prefetch&) {}
  void Emit(const kir::Pack&) { Unimplemented("pack"); }

  // ---- emit_metal_block.cc
  void Emit(const kir::Alloc& alloc);
  void Emit(const kir::Tile& tile);
  void Emit(const kir::Map& map);
  void Emit(const kir::TileCall& call);
  void Emit(const kir::Barrier&) { BlockBarrier(); }
  void Emit(const kir::Copy& copy);
  void Emit(const kir::Pipeline& pipeline);
  void Emit(const kir::Shuffle& shuffle);
  void BlockBarrier();
  std::string DeclareShared(std::string_view name, DType dtype, int64_t count);
  void MapThread(const kir::Map& map, const std::vector<View>& tiles, const std::vector<Code>& extents);
  void MapMatrices(const kir::Map& map, const std::vector<View>& tiles, const std::vector<Code>& extents);
  void MapBody(const kir::Map& map, const std::vector<Code>& index, const std::vector<Code>& extents);
  Cut CutOf(const kir::Slice& slice);
  Code Lane() const;

  // ---- emit_metal_expr.cc
  Code Value(const kir::ExprRef& expr);
  std::vector<Code> Values(const std::vector<kir::ExprRef>& exprs);
  Code Literal(DType dtype, const kir::Const& constant);
  Code Operator(const kir::Apply& apply);
  std::optional<Code> Fused(const kir::Apply& apply);  // a*b+c as one operation, where the kernel allows it
  Code IndexOperator(kir::Op op, const Code& a, const Code& b);
  Code Least(const Code& a, const Code& b);
  Code Reduction(const kir::Reduce& reduce, DType dtype);
  Code Conversion(DType from, DType to, const kir::ExprRef& expr);
  Code Reinterpretation(DType from, DType to, const Code& value);
  Code Element(const View& view, const std::vector<Code>& index);
  Code FromMemory(DType dtype, const std::string& place) const;
  std::string ToMemory(DType dtype, const Code& value) const;
  std::string Target(const View& view, const std::vector<Code>& index);  // the lvalue of a scalar element
  Code Position(const View& view, const std::vector<Code>& index);
  Code Inside(const std::vector<Code>& index, const std::vector<Code>& sizes);
  const char* Type(DType dtype);  // of a value in registers

  const kir::Kernel& kernel_;
  const int64_t threads_;
  std::vector<std::pair<std::string, Code>> symbols_;
  std::vector<Entity> entities_;
  std::vector<std::string> names_;         // visible in the text
  std::vector<std::string> shared_names_;  // of threadgroup memory, declared before all else
  std::string shared_;                     // those declarations
  std::string out_;
  std::vector<std::string> stages_;        // threadgroup memory through which maps see matrices, one a tile of a map
  int64_t shared_bytes_ = 0;
  bool in_warp_ = false;                   // each simdgroup acts as one
  bool reads_back_ = false;                // some parameter is read that the kernel may write
  int depth_ = 0;
  Status status_;
};

// ---- prelude.cc
// The type of an element in memory ("bfloat" for bf16).
const char* MemoryType(DType dtype);
// The start of a text: header, what holds the compiler to the letter, and the helper functions that `body` calls, by the words
// in it.
std::string Prelude(std::string_view body);
// Whether an identifier may not be used: a keyword, a type, a helper or a function that the text calls.
bool Reserved(std::string_view identifier);

}  // namespace quern::metal
