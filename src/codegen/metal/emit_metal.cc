// The module, the frame of a kernel (parameters, thread loops), and values in memory.
#include "codegen/metal/emit_metal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/copy_runs.h"
#include "codegen/metal/emitter.h"

namespace quern::metal {
namespace {

constexpr size_t kMaxBuffers = 31;        // of a kernel
constexpr int64_t kMaxShared = 32 << 10;  // bytes of threadgroup memory
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kRunBytes = 1;  // a thread copies elements one by one, but for those of blocks

StatusOr<codegen::DeviceModule> EmitModule(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols,
                                           const codegen::DeviceTarget&) {
  if (kernels.size() != symbols.size()) return absl::InvalidArgumentError("a kernel without a symbol");
  codegen::DeviceModule module;
  std::string body;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const kir::Kernel& kernel = kernels[i];
    QUERN_ASSIGN(const kir::BlockShape shape, kir::ShapeOfBlock(kernel));
    if (shape.threads == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("kernel ", kernel.name, " is not scheduled for blocks of threads"));
    }
    auto unimplemented = [&](const std::string& what) {
      return absl::UnimplementedError(absl::StrCat("kernel ", kernel.name, ": Metal of ", what));
    };
    if (shape.threads > kMaxThreads) return unimplemented(absl::StrCat("blocks of ", shape.threads, " threads"));
    if (kernel.params.size() + (kernel.symbols.empty() ? 0 : 1) > kMaxBuffers) {
      return unimplemented(absl::StrCat(kernel.params.size(), " buffers, of which a kernel has ", kMaxBuffers));
    }
    const kir::Kernel written = codegen::WriteOutCopies(kernel, shape.threads, kRunBytes);
    Emitter emitter(written, shape.threads);
    QUERN_ASSIGN(const std::string text, emitter.Run(symbols[i]));
    if (emitter.shared_bytes() > kMaxShared) {
      return unimplemented(
          absl::StrCat(emitter.shared_bytes(), " bytes of threadgroup memory, more than ", kMaxShared));
    }
    absl::StrAppend(&body, "\n", text);
    module.kernels.push_back({symbols[i], shape.threads, emitter.shared_bytes()});
  }
  module.text = Prelude(body) + body;
  return module;
}

// The M1 and later. A pipeline's copies are not ahead of their use, so more than one stage would be memory for nothing.
// 2 KiB of the 32 are left for what the emitter declares itself: the stage of a tile for each of 8 simdgroups. Squares
// of products stay at 64, a size that these GPUs are known to hold in registers.
constexpr codegen::DeviceTarget kTargets[] = {
    {"metal",
     "apple7",
     "",
     "metal",
     {.threads = 256,
      .elements = 4,
      .shared_bytes = kMaxShared - 2048,
      .half_products = true,
      .stages = 1,
      .large_product = INT64_MAX},
     EmitModule},
};

}  // namespace

std::span<const codegen::DeviceTarget> Targets() { return kTargets; }

Emitter::Emitter(const kir::Kernel& kernel, int64_t threads) : TextEmitter(kernel, kLanguage), threads_(threads) {}

StatusOr<std::string> Emitter::Run(const std::string& symbol) {
  names_ = {symbol, "symbols", "chunk_index", "thread_index", "thread_id"};
  std::vector<std::string> pointers;
  const std::string parameters = Parameters(pointers);
  depth_ = 1;
  DefineSymbols("symbols");
  for (size_t i = 0; i < pointers.size(); ++i) {
    View view = ViewOf(pointers[i], kernel_.params[i].type);
    view.writable = kernel_.params[i].mode != kir::Mode::kIn;
    Define(kernel_.params[i].name, std::move(view));
  }
  const std::vector<Code> counts = GridCounts();
  double chunks = 1;
  for (const Code& count : counts) chunks *= std::max(0.0, count.high);
  // Its type is uint.
  const Code chunk = Narrowed(Bounded({"chunk_index"}, 0, std::min(0x1p32, chunks)));
  DefineGrid(chunk.narrow ? chunk : Bounded(Cast("long", chunk), chunk.low, chunk.high), counts);
  EmitBlock(kernel_.body);
  if (!status_.ok()) return status_;
  const std::string threads = absl::StrCat(threads_);
  // A barrier orders memory of the device only where the kernel may read what it wrote.
  const char* flags = reads_back_ ? "mem_flags::mem_threadgroup | mem_flags::mem_device" : "mem_flags::mem_threadgroup";
  return absl::StrCat("[[kernel, max_total_threads_per_threadgroup(", threads, ")]] void ", symbol, "(\n", parameters,
                      ") {\n", shared_, "  const int thread_id = int(thread_index);\n",
                      absl::StrReplaceAll(out_, {{"@flags", flags}}), "}\n");
}

std::string Emitter::Parameters(std::vector<std::string>& pointers) {
  std::string text;
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const kir::Param& param = kernel_.params[i];
    const kir::Layout layout = IsBlock(param.type.dtype) ? kir::Layout::kBlocks : kir::Layout::kRow;
    if (param.type.layout != layout || param.type.dtype == DType::kF64) Unimplemented(kir::Print(param.type));
    pointers.push_back(Fresh(param.name));
    absl::StrAppend(&text, "    device ", param.mode == kir::Mode::kIn ? "const " : "",
                    MemoryType(language_, param.type.dtype), "* ", pointers.back(), " [[buffer(", i, ")]],\n");
  }
  if (!kernel_.symbols.empty())
    absl::StrAppend(&text, "    constant long* symbols [[buffer(", kernel_.params.size(), ")]],\n");
  return text +
         "    uint chunk_index [[threadgroup_position_in_grid]],\n    uint thread_index "
         "[[thread_position_in_threadgroup]]";
}

Code Emitter::Thread() const {
  return {"thread_id", Level::kAtom, 0, static_cast<double>(threads_ - 1), {}, true, true};
}

Code Emitter::Lane() const {
  Code lane = Bounded({absl::StrCat("thread_id % ", kir::kWarpThreads), Level::kProduct}, 0, kir::kWarpThreads - 1);
  lane.narrow = true;
  return lane;
}

void Emitter::EmitThreads(const kir::Loop& loop) {
  if (loop.level == kir::ThreadLevel::kGroup) return Unimplemented("a group of warps");
  Code number = Thread();
  if (loop.level == kir::ThreadLevel::kWarp) number = IndexOperator(kir::Op::kDiv, number, Number(kir::kWarpThreads));
  if (loop.level == kir::ThreadLevel::kLane) number = Lane();
  const Mark mark = Enter();
  const bool in_warp = std::exchange(in_warp_, loop.level == kir::ThreadLevel::kWarp);
  Open("{");
  Define(loop.index, loop.level == kir::ThreadLevel::kBlock ? number : Constant(loop.index, DType::kI64, number));
  EmitBlock(loop.body);
  EndLoop(mark);
  in_warp_ = in_warp;
}

// Values in memory

void Emitter::StoreElement(const std::string& name, const View& view, const std::vector<Code>& index,
                           const std::string& value) {
  std::string target;
  if (view.place == Place::kMatrices) {
    const Entity* entity = Find(name);
    bool here = !entity->staged.empty();
    for (size_t d = 0; here && d < index.size(); ++d) here = index[d].text == entity->element[d].text;
    if (!here) return Unimplemented("a store to a warp's tile other than to the current element of a map");
    target = entity->staged;
  } else {
    target = Target(view, index);
  }
  const std::string text = absl::StrCat(target, " = ", value, ";");
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

Code Emitter::Element(const View& view, const std::vector<Code>& index) {
  if (view.place == Place::kMemory && view.writable) reads_back_ = true;
  if (view.place == Place::kMatrices) Unimplemented("an element of a warp's tile other than the current one of a map");
  return TextEmitter::Element(view, index);
}

Code Emitter::Decoded(const View& view, const std::vector<Code>& index) {
  const Code row = Position(view, {index.begin(), index.end() - 1});
  const Code bytes = Product(row, Number(RowBytes(view.dtype, view.row_elements)));
  return {
      CallText(absl::StrCat("decode_", Row(view.dtype).name),
               {bytes.literal == 0 ? view.pointer : absl::StrCat(view.pointer, " + ", Wrapped(bytes, Level::kProduct)),
                CallText("uint", {index.back().text})})};
}

Code Emitter::FromMemory(DType dtype, const std::string& place) {
  if (dtype == DType::kBool) return Infix("!=", Level::kOther, {place}, {"0"});
  return text::IsHalf(dtype) ? Cast("float", {place}) : Code{place};
}

std::string Emitter::ToMemory(DType dtype, const Code& value) {
  if (dtype == DType::kF16) return CallText("half", {value.text});
  return dtype == DType::kBF16 ? CallText("to_bf16", {value.text}) : value.text;
}

Code Emitter::Rounded(DType dtype, const Code& value) {
  return text::IsHalf(dtype) ? Code{CallText(absl::StrCat("round_", Row(dtype).name), {value.text})} : value;
}

Code Emitter::ToFloat(DType from, DType to, const Code& value) {
  if (IsFloat(from)) return Rounded(to, value);
  // The language may round an integer toward zero; those of 24 bits are exact. Rounding to odd first keeps the second
  // rounding, to bf16, right.
  const bool is_unsigned = IsUnsigned(from) || from == DType::kBool;
  const bool exact = ScalarBytes(from) <= 2 || (from == DType::kI64 && value.low >= -0x1p24 && value.high <= 0x1p24);
  const char* const name = to == DType::kBF16 ? (is_unsigned ? "odd_u64" : "odd_i64")
                           : is_unsigned      ? "float_u64"
                                              : "float_i64";
  return Rounded(to, {CallText(exact ? "float" : name, {value.text})});
}

}  // namespace quern::metal
