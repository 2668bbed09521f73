// Options of verbs that draw tokens.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "quern/quern.h"

class SamplingArguments {
 public:
  // --tokens, those of SamplingNumbers() and of grammars, --seed and --stop.
  explicit SamplingArguments(CLI::App& verb, int tokens);
  // What they say, and of numbers that were not given what the file of `model` says, which is said on standard error;
  // with `--seed random`, a seed of the system's. Errors: an option that makes no sense, a file that cannot be read.
  quern::Result<quern::SamplingOptions> Get(const std::string& model) const;
  bool seed_is_random() const { return seed_ == "random"; }
  int tokens() const { return tokens_; }
  const std::vector<std::string>& stops() const { return stops_; }
  int speculate() const { return speculate_; }
  bool shift() const { return shift_; }

 private:
  // What the text has to follow; empty where nothing was said. Errors: a file that cannot be read, or is no schema.
  quern::Result<std::string> Grammar() const;

  quern::SamplingOptions sampling_;
  std::map<std::string, const CLI::Option*> numbers_;  // by their names in SamplingNumbers()
  std::string grammar_, grammar_file_, schema_file_;
  bool json_ = false;
  std::string seed_ = "0";
  int tokens_, speculate_ = 0;
  bool shift_ = false;
  std::vector<std::string> stops_, biases_, breakers_;
};
