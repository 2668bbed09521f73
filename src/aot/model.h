// What is compiled ahead of time, and what comes out: plans and weights in, an object file, a C header and a manifest
// out.
//
//   aot::Model model = {.name = "addition", .signature = ..., .levels = {{target, variants}}, .params = ...,
//                       .weights = ...};
//   QUERN_ASSIGN(const aot::Artefacts files, aot::Compile(model, {}));   // files.body, files.header, files.manifest
// No LLVM type appears here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/cpu/target.h"
#include "lir/plan.h"
#include "lir/signature.h"

namespace quern::aot {

// One plan and the sizes it is for; symbols that are not named may have any value in the signature's range.
struct Variant {
  SymbolRanges guard;
  lir::Plan plan;
};

// Plans depend on the level's facts, so each level has its own. Variants are tried in order.
struct Level {
  const cpu::Target* target = nullptr;
  std::vector<Variant> variants;
};

struct Param {
  std::string name;
  std::span<const uint8_t> bytes;
  int64_t file_offset = -1;  // in the model file, a multiple of lir::kParamAlign; or -1: the bytes go into the object
};

// The file that holds the weights, as the compiled model will be handed it.
struct WeightFile {
  std::string path;
  std::span<const uint8_t> bytes;
  int64_t header_bytes = 0;  // before the first tensor: what tells it from another file
};

// What a language model's header says of its tokens.
struct Tokens {
  int32_t count = 0, begin = -1, end = -1;  // ids, or -1: none
  std::string vocabulary;                   // bytes of a quern_vocabulary (kit/vocabulary.h), for the object; or empty
};

struct Model {
  std::string name;  // a C identifier: the prefix of every function
  Signature signature;
  std::vector<Level> levels;  // least first, all of one platform
  std::vector<Param> params;
  WeightFile weights;
  std::optional<Tokens> tokens;
};

enum class Form : uint8_t { kObject, kAssembly, kLlvm, kBitcode, kKir };

struct Options {
  Form form = Form::kObject;
  std::string kernel;  // the symbol of one kernel, to get it alone: a function of the ABI of quern/abi.h; empty: all
  bool embed_weights = false;                             // the whole model file goes into the object
  std::function<void(const std::string& what)> progress;  // what is done next, for people who wait; may be empty
};

struct Artefacts {
  std::string body;      // in the form asked for: relocatable ELF, text, or LLVM bitcode
  std::string header;    // C, and
  std::string manifest;  // JSON: with the object of the whole model
};

// Errors: sizes without an upper bound; weights too large to embed; an unknown kernel; those of the code generator.
// Needs 8 MB of stack.
StatusOr<Artefacts> Compile(Model model, const Options& options);

}  // namespace quern::aot
