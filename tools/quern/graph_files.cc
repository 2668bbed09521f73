#include "graph_files.h"

#include <cstdio>

#include "quern/text.h"

GraphFilesCommands::GraphFilesCommands(CLI::App& app) {
  convert_ = app.add_subcommand("convert", "a graph from text to binary form, or back");
  convert_->add_option("FROM", from_, "a graph in text or binary form")->required();
  convert_->add_option("TO", to_, "text where the name ends in .qir, else binary")->required();
  convert_->footer(
      "Examples:\n"
      "  quern convert bench/graphs/mobilenetv2.qir mobilenetv2.qgf\n"
      "  quern convert mobilenetv2.qgf again.qir");
  diff_ = app.add_subcommand("diff", "what differs between two graphs: 0 nothing, 1 something, 2 they cannot be read");
  diff_->add_option("A", first_, "a graph in text or binary form")->required();
  diff_->add_option("B", second_, "another")->required();
  diff_->footer("Examples:\n  quern diff before.qir after.qgf");
}

quern::Result<void> GraphFilesCommands::Run(bool& same) const {
  const auto failed = [](const quern::Error& error) { return quern::Result<void>::Failed(error); };
  quern::Result<quern::TextGraph> first = quern::TextGraph::Open(convert_->parsed() ? from_ : first_);
  if (!first.ok()) return failed(first.details());
  if (convert_->parsed()) return first->Save(to_);
  quern::Result<quern::TextGraph> second = quern::TextGraph::Open(second_);
  if (!second.ok()) return failed(second.details());
  const std::string text = first->Diff(*second);
  same = text.empty();
  std::fputs(text.c_str(), stdout);
  return {};
}
