// How well a language model foretells a text: its perplexity, as llama.cpp's llama-perplexity measures it, so that
// formats of one model can be compared.
//
//   quern::Result<quern::PerplexityReport> report = quern::MeasurePerplexity("model.gguf", text);
//   if (!report.ok()) return Complain(report.error());
//   std::printf("%.4f\n", report->perplexity);
//
// And how far what it foretells is from what another model does, the one that it was quantised from, say: the
// Kullback-Leibler divergence, as llama-perplexity's --kl-divergence measures it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

// Of a model from a base model, over the tokens that both foretold: p(v) is the chance of token v by the base, q(v) by
// the model.
struct Divergence {
  double base_perplexity = 0;
  // Mean of the sums over v of p(v) * log(p(v) / q(v)), natural, its standard error were the tokens independent, and
  // the largest; infinite where the model gave no chance to what the base did.
  double mean = 0, error = 0, largest = 0;
  double same_top = 0;  // share of the tokens where the likeliest one is the same
};

struct PerplexityReport {
  // exp(nll), and its standard error were the tokens independent; infinite where a token of the text had no chance.
  double perplexity = 0, error = 0;
  double nll = 0;      // mean of -log of the chance that the model gave the token that came, natural
  int64_t tokens = 0;  // that were foretold
  int64_t chunks = 0, chunk_size = 0;
  std::optional<Divergence> divergence;  // where there is a base
};

struct PerplexityOptions {
  // How the model is run. `context`: tokens of a chunk, at least 4; 0: 512, or what the model was trained for where
  // that is less.
  Options run = {};
  int64_t chunks = 0;          // at most so many; 0: all that the text fills
  bool parse_special = false;  // control tokens in the text become their id
  std::string base = {};       // a model file to be compared with, run alike on the same tokens; empty: none
  // Called after each chunk, with what is known so far, by the thread that called MeasurePerplexity.
  std::function<void(const PerplexityReport& so_far, int64_t chunks)> progress = {};
};

// Runs the model at `model` over chunks of `text`, each from its begin token on where the model has texts begin so. Of
// each the second half counts, whose tokens have half a chunk or more before them. Errors: those of Session::Open and
// Session::StepAll, of either model; kInvalid (a text of less than a chunk, logits that are NaN, a base with other
// tokens); kUnsupported, encoders; kCancelled.
Result<PerplexityReport> MeasurePerplexity(const std::string& model, std::string_view text,
                                           const PerplexityOptions& options = {});

}  // namespace quern
