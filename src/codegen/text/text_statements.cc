// The indices of the grid, loops, and the statements that read the same whatever the language.
#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "codegen/text/text_emitter.h"
#include "kir/describe.h"

namespace quern::text {

std::vector<Code> TextEmitter::GridCounts() {
  std::vector<Code> counts;
  for (const kir::GridDim& dim : kernel_.grid) {
    const Code count = Sum(Difference(Value(dim.high), Value(dim.low)), Number(dim.step - 1));
    counts.push_back(dim.step == 1 ? count : IndexOperator(kir::Op::kDiv, count, Number(dim.step)));
  }
  return counts;
}

// The last dimension runs fastest: index d is chunk / (product of the counts after d) % count.
void TextEmitter::DefineGrid(const Code& chunk, const std::vector<Code>& counts) {
  Code after = Number(1);
  std::vector<std::pair<std::string, Code>> values;
  for (size_t d = kernel_.grid.size(); d-- > 0;) {
    const kir::GridDim& dim = kernel_.grid[d];
    const Code low = Value(dim.low), high = Value(dim.high);
    Code number = after.literal == 1
                      ? chunk
                      : Infix("/", Level::kProduct, chunk, after);  // where there is a chunk, no count is 0
    if (d != 0) number = Infix("%", Level::kProduct, number, counts[d]);
    number = Bounded(std::move(number), 0, std::max(0.0, counts[d].high - 1));
    Code value = Sum(low, Product(number, Number(dim.step)));
    value = Bounded(std::move(value), low.low, std::max(low.low, std::min(value.high, high.high - 1)));
    values.emplace_back(dim.index, value);
    after = Product(after, counts[d]);
  }
  for (size_t d = values.size(); d-- > 0;)
    Define(values[d].first, Constant(values[d].first, DType::kI64, values[d].second));
}

void TextEmitter::EmitBlock(const kir::Block& block) {
  const Mark mark = Enter();
  for (const kir::StmtRef& stmt : block) {
    if (!status_.ok()) return;
    if (stmt->origin >= 0 && stmt->origin < static_cast<int>(kernel_.origins.size())) {
      std::string origin = kernel_.origins[stmt->origin];
      // It stays inside its comment; '@' starts what an emitter may fill in at the end.
      for (char& c : origin) c = c < ' ' || c == '\\' || c == '?' || c == '@' ? '.' : c;
      Line(absl::StrCat("// [", origin, "]"));
    }
    EmitStatement(*stmt);
  }
  Leave(mark);
}

void TextEmitter::Refuse(const kir::Stmt& stmt) { Unimplemented(kir::Describe(stmt)); }

Code TextEmitter::BeginLoop(const std::string& name, const Code& low, const Code& high, int64_t step, bool unroll) {
  const Code last = Narrowed(Bounded(high, high.low, high.high + static_cast<double>(step)));  // what the index reaches
  const bool narrow = Narrowed(low).narrow && last.narrow;
  const Code first = narrow ? Narrowed(low) : low;
  const Code end = narrow ? last : high;
  const std::string index = Fresh(name);
  std::string init = absl::StrCat(narrow ? "int" : Type(DType::kI64), " ", index, " = ", first.text), bound = end.text;
  // A bound is taken once: the body may change what it was computed from.
  if (!end.literal && !end.fixed) {
    bound = Fresh(absl::StrCat(index, "_end"));
    absl::StrAppend(&init, ", ", bound, " = ", end.text);
  }
  const std::string advance = step == 1 ? absl::StrCat("++", index) : absl::StrCat(index, " += ", step);
  if (unroll && language_.unroll != nullptr) Line(language_.unroll);
  Open(absl::StrCat("for (", init, "; ", index, " < ", bound, "; ", advance, ") {"));
  Code code{index, Level::kAtom, low.low, std::max(low.low, high.high - 1),
            {},    true,         narrow,  std::min(low.multiple, MultipleOf(step))};
  const auto stride = static_cast<double>(step);
  if (low.literal && high.literal) code.high = low.low + std::floor((code.high - low.low) / stride) * stride;
  Define(name, code);
  return code;
}

void TextEmitter::EndLoop(const Mark& mark) {
  Leave(mark);
  Close();
}

void TextEmitter::MapElements(const kir::Map& map, const std::vector<Code>& bounds, const std::vector<Code>& extents,
                              bool unroll) {
  std::vector<Mark> loops;
  std::vector<Code> index;
  for (size_t d = 0; d < map.indices.size(); ++d) {
    loops.push_back(Enter());
    index.push_back(BeginLoop(map.indices[d], Number(0), bounds[d], 1, unroll));
  }
  for (const std::string& tile : map.tiles) {
    View view = FindView(tile);
    entities_.push_back({.name = tile, .view = std::move(view), .element = index});
  }
  MapBody(map, index, bounds, extents);
  for (size_t d = loops.size(); d-- > 0;) EndLoop(loops[d]);
}

void TextEmitter::MapBody(const kir::Map& map, const std::vector<Code>& index, const std::vector<Code>& bounds,
                          const std::vector<Code>& extents) {
  std::string live;
  for (size_t d = 0; d < index.size(); ++d) {
    if (extents[d].low > index[d].high || extents[d].text == bounds[d].text) continue;
    absl::StrAppend(&live, live.empty() ? "" : " && ", Infix("<", Level::kOther, index[d], extents[d]).text);
  }
  if (!live.empty()) Open(absl::StrCat("if (", live, ") {"));
  EmitBlock(map.body);
  if (!live.empty()) Close();
}

void TextEmitter::Emit(const kir::Loop& loop) {
  if (loop.kind == kir::LoopKind::kThread) return EmitThreads(loop);
  const Code low = Value(loop.low), high = Value(loop.high);
  const Mark mark = Enter();
  BeginLoop(loop.index, low, high, loop.step, loop.kind == kir::LoopKind::kUnroll);
  EmitBlock(loop.body);
  EndLoop(mark);
}

void TextEmitter::Emit(const kir::If& branch) {
  Open(absl::StrCat("if (", Value(branch.condition).text, ") {"));
  EmitBlock(branch.then_body);
  if (!branch.else_body.empty()) {
    Else();
    EmitBlock(branch.else_body);
  }
  Close();
}

void TextEmitter::Emit(const kir::Let& let) { DefineLet(let.name, let.value); }

void TextEmitter::DefineLet(const std::string& name, const kir::ExprRef& value) {
  const Code code = Value(value);
  Define(name, Constant(name, value->dtype, code));
}

void TextEmitter::Emit(const kir::Var& var) {
  const Code value = Value(var.value);
  const std::string name = Fresh(var.name);
  Line(absl::StrCat(Type(var.value->dtype), " ", name, " = ", value.text, ";"));
  Define(var.name, Code{name});
}

void TextEmitter::Emit(const kir::Assign& assign) {
  const Code value = Value(assign.value);
  const Entity* entity = Find(assign.name);
  if (entity == nullptr || !entity->scalar) return Fail(absl::StrCat(assign.name, " is not a var"));
  Line(absl::StrCat(entity->scalar->text, " = ", value.text, ";"));
}

void TextEmitter::Emit(const kir::Store& store) {
  const View view = FindView(store.buffer);
  const std::vector<Code> index = Values(store.index);
  const Code value = Value(store.value);
  if (index.size() != view.sizes.size()) return Fail(absl::StrCat(store.buffer, " has another rank"));
  StoreElement(store.buffer, view, index, ToMemory(view.dtype, value));
}

void TextEmitter::StoreElement(const std::string&, const View& view, const std::vector<Code>& index,
                               const std::string& value) {
  Line(absl::StrCat(Target(view, index), " = ", value, ";"));
}

void TextEmitter::Emit(const kir::Prefetch& prefetch) {
  Line(absl::StrCat("// prefetch ", kir::Describe(prefetch.slice)));
}

}  // namespace quern::text
