// ModelSpec: a model read from a file, ready to compile: its blocks, and where the bytes of each Param lie.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "hir/module.h"
#include "import/model_file.h"

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

// A step of many sequences, each at a place of its own, has these beside ids, and no PAST_SEQ; LOGITS is how many rows
// get logits.
inline constexpr const char* kSequencesSymbol = "SEQUENCES";  // of this step, 1..most
inline constexpr const char* kPositionsInput = "positions";   // i32[SEQ]: of each row in its sequence
inline constexpr const char* kIndexInput = "index";           // i32[SEQ]: the row of the caches that it is written to
inline constexpr const char* kStartsInput = "q_start";        // i32[SEQUENCES + 1]: where the rows of each begin
inline constexpr const char* kLengthsInput = "kv_len";        // i32[SEQUENCES]: tokens of each, this step's among them
inline constexpr const char* kBlocksInput = "blocks";         // i32[SEQUENCES, blocks]: of each, where its keys lie
inline constexpr const char* kRowsInput = "rows";             // i32[LOGITS]: the rows that get logits

// A model that carries states takes SEQ rows of each of the SEQUENCES, ids i32[SEQUENCES * SEQ], and has these as well.
inline constexpr const char* kStatesInput = "states";           // i32[SEQUENCES]: which state each goes on from
inline constexpr const char* kNextStatesInput = "next_states";  // i32[SEQUENCES]: where the state after it goes

// Caches for many sequences: `blocks` blocks of `block` rows, and `states` places for a state, which any sequence may
// have. The state in place 0 is that before the first token, zeros, and is never written.
struct SequenceRoom {
  int64_t most = 0;  // sequences in a step; 0: one sequence, whose cache is one run of rows
  int64_t block = 0, blocks = 0, states = 0;
};

// A LoRA adapter (adapters.h): its file, and by how much what it adds is multiplied.
struct AdapterFile {
  std::shared_ptr<const ModelFile> file;
  std::string name;  // for errors
  double scale = 1;
};

struct ModelOptions {
  // Positions that the cache and the rotary tables hold. 0: the file's context length, but at most 4096.
  int64_t context = 0;
  // f32, f16 or bf16. F32 weights are computed exactly, so they get an f32 cache whatever is asked.
  DType kv_dtype = DType::kF16;
  SequenceRoom sequences = {};
  std::vector<AdapterFile> adapters = {};
};

// How the rows of an encoder become one vector.
enum class Pooling { kNone, kMean, kFirst, kLast };

// Inputs: ids and, per layer, the caches. Outputs: 0 logits f32[LOGITS, vocabulary], then the caches, donated.
// An encoder has no caches: 0 is f32[SEQ, width], SEQ is up to the context, and there are no other symbols.
struct ModelSpec {
  hir::Module module;
  std::vector<ParamData> params;
  std::string architecture, name;
  int64_t vocabulary = 0, context = 0, layers = 0, width = 0;
  int64_t trained_context = 0;  // positions that the model was trained for
  DType kv_dtype = DType::kF16;
  bool encoder = false;
  Pooling pooling = Pooling::kNone;  // of an encoder
  // States that no earlier position can be had back of, by name; the others are caches, with a row of each token.
  std::vector<std::string> carried;
  bool carries() const { return !carried.empty(); }
  // What the bytes of params lie in.
  std::shared_ptr<const ModelFile> file;
  std::vector<AdapterFile> adapters;
  std::vector<std::shared_ptr<const Memory>> computed;
};

// Reads the architecture that the file names. Errors name the metadata key or tensor that is wrong.
StatusOr<ModelSpec> ReadModel(std::shared_ptr<const ModelFile> file, const ModelOptions& options = {});

}  // namespace quern::models
