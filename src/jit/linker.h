// Linker: object files into this process's memory, by ORC's JITLink. Internal to jit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codegen/cpu/target.h"

namespace quern::jit {

// One object linked into memory; its own name space, so symbols need not differ between two of these.
struct LinkedCode {
  std::vector<uint64_t> addresses;  // of the symbols asked for
  std::vector<uint64_t> sizes;      // bytes of each function
  void* dylib = nullptr;
};

class Linker {
 public:
  // Knows the tiles and packs of the target's level and the few C functions of generated code; nothing else of the
  // process is visible to kernels.
  // `debugger`: code is announced to a debugger (the interface of GDB, which LLDB has too).
  static StatusOr<std::unique_ptr<Linker>> Create(const cpu::Target& target, bool debugger);
  ~Linker();

  // Only reads `object` during the call.
  StatusOr<std::unique_ptr<LinkedCode>> Load(std::string_view object, std::span<const std::string> symbols);
  // Gives the memory back; no kernel of it may be running.
  void Unload(std::unique_ptr<LinkedCode> code);

 private:
  struct State;
  explicit Linker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quern::jit
