// Lines, names and scopes; symbols, views of buffers and parts of them.
#include "codegen/text/text_emitter.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "codegen/text/helpers.h"
#include "kir/describe.h"
#include "kir/symbols.h"

namespace quern::text {

void TextEmitter::Fail(const std::string& message) {
  if (status_.ok())
    status_ = absl::InternalError(absl::StrCat("kernel ", kernel_.name, ", in ", language_.name, ": ", message));
}
void TextEmitter::Unimplemented(const std::string& what) {
  if (status_.ok())
    status_ = absl::UnimplementedError(absl::StrCat("kernel ", kernel_.name, ": ", language_.name, " of ", what));
}

void TextEmitter::Line(const std::string& text) { absl::StrAppend(&out_, std::string(2 * depth_, ' '), text, "\n"); }
void TextEmitter::Open(const std::string& text) {
  Line(text);
  ++depth_;
}
void TextEmitter::Else() {
  --depth_;
  Open("} else {");
}
void TextEmitter::Close() {
  --depth_;
  Line("}");
}

void TextEmitter::Leave(const Mark& mark) {
  entities_.resize(mark.entities);
  names_.resize(mark.names);
}

std::string TextEmitter::Fresh(std::string_view name) {
  std::string base;
  for (char c : name) base += absl::ascii_isalnum(c) ? c : '_';
  if (base.empty() || absl::ascii_isdigit(base[0]) || Reserved(language_, base)) base = absl::StrCat("v_", base);
  std::string unique = base;
  auto taken = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), unique) != names.end();
  };
  for (int i = 2; taken(names_) || taken(outer_names_); ++i) unique = absl::StrCat(base, "_", i);
  names_.push_back(unique);
  return unique;
}

const TextEmitter::Entity* TextEmitter::Find(const std::string& name) {
  for (size_t i = entities_.size(); i-- > visible_;) {
    if (entities_[i].name == name) return &entities_[i];
  }
  Fail(absl::StrCat(name, " is not defined"));
  return nullptr;
}

View TextEmitter::FindView(const std::string& name) {
  const Entity* entity = Find(name);
  if (entity != nullptr && !entity->view) Fail(absl::StrCat(name, " is not a buffer"));
  return entity != nullptr && entity->view ? *entity->view : View{};
}

Code TextEmitter::Constant(std::string_view name, DType dtype, const Code& value) {
  if (dtype == DType::kI64 && value.literal) return value;
  const std::string unique = Fresh(name);
  const Code kept = dtype == DType::kI64 ? Narrowed(value) : value;
  Line(absl::StrCat("const ", kept.narrow && dtype == DType::kI64 ? "int" : Type(dtype), " ", unique, " = ", kept.text,
                    ";"));
  return {unique, Level::kAtom, kept.low, kept.high, {}, true, kept.narrow, kept.multiple};
}

void TextEmitter::DefineSymbols(const std::string& array) {
  const SymbolRanges ranges = kir::RangesOf(kernel_);
  for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
    const std::string& name = kernel_.symbols[i].name;
    const SymbolRange range = ranges.at(name);
    // No buffer has an extent above 2^48, so sizes stay far from where they would wrap.
    const Code value{absl::StrCat(array, "[", i, "]"), Level::kAtom, std::max(static_cast<double>(range.low), -0x1p48),
                     std::min(static_cast<double>(range.high), 0x1p48)};
    symbols_.emplace_back(name, Constant(name, DType::kI64, value));
    Define(name, symbols_.back().second);
  }
}

Code TextEmitter::FromExtent(const Extent& extent) {
  Code sum = Number(0);
  for (const Extent::Term& term : extent.terms()) {
    Code product = Number(std::abs(term.coefficient));
    for (const std::string& symbol : term.symbols) {
      auto known =
          std::find_if(symbols_.begin(), symbols_.end(), [&](const auto& pair) { return pair.first == symbol; });
      if (known == symbols_.end())
        Fail(absl::StrCat(symbol, " is not a symbol"));
      else
        product = Product(product, known->second);
    }
    sum = term.coefficient < 0 ? Difference(sum, product) : Sum(sum, product);
  }
  return sum;
}

View TextEmitter::ViewOf(std::string pointer, const kir::BufferType& type, Place place) {
  View view{type.dtype, type.layout, place, std::move(pointer), {}, {}, Number(0), Number(0)};
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

Cut TextEmitter::CutOf(const kir::Slice& slice, bool named) {
  Cut cut;
  cut.view = FindView(slice.buffer);
  if (!slice.dims.empty() && slice.dims.size() != cut.view.sizes.size())
    Fail(absl::StrCat(kir::Describe(slice), " has another rank"));
  if (!status_.ok()) return cut;
  for (size_t d = 0; d < cut.view.sizes.size(); ++d) {
    const kir::SliceDim dim = slice.dims.empty() ? kir::SliceDim{} : slice.dims[d];
    Code start = dim.start == nullptr ? Number(0) : Value(dim.start);
    if (named && start.level != Level::kAtom) start = Constant(absl::StrCat(slice.buffer, "_at"), DType::kI64, start);
    const Code size = cut.view.sizes[d];
    cut.starts.push_back(start);
    if (dim.start != nullptr && dim.extent == nullptr) continue;
    const Code rest = Difference(size, start);
    cut.ranged.push_back(d);
    cut.asked.push_back(dim.extent == nullptr ? rest : Value(dim.extent));
    const bool whole = dim.extent == nullptr || start.high + cut.asked.back().high <= size.low;
    cut.live.push_back(whole ? cut.asked.back() : Least(cut.asked.back(), rest));
  }
  return cut;
}

}  // namespace quern::text
