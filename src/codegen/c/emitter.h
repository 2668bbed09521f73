// Emitter: one KIR kernel to one C function. Internal to codegen/c.
//
// Spread over emit_c.cc (the frame and statements), emit_c_expr.cc (expressions) and emit_c_tile.cc (slices, tile ops
// and packs); the helper functions that the text calls are in prelude.cc. C has no reductions, so the loop of one is
// written out before the statement that holds it, and its accumulator stands for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/c/emit_c.h"
#include "kir/kir.h"
#include "kir/scratch.h"
#include "kir/tile_op.h"

namespace quern::c {

// How tightly a C expression binds: what needs parentheses where.
enum class Level : uint8_t { kOther, kSum, kProduct, kPrefix, kAtom };

// A C expression. Of an i64, also bounds of its value: what provably stays small is written with C's own operators,
// the rest calls helpers whose overflow is defined. Doubles, so that bounds of bounds cannot overflow.
struct Code {
  std::string text;
  Level level = Level::kAtom;
  double low = -0x1p63, high = 0x1p63;
  std::optional<int64_t> literal = {};
  bool fixed = false;  // a name whose value does not change
};

// A rectangle of a buffer, as in the interpreter: positions count elements in @row, rows elsewhere.
struct View {
  DType dtype = DType::kF32;
  kir::Layout layout = kir::Layout::kRow;
  std::string pointer;         // empty: an absent operand, which reads as 0
  std::vector<Code> sizes;
  std::vector<Code> strides;
  Code offset, column;         // of index 0; column only in layouts other than @row
  int64_t row_elements = 0;    // of the buffer's last dimension, layouts other than @row
};

class Emitter {
 public:
  Emitter(const kir::Kernel& kernel, const EmitOptions& options);
  StatusOr<std::string> Run(const std::string& symbol);

 private:
  // What a KIR name stands for.
  struct Entity {
    std::string name;
    std::optional<Code> scalar = {};
    std::optional<View> view = {};
    std::vector<Code> element = {};  // inside map: the current index of a tile
  };
  struct Mark { size_t entities, c_names; };

  // ---- emit_c.cc
  void Fail(const std::string& message);
  void Line(const std::string& text);
  void Open(const std::string& text);   // a line that ends in '{'; what follows is indented
  void Close();
  Mark Enter() const { return {entities_.size(), c_names_.size()}; }
  void Leave(const Mark& mark);
  std::string Fresh(std::string_view name);  // a C identifier that nothing visible has
  void Define(const std::string& name, Code scalar);
  void Define(const std::string& name, View view);
  const Entity* Find(const std::string& name);
  View FindView(const std::string& name);
  // Declares a constant that holds `value`, and gives its name as code.
  Code Constant(std::string_view name, DType dtype, const Code& value);
  Code FromExtent(const Extent& extent);
  View WholeView(std::string pointer, const kir::BufferType& type);
  void DeclareScratch(const std::string& name, const kir::BufferType& type);
  void EmitGrid();
  void EmitBlock(const kir::Block& block);
  void Emit(const kir::Loop& loop);
  void Emit(const kir::If& branch);
  void Emit(const kir::Let& let);
  void Emit(const kir::Var& var);
  void Emit(const kir::Assign& assign);
  void Emit(const kir::Store& store);
  void Emit(const kir::Alloc& alloc);
  void Emit(const kir::Tile& tile);
  void Emit(const kir::Map& map);
  void Emit(const kir::Prefetch& prefetch);
  // Plain C has no blocks of threads.
  void Emit(const kir::Barrier&) { Fail("a barrier"); }
  void Emit(const kir::Copy&) { Fail("a copy"); }
  void Emit(const kir::Pipeline&) { Fail("a pipeline"); }
  void Emit(const kir::Shuffle&) { Fail("a shuffle"); }
  // for (name = low; name < high; name += step) {, in a new scope that EndLoop leaves.
  Code BeginLoop(const std::string& name, const Code& low, const Code& high, int64_t step);
  void EndLoop(const Mark& mark);

  // ---- emit_c_expr.cc
  Code Value(const kir::ExprRef& expr);
  Code Literal(DType dtype, const kir::Const& constant);
  Code Operator(const kir::Apply& apply);
  Code IndexOperator(kir::Op op, const Code& a, const Code& b);
  Code Reduction(const kir::Reduce& reduce, DType dtype);
  Code Conversion(DType from, DType to, const kir::ExprRef& value);
  Code Reinterpretation(DType from, DType to, const Code& value);
  Code Element(const View& view, const std::vector<Code>& index);
  std::string Target(const View& view, const std::vector<Code>& index);  // the lvalue of a scalar element
  Code Position(const View& view, const std::vector<Code>& index, size_t dims) const;
  std::string ToMemory(DType dtype, const Code& value) const;            // what is stored
  std::vector<Code> Values(const std::vector<kir::ExprRef>& exprs);
  const char* Type(DType dtype) const;   // of a value in registers
  const char* Suffix(DType dtype) const; // of float helpers: "f32" or "f64"

  // ---- emit_c_tile.cc
  View Cut(const kir::Slice& slice);
  void Emit(const kir::TileCall& call);
  void Emit(const kir::Pack& pack);

  const kir::Kernel& kernel_;
  const EmitOptions& options_;
  const kir::ScratchLayout scratch_;
  std::vector<std::pair<std::string, Code>> symbols_;
  std::vector<Entity> entities_;
  size_t visible_ = 0;                // entities before this are hidden: a meaning sees only its own
  std::vector<std::string> c_names_;  // visible in C
  std::string out_;
  int depth_ = 0;
  Status status_;
};

// Code of a literal, and arithmetic that is known not to overflow; literals are folded, 0 and 1 vanish.
Code Number(int64_t value);
Code Sum(const Code& a, const Code& b);
Code Difference(const Code& a, const Code& b);
Code Product(const Code& a, const Code& b);
// The text, in parentheses where it binds less tightly than `level`.
std::string Wrapped(const Code& code, Level level);
// NAME(a, b)
std::string CallText(const std::string& name, const std::vector<std::string>& args);

// ---- prelude.cc
// The C type of an element in memory ("uint16_t" for f16).
const char* MemoryType(DType dtype);
// Includes, the ABI, and the helper functions that `body` calls, by the words in it.
std::string Prelude(std::string_view body, bool wide);
// Whether an identifier may not be used: a keyword, a helper, or what the included headers may define.
bool Reserved(std::string_view identifier);

}  // namespace quern::c
