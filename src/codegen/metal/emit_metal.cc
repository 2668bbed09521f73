// The frame of a kernel (parameters, symbols, grid), names and scopes, plain statements, and the module.
#include "codegen/metal/emit_metal.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/metal/emitter.h"
#include "kir/symbols.h"

namespace quern::metal {
namespace {

constexpr size_t kMaxBuffers = 31;         // of a kernel
constexpr int64_t kMaxShared = 32 << 10;   // bytes of threadgroup memory
constexpr int64_t kMaxThreads = 1024;

StatusOr<codegen::DeviceModule> EmitModule(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols,
                                           const codegen::DeviceTarget&) {
  if (kernels.size() != symbols.size()) return absl::InvalidArgumentError("a kernel without a symbol");
  codegen::DeviceModule module;
  std::string body;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const kir::Kernel& kernel = kernels[i];
    QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
    if (shape.threads == 0) {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, " is not scheduled for blocks of threads"));
    }
    auto unimplemented = [&](const std::string& what) {
      return absl::UnimplementedError(absl::StrCat("kernel ", kernel.name, ": Metal of ", what));
    };
    if (shape.threads > kMaxThreads) return unimplemented(absl::StrCat("blocks of ", shape.threads, " threads"));
    if (kernel.params.size() + (kernel.symbols.empty() ? 0 : 1) > kMaxBuffers) {
      return unimplemented(absl::StrCat(kernel.params.size(), " buffers, of which a kernel has ", kMaxBuffers));
    }
    Emitter emitter(kernel, shape.threads);
    QUERN_ASSIGN(const std::string text, emitter.Run(symbols[i]));
    if (emitter.shared_bytes() > kMaxShared) {
      return unimplemented(absl::StrCat(emitter.shared_bytes(), " bytes of threadgroup memory, more than ", kMaxShared));
    }
    absl::StrAppend(&body, "\n", text);
    module.kernels.push_back({symbols[i], shape.threads, emitter.shared_bytes()});
  }
  module.text = Prelude(body) + body;
  return module;
}

// The M1 and later. A pipeline's copies are not ahead of their use, so more than one stage would be memory for nothing. 2 KiB of
// the 32 are left for what the emitter declares itself: the stage of a tile for each of 8 simdgroups. Squares of products stay at 64,
// a size that these GPUs are known to hold in registers.
constexpr codegen::DeviceTarget kTargets[] = {
    {"metal", "apple7", "", "metal",
     {.threads = 256, .elements = 4, .shared_bytes = kMaxShared - 2048, .half_products = true, .stages = 1, .large_product = INT64_MAX},
     EmitModule},
};

}  // namespace

std::span<const codegen::DeviceTarget> Targets() { return kTargets; }

StatusOr<std::string> Emitter::Run(const std::string& symbol) {
  for (const char* taken : {"symbols", "chunk_index", "thread_index", "thread_id"}) names_.push_back(taken);
  names_.push_back(symbol);
  const std::string parameters = Parameters();
  depth_ = 1;
  const SymbolRanges ranges = kir::RangesOf(kernel_);
  for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
    const std::string& name = kernel_.symbols[i].name;
    const SymbolRange range = ranges.at(name);
    // No buffer has an extent above 2^48, so sizes stay far from where they would wrap.
    Code value{absl::StrCat("symbols[", i, "]"), Level::kAtom, std::max(static_cast<double>(range.low), -0x1p48),
               std::min(static_cast<double>(range.high), 0x1p48)};
    symbols_.emplace_back(name, Constant(name, DType::kI64, value));
    Define(name, symbols_.back().second);
  }
  // Their extents are of symbols.
  size_t buffer = 0;
  for (const kir::Param& param : kernel_.params) {
    View view = ViewOf(entities_[buffer++].name, Place::kDevice, param.type);
    view.writable = param.mode != kir::Mode::kIn;
    Define(param.name, std::move(view));
  }
  EmitGrid();
  EmitBlock(kernel_.body);
  if (!status_.ok()) return status_;
  const std::string threads = absl::StrCat(threads_);
  // A barrier orders memory of the device only where the kernel may read what it wrote.
  const char* flags = reads_back_ ? "mem_flags::mem_threadgroup | mem_flags::mem_device" : "mem_flags::mem_threadgroup";
  return absl::StrCat("[[kernel, max_total_threads_per_threadgroup(", threads, ")]] void ", symbol, "(\n", parameters, ") {\n", shared_,
                      "  const int thread_id = int(thread_index);\n", absl::StrReplaceAll(out_, {{"@flags", flags}}), "}\n");
}

std::string Emitter::Parameters() {
  std::string text;
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const kir::Param& param = kernel_.params[i];
    const kir::Layout layout = IsBlock(param.type.dtype) ? kir::Layout::kBlocks : kir::Layout::kRow;
    if (param.type.layout != layout || param.type.dtype == DType::kF64) Unimplemented(kir::Print(param.type));
    const std::string name = Fresh(param.name);
    absl::StrAppend(&text, "    device ", param.mode == kir::Mode::kIn ? "const " : "", MemoryType(param.type.dtype), "* ", name,
                    " [[buffer(", i, ")]],\n");
    entities_.push_back({.name = name});  // until the symbols are known
  }
  if (!kernel_.symbols.empty()) absl::StrAppend(&text, "    constant long* symbols [[buffer(", kernel_.params.size(), ")]],\n");
  return text + "    uint chunk_index [[threadgroup_position_in_grid]],\n    uint thread_index [[thread_position_in_threadgroup]]";
}

void Emitter::Fail(const std::string& message) {
  if (status_.ok()) status_ = absl::InternalError(absl::StrCat("kernel ", kernel_.name, ", in Metal: ", message));
}
void Emitter::Unimplemented(const std::string& what) {
  if (status_.ok()) status_ = absl::UnimplementedError(absl::StrCat("kernel ", kernel_.name, ": Metal of ", what));
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
  names_.resize(mark.names);
}

std::string Emitter::Fresh(std::string_view name) {
  std::string base;
  for (char c : name) base += absl::ascii_isalnum(c) ? c : '_';
  if (base.empty() || absl::ascii_isdigit(base[0]) || Reserved(base)) base = absl::StrCat("v_", base);
  std::string unique = base;
  auto taken = [&](const std::vector<std::string>& names) { return std::find(names.begin(), names.end(), unique) != names.end(); };
  for (int i = 2; taken(names_) || taken(shared_names_); ++i) unique = absl::StrCat(base, "_", i);
  names_.push_back(unique);
  return unique;
}

void Emitter::Define(const std::string& name, Code scalar) { entities_.push_back({.name = name, .scalar = std::move(scalar)}); }
void Emitter::Define(const std::string& name, View view) { entities_.push_back({.name = name, .view = std::move(view)}); }

const Emitter::Entity* Emitter::Find(const std::string& name) {
  for (size_t i = entities_.size(); i-- > kernel_.params.size();) {
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
  if (dtype == DType::kI64 && value.literal) return value;
  const std::string unique = Fresh(name);
  const Code kept = dtype == DType::kI64 ? Narrowed(value) : value;
  Line(absl::StrCat("const ", kept.narrow && dtype == DType::kI64 ? "int" : Type(dtype), " ", unique, " = ", kept.text, ";"));
  return {unique, Level::kAtom, kept.low, kept.high, {}, true, kept.narrow, kept.multiple};
}

Code Emitter::FromExtent(const Extent& extent) {
  Code sum = Number(0);
  for (const Extent::Term& term : extent.terms()) {
    Code product = Number(std::abs(term.coefficient));
    for (const std::string& symbol : term.symbols) {
      auto known = std::find_if(symbols_.begin(), symbols_.end(), [&](const auto& pair) { return pair.first == symbol; });
      if (known == symbols_.end()) Fail(absl::StrCat(symbol, " is not a symbol"));
      else product = Product(product, known->second);
    }
    sum = term.coefficient < 0 ? Difference(sum, product) : Sum(sum, product);
  }
  return sum;
}

View Emitter::ViewOf(std::string pointer, Place place, const kir::BufferType& type) {
  View view{type.dtype, place, std::move(pointer), {}, {}};
  view.writable = true;
  const bool rows = IsBlock(type.dtype);
  if (rows && !type.dims.empty() && type.dims.back().is_constant()) view.row_elements = type.dims.back().constant();
  Extent stride = 1;
  for (size_t d = type.dims.size(); d-- > 0;) {
    view.sizes.insert(view.sizes.begin(), FromExtent(type.dims[d]));
    view.strides.insert(view.strides.begin(), FromExtent(stride));
    if (!rows || d + 1 != type.dims.size()) stride = stride * type.dims[d];
  }
  return view;
}

// The last dimension runs fastest: index d is chunk / (product of the counts after d) % count.
void Emitter::EmitGrid() {
  Code chunk{"chunk_index"};
  Code after = Number(1);
  std::vector<std::pair<std::string, Code>> values;
  std::vector<Code> counts;
  double chunks = 1;
  for (const kir::GridDim& dim : kernel_.grid) {
    Code count = Sum(Difference(Value(dim.high), Value(dim.low)), Number(dim.step - 1));
    if (dim.step != 1) count = IndexOperator(kir::Op::kDiv, count, Number(dim.step));
    chunks *= std::max(0.0, count.high);
    counts.push_back(count);
  }
  chunk = Narrowed(Bounded(chunk, 0, std::min(0x1p32, chunks)));
  if (!chunk.narrow) chunk.text = "long(chunk_index)";
  for (size_t d = kernel_.grid.size(); d-- > 0;) {
    const kir::GridDim& dim = kernel_.grid[d];
    const Code low = Value(dim.low), high = Value(dim.high);
    Code number = after.literal == 1 ? chunk : Infix("/", Level::kProduct, chunk, after);  // where there is a chunk, no count is 0
    if (d != 0) number = Infix("%", Level::kProduct, number, counts[d]);
    number = Bounded(std::move(number), 0, std::max(0.0, counts[d].high - 1));
    Code value = Sum(low, Product(number, Number(dim.step)));
    value = Bounded(std::move(value), low.low, std::max(low.low, std::min(value.high, high.high - 1)));
    values.emplace_back(dim.index, value);
    after = Product(after, counts[d]);
  }
  for (size_t d = values.size(); d-- > 0;) Define(values[d].first, Constant(values[d].first, DType::kI64, values[d].second));
}

// Statements

void Emitter::EmitBlock(const kir::Block& block) {
  const Mark mark = Enter();
  for (const kir::StmtRef& stmt : block) {
    if (!status_.ok()) return;
    if (stmt->origin >= 0 && stmt->origin < static_cast<int>(kernel_.origins.size())) {
      std::string origin = kernel_.origins[stmt->origin];
      for (char& c : origin) c = c < ' ' || c == '\\' || c == '?' || c == '@' ? '.' : c;  // stays inside its comment
      Line(absl::StrCat("// [", origin, "]"));
    }
    std::visit([&](const auto& node) { Emit(node); }, stmt->node);
  }
  Leave(mark);
}

Code Emitter::BeginLoop(const std::string& name, const Code& low, const Code& high, int64_t step, bool unroll) {
  const Code last = Narrowed(Bounded(high, high.low, high.high + static_cast<double>(step)));  // what the index reaches
  const bool narrow = Narrowed(low).narrow && last.narrow;
  const Code first = narrow ? Narrowed(low) : low;
  Code end = narrow ? last : high;
  const std::string index = Fresh(name);
  std::string init = absl::StrCat(narrow ? "int " : "long ", index, " = ", first.text), bound = end.text;
  // A bound is taken once: the body may change what it was computed from.
  if (!end.literal && !end.fixed) {
    bound = Fresh(absl::StrCat(index, "_end"));
    absl::StrAppend(&init, ", ", bound, " = ", end.text);
  }
  const std::string advance = step == 1 ? absl::StrCat("++", index) : absl::StrCat(index, " += ", step);
  if (unroll) Line("#pragma unroll");
  Open(absl::StrCat("for (", init, "; ", index, " < ", bound, "; ", advance, ") {"));
  Code code{index, Level::kAtom, low.low, std::max(low.low, high.high - 1), {}, true, narrow, std::min(low.multiple, MultipleOf(step))};
  if (low.literal && high.literal) code.high = low.low + std::floor((code.high - low.low) / static_cast<double>(step)) * static_cast<double>(step);
  Define(name, code);
  return code;
}

void Emitter::EndLoop(const Mark& mark) {
  Leave(mark);
  Close();
}

void Emitter::Emit(const kir::Loop& loop) {
  const Mark mark = Enter();
  if (loop.kind != kir::LoopKind::kThread) {
    const Code low = Value(loop.low), high = Value(loop.high);
    BeginLoop(loop.index, low, high, loop.step, loop.kind == kir::LoopKind::kUnroll);
    EmitBlock(loop.body);
    return EndLoop(mark);
  }
  if (loop.level == kir::ThreadLevel::kGroup) return Unimplemented("a group of warps");
  Code number{"thread_id", Level::kAtom, 0, static_cast<double>(threads_ - 1), {}, true, true};
  if (loop.level == kir::ThreadLevel::kWarp) number = IndexOperator(kir::Op::kDiv, number, Number(kir::kWarpThreads));
  if (loop.level == kir::ThreadLevel::kLane) number = Lane();
  const bool in_warp = std::exchange(in_warp_, loop.level == kir::ThreadLevel::kWarp);
  Open("{");
  Define(loop.index, loop.level == kir::ThreadLevel::kBlock ? number : Constant(loop.index, DType::kI64, number));
  EmitBlock(loop.body);
  EndLoop(mark);
  in_warp_ = in_warp;
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
  std::string target;
  if (view.place == Place::kMatrices) {
    const Entity* entity = Find(store.buffer);
    bool here = !entity->staged.empty();
    for (size_t d = 0; here && d < index.size(); ++d) here = index[d].text == entity->element[d].text;
    if (!here) return Unimplemented("a store to a warp's tile other than to the current element of a map");
    target = entity->staged;
  } else {
    target = Target(view, index);
  }
  const std::string text = absl::StrCat(target, " = ", ToMemory(view.dtype, value), ";");
  if (!in_warp_ || view.place == Place::kThread) return Line(text);
  // What a warp stores as one, its first lane does; the others see it.
  const char* const barrier = view.place == Place::kShared ? "simdgroup_barrier(mem_flags::mem_threadgroup);"
                                                           : "simdgroup_barrier(mem_flags::mem_device);";
  Line(barrier);
  Open(absl::StrCat("if (", Lane().text, " == 0) {"));
  Line(text);
  Close();
  Line(barrier);
}

}  // namespace quern::metal
