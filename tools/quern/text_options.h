// Options of verbs that take graphs in text form in the place of a model file.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "quern/text.h"

// "SYMBOL=NUMBER" of each text. Error: one that is anything else.
quern::Result<std::map<std::string, int64_t>> ParseSizes(const std::vector<std::string>& texts);

// --size, --fix-sizes, --values and --in.
class TextArguments {
 public:
  // `run`: what is compiled runs here, with one set of sizes, and a model in ONNX is compiled for these unless it is
  // asked for all.
  TextArguments(CLI::App& verb, bool run);
  // The graph of the file. Errors: a size that is none; those of TextGraph::Open.
  quern::Result<quern::TextGraph> Open(const std::string& path) const;

 private:
  std::vector<std::string> sizes_, in_;
  uint64_t seed_ = 1;
  bool fix_sizes_;
};
