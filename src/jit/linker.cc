#include "jit/linker.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "codegen/cpu/object.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/DebugObjectManagerPlugin.h"
#include "llvm/ExecutionEngine/Orc/EPCDebugObjectRegistrar.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "simd/library.h"

namespace quern::jit {
namespace {

namespace orc = llvm::orc;

struct LibcRow {
  const char* name;
  void* address;
};
template <typename F>
void* Address(F* function) {
  return reinterpret_cast<void*>(function);
}

std::vector<LibcRow> Libc() {
  return {{"fma", Address<double(double, double, double)>(::fma)},
          {"fmaf", Address<float(float, float, float)>(::fmaf)},
          {"fmaxf", Address<float(float, float)>(::fmaxf)},
          {"fminf", Address<float(float, float)>(::fminf)},
          {"fmod", Address<double(double, double)>(std::fmod)},
          {"fmodf", Address<float(float, float)>(::fmodf)},
          {"memcpy", Address<void*(void*, const void*, size_t)>(std::memcpy)},
          {"memset", Address<void*(void*, int, size_t)>(std::memset)}};
}

Status ToStatus(llvm::Error error, const char* what) {
  return absl::InternalError(absl::StrFormat("%s: %s", what, llvm::toString(std::move(error))));
}

// Sizes of the functions of an ELF object, by name.
void FunctionSizes(std::string_view object, std::map<std::string, uint64_t>& sizes) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "kernels"));
  if (!file) return llvm::consumeError(file.takeError());
  for (const llvm::object::ELFSymbolRef symbol : (*file)->symbols()) {
    if (auto name = symbol.getName())
      sizes[name->str()] = symbol.getSize();
    else
      llvm::consumeError(name.takeError());
  }
}

}  // namespace

struct Linker::State {
  std::unique_ptr<orc::ExecutionSession> session;
  std::unique_ptr<orc::ObjectLinkingLayer> layer;
  orc::JITDylib* runtime = nullptr;  // tiles and libc
  std::atomic<int64_t> next{0};

  // What the session said of the last thing that failed: a lookup names the symbols, this their reason.
  std::string Reason() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reason_, {});
  }
  void SetReason(std::string reason) {
    const std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
  }

 private:
  std::mutex mutex_;
  std::string reason_;
};

Linker::Linker(std::unique_ptr<State> state) : state_(std::move(state)) {}

Linker::~Linker() {
  if (state_->session == nullptr) return;
  if (llvm::Error error = state_->session->endSession()) llvm::consumeError(std::move(error));
}

StatusOr<std::unique_ptr<Linker>> Linker::Create(const cpu::Target& target, bool debugger) {
  auto state = std::make_unique<State>();
  auto control = orc::SelfExecutorProcessControl::Create();
  if (!control) return ToStatus(control.takeError(), "jit");
  state->session = std::make_unique<orc::ExecutionSession>(std::move(*control));
  // Errors come back from Load; nothing is printed.
  state->session->setErrorReporter(
      [state = state.get()](llvm::Error error) { state->SetReason(llvm::toString(std::move(error))); });
  state->layer = std::make_unique<orc::ObjectLinkingLayer>(*state->session);
  if (debugger) {
    // By its address: LLVM's own helper looks for the name among the process's symbols, where a static LLVM has none.
    auto registrar = std::make_unique<orc::EPCDebugObjectRegistrar>(
        *state->session, orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderGDBWrapper));
    state->layer->addPlugin(std::make_shared<orc::DebugObjectManagerPlugin>(*state->session, std::move(registrar),
                                                                            /*RequireDebugSections=*/true,
                                                                            /*AutoRegisterCode=*/true));
  }
  state->runtime = &state->session->createBareJITDylib("runtime");
  orc::SymbolMap symbols;
  auto define = [&](const std::string& name, const void* address) {
    symbols[state->session->intern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                             llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  for (const simd::Function& function : simd::Functions()) {
    const std::string name = std::string(function.name) + "_" + target.name;
    define(name, simd::FindTile(name));
  }
  for (const LibcRow& row : Libc()) {
    QUERN_CHECK(cpu::IsLibcSymbol(row.name));
    define(row.name, row.address);
  }
  if (llvm::Error error = state->runtime->define(orc::absoluteSymbols(std::move(symbols)))) {
    return ToStatus(std::move(error), "jit");
  }
  return std::unique_ptr<Linker>(new Linker(std::move(state)));
}

StatusOr<std::unique_ptr<LinkedCode>> Linker::Load(std::string_view object, std::span<const std::string> symbols) {
  orc::ExecutionSession& session = *state_->session;
  orc::JITDylib& dylib = session.createBareJITDylib(absl::StrFormat("module%d", state_->next++));
  dylib.addToLinkOrder(*state_->runtime);
  auto code = std::make_unique<LinkedCode>();
  code->dylib = &dylib;
  auto fail = [&](llvm::Error error) {
    const std::string reason = state_->Reason();
    const Status failed = ToStatus(std::move(error), "jit link");
    const Status status = reason.empty() ? failed : absl::InternalError(absl::StrCat(failed.message(), ": ", reason));
    Unload(std::move(code));
    return status;
  };
  std::map<std::string, uint64_t> sizes;
  FunctionSizes(object, sizes);
  auto buffer = llvm::MemoryBuffer::getMemBuffer(llvm::StringRef(object.data(), object.size()), "kernels", false);
  if (llvm::Error error = state_->layer->add(dylib, std::move(buffer))) return fail(std::move(error));
  orc::SymbolLookupSet wanted;
  std::vector<orc::SymbolStringPtr> names;
  for (const std::string& symbol : symbols) {
    names.push_back(session.intern(symbol));
    wanted.add(names.back());
  }
  auto found = session.lookup({{&dylib, orc::JITDylibLookupFlags::MatchExportedSymbolsOnly}}, std::move(wanted));
  if (!found) return fail(found.takeError());
  for (size_t i = 0; i < symbols.size(); ++i) {
    code->addresses.push_back((*found)[names[i]].getAddress().getValue());
    code->sizes.push_back(sizes[symbols[i]]);
  }
  return code;
}

void Linker::Unload(std::unique_ptr<LinkedCode> code) {
  auto& dylib = *static_cast<orc::JITDylib*>(code->dylib);
  // Nothing can be done about a failure to unmap here, and nothing depends on it.
  if (llvm::Error error = state_->session->removeJITDylib(dylib)) llvm::consumeError(std::move(error));
}

}  // namespace quern::jit
