// Object code of a KIR kernel for one CPU level, without a linker: for the JIT (which links it in memory) and ahead of
// time.
//
//   cpu::ObjectCompiler compiler(*target, {});           // one per thread; reused: setting one up costs a millisecond
//   QUERN_ASSIGN(cpu::Object object, compiler.Compile(kernel, "k0"));
//   object.bytes                                         // relocatable ELF, position independent
// No LLVM type appears here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/cpu/target.h"
#include "kir/kir.h"

namespace quern::cpu {

struct EmitOptions {
  bool optimise = true;       // the code generator's default level; false: its quick one, kernels 5-40% slower
  bool specialise = false;    // inline the tiles' own bitcode with the kernel's constants instead of calling them
  bool expand_tiles = false;  // ignore tile bindings: expand every meaning (tests, targets without bindings)
  // Line tables that say which line of the kernel's printed text (kir::Print) an instruction belongs to. The text is
  // not written here: debuggers look for it in `kir_folder`/SYMBOL.kir.
  bool debug_lines = false;
  std::string kir_folder = {};
  bool dump_ir = false;  // fill Object::ir_before and ir_after
  bool dump_assembly = false;
};

// What the emitter met that costs speed; a lint prints it.
struct EmitStats {
  int gathers = 0;  // loads that are neither contiguous nor invariant
  int scatters = 0;
  int scalarised = 0;      // vec loops that could not be widened
  int instructions = 0;    // of LLVM IR before linking
  int expanded_tiles = 0;  // tile ops and packs without a binding at this level
};

// Wall time of each step, in nanoseconds.
struct CompileTimes {
  int64_t emit = 0, link = 0, optimise = 0, codegen = 0;
};

struct Object {
  std::string bytes;
  std::string symbol;                  // of the kernel
  std::vector<std::string> undefined;  // symbols the object needs: tiles, packs and libm functions
  EmitStats stats;
  CompileTimes times;
  std::string ir_before, ir_after, assembly;
};

class ObjectCompiler {
 public:
  ObjectCompiler(const Target& target, const EmitOptions& options);
  ~ObjectCompiler();
  ObjectCompiler(const ObjectCompiler&) = delete;
  ObjectCompiler& operator=(const ObjectCompiler&) = delete;

  // The kernel as a function called `symbol`. It has passed kir::Verify. Needs 8 MB of stack.
  StatusOr<Object> Compile(const kir::Kernel& kernel, const std::string& symbol);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Names that generated code may leave undefined besides tile and pack symbols: functions of libm that are instructions
// elsewhere, or exact, and what the tiles' own bitcode needs when it is inlined (memcpy, memset).
bool IsLibcSymbol(std::string_view name);

}  // namespace quern::cpu
