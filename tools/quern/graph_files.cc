#include "graph_files.h"

#include <cstdio>

#include "quern/plan.h"
#include "quern/text.h"

GraphFilesCommands::GraphFilesCommands(CLI::App& app) {
  convert_ = app.add_subcommand("convert", "a graph from text to binary form, or back");
  convert_->add_option("FROM", from_, "a graph in text or binary form")->required();
  convert_->add_option("TO", to_, "text where the name ends in .qir, else binary")->required();
  convert_->footer(
      "Examples:\n"
      "  quern convert bench/graphs/mobilenetv2.qir mobilenetv2.qgf\n"
      "  quern convert mobilenetv2.qgf again.qir");
  diff_ = app.add_subcommand(
      "diff", "what differs between two graphs, or their plans: 0 nothing, 1 something, 2 they cannot be read");
  diff_->add_option("A", first_, "a graph in text or binary form")->required();
  diff_->add_option("B", second_, "another")->required();
  diff_->add_flag("--plan", plan_, "of what becomes of them: ports, weights, memory and launches by variant");
  diff_->add_flag("!--no-names", what_.names, "whatever inputs, parameters and outputs are called");
  diff_->add_flag("!--no-constants", what_.constants, "whatever is in constants");
  diff_->add_flag("--origins", what_.origins, "labels count, too");
  diff_->footer(
      "Examples:\n  quern diff before.qir after.qgf\n  quern diff before.qir after.qgf --no-constants\n"
      "  quern diff before.qir after.qir --plan");
}

quern::Result<void> GraphFilesCommands::Run(bool& same) const {
  const auto failed = [](const quern::Error& error) { return quern::Result<void>::Failed(error); };
  quern::Result<quern::TextGraph> first = quern::TextGraph::Open(convert_->parsed() ? from_ : first_);
  if (!first.ok()) return failed(first.details());
  if (convert_->parsed()) return first->Save(to_);
  quern::Result<quern::TextGraph> second = quern::TextGraph::Open(second_);
  if (!second.ok()) return failed(second.details());
  std::string text;
  if (plan_) {
    quern::Result<quern::BindingManifest> before = quern::PlanOf(first->graph()), now = quern::PlanOf(second->graph());
    if (!before.ok()) return failed(before.details());
    if (!now.ok()) return failed(now.details());
    text = quern::Diff(*before, *now, what_);
  } else {
    text = first->Diff(*second, what_);
  }
  same = text.empty();
  std::fputs(text.c_str(), stdout);
  return {};
}
