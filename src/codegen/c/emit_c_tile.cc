// Slices, tile ops as their meaning, and packs as loops over rows.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "codegen/c/emitter.h"
#include "kir/describe.h"

namespace quern::c {

using kir::Layout;

// The part that a slice names, its ranges clipped. Starts that are more than a name or a literal get one.
View Emitter::Cut(const kir::Slice& slice) {
  const View whole = FindView(slice.buffer);
  if (slice.dims.empty()) return whole;
  if (slice.dims.size() != whole.sizes.size()) {
    Fail(absl::StrCat(kir::Describe(slice), " has another rank"));
    return whole;
  }
  View cut = whole;
  cut.sizes.clear();
  cut.strides.clear();
  for (size_t d = 0; d < slice.dims.size(); ++d) {
    const kir::SliceDim& dim = slice.dims[d];
    Code start = dim.start == nullptr ? Number(0) : Value(dim.start);
    if (start.level != Level::kAtom) start = Constant(absl::StrCat(slice.buffer, "_at"), DType::kI64, start);
    const bool column = whole.layout != Layout::kRow && d + 1 == slice.dims.size();
    if (column) cut.column = Sum(cut.column, start);
    else cut.offset = Sum(cut.offset, Product(start, whole.strides[d]));
    if (dim.start != nullptr && dim.extent == nullptr) continue;
    Code size = Difference(whole.sizes[d], start);
    if (dim.extent != nullptr) {
      const Code extent = Value(dim.extent);
      size = extent.high <= size.low ? extent : IndexOperator(kir::Op::kMin, extent, size);
    }
    cut.sizes.push_back(size);
    cut.strides.push_back(whole.strides[d]);
  }
  return cut;
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
  for (const kir::Slice& operand : call.operands) views.push_back(Cut(operand));
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
  View dst = Cut(pack.dst), src = Cut(pack.src);
  const bool known = kir::FindPack(src.dtype, src.layout, dst.dtype, dst.layout) != nullptr;
  if (!known || dst.sizes.empty() || dst.sizes.size() > 2 || src.sizes.empty() || src.sizes.size() > 2) {
    return Fail(absl::StrCat("no pack leads from ", kir::Describe(pack.src), " to ", kir::Describe(pack.dst)));
  }
  for (View* view : {&dst, &src}) {  // a row is a rectangle of one
    if (view->sizes.size() == 2) continue;
    view->sizes.insert(view->sizes.begin(), Number(1));
    view->strides.insert(view->strides.begin(), Number(0));
  }
  const Code rows = src.sizes[0], columns = src.sizes[1];
  if (dst.layout == Layout::kPanel16 || dst.layout == Layout::kKn32) {  // missing rows are zero
    Line(CallText("memset", {dst.pointer, "0", absl::StrCat(LayoutRowBytes(dst.layout, dst.dtype, dst.row_elements))}) +
         ";");
  }
  const Mark loop = Enter();
  const Code r = BeginLoop("r", Number(0), rows, 1);
  // The first byte of row r of a view that is not @row.
  auto row_of = [&](const View& view) {
    const Code bytes = Number(LayoutRowBytes(view.layout, view.dtype, view.row_elements));
    return Sum({view.pointer}, Product(Position(view, {r}, 1), bytes)).text;
  };
  const std::string format = Row(dst.dtype).name, k = absl::StrCat(dst.row_elements);
  if (dst.layout == Layout::kPlanar) {
    if (src.strides[1].literal != 1) Fail(absl::StrCat(kir::Describe(pack.src), " is not a row"));
    const std::string values = Sum({src.pointer}, Position(src, {r}, 1)).text;
    Line(CallText(absl::StrCat("quantise_", format), {row_of(dst), k, dst.column.text, values, columns.text}) + ";");
  } else if (dst.layout == Layout::kPanel16) {
    Line(CallText(absl::StrCat("pack_", format), {dst.pointer, k, r.text, row_of(src), src.column.text}) + ";");
  } else {
    const Mark inner = Enter();
    const Code c = BeginLoop("c", Number(0), columns, 1);
    Line(absl::StrCat(Target(dst, {r, c}), " = ", Element(src, {r, c}).text, ";"));
    EndLoop(inner);
  }
  EndLoop(loop);
  Leave(mark);
  Close();
}

}  // namespace quern::c
