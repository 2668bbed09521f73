// Options of verbs that draw tokens.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "quern/quern.h"

class SamplingArguments {
 public:
  // --tokens, those of the samplers, --seed and --stop.
  explicit SamplingArguments(CLI::App& verb, int tokens);
  // What they say; with `--seed random`, a seed of the system's. Error: an option that makes no sense.
  quern::Result<quern::SamplingOptions> Get() const;
  bool seed_is_random() const { return seed_ == "random"; }
  int tokens() const { return tokens_; }
  const std::vector<std::string>& stops() const { return stops_; }

 private:
  quern::SamplingOptions sampling_;
  std::string seed_ = "0";
  int tokens_;
  std::vector<std::string> stops_, biases_;
};
