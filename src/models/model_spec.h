// ModelSpec: a model read from a file, ready to compile: its blocks, and where the bytes of each Param lie.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "hir/module.h"
#include "import/gguf.h"

namespace quern::models {

// Bytes of one Param: in the mapped file, or computed when the model was read.
struct ParamData {
  std::string name;
  ir::TensorType type;
  std::span<const uint8_t> bytes;
};

// Graphs of language models have these symbols and names.
inline constexpr const char* kSequenceSymbol = "SEQ";   // tokens of this step, 1..kMaxSequence
inline constexpr const char* kPastSymbol = "PAST_SEQ";  // tokens in the cache before it
inline constexpr const char* kLogitsSymbol = "LOGITS";  // how many of the last rows get logits, 1..SEQ
inline constexpr const char* kIdsInput = "ids";         // i32[SEQ]
inline constexpr int64_t kMaxSequence = 256;

struct ModelOptions {
  // Positions that the cache and the rotary tables hold. 0: the file's context length, but at most 4096.
  int64_t context = 0;
  // f32, f16 or bf16. F32 weights are computed exactly, so they get an f32 cache whatever is asked.
  DType kv_dtype = DType::kF16;
};

// Inputs: ids and, per layer, the caches. Outputs: 0 logits f32[LOGITS, vocabulary], then the caches, donated.
struct ModelSpec {
  hir::Module module;
  std::vector<ParamData> params;
  std::string architecture, name;
  int64_t vocabulary = 0, context = 0, layers = 0, width = 0;
  int64_t trained_context = 0;  // positions that the model was trained for
  DType kv_dtype = DType::kF16;
  // What the bytes of params lie in.
  std::shared_ptr<const GgufFile> file;
  std::vector<std::shared_ptr<const Memory>> computed;
};

// Reads the architecture that the file names. Errors name the metadata key or tensor that is wrong.
StatusOr<ModelSpec> ModelFromGguf(std::shared_ptr<const GgufFile> file, const ModelOptions& options = {});

}  // namespace quern::models
