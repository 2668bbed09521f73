#include "aot/fill.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "codegen/cpu/module.h"
#include "quern/abi.h"

namespace quern::aot {
namespace {

// What waiting workers pull towards their caches of the weights that come next.
constexpr int64_t kPrefetchBytes = 32 << 10;
// Blocks of this many launches keep the code generator's graphs small.
constexpr size_t kLaunchesOfBlock = 8;

int64_t DispatchAt(const Workspace& workspace, size_t index) {
  return workspace.dispatches + static_cast<int64_t>(index * sizeof(quern_dispatch));
}

// Position of the first element for which `holds`.
template <typename T, typename F>
int64_t Position(const std::vector<T>& items, F holds) {
  return std::find_if(items.begin(), items.end(), holds) - items.begin();
}

}  // namespace

Filler::Filler(const FillContext& context, const lir::Plan& plan, const std::vector<lir::Launch>& launches,
               const KernelTable& kernels, std::span<const int> rows, llvm::IRBuilder<>& builder)
    : c_(context),
      plan_(plan),
      launches_(launches),
      table_(kernels),
      rows_(rows),
      b_(builder),
      kernels_(plan.kernels.size()),
      written_(launches.size()),
      sizes_at_(context.workspace.tables),
      slot_at_(context.workspace.pointers) {}

StatusOr<LoopSlots> Filler::Fill(const std::set<std::string>& unknown) {
  QUERN_RETURN_IF_ERROR(FillSizes(unknown));
  LoopSlots open;
  std::map<size_t, Written> written;
  for (size_t l = 0; l < launches_.size(); ++l) {
    const lir::Launch& launch = launches_[l];
    if (written_[l] || Names(launch, unknown)) continue;
    if (!written.empty() && written.size() % kLaunchesOfBlock == 0) NextBlock();
    llvm::Function* const kernel = Kernel(table_.entries[rows_[launch.kernel]].symbol);
    QUERN_ASSIGN(written[l], Dispatch(launch, l, kernels_[launch.kernel], kernel, open));
    written_[l] = true;
  }
  Hints(written);
  return open;
}

Status Filler::FillSizes(const std::set<std::string>& unknown) {
  std::set<int> kernels;  // that launches of this list run
  for (const lir::Launch& launch : launches_) {
    const int kernel = launch.kernel;
    if (kernels_[kernel].table == 0 && !Names(kernel, unknown)) kernels.insert(kernel);
  }
  size_t filled = 0;
  for (const int kernel : kernels) {
    if (++filled % kLaunchesOfBlock == 0) NextBlock();
    QUERN_ASSIGN(const cpu::SizeValues values, cpu::EmitSizes(plan_.kernels[kernel], c_.names, c_.values, b_));
    kernels_[kernel] = {sizes_at_, values.chunks};
    for (llvm::Value* value : values.table) {
      Store(value, sizes_at_);
      sizes_at_ += sizeof(int64_t);
    }
  }
  return absl::OkStatus();
}

bool Filler::Names(int kernel, const std::set<std::string>& symbols) const {
  if (symbols.empty()) return false;
  for (const kir::SymbolDecl& symbol : plan_.kernels[kernel].symbols) {
    if (symbols.contains(symbol.name)) return true;
  }
  return false;
}

bool Filler::Names(const lir::Launch& launch, const std::set<std::string>& symbols) const {
  if (symbols.empty()) return false;
  if (Names(launch.kernel, symbols)) return true;
  for (const lir::Argument& argument : launch.arguments) {
    for (const std::string& symbol : argument.offset.Symbols()) {
      if (symbols.contains(symbol)) return true;
    }
  }
  return false;
}

llvm::Value* Filler::At(int64_t offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), c_.self, offset); }
void Filler::Store(llvm::Value* value, int64_t offset) { b_.CreateAlignedStore(value, At(offset), llvm::Align(8)); }

void Filler::NextBlock() {
  llvm::BasicBlock* next = llvm::BasicBlock::Create(b_.getContext(), "", b_.GetInsertBlock()->getParent());
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

llvm::Function* Filler::Kernel(const std::string& symbol) {
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  if (llvm::Function* function = module.getFunction(symbol)) return function;
  auto* type =
      llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  return llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
}

StatusOr<Filler::Written> Filler::Dispatch(const lir::Launch& launch, size_t index, const Sizes& sizes,
                                           llvm::Function* kernel, LoopSlots& open) {
  Written written;
  const int64_t slots = slot_at_;
  int64_t most = 0;
  for (const lir::Argument& argument : launch.arguments) {
    const lir::Buffer& buffer = plan_.buffers[argument.buffer];
    QUERN_ASSIGN(llvm::Value * offset, cpu::EmitExtent(argument.offset, c_.names, c_.values, b_));
    const int64_t own = std::exchange(slot_at_, slot_at_ + static_cast<int64_t>(sizeof(void*)));
    if (buffer.home == lir::Home::kLoop) {
      open[argument.buffer].push_back({own, offset});
      continue;
    }
    QUERN_ASSIGN(llvm::Value * base, EmitBase(c_, buffer, b_));
    llvm::Value* pointer = b_.CreateGEP(b_.getInt8Ty(), base, offset);
    Store(pointer, own);
    if (buffer.home == lir::Home::kParam && buffer.bytes.is_constant() && buffer.bytes.constant() > most) {
      most = buffer.bytes.constant();
      written.weights = pointer;
      written.weight_bytes = std::min(most, kPrefetchBytes);
    }
  }
  const int64_t args = c_.workspace.args + static_cast<int64_t>(index * sizeof(quern_args));
  Store(At(slots), args + offsetof(quern_args, buffers));
  Store(At(sizes.table), args + offsetof(quern_args, symbols));
  // A single chunk can be nobody else's: the worker that arrives last takes it on the spot.
  written.sequential = plan_.kernels[launch.kernel].sequential
                           ? b_.getInt64(1)
                           : b_.CreateZExt(b_.CreateICmpEQ(sizes.chunks, b_.getInt64(1)), b_.getInt64Ty());
  const int64_t dispatch = DispatchAt(c_.workspace, index);
  Store(kernel, dispatch + offsetof(quern_dispatch, kernel));
  Store(At(args), dispatch + offsetof(quern_dispatch, args));
  Store(sizes.chunks, dispatch + offsetof(quern_dispatch, chunks));
  Store(written.sequential, dispatch + offsetof(quern_dispatch, sequential));
  return written;
}

// Each dispatch names the weights of the next one that is shared, of those that are written with it.
void Filler::Hints(const std::map<size_t, Written>& written) {
  llvm::Value* weights = llvm::ConstantPointerNull::get(b_.getPtrTy());
  llvm::Value* bytes = b_.getInt64(0);
  size_t hints = 0;
  for (auto at = written.rbegin(); at != written.rend(); ++at) {
    if (++hints % kLaunchesOfBlock == 0) NextBlock();
    const auto& [l, one] = *at;
    Store(weights, DispatchAt(c_.workspace, l) + offsetof(quern_dispatch, prefetch));
    Store(bytes, DispatchAt(c_.workspace, l) + offsetof(quern_dispatch, prefetch_bytes));
    if (one.weights == nullptr) continue;
    llvm::Value* skip = b_.CreateICmpNE(one.sequential, b_.getInt64(0));
    weights = b_.CreateSelect(skip, weights, one.weights);
    bytes = b_.CreateSelect(skip, bytes, b_.getInt64(one.weight_bytes));
  }
}

StatusOr<llvm::Value*> EmitBase(const FillContext& c, const lir::Buffer& buffer, llvm::IRBuilder<>& b) {
  const Signature& signature = c.model.signature;
  const auto at = [&](int64_t offset) { return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), c.self, offset); };
  const auto within = [&](int64_t start) -> StatusOr<llvm::Value*> {
    QUERN_ASSIGN(llvm::Value * offset, cpu::EmitExtent(buffer.offset, c.names, c.values, b));
    return b.CreateGEP(b.getInt8Ty(), at(start), offset);
  };
  const auto handed = [&](llvm::Value* table, int64_t position) {
    return b.CreateAlignedLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), table, position),
                               llvm::Align(8));
  };
  switch (buffer.home) {
    case lir::Home::kArena: return within(c.workspace.arena);
    case lir::Home::kOnce: return within(c.workspace.once);
    case lir::Home::kInput:
      if (c.inputs == nullptr) break;
      return handed(c.inputs, Position(signature.inputs, [&](const Port& p) { return p.name == buffer.name; }));
    case lir::Home::kOutput:
      if (c.outputs == nullptr) break;
      return handed(c.outputs, Position(signature.outputs, [&](const Port& p) { return p.output == buffer.index; }));
    case lir::Home::kParam: {
      const int64_t row = Position(c.model.params, [&](const Param& p) { return p.name == buffer.name; });
      if (row == static_cast<int64_t>(c.model.params.size())) break;
      const Param& param = c.model.params[row];
      if (param.file_offset < 0) return c.constants.Add(param.bytes);
      return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), c.weights, param.file_offset);
    }
    case lir::Home::kConstant: return c.constants.Add(*buffer.data);
    case lir::Home::kState: {
      const auto state = c.workspace.states.find(buffer.name);
      if (state == c.workspace.states.end()) break;
      return at(state->second);
    }
    case lir::Home::kLoop: break;
  }
  return absl::InternalError(absl::StrFormat("%s %s has no memory", std::string(lir::Name(buffer.home)), buffer.name));
}

llvm::Constant* ConstantPool::Add(std::span<const uint8_t> bytes) {
  const auto [at, added] =
      known_.emplace(HashBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}), nullptr);
  if (added) {
    llvm::Constant* data =
        llvm::ConstantDataArray::get(module_.getContext(), llvm::ArrayRef(bytes.data(), bytes.size()));
    auto* global =
        new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::InternalLinkage, data, "data");
    global->setAlignment(llvm::Align(lir::kBufferAlign));
    at->second = global;
  }
  return at->second;
}

}  // namespace quern::aot
