// Slices, tile ops as their meaning, and packs as loops over rows.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "codegen/c/emitter.h"
#include "kir/describe.h"
#include "kir/tile_op.h"

namespace quern::c {

using kir::Layout;

// The part that a slice names, as a view of its own.
View Emitter::Part(const kir::Slice& slice) {
  const text::Cut cut = CutOf(slice, /*named=*/true);
  View part = cut.view;
  part.sizes = cut.live;
  part.strides.clear();
  for (const size_t d : cut.ranged) part.strides.push_back(cut.view.strides[d]);
  for (size_t d = 0; d < cut.starts.size(); ++d) {
    const bool column = part.layout != Layout::kRow && d + 1 == cut.starts.size();
    if (column)
      part.column = Sum(part.column, cut.starts[d]);
    else
      part.offset = Sum(part.offset, Product(cut.starts[d], cut.view.strides[d]));
  }
  return part;
}

Code Emitter::RowStart(const View& view, const std::vector<Code>& rows) {
  const Code bytes = Number(LayoutRowBytes(view.layout, view.dtype, view.row_elements));
  return Sum({view.pointer}, Product(Position(view, rows), bytes));
}

void Emitter::Emit(const kir::TileCall& call) {
  const kir::TileOp* op = kir::FindTileOp(call.op);
  if (op == nullptr || call.tiles.size() != op->tiles.size() || call.operands.size() > op->operands.size()) {
    return Fail(absl::StrCat("no tile op takes the operands of ", call.op));
  }
  Open("{  // " + call.op);
  const Mark mark = Enter();
  // Everything the caller names is read in its scope, before the names of the meaning hide it.
  std::vector<View> views;
  for (const std::string& tile : call.tiles) views.push_back(FindView(tile));
  for (const kir::Slice& operand : call.operands) views.push_back(Part(operand));
  std::map<std::string, Code> attributes;
  for (const auto& [name, value] : call.attributes) attributes[name] = Value(value);

  const size_t outer = visible_;
  visible_ = entities_.size();
  // Operands give the sizes before tiles, which may be larger than what is used of them.
  std::map<std::string, Code> sizes;
  auto visit = [&](size_t number, auto use) {
    const kir::TileOperand& operand =
        number < op->tiles.size() ? op->tiles[number] : op->operands[number - op->tiles.size()];
    size_t ranged = 0;
    for (const char* dim : operand.dims) {
      if (*dim != '\0' && ranged < views[number].sizes.size()) use(dim, views[number].sizes[ranged++]);
    }
    if (ranged != views[number].sizes.size()) Fail(absl::StrCat("operand ", operand.name, " has another rank"));
    return operand;
  };
  for (size_t i = 0; i < views.size(); ++i) {
    const size_t number = (i + op->tiles.size()) % views.size();  // operands first
    visit(number, [&](const char* dim, const Code& size) { sizes.try_emplace(dim, size); });
  }
  for (const char* size : op->sizes) Define(size, Constant(size, DType::kI64, sizes[size]));
  for (size_t i = 0; i < views.size(); ++i) {
    const kir::TileOperand operand = visit(i, [&](const char* dim, Code& size) { size = *Find(dim)->scalar; });
    Define(operand.name, views[i]);
  }
  for (size_t i = call.operands.size(); i < op->operands.size(); ++i) {
    View absent;
    absent.dtype = op->operands[i].dtype;
    Define(op->operands[i].name, absent);
  }
  for (const kir::TileAttribute& attribute : op->attributes) {
    const kir::Const usual{attribute.default_value, static_cast<int64_t>(attribute.default_value)};
    const auto given = attributes.find(attribute.name);
    const Code value = given != attributes.end() ? given->second : Literal(attribute.dtype, usual);
    Define(attribute.name, Constant(attribute.name, attribute.dtype, value));
  }
  if (status_.ok()) EmitBlock(kir::Meaning(*op));
  visible_ = outer;
  Leave(mark);
  Close();
}

void Emitter::Emit(const kir::Pack& pack) {
  Open(absl::StrCat("{  // pack ", kir::Describe(pack.dst), " = ", kir::Describe(pack.src)));
  const Mark mark = Enter();
  View dst = Part(pack.dst), src = Part(pack.src);
  const kir::PackRow* row = kir::FindPack(src.dtype, src.layout, dst.dtype, dst.layout);
  if (row == nullptr || dst.sizes.empty() || dst.sizes.size() > 2 || src.sizes.empty() || src.sizes.size() > 2) {
    return Fail(absl::StrCat("no pack leads from ", kir::Describe(pack.src), " to ", kir::Describe(pack.dst)));
  }
  for (View* view : {&dst, &src}) {  // a row is a rectangle of one
    if (view->sizes.size() == 2) continue;
    view->sizes.insert(view->sizes.begin(), Number(1));
    view->strides.insert(view->strides.begin(), Number(0));
  }
  const Code rows = src.sizes[0], columns = src.sizes[1];
  if (IsPanel(dst.layout)) {  // missing rows are zero
    Line(CallText("memset", {dst.pointer, "0", absl::StrCat(LayoutRowBytes(dst.layout, dst.dtype, dst.row_elements))}) +
         ";");
  }
  const Mark loop = Enter();
  const Code r = BeginLoop("r", Number(0), rows, 1);
  const std::string format = Row(dst.dtype).name, k = absl::StrCat(dst.row_elements);
  if (dst.layout == Layout::kPlanar) {
    if (src.strides[1].literal != 1) Fail(absl::StrCat(kir::Describe(pack.src), " is not a row"));
    const std::string values = Sum({src.pointer}, Position(src, {r})).text;
    Line(CallText(absl::StrCat("quantise_", format),
                  {RowStart(dst, {r}).text, k, dst.column.text, values, columns.text}) +
         ";");
  } else if (dst.layout == Layout::kPanel16) {
    Line(CallText(absl::StrCat("pack_", format), {dst.pointer, k, r.text, RowStart(src, {r}).text, src.column.text}) +
         ";");
  } else {
    const Mark inner = Enter();
    const Code c = BeginLoop("c", Number(0), columns, 1);
    const bool turns = kir::Turns(src.layout, dst.layout);  // bits: no value is taken from memory
    if (turns) {
      Line(absl::StrCat(Target(dst, {c, r}), " = ", Target(src, {r, c}), ";"));
    } else if (row->merges == 1) {
      Line(absl::StrCat(Target(dst, {r, c}), " = ", Element(src, {r, c}).text, ";"));
    } else {  // the bits of neighbours, the first lowest
      const Code word = Infix("/", Level::kProduct, c, Number(row->merges)),
                 place = Infix("%", Level::kProduct, c, Number(row->merges));
      Line(absl::StrCat(Target(dst, {r, word}), " |= (uint32_t)(uint", 8 * ScalarBytes(src.dtype), "_t)",
                        Target(src, {r, c}), " << ", 8 * ScalarBytes(src.dtype), " * (", place.text, ");"));
    }
    EndLoop(inner);
  }
  EndLoop(loop);
  Leave(mark);
  Close();
}

}  // namespace quern::c
