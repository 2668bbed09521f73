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

namespace quern {

// The steps come in this order: bias, penalties, top_k, then on probabilities at the temperature typical_p, top_p,
// min_p, Mirostat; formulas and sources are in docs/text.md, ranges in SamplingNumbers(). The defaults leave every step
// out.
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
  // Rules that the text has to follow, in the language of docs/text.md; "": any text. What it does not allow is never
  // drawn, and its end is where an end token is allowed: Sampler::Make.
  std::string grammar = {};
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

  double Of(const SamplingOptions& options) const;
  // Precondition: the range holds `number`.
  void Set(SamplingOptions& options, double number) const;
};

// All of them, in the order of `quern run --help`.
std::span<const SamplingNumber> SamplingNumbers();

}  // namespace quern
