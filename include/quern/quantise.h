// A model file in other formats: what llama.cpp's llama-quantize does.
//
//   quern::Result<quern::QuantiseReport> report = quern::Quantise("model.gguf", "small.gguf", {.type = "Q4_K_M"});
//   if (!report.ok()) return Complain(report.error());
//   report->bytes_after;
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct QuantiseOptions {
  // A format, or one of llama.cpp's mixtures of some: QuantiseTypes(), in any case. Q4_K stands for Q4_K_M.
  std::string type = "Q4_K_M";
  bool pure = false;        // that format for every tensor that is quantised, where a mixture has better ones for some
  bool requantise = false;  // also of weights that are in blocks already, which have lost what they lost
  // An importance matrix (quern/importance.h, or llama.cpp's of either form): weights that it has err less where it is
  // large. Empty: none.
  std::string importance = {};
  int threads = 0;  // 0: one a processor. Bytes do not depend on it
  const CancelToken* cancel = nullptr;
  // Called after each tensor, by the thread that called Quantise.
  std::function<void(int64_t tensors_done, int64_t tensors)> progress = {};
};

struct QuantiseReport {
  struct Tensor {
    std::string name, before, after;  // formats, as ggml names them
    int64_t bytes_before = 0, bytes_after = 0;
    bool fell_back = false;  // its rows are no multiple of the blocks of what the type asks for
    bool guided = false;     // by the importance matrix
  };
  std::vector<Tensor> tensors;                // in the order of the file
  int64_t bytes_before = 0, bytes_after = 0;  // of all tensors
};

// The names that QuantiseOptions::type may have.
std::vector<std::string> QuantiseTypes();

// Reads the model at `in` (a GGUF file, or a folder of safetensors with its vocabulary where there is one) and writes a
// GGUF file, which has its name `out` when all of it is written; until then nothing that was there is touched. Rows are
// read, quantised and written part by part: memory is a few megabytes beside the mapped input. Blocks are those of
// ggml's quantisers, bit for bit. Vectors, norms and what else is small keep their format; from a folder they become
// f32. Errors: kInvalid (a type that is not known, a model that cannot be read, weights that are NaN, infinite or too
// large for a format, blocks without `requantise`, an importance matrix that cannot be read or is of another model,
// none where the type needs one, `out` that is an input), kResource, kCancelled.
Result<QuantiseReport> Quantise(const std::string& in, const std::string& out, const QuantiseOptions& options = {});

}  // namespace quern
