// Options that several verbs take: which model, and how it is compiled.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "quern/quern.h"

// What an option's value lacks of being a whole number of T from 0 on; empty when nothing. The option parser's own
// conversion takes -1 for the largest number, and cuts what is too large.
template <typename T>
std::string WholeNumber(const std::string& value) {
  T number = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && stop == value.data() + value.size() && number >= 0) return "";
  return "\"" + value + "\" is not a whole number from 0 to " + std::to_string(std::numeric_limits<T>::max());
}

// The same for numbers from `low` to `high`, in the words of WholeNumber.
template <typename T>
CLI::Validator Between(T low, T high) {
  return CLI::Validator(
      [low, high](const std::string& value) -> std::string {
        T number = 0;
        const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error == std::errc() && stop == value.data() + value.size() && number >= low && number <= high) return "";
        char text[96];
        if constexpr (std::is_integral_v<T>)
          std::snprintf(text, sizeof(text), "a whole number from %lld to %lld", static_cast<long long>(low),
                        static_cast<long long>(high));
        else
          std::snprintf(text, sizeof(text), "a number from %g to %g", low, high);
        return "\"" + value + "\" is not " + text;
      },
      "");
}

// MODEL, --context, --exact, --invariant and --lora. `graphs`: MODEL may be one.
void AddModelOptions(CLI::App& verb, std::string& model, quern::Options& options, bool graphs = true);
// --cpu: one level.
void AddCpuOption(CLI::App& verb, quern::Options& options);
// --specialise and --kernels.
void AddSpecialiseOption(CLI::App& verb, quern::Options& options);
// --tokens-in: ids in place of a prompt, "1,403,407".
CLI::Option* AddIdsOption(CLI::App& verb, std::vector<int32_t>& ids);
// --threads and --cache, of verbs that run the model.
void AddRunOptions(CLI::App& verb, quern::Options& options);
// The option of a number of sampling, under all its names: "--penalty-last,--repeat-last-n".
std::string FlagsOf(const quern::SamplingNumber& number);
// What was typed of options that are of the other kind of file, and would do nothing: of language models, or of graphs.
// Variables of the environment are for all commands, and are left alone.
quern::Result<void> RefuseOthers(const CLI::App& verb, const std::string& model, bool graph);
// An empty value, as of an unset variable in a script, is no number and no name: an error for every option that takes a
// value, but those called `texts`. Call it when the verb has its options.
void RequireValues(CLI::App& verb, const std::vector<std::string>& texts = {});
