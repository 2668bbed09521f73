// The frame of a function (symbols, parameters, the loop over chunks), scratch and tiles in it, and values in memory.
#include "codegen/c/emit_c.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/c/emitter.h"

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
    : TextEmitter(kernel, LanguageOf(options.wide)), scratch_(kir::LayoutScratch(kernel)) {}

StatusOr<std::string> Emitter::Run(const std::string& symbol) {
  Open(absl::StrCat("void ", symbol, "(const quern_args* args, void* scratch, int64_t begin, int64_t end) {"));
  names_ = {symbol, "args", "scratch", "begin", "end", "chunk"};
  DefineSymbols("args->symbols");
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const kir::Param& param = kernel_.params[i];
    const std::string pointer = Fresh(param.name);
    Line(absl::StrCat(param.mode == kir::Mode::kIn ? "const " : "", MemoryType(language_, param.type.dtype), "* const ",
                      pointer, " = args->buffers[", i, "];"));
    Define(param.name, ViewOf(pointer, param.type));
  }
  Open("for (int64_t chunk = begin; chunk < end; ++chunk) {");
  const Mark mark = Enter();
  DefineGrid({"chunk", Level::kAtom, 0, 0x1p48}, GridCounts());
  EmitBlock(kernel_.body);
  EndLoop(mark);
  Close();
  if (!status_.ok()) return status_;
  return out_;
}

void Emitter::DeclareScratch(const std::string& name, const kir::BufferType& type) {
  const auto offset = scratch_.offset.find(name);
  if (offset == scratch_.offset.end()) return Fail(absl::StrCat(name, " has no place in scratch"));
  const std::string pointer = Fresh(name), memory = MemoryType(language_, type.dtype);
  const Code at = Sum({"(uint8_t*)scratch", Level::kPrefix}, FromExtent(offset->second));
  Line(absl::StrCat(memory, "* const ", pointer, " = (", memory, "*)", Wrapped(at, Level::kPrefix), ";"));
  Define(name, ViewOf(pointer, type));
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
  const std::vector<Code> extents = Values(map.extents);
  MapElements(map, extents, extents, /*unroll=*/false);
}

// Values

Code Emitter::Rounded(DType dtype, const Code& value) {
  if (!text::IsHalf(dtype) && (dtype != DType::kF32 || !language_.wide))
    return value;  // float itself rounds by being float
  return {CallText(absl::StrCat("round_", Row(dtype).name), {value.text})};
}

Code Emitter::ToFloat(DType from, DType to, const Code& value) {
  // Integers become f32 in one step: by way of double, 64 bits would round twice.
  if (to == DType::kF32 && language_.wide && !IsFloat(from)) return Cast("double", Cast("float", value));
  if (text::IsHalf(to) && !IsFloat(from) && ScalarBytes(from) == 8) {
    return Rounded(to, {CallText(absl::StrCat("odd_", Row(from).name), {value.text})});
  }
  if (text::IsHalf(to) || (to == DType::kF32 && language_.wide)) return Rounded(to, value);
  return IsFloat(from) && Type(from) == std::string_view(Type(to)) ? value : Cast(Type(to), value);
}

std::string Emitter::ToMemory(DType dtype, const Code& value) {
  return text::IsHalf(dtype) ? CallText(absl::StrCat("bits_of_", Row(dtype).name), {value.text}) : value.text;
}

Code Emitter::FromMemory(DType dtype, const std::string& place) {
  if (dtype == DType::kBool) return Infix("!=", Level::kOther, {place}, {"0"});
  if (text::IsHalf(dtype)) return {CallText(absl::StrCat("from_bits_", Row(dtype).name), {place})};
  // The product of two floats must not be one of floats.
  return dtype == DType::kF32 && language_.wide ? Cast("double", {place}) : Code{place};
}

std::string Emitter::Target(const View& view, const std::vector<Code>& index) {
  if (view.layout != kir::Layout::kKn32 || index.size() != 2) return TextEmitter::Target(view, index);
  const Code column = Product(Sum(view.column, index[1]), Number(32));
  return absl::StrCat(view.pointer, "[", Sum(column, Position(view, {index[0]})).text, "]");
}

Code Emitter::Element(const View& view, const std::vector<Code>& index) {
  if (view.pointer.empty()) return {IsFloat(view.dtype) ? "0.0f" : "0"};  // an absent operand
  return TextEmitter::Element(view, index);
}

Code Emitter::Decoded(const View& view, const std::vector<Code>& index) {
  QUERN_CHECK(!index.empty());
  const std::vector<Code> rows(index.begin(), index.end() - 1);
  const Code column = Sum(view.column, index.back());
  const std::string format = Row(view.dtype).name, k = absl::StrCat(view.row_elements);
  if (view.layout == kir::Layout::kPanel16)
    return {CallText("panel_" + format, {view.pointer, k, Position(view, rows).text, column.text})};
  const std::string at = RowStart(view, rows).text;
  if (view.layout == kir::Layout::kPlanar) return {CallText("planar_" + format, {at, k, column.text})};
  return {CallText("decode_" + format, {at, column.text})};
}

}  // namespace quern::c
