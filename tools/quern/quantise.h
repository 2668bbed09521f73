// quern quantise: a model file in other formats, or a graph whose products are over bytes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quern/qdq.h"
#include "quern/quantise.h"
#include "text_options.h"

// Adds itself to `app`; Run after parsing.
class QuantiseCommand {
 public:
  explicit QuantiseCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  // Says on standard error how far it is, then one line. Errors: those of quern::Quantise; of a graph those of
  // quern::TextGraph, quern::MakeQuantisationMap and quern::InsertQdq, and of the files of ranges and maps.
  quern::Result<void> Run();

 private:
  quern::Result<void> RunModel();
  quern::Result<void> RunGraph() const;
  // Of the file that --map or --ranges name, or else the graph's own.
  quern::Result<quern::QuantisationMap> MapOf(const quern::Graph& graph) const;

  CLI::App* command_;
  TextArguments text_;
  std::string ranges_, map_, map_out_;
  quern::QdqOptions graph_options_;
  std::string in_, out_;
  quern::QuantiseOptions options_;
  bool list_ = false, as_map_ = false;
};
