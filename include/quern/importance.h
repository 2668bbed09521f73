// The importance matrix of a language model by a text, as llama.cpp's llama-imatrix makes one: for each weight the sums
// of the squares of what its columns are multiplied with. Blocks that Quantise makes by it err less where these are
// large.
//
//   quern::Result<quern::ImportanceReport> made = quern::CollectImportance("model.gguf", text, "imatrix.gguf");
//   if (!made.ok()) return Complain(made.error());
//   quern::Quantise("model.gguf", "small.gguf", {.type = "IQ4_XS", .importance = "imatrix.gguf"});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct ImportanceOptions {
  // How the model is run: level, threads, cache, cancel. `context`: tokens of a chunk; 0: 512, or what the model was
  // trained for where that is less. `exact` is what it always is; adapters and devices are errors.
  Options run = {};
  int64_t chunks = 0;          // at most so many; 0: all that the text fills
  bool output = false;         // output.weight as well, which has many bits in every mixture
  bool parse_special = false;  // control tokens in the text become their id
  std::string dataset = {};    // the name of the text, for the file
  // Called after each chunk, by the thread that called CollectImportance.
  std::function<void(int64_t chunks_done, int64_t chunks)> progress = {};
};

struct ImportanceReport {
  int64_t chunks = 0, chunk_size = 0;
  int64_t entries = 0;                 // weights in the file
  std::vector<std::string> untouched;  // of weights of experts those that some expert of had no token
};

// Runs the model at `model` over chunks of `text`, each from its begin token on where the model has texts begin so, and
// writes the GGUF file of an importance matrix (docs/models.md), which has its name `out` when all of it is written.
// Weights are those of layers ("blk.") that whole products read: MatMul and, by expert, GroupedMatMul. Errors: those of
// Session::Open; kInvalid (a text of less than a chunk, inputs that are NaN or infinite, `out` that is an input);
// kUnsupported, encoders; kResource, kCancelled.
Result<ImportanceReport> CollectImportance(const std::string& model, std::string_view text, const std::string& out,
                                           const ImportanceOptions& options = {});

}  // namespace quern
