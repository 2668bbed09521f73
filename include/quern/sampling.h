// How tokens are drawn: the options of quern/quern.h's Sampler, and the table of those that are numbers, by which the
// command line, quern/c.h, Python and the server take them by name.
//
//   quern::SamplingOptions options;
//   options.temperature = 0.8;
//   for (const quern::SamplingNumber& number : quern::SamplingNumbers())
//     std::printf("%s: %s, %s\n", number.name, number.meaning, number.range.Text().c_str());
//
// Plain data, which any number of threads may read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "quern/result.h"

namespace quern {

// The steps come in this order: bias, penalties, DRY, top_n_sigma, top_k, temperature, then on probabilities at that
// typical_p, top_p, min_p, XTC, Mirostat; formulas and sources are in docs/text.md, ranges in SamplingNumbers(). The
// defaults leave every step out.
struct SamplingOptions {
  double temperature = 0;  // logits are divided by it; 0: the most likely token
  int top_k = 0;           // draw from this many of the most likely; 0: all
  double top_p = 1;        // draw from the most likely that reach this probability together
  uint64_t seed = 0;
  double min_p = 0;      // draw from those that are at least this part as likely as the most likely
  double typical_p = 1;  // draw from those of the most typical surprise that reach this probability together
  // Of a token that occurs among the last `penalty_last` (-1: all; the prompt's count), c times: logits above 0 are
  // divided by repeat_penalty, others multiplied; then c * frequency_penalty and presence_penalty are taken off.
  double repeat_penalty = 1;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  int penalty_last = 64;
  // Added to the logits of these tokens; minus infinity: never drawn.
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  // Of what is left after all that, draw from tokens whose surprise keeps that of the text at mirostat_tau bits a
  // token, which mirostat_eta says how fast to correct; 0: from all.
  double mirostat_tau = 0;
  double mirostat_eta = 0.1;
  // Draw from those whose logit is at most this many standard deviations of the logits below the largest; 0: all.
  double top_n_sigma = 0;
  // With this probability leave out all tokens of at least the probability xtc_threshold but the least likely of them.
  double xtc_probability = 0;
  double xtc_threshold = 0.1;
  // Of a token that would be the next of a repetition of n tokens, dry_multiplier * dry_base^(n - dry_allowed_length)
  // is taken off where n is at least dry_allowed_length; 0: not. Repetitions are looked for in the last
  // dry_penalty_last tokens (-1: all; the prompt's count), and end at tokens that hold one of the texts dry_breakers,
  // none of which is empty.
  double dry_multiplier = 0;
  double dry_base = 1.75;
  int dry_allowed_length = 2;
  int dry_penalty_last = -1;
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  // The temperature, where it is above 0, is up to dynatemp_range lower where the model is sure, and higher where it is
  // not: by the entropy of its distribution, as a part of the greatest, to the power dynatemp_exponent; 0: as it is.
  double dynatemp_range = 0;
  double dynatemp_exponent = 1;
  // Rules that the text has to follow, in the language of docs/text.md; "": any text. What it does not allow is never
  // drawn, and its end is where an end token is allowed: Sampler::Make.
  std::string grammar = {};

  // Whether Sampler::Make needs the tokenizer whose tokens are drawn: for a grammar, or for the breakers of DRY.
  bool needs_tokenizer() const { return !grammar.empty() || (dry_multiplier > 0 && !dry_breakers.empty()); }
};

// Numbers from `low` to `high`, both included, but for `low` where it is `above`. Never NaN nor infinity, which as a
// limit says that there is none, as the largest int does where they are whole.
struct SamplingRange {
  double low, high;
  bool above = false;
  bool whole = false;  // of an int

  bool Holds(double number) const;
  // What is in it: "a number in (0, 1]", "a whole number from -1 on", "a finite number".
  std::string Text() const;
};

// A number among the options.
struct SamplingNumber {
  const char* name;  // the member's, and in C's JSON, in Python and in requests to the server
  std::variant<double SamplingOptions::*, int SamplingOptions::*> member;
  SamplingRange range;
  const char* meaning;  // in a line
  const char* flags;    // on the command line, "--a,--b"; null: the name behind two dashes, with dashes in it
  const char* file_key = nullptr;  // behind "general.sampling." in GGUF files, by llama.cpp's names; null: none

  double Of(const SamplingOptions& options) const;
  // Precondition: the range holds `number`.
  void Set(SamplingOptions& options, double number) const;
};

// All of them, in the order of `quern run --help`.
std::span<const SamplingNumber> SamplingNumbers();

// What a model file says of how to draw from its model.
struct SamplingDefaults {
  struct Value {
    const SamplingNumber* number;
    double value;  // in its range
  };
  std::vector<Value> numbers;
  std::vector<std::string> ignored;  // of each key that makes no sense, or that nothing here does: why, with its name
};
// Of a GGUF file, the keys general.sampling.*; of a folder of safetensors, its generation_config.json, where do_sample
// false is temperature 0. Errors: kResource, a file that cannot be read; kInvalid, one that is damaged.
Result<SamplingDefaults> SamplingDefaultsOf(const std::string& path);

}  // namespace quern
