// The frame of a function (symbols, parameters, grid), names and scopes, and all statements but tile calls and packs.
#include "codegen/c/emit_c.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "codegen/c/emitter.h"
#include "kir/describe.h"
#include "kir/symbols.h"

namespace quern::c {

StatusOr<std::string> EmitC(std::span<const NamedKernel> kernels, const EmitOptions& options) {
  std::string text;
  for (const NamedKernel& named : kernels) {
    QUERN_ASSIGN(const std::string function, Emitter(*named.kernel, options).Run(named.symbol));
    absl::StrAppend(&text, "\n", function);
  }
  return Prelude(text, options.wide) + text;
}

StatusOr<std::string> EmitC(const kir::Kernel& kernel, const EmitOptions& options) {
  return EmitC({{{&kernel, kernel.name}}}, options);
}

Emitter::Emitter(const kir::Kernel& kernel, const EmitOptions& options)
    : kernel_(kernel), options_(options), scratch_(kir::LayoutScratch(kernel)) {}

StatusOr<std::string> Emitter::Run(const std::string& symbol) {
  Open(absl::StrCat("void ", symbol, "(const quern_args* args, void* scratch, int64_t begin, int64_t end) {"));
  c_names_.push_back(symbol);
  for (const char* taken : {"args", "scratch", "begin", "end", "chunk"}) c_names_.push_back(taken);
  const SymbolRanges ranges = kir::RangesOf(kernel_);
  for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
    const std::string& name = kernel_.symbols[i].name;
    const SymbolRange range = ranges.at(name);
    // No buffer has an extent above 2^48, so sizes stay far from where they would wrap.
    Code value{absl::StrCat("args->symbols[", i, "]"), Level::kAtom, std::max(static_cast<double>(range.low), -0x1p48),
               std::min(static_cast<double>(range.high), 0x1p48)};
    symbols_.emplace_back(name, Constant(name, DType::kI64, value));
    Define(name, symbols_.back().second);
  }
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const kir::Param& param = kernel_.params[i];
    const std::string pointer = Fresh(param.name);
    Line(absl::StrCat(param.mode == kir::Mode::kIn ? "const " : "", MemoryType(param.type.dtype), "* const ", pointer,
                      " = args->buffers[", i, "];"));
    Define(param.name, WholeView(pointer, param.type));
  }
  EmitGrid();
  Close();
  if (!status_.ok()) return status_;
  return out_;
}

void Emitter::Fail(const std::string& message) {
  if (status_.ok()) status_ = absl::InternalError(absl::StrCat("kernel ", kernel_.name, ", in C: ", message));
}

void Emitter::Line(const std::string& text) { absl::StrAppend(&out_, std::string(2 * depth_, ' '), text, "\n"); }
void Emitter::Open(const std::string& text) {
  Line(text);
  ++depth_;
}
void Emitter::Close() {
  --depth_;
  Line("}");
}

void Emitter::Leave(const Mark& mark) {
  entities_.resize(mark.entities);
  c_names_.resize(mark.c_names);
}

std::string Emitter::Fresh(std::string_view name) {
  std::string base;
  for (char c : name) base += absl::ascii_isalnum(c) ? c : '_';
  if (base.empty() || absl::ascii_isdigit(base[0]) || Reserved(base)) base = absl::StrCat("v_", base);
  std::string unique = base;
  for (int i = 2; std::find(c_names_.begin(), c_names_.end(), unique) != c_names_.end(); ++i) {
    unique = absl::StrCat(base, "_", i);
  }
  c_names_.push_back(unique);
  return unique;
}

void Emitter::Define(const std::string& name, Code scalar) {
  entities_.push_back({.name = name, .scalar = std::move(scalar)});
}
void Emitter::Define(const std::string& name, View view) {
  entities_.push_back({.name = name, .view = std::move(view)});
}

const Emitter::Entity* Emitter::Find(const std::string& name) {
  for (size_t i = entities_.size(); i-- > visible_;) {
    if (entities_[i].name == name) return &entities_[i];
  }
  Fail(absl::StrCat(name, " is not defined"));
  return nullptr;
}

View Emitter::FindView(const std::string& name) {
  const Entity* entity = Find(name);
  if (entity != nullptr && !entity->view) Fail(absl::StrCat(name, " is not a buffer"));
  return entity != nullptr && entity->view ? *entity->view : View{};
}

Code Emitter::Constant(std::string_view name, DType dtype, const Code& value) {
  const std::string unique = Fresh(name);
  Line(absl::StrCat("const ", Type(dtype), " ", unique, " = ", value.text, ";"));
  return {unique, Level::kAtom, value.low, value.high, {}, true};
}

Code Emitter::FromExtent(const Extent& extent) {
  Code sum = Number(0);
  for (const Extent::Term& term : extent.terms()) {
    Code product = Number(std::abs(term.coefficient));
    for (const std::string& symbol : term.symbols) {
      auto known =
          std::find_if(symbols_.begin(), symbols_.end(), [&](const auto& pair) { return pair.first == symbol; });
      if (known == symbols_.end()) Fail(absl::StrCat(symbol, " is not a symbol"));
      else product = Product(product, known->second);
    }
    sum = term.coefficient < 0 ? Difference(sum, product) : Sum(sum, product);
  }
  return sum;
}

View Emitter::WholeView(std::string pointer, const kir::BufferType& type) {
  View view{type.dtype, type.layout, std::move(pointer), {}, {}, Number(0), Number(0)};
  const bool rows = type.layout != kir::Layout::kRow;
  if (rows && !type.dims.empty() && type.dims.back().is_constant()) view.row_elements = type.dims.back().constant();
  Extent stride = 1;
  for (size_t d = type.dims.size(); d-- > 0;) {
    view.sizes.insert(view.sizes.begin(), FromExtent(type.dims[d]));
    view.strides.insert(view.strides.begin(), FromExtent(stride));
    if (!rows || d + 1 != type.dims.size()) stride = stride * type.dims[d];
  }
  return view;
}

void Emitter::EmitGrid() {
  Open("for (int64_t chunk = begin; chunk < end; ++chunk) {");
  const Mark mark = Enter();
  // The last dimension runs fastest: index d is chunk / (product of the counts after d) % count.
  Code chunk{"chunk", Level::kAtom, 0, 0x1p48};
  Code after = Number(1);
  std::vector<std::pair<std::string, Code>> values;
  for (size_t d = kernel_.grid.size(); d-- > 0;) {
    const kir::GridDim& dim = kernel_.grid[d];
    const Code low = Value(dim.low), high = Value(dim.high);
    Code count = Sum(Difference(high, low), Number(dim.step - 1));
    if (dim.step != 1) count = IndexOperator(kir::Op::kDiv, count, Number(dim.step));
    Code number = IndexOperator(kir::Op::kDiv, chunk, after);
    if (d != 0)
      number = {absl::StrCat(Wrapped(number, Level::kProduct), " % ", Wrapped(count, Level::kPrefix)), Level::kProduct};
    number.low = 0, number.high = std::max(0.0, count.high - 1);
    Code value = Sum(low, Product(number, Number(dim.step)));
    value.low = low.low, value.high = std::max(low.low, std::min(value.high, high.high - 1));
    values.emplace_back(dim.index, value);
    after = Product(after, count);
    if (after.level != Level::kAtom) after = {Wrapped(after, Level::kAtom), Level::kAtom, 1, after.high};
  }
  for (size_t d = values.size(); d-- > 0;)
    Define(values[d].first, Constant(values[d].first, DType::kI64, values[d].second));
  EmitBlock(kernel_.body);
  Leave(mark);
  Close();
}

// Statements

void Emitter::EmitBlock(const kir::Block& block) {
  const Mark mark = Enter();
  for (const kir::StmtRef& stmt : block) {
    if (stmt->origin >= 0 && stmt->origin < static_cast<int>(kernel_.origins.size())) {
      std::string origin = kernel_.origins[stmt->origin];
      for (char& c : origin) c = c < ' ' || c == '\\' || c == '?' ? '.' : c;  // stays inside its comment
      Line(absl::StrCat("// [", origin, "]"));
    }
    std::visit([&](const auto& node) { Emit(node); }, stmt->node);
  }
  Leave(mark);
}

Code Emitter::BeginLoop(const std::string& name, const Code& low, const Code& high, int64_t step) {
  const std::string index = Fresh(name);
  std::string init = absl::StrCat("int64_t ", index, " = ", low.text), bound = high.text;
  // A bound is taken once: the body may change what it was computed from.
  if (!high.literal && !high.fixed) {
    bound = Fresh(absl::StrCat(index, "_end"));
    absl::StrAppend(&init, ", ", bound, " = ", high.text);
  }
  const std::string advance = step == 1 ? absl::StrCat("++", index) : absl::StrCat(index, " += ", step);
  Open(absl::StrCat("for (", init, "; ", index, " < ", bound, "; ", advance, ") {"));
  Code code{index, Level::kAtom, low.low, std::max(low.low, high.high - 1), {}, true};
  if (low.literal && high.literal) code.high = low.low + std::floor((code.high - low.low) / step) * step;
  Define(name, code);
  return code;
}

void Emitter::EndLoop(const Mark& mark) {
  Leave(mark);
  Close();
}

void Emitter::Emit(const kir::Loop& loop) {
  if (loop.kind == kir::LoopKind::kThread) return Fail("a thread loop");
  const Code low = Value(loop.low), high = Value(loop.high);
  const Mark mark = Enter();
  BeginLoop(loop.index, low, high, loop.step);
  EmitBlock(loop.body);
  EndLoop(mark);
}

void Emitter::Emit(const kir::If& branch) {
  Open(absl::StrCat("if (", Value(branch.condition).text, ") {"));
  EmitBlock(branch.then_body);
  if (!branch.else_body.empty()) {
    --depth_;
    Open("} else {");
    EmitBlock(branch.else_body);
  }
  Close();
}

void Emitter::Emit(const kir::Let& let) {
  const Code value = Value(let.value);
  Define(let.name, Constant(let.name, let.value->dtype, value));
}

void Emitter::Emit(const kir::Var& var) {
  const Code value = Value(var.value);
  const std::string name = Fresh(var.name);
  Line(absl::StrCat(Type(var.value->dtype), " ", name, " = ", value.text, ";"));
  Define(var.name, Code{name});
}

void Emitter::Emit(const kir::Assign& assign) {
  const Code value = Value(assign.value);
  const Entity* entity = Find(assign.name);
  if (entity == nullptr || !entity->scalar) return Fail(absl::StrCat(assign.name, " is not a var"));
  Line(absl::StrCat(entity->scalar->text, " = ", value.text, ";"));
}

void Emitter::Emit(const kir::Store& store) {
  const View view = FindView(store.buffer);
  const std::vector<Code> index = Values(store.index);
  const Code value = Value(store.value);
  if (index.size() != view.sizes.size()) return Fail(absl::StrCat(store.buffer, " has another rank"));
  Line(absl::StrCat(Target(view, index), " = ", ToMemory(view.dtype, value), ";"));
}

void Emitter::DeclareScratch(const std::string& name, const kir::BufferType& type) {
  const auto offset = scratch_.offset.find(name);
  if (offset == scratch_.offset.end()) return Fail(absl::StrCat(name, " has no place in scratch"));
  const std::string pointer = Fresh(name);
  Code at{"(uint8_t*)scratch", Level::kPrefix};
  at = Sum(at, FromExtent(offset->second));
  const std::string cast = absl::StrCat("(", MemoryType(type.dtype), "*)");
  Line(absl::StrCat(MemoryType(type.dtype), "* const ", pointer, " = ", cast, Wrapped(at, Level::kPrefix), ";"));
  Define(name, WholeView(pointer, type));
}

void Emitter::Emit(const kir::Alloc& alloc) { DeclareScratch(alloc.name, alloc.type); }

void Emitter::Emit(const kir::Tile& tile) {
  const Code init = Value(tile.init);
  DeclareScratch(tile.name, tile.type);
  if (!status_.ok()) return;
  Code count = Number(1);
  for (const Code& size : FindView(tile.name).sizes) count = Product(count, size);
  const Mark mark = Enter();
  const Code i = BeginLoop("i", Number(0), count, 1);
  Line(absl::StrCat(FindView(tile.name).pointer, "[", i.text, "] = ", ToMemory(tile.type.dtype, init), ";"));
  EndLoop(mark);
}

void Emitter::Emit(const kir::Map& map) {
  std::vector<Code> extents = Values(map.extents);
  const Mark mark = Enter();
  std::vector<Mark> loops;
  std::vector<Code> indices;
  for (size_t d = 0; d < map.indices.size() && d < extents.size(); ++d) {
    loops.push_back(Enter());
    indices.push_back(BeginLoop(map.indices[d], Number(0), extents[d], 1));
  }
  for (const std::string& tile : map.tiles) {
    View view = FindView(tile);
    entities_.push_back({.name = tile, .view = std::move(view), .element = indices});
  }
  EmitBlock(map.body);
  for (size_t d = loops.size(); d-- > 0;) EndLoop(loops[d]);
  Leave(mark);
}

void Emitter::Emit(const kir::Prefetch& prefetch) { Line(absl::StrCat("// prefetch ", kir::Describe(prefetch.slice))); }

}  // namespace quern::c
