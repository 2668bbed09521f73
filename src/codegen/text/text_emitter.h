// TextEmitter: one KIR kernel to one function, in a language like C. What such languages have in common is here; an
// emitter derives from it, writes the frame of the function, and says what its language and its memory make of the
// rest:
//
//   class Emitter : public text::TextEmitter {     // Language: names, and what is fast (language.h)
//     Run(): the head of the function, then DefineSymbols, DefineGrid, EmitBlock(kernel_.body)
//     Emit(Alloc), Emit(Tile), ...                 // statements of its own; the rest says that there are none
//     FromMemory, ToMemory, Decoded, Rounded, ...  // how values are kept
//   };
//
// Spread over text_emitter.cc (names, scopes, views), text_statements.cc (the grid, loops, plain statements),
// text_index.cc (i64s, whose bounds are known) and text_expr.cc (all other expressions). Such languages have no
// reductions, so the loop of one is written out before the statement that holds it, and its accumulator stands for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "codegen/statement_emitter.h"
#include "codegen/text/code.h"
#include "codegen/text/language.h"
#include "kir/kir.h"

namespace quern::text {

// Where the elements of a view lie: in memory, in memory that the threads of a block share, or in registers, of a
// thread or as matrices of a warp.
enum class Place : uint8_t { kMemory, kShared, kThread, kMatrices };

// A rectangle of a buffer or of a tile. Positions count elements in @row, rows elsewhere.
struct View {
  DType dtype = DType::kF32;
  kir::Layout layout = kir::Layout::kRow;
  Place place = Place::kMemory;
  std::string pointer;
  std::vector<Code> sizes, strides;
  Code offset, column;       // of index 0; column only in layouts other than @row
  int64_t row_elements = 0;  // of the buffer's last dimension, layouts other than @row
  bool writable = true;
};

// The part of a buffer that a slice names: an entry a ranged dimension.
struct Cut {
  View view;                   // the whole
  std::vector<Code> starts;    // one a dimension of the buffer
  std::vector<size_t> ranged;  // its dimensions
  std::vector<Code> asked;     // sizes as written
  std::vector<Code> live;      // clipped
};

class TextEmitter : public codegen::StatementEmitter {
 protected:
  // What a KIR name stands for.
  struct Entity {
    std::string name;
    std::optional<Code> scalar = {};
    std::optional<View> view = {};
    std::vector<Code> element = {};  // inside map: the current index of a tile
    std::string staged = {};         // inside map, of matrices: the place of the current element
  };
  struct Mark {
    size_t entities, names;
  };

  TextEmitter(const kir::Kernel& kernel, const Language& language) : kernel_(kernel), language_(language) {}

  // ---- text_emitter.cc
  void Fail(const std::string& message);
  void Unimplemented(const std::string& what);
  void Line(const std::string& text);
  void Open(const std::string& text);  // a line that ends in '{'; what follows is indented
  void Else();                         // between Open("if ...") and Close
  void Close();
  Mark Enter() const { return {entities_.size(), names_.size()}; }
  void Leave(const Mark& mark);
  std::string Fresh(std::string_view name);  // an identifier that nothing visible has
  void Define(const std::string& name, Code scalar) {
    entities_.push_back({.name = name, .scalar = std::move(scalar)});
  }
  void Define(const std::string& name, View view) { entities_.push_back({.name = name, .view = std::move(view)}); }
  const Entity* Find(const std::string& name);
  View FindView(const std::string& name);
  // Declares a constant that holds `value`, and gives its name as code; an i64 that is a literal stays one.
  Code Constant(std::string_view name, DType dtype, const Code& value);
  // Declares the kernel's symbols, whose values are in the array of that name.
  void DefineSymbols(const std::string& array);
  Code FromExtent(const Extent& extent);
  View ViewOf(std::string pointer, const kir::BufferType& type, Place place = Place::kMemory);
  // With `named`, starts that are more than a name or a literal get one.
  Cut CutOf(const kir::Slice& slice, bool named = false);

  // ---- text_statements.cc
  // How many chunks there are along each dimension of the grid; then its indices in the chunk of that number.
  std::vector<Code> GridCounts();
  void DefineGrid(const Code& chunk, const std::vector<Code>& counts);
  void EmitBlock(const kir::Block& block);
  // for (name = low; name < high; name += step) {, in a new scope that EndLoop leaves.
  Code BeginLoop(const std::string& name, const Code& low, const Code& high, int64_t step, bool unroll = false);
  void EndLoop(const Mark& mark);
  // The body of a map for every element of the tiles below `bounds`, where it is live.
  void MapElements(const kir::Map& map, const std::vector<Code>& bounds, const std::vector<Code>& extents, bool unroll);
  // The body alone, for the element at `index`, which is below `bounds`.
  void MapBody(const kir::Map& map, const std::vector<Code>& index, const std::vector<Code>& bounds,
               const std::vector<Code>& extents);
  using StatementEmitter::Emit;
  void Refuse(const kir::Stmt& stmt) override;
  void Emit(const kir::Loop& loop) override;
  void Emit(const kir::If& branch) override;
  void Emit(const kir::Let& let) override;
  void DefineLet(const std::string& name, const kir::ExprRef& value);  // of a block or of a reduction
  void Emit(const kir::Var& var) override;
  void Emit(const kir::Assign& assign) override;
  void Emit(const kir::Store& store) override;
  void Emit(const kir::Prefetch& prefetch) override;
  virtual void EmitThreads(const kir::Loop&) { Unimplemented("a thread loop"); }
  // view[index] = value, where value is as it lies in memory. `name`: of the view in KIR.
  virtual void StoreElement(const std::string& name, const View& view, const std::vector<Code>& index,
                            const std::string& value);

  // ---- text_index.cc: of i64s. Literals are folded; 0 and 1 vanish.
  Code Number(int64_t value) const;
  Code Sum(const Code& a, const Code& b);
  Code Difference(const Code& a, const Code& b);
  Code Product(const Code& a, const Code& b);
  Code IndexOperator(kir::Op op, const Code& a, const Code& b);  // any operator, also where it may overflow
  Code Least(const Code& a, const Code& b);
  Code Arithmetic(const char* symbol, Level level, const Code& a, const Code& b, double low, double high,
                  int64_t multiple);
  Code Wide(const Code& code);      // as an i64 in the text too
  Code Narrowed(const Code& code);  // as int, where its bounds and the language allow
  // The position of an element; all of `index` counts in strides.
  Code Position(const View& view, const std::vector<Code>& index);
  Code Inside(const std::vector<Code>& index, const std::vector<Code>& sizes);

  // ---- text_expr.cc
  Code Value(const kir::ExprRef& expr);
  std::vector<Code> Values(const std::vector<kir::ExprRef>& exprs);
  Code Literal(DType dtype, const kir::Const& constant);
  Code Operator(const kir::Apply& apply);
  Code Call(kir::Op op, DType dtype, const std::vector<Code>& args);
  std::optional<Code> Fused(const kir::Apply& apply);  // a*b+c as one operation
  Code Reduction(const kir::Reduce& reduce, DType dtype);
  Code Conversion(DType from, DType to, const kir::ExprRef& expr);
  Code Reinterpretation(DType from, DType to, const Code& value);
  Code Cast(const char* type, const Code& value) const;
  const char* Type(DType dtype);  // of a value in registers; an error for what the language lacks
  // An element as a value, and the lvalue of a scalar one.
  virtual Code Element(const View& view, const std::vector<Code>& index);
  virtual std::string Target(const View& view, const std::vector<Code>& index);
  // An element of a block format.
  virtual Code Decoded(const View& view, const std::vector<Code>& index) = 0;
  // Between a scalar in memory and a value.
  virtual Code FromMemory(DType dtype, const std::string& place) = 0;
  virtual std::string ToMemory(DType dtype, const Code& value) = 0;
  // A float, computed in some type, as one that `dtype` holds.
  virtual Code Rounded(DType dtype, const Code& value) = 0;
  // A number of another dtype as float.
  virtual Code ToFloat(DType from, DType to, const Code& value) = 0;

  const kir::Kernel& kernel_;
  const Language language_;
  std::vector<std::pair<std::string, Code>> symbols_;
  std::vector<Entity> entities_;
  size_t visible_ = 0;                    // entities before this are hidden: the meaning of a tile op sees only its own
  std::vector<std::string> names_;        // visible in the text
  std::vector<std::string> outer_names_;  // likewise, of what is declared before all else
  std::string out_;
  int depth_ = 0;
  Status status_;
};

}  // namespace quern::text
