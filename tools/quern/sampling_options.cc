#include "sampling_options.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "model_options.h"
#include "prompt.h"

SamplingArguments::SamplingArguments(CLI::App& verb, int tokens) : tokens_(tokens) {
  verb.add_option("-n,--tokens", tokens_, "tokens to generate at most")->capture_default_str()->check(WholeNumber<int>);
  verb.add_option("--temp", sampling_.temperature, "0: the most likely token")->capture_default_str();
  verb.add_option("--top-k", sampling_.top_k, "draw from this many tokens; 0: all")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  verb.add_option("--top-p", sampling_.top_p, "draw from the likeliest tokens that reach this probability; 1: all")
      ->capture_default_str();
  verb.add_option("--min-p", sampling_.min_p, "draw from tokens at least this part as likely as the likeliest; 0: all")
      ->capture_default_str();
  verb.add_option("--typical-p", sampling_.typical_p,
                  "draw from the tokens of most typical surprise that reach this probability; 1: all")
      ->capture_default_str();
  verb.add_option("--repeat-penalty", sampling_.repeat_penalty,
                  "make tokens that occurred less likely, by a factor; 1: not")
      ->capture_default_str();
  verb.add_option("--frequency-penalty", sampling_.frequency_penalty, "likewise, for each time they occurred")
      ->capture_default_str();
  verb.add_option("--presence-penalty", sampling_.presence_penalty, "likewise, once")->capture_default_str();
  verb.add_option("--penalty-last,--repeat-last-n", sampling_.penalty_last,
                  "tokens that penalties look back on; -1: all")
      ->capture_default_str();
  verb.add_option("--mirostat", sampling_.mirostat_tau,
                  "keep the text's surprise at this many bits a token, whatever else is asked for; 0: not")
      ->capture_default_str();
  verb.add_option("--mirostat-eta", sampling_.mirostat_eta, "how fast that follows the text, from 0 to 1")
      ->capture_default_str();
  verb.add_option("--logit-bias", biases_, "ID=BIAS, added to a token's logit; -inf: never; may be given again")
      ->allow_extra_args(false);
  verb.add_option("-s,--seed", seed_, "the same seed draws the same tokens; random: another each time, which is said")
      ->capture_default_str()
      ->check(
          [](const std::string& value) { return value == "random" ? std::string() : WholeNumber<uint64_t>(value); });
  CLI::Option* text = verb.add_option("--grammar", grammar_, "rules that the text follows, in GBNF: docs/text.md");
  CLI::Option* file = verb.add_option("--grammar-file", grammar_file_, "a file with such rules")->excludes(text);
  CLI::Option* schema =
      verb.add_option("--json-schema", schema_file_, "a file with a JSON schema, by which the text is JSON")
          ->excludes(text)
          ->excludes(file);
  verb.add_flag("--json", json_, "the text is a JSON object")->excludes(text)->excludes(file)->excludes(schema);
  verb.add_option("--speculate", speculate_,
                  "run up to so many tokens at once that came last time the text was alike; the text stays the same")
      ->check(Between(0, 7));
  verb.add_flag("--context-shift", shift_, "a full context drops the older half of the text and goes on");
  verb.add_option("--stop", stops_, "end where this text appears, without it; may be given again")
      ->allow_extra_args(false);
}

quern::Result<std::string> SamplingArguments::Grammar() const {
  if (json_) return quern::GrammarOfJsonSchema("{}");
  if (!schema_file_.empty()) {
    quern::Result<std::string> schema = PromptOf({.file = schema_file_});
    return schema.ok() ? quern::GrammarOfJsonSchema(*schema) : std::move(schema);
  }
  if (grammar_file_.empty()) return grammar_;
  quern::Result<std::string> grammar = PromptOf({.file = grammar_file_});
  if (grammar.ok() && grammar->empty())
    return quern::Result<std::string>::Failed(Invalid("--grammar-file: " + grammar_file_ + " is empty"));
  return grammar;
}

quern::Result<quern::SamplingOptions> SamplingArguments::Get() const {
  quern::SamplingOptions sampling = sampling_;
  if (seed_ == "random") {
    std::random_device device;
    sampling.seed = uint64_t{device()} << 32 | device();
  } else {
    std::from_chars(seed_.data(), seed_.data() + seed_.size(), sampling.seed);
  }
  for (const std::string& text : biases_) {
    int32_t id = 0;
    float bias = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, id);
    const auto [stop, wrong] = std::from_chars(std::min(at + 1, end), end, bias);
    if (error != std::errc() || at == end || *at != '=' || wrong != std::errc() || stop != end)
      return quern::Result<quern::SamplingOptions>::Failed(
          Invalid("--logit-bias: \"" + text + "\" is not ID=BIAS, such as 15=-2.5 or 15=-inf"));
    sampling.logit_bias.emplace_back(id, bias);
  }
  quern::Result<std::string> grammar = Grammar();
  if (!grammar.ok()) return quern::Result<quern::SamplingOptions>::Failed(grammar.details());
  sampling.grammar = *std::move(grammar);
  if (const quern::Result<void> ok = quern::CheckSampling(sampling); !ok.ok())
    return quern::Result<quern::SamplingOptions>::Failed(ok.details());
  return sampling;
}
