// Options of verbs that take graphs in text form in the place of a model file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "quern/text.h"

// --size and --seed.
class TextArguments {
 public:
  explicit TextArguments(CLI::App& verb, bool seed = true);
  // The graph of the file. Errors: a size that is none; those of TextGraph::Open.
  quern::Result<quern::TextGraph> Open(const std::string& path) const;

 private:
  std::vector<std::string> sizes_;
  uint64_t seed_ = 1;
};
