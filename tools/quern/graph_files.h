// quern convert and quern diff: graphs in files, from form to form and beside each other.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/graph.h"
#include "quern/result.h"

class GraphFilesCommands {
 public:
  explicit GraphFilesCommands(CLI::App& app);
  bool parsed() const { return convert_->parsed() || diff_->parsed(); }
  // What was asked for. `same`: of diff, whether nothing differs.
  quern::Result<void> Run(bool& same) const;

 private:
  CLI::App *convert_, *diff_;
  std::string from_, to_, first_, second_;
  bool plan_ = false;
  quern::DiffOptions what_;
};
