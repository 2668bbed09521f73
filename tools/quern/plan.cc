#include "plan.h"

#include <cstdio>

#include "model_options.h"
#include "quern/text.h"
#include "text_options.h"

PlanCommand::PlanCommand(CLI::App& app) {
  command_ =
      app.add_subcommand("plan", "what a model or graph will take: inputs, weights, memory, launches by variant");
  AddModelOptions(*command_, model_, options_);
  AddCpuOption(*command_, options_);
  AddSpecialiseOption(*command_, options_);
  command_->add_option("--size", sizes_, "SYMBOL=NUMBER: for this size; may be given again; else the largest")
      ->allow_extra_args(false);
  command_->add_flag("--json", json_, "as JSON");
  command_->footer(
      "Examples:\n"
      "  quern plan bench/graphs/mobilenetv2.qir --size N=1\n"
      "  quern plan models/addition.gguf --context 512 --json");
  RequireValues(*command_);
}

quern::Result<void> PlanCommand::Run() const {
  const auto failed = [](const quern::Error& error) { return quern::Result<void>::Failed(error); };
  const quern::Result<std::map<std::string, int64_t>> sizes = ParseSizes(sizes_);
  if (!sizes.ok()) return failed(sizes.details());
  const auto plan = [&]() -> quern::Result<quern::BindingManifest> {
    if (!quern::TextGraph::Is(model_)) return quern::PlanOfModel(model_, options_, *sizes);
    quern::Result<quern::TextGraph> graph = quern::TextGraph::Open(model_);
    if (!graph.ok()) return quern::Result<quern::BindingManifest>::Failed(graph.details());
    return quern::PlanOf(graph->graph(), options_, *sizes);
  };
  quern::Result<quern::BindingManifest> made = plan();
  if (!made.ok()) return failed(made.details());
  std::fputs((json_ ? made->Json() : made->Text()).c_str(), stdout);
  return {};
}
