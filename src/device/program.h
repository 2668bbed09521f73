// Program: what a host needs to run a model on a device, with the text of its kernels: kernels, memory, launches in
// order, for each variant, all as functions of the symbols. It holds no KIR statement: manifest.h writes it down and
// reads it back, and every host runtime (executor.h, or one in another language) runs it.
//
//   QUERN_ASSIGN(Collected made, CollectProgram(SignatureOf(graph), variants));
//   QUERN_ASSIGN(codegen::DeviceModule module, target.emit(made.kernels, made.symbols(), target));
//   QUERN_RETURN_IF_ERROR(AddModule(made.program, module));
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/device_module.h"
#include "lir/plan.h"
#include "lir/signature.h"

namespace quern::device {

// What an entry wants of one parameter's memory.
struct KernelParam {
  std::string name;
  Extent bytes;  // in the kernel's symbols, derived ones too
  kir::Mode mode = kir::Mode::kIn;
  int align = 1;  // bytes
};

// An entry takes a pointer for each parameter, then an i64 for each symbol. It is launched with a block of `threads`
// threads for each chunk: the product, over the grid, of ceil((high - low) / step).
struct Kernel {
  std::string symbol;        // identifier
  int64_t threads = 0;       // of a block
  int64_t shared_bytes = 0;  // that a block shares, declared in the text
  std::vector<kir::SymbolDecl> symbols;
  std::vector<kir::GridDim> grid;  // bounds are polynomials in the symbols
  std::vector<KernelParam> params;
};

struct Variant {
  SymbolRanges guard;  // symbols that are not named may have any value in the signature's range
  std::vector<lir::Buffer> buffers;
  std::vector<lir::Launch> once;  // when parameters are bound; kernels are the program's
  std::vector<lir::Launch> launches;
  std::vector<lir::Body> bodies;  // the steps over the launches; the first is the variant's own. No values
  std::vector<lir::Requirement> requirements;
  Extent arena_bytes, once_bytes;
};

// Where the bytes of a parameter are: at an offset of the model file, or here; neither: the caller says.
struct ParamSource {
  int64_t file_offset = -1;
  std::shared_ptr<const std::vector<uint8_t>> data;
};

struct Program {
  Signature signature;
  std::string target, cpu;           // of the text: "nvptx64", "sm_80"
  std::vector<Kernel> kernels;       // identical ones once
  std::vector<Variant> variants;     // tried in order
  std::vector<ParamSource> sources;  // by parameter of the signature; or empty
};

struct PlannedVariant {
  SymbolRanges guard;
  lir::Plan plan;
};

struct Collected {
  Program program;
  std::vector<kir::Kernel> kernels;  // what program.kernels are

  std::vector<std::string> symbols() const;
};

// Names of lir::KernelSymbols as those of entries: identifiers that are no word of any language, no two equal.
std::vector<std::string> EntryNames(std::span<const std::string> symbols);

// The plans' kernels are scheduled for blocks of threads. Errors: a kernel that is not; a grid that is no polynomial.
StatusOr<Collected> CollectProgram(Signature signature, std::span<const PlannedVariant> variants);

// Takes over what the text says of its entries. Errors: they are not the program's.
Status AddModule(Program& program, const codegen::DeviceModule& module);

// Checks what hosts rely on: indices, counts and sizes that no device has, symbols that are not there. Errors say what
// and where: "variants[2].launches[7]: kernel 30 of 12".
Status Verify(const Program& program);

// The expression as a polynomial in symbols. Errors: it is none.
StatusOr<Extent> ExtentOf(const kir::ExprRef& expr);

}  // namespace quern::device
