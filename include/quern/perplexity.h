// How well a language model foretells a text: its perplexity, as llama.cpp's llama-perplexity measures it, so that
// formats of one model can be compared.
//
//   quern::Result<quern::PerplexityReport> report = quern::MeasurePerplexity("model.gguf", text);
//   if (!report.ok()) return Complain(report.error());
//   std::printf("%.4f\n", report->perplexity);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct PerplexityReport {
  // exp(nll), and its standard error were the tokens independent; infinite where a token of the text had no chance.
  double perplexity = 0, error = 0;
  double nll = 0;      // mean of -log of the chance that the model gave the token that came, natural
  int64_t tokens = 0;  // that were foretold
  int64_t chunks = 0, chunk_size = 0;
};

struct PerplexityOptions {
  // How the model is run. `context`: tokens of a chunk, at least 4; 0: 512, or what the model was trained for where
  // that is less.
  Options run = {};
  int64_t chunks = 0;          // at most so many; 0: all that the text fills
  bool parse_special = false;  // control tokens in the text become their id
  // Called after each chunk, with what is known so far, by the thread that called MeasurePerplexity.
  std::function<void(const PerplexityReport& so_far, int64_t chunks)> progress = {};
};

// Runs the model at `model` over chunks of `text`, each from its begin token on where the model has texts begin so. Of
// each the second half counts, whose tokens have half a chunk or more before them. Errors: those of Session::Open and
// Session::StepAll; kInvalid (a text of less than a chunk, logits that are NaN); kUnsupported, encoders; kCancelled.
Result<PerplexityReport> MeasurePerplexity(const std::string& model, std::string_view text,
                                           const PerplexityOptions& options = {});

}  // namespace quern
