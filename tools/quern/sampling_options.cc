#include "sampling_options.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "file_sampling.h"
#include "model_options.h"
#include "prompt.h"

namespace {

// What `value` lacks of being a whole number in the range; empty when nothing. The option parser's own conversion cuts
// what is too large, and reads 010 as 8.
std::string WrongWhole(const quern::SamplingRange& range, const std::string& value) {
  int number = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && stop == value.data() + value.size() && range.Holds(number)) return "";
  return "\"" + value + "\" is not " + range.Text();
}

}  // namespace

SamplingArguments::SamplingArguments(CLI::App& verb, int tokens) : tokens_(tokens) {
  verb.add_option("-n,--tokens", tokens_, "tokens to generate at most")->capture_default_str()->check(WholeNumber<int>);
  for (const quern::SamplingNumber& number : quern::SamplingNumbers()) {
    CLI::Option* option = std::visit(
        [&](auto place) { return verb.add_option(FlagsOf(number), sampling_.*place, number.meaning); }, number.member);
    option->capture_default_str();
    numbers_[number.name] = option;
    if (number.range.whole) option->check([&](const std::string& value) { return WrongWhole(number.range, value); });
  }
  verb.add_option("--logit-bias", biases_, "ID=BIAS, added to a token's logit; -inf: never; may be given again")
      ->allow_extra_args(false);
  verb.add_option("--dry-breaker,--dry-sequence-breaker", breakers_,
                  "a text that repetitions do not go over, or none; may be given again, in place of line ends, colons, "
                  "quotes and asterisks")
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

quern::Result<quern::SamplingOptions> SamplingArguments::Get(const std::string& model) const {
  quern::SamplingOptions sampling = sampling_;
  const auto given = [&](const quern::SamplingNumber& number) { return numbers_.at(number.name)->count() > 0; };
  if (const quern::Result<void> taken = TakeFileSampling(model, given, sampling); !taken.ok())
    return quern::Result<quern::SamplingOptions>::Failed(taken.details());
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
  if (!breakers_.empty()) sampling.dry_breakers = breakers_;
  if (breakers_ == std::vector<std::string>{"none"}) sampling.dry_breakers.clear();
  quern::Result<std::string> grammar = Grammar();
  if (!grammar.ok()) return quern::Result<quern::SamplingOptions>::Failed(grammar.details());
  sampling.grammar = *std::move(grammar);
  if (const quern::Result<void> ok = quern::CheckSampling(sampling); !ok.ok())
    return quern::Result<quern::SamplingOptions>::Failed(ok.details());
  return sampling;
}
