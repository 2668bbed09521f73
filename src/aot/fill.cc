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

class Filler {
 public:
  Filler(const FillContext& context, const lir::Plan& plan, llvm::IRBuilder<>& builder)
      : c_(context), plan_(plan), b_(builder) {}

  StatusOr<LoopSlots> Run(const std::vector<lir::Launch>& launches, const KernelTable& kernels,
                          std::span<const int> rows) {
    kernels_.resize(plan_.kernels.size());
    int64_t table = c_.workspace.tables;
    int64_t slot = c_.workspace.pointers;
    std::vector<Written> written;
    for (size_t l = 0; l < launches.size(); ++l) {
      if (l % kLaunchesOfBlock == 0 && l > 0) NextBlock();
      const lir::Launch& launch = launches[l];
      Sizes& sizes = kernels_[launch.kernel];
      if (sizes.table == 0) {
        QUERN_ASSIGN(const cpu::SizeValues values,
                     cpu::EmitSizes(plan_.kernels[launch.kernel], c_.names, c_.values, b_));
        sizes = {table, values.chunks};
        for (llvm::Value* value : values.table) {
          Store(value, table);
          table += sizeof(int64_t);
        }
      }
      QUERN_ASSIGN(const Written one,
                   Dispatch(launch, l, sizes, slot, Kernel(kernels.entries[rows[launch.kernel]].symbol)));
      written.push_back(one);
      slot += static_cast<int64_t>(launch.arguments.size() * sizeof(void*));
    }
    Hints(written);
    return std::move(open_);
  }

 private:
  struct Sizes {
    int64_t table = 0;  // offset of its symbol values; 0: not written yet
    llvm::Value* chunks = nullptr;
  };
  // Of a dispatch: what the hints of those before it need.
  struct Written {
    llvm::Value* sequential;         // i64
    llvm::Value* weights = nullptr;  // its largest parameter, or null
    int64_t weight_bytes = 0;
  };

  llvm::Value* At(int64_t offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), c_.self, offset); }
  void Store(llvm::Value* value, int64_t offset) { b_.CreateAlignedStore(value, At(offset), llvm::Align(8)); }

  void NextBlock() {
    llvm::BasicBlock* next = llvm::BasicBlock::Create(b_.getContext(), "", b_.GetInsertBlock()->getParent());
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }

  llvm::Function* Kernel(const std::string& symbol) {
    llvm::Module& module = *b_.GetInsertBlock()->getModule();
    if (llvm::Function* function = module.getFunction(symbol)) return function;
    auto* type = llvm::FunctionType::get(b_.getVoidTy(),
                                         {b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
    return llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  }

  llvm::Value* Offset(llvm::Value* base, llvm::Value* bytes) { return b_.CreateGEP(b_.getInt8Ty(), base, bytes); }

  StatusOr<Written> Dispatch(const lir::Launch& launch, size_t index, const Sizes& sizes, int64_t slot,
                             llvm::Function* kernel) {
    Written written;
    int64_t at = slot;
    int64_t most = 0;
    for (const lir::Argument& argument : launch.arguments) {
      const lir::Buffer& buffer = plan_.buffers[argument.buffer];
      QUERN_ASSIGN(llvm::Value * offset, cpu::EmitExtent(argument.offset, c_.names, c_.values, b_));
      const int64_t own = std::exchange(at, at + static_cast<int64_t>(sizeof(void*)));
      if (buffer.home == lir::Home::kLoop) {
        open_[argument.buffer].push_back({own, offset});
        continue;
      }
      QUERN_ASSIGN(llvm::Value * base, EmitBase(c_, buffer, b_));
      llvm::Value* pointer = Offset(base, offset);
      Store(pointer, own);
      if (buffer.home == lir::Home::kParam && buffer.bytes.is_constant() && buffer.bytes.constant() > most) {
        most = buffer.bytes.constant();
        written.weights = pointer;
        written.weight_bytes = std::min(most, kPrefetchBytes);
      }
    }
    const int64_t args = c_.workspace.args + static_cast<int64_t>(index * sizeof(quern_args));
    Store(At(slot), args + offsetof(quern_args, buffers));
    Store(At(sizes.table), args + offsetof(quern_args, symbols));
    // A single chunk can be nobody else's: the worker that arrives last takes it on the spot.
    written.sequential = plan_.kernels[launch.kernel].sequential
                             ? b_.getInt64(1)
                             : b_.CreateZExt(b_.CreateICmpEQ(sizes.chunks, b_.getInt64(1)), b_.getInt64Ty());
    const int64_t dispatch = DispatchAt(index);
    Store(kernel, dispatch + offsetof(quern_dispatch, kernel));
    Store(At(args), dispatch + offsetof(quern_dispatch, args));
    Store(sizes.chunks, dispatch + offsetof(quern_dispatch, chunks));
    Store(written.sequential, dispatch + offsetof(quern_dispatch, sequential));
    return written;
  }

  int64_t DispatchAt(size_t index) const {
    return c_.workspace.dispatches + static_cast<int64_t>(index * sizeof(quern_dispatch));
  }

  // Each dispatch names the weights of the next one that is shared.
  void Hints(const std::vector<Written>& written) {
    llvm::Value* weights = llvm::ConstantPointerNull::get(b_.getPtrTy());
    llvm::Value* bytes = b_.getInt64(0);
    for (size_t l = written.size(); l-- > 0;) {
      if (l % kLaunchesOfBlock == 0) NextBlock();
      Store(weights, DispatchAt(l) + offsetof(quern_dispatch, prefetch));
      Store(bytes, DispatchAt(l) + offsetof(quern_dispatch, prefetch_bytes));
      if (written[l].weights == nullptr) continue;
      llvm::Value* skip = b_.CreateICmpNE(written[l].sequential, b_.getInt64(0));
      weights = b_.CreateSelect(skip, weights, written[l].weights);
      bytes = b_.CreateSelect(skip, bytes, b_.getInt64(written[l].weight_bytes));
    }
  }

  const FillContext& c_;
  const lir::Plan& plan_;
  llvm::IRBuilder<>& b_;
  std::vector<Sizes> kernels_;
  LoopSlots open_;
};

// Position of the first element for which `holds`.
template <typename T, typename F>
int64_t Position(const std::vector<T>& items, F holds) {
  return std::find_if(items.begin(), items.end(), holds) - items.begin();
}

}  // namespace

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

StatusOr<LoopSlots> EmitFill(const FillContext& context, const lir::Plan& plan,
                             const std::vector<lir::Launch>& launches, const KernelTable& kernels,
                             std::span<const int> rows, llvm::IRBuilder<>& builder) {
  return Filler(context, plan, builder).Run(launches, kernels, rows);
}

}  // namespace quern::aot
