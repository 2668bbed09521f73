// The command line: quern run | chat | serve | embed | tokenize | quantise | imatrix | perplexity | calibrate |
// inspect | dump | ops | compile | profile | bench | plan | dispatch | kernel | convert | diff | cache | replay |
// reduce | completion | man.
// Results go to standard output, everything else to standard error; bad input is one sentence and exit code 1, a wrong
// command line 2.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench.h"
#include "cache.h"
#include "calibrate.h"
#include "chat.h"
#include "compile.h"
#include "describe.h"
#include "dump.h"
#include "embed.h"
#include "errors.h"
#include "graph_files.h"
#include "imatrix.h"
#include "kernel.h"
#include "model_options.h"
#include "perplexity.h"
#include "plan.h"
#include "profile.h"
#include "quantise.h"
#include "quern/dispatch.h"
#include "quern/onnx.h"
#include "quern/quern.h"
#include "reduce.h"
#include "replay.h"
#include "run.h"
#include "serve.h"
#include "tokenize.h"
#include "usage.h"

int main(int argc, char** argv) {
  CLI::App app{"Quern grinds model graphs into native kernels.", "quern"};
  app.set_version_flag("--version", std::function<std::string()>(quern::BuildText));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  quern run models/addition.gguf --prompt \"27+58=\"\n"
      "  quern inspect models/addition.gguf\n"
      "  quern dump models/addition.gguf --stage kir --kernel ffn\n"
      "  quern ops\n"
      "`quern COMMAND --help` has more of each.");
  quern::Options options;
  std::string model;

  RunCommand run_command(app);
  ChatCommand chat_command(app);
  TokenizeCommand tokenize_command(app);
  EmbedCommand embed_command(app);
  ServeCommand serve_command(app);
  QuantiseCommand quantise_command(app);
  ImatrixCommand imatrix_command(app);
  PerplexityCommand perplexity_command(app);
  CalibrateCommand calibrate_command(app);
  CLI::App* inspect_command = app.add_subcommand("inspect", "metadata and tensors of a model file, what is in a graph");
  inspect_command
      ->add_option("MODEL", model, "a GGUF file, a folder of safetensors, or a graph in text or binary form or ONNX")
      ->required();
  inspect_command->footer(
      "Examples:\n  quern inspect models/addition.gguf\n  quern inspect graph.qir\n  quern inspect model.onnx");

  DumpCommand dump_command(app);
  CLI::App* ops_command = app.add_subcommand("ops", "every block and op with its operands and attributes: docs/ops.md");
  std::string ops_target;
  ops_command->add_option("--target", ops_target, "which of them a target takes: cpu, aot, c, ptx or metal");
  bool ops_compile = false;
  ops_command->add_flag("--compile", ops_compile,
                        "find out what targets take by compiling an example of each op, which takes seconds");
  ops_command->footer("Examples:\n  quern ops\n  quern ops --target metal\n  quern ops --compile > docs/ops.md");
  CLI::App* dispatch_command =
      app.add_subcommand("dispatch", "what becomes of each op of a graph on a target: a kernel, other ops, or nothing");
  std::string dispatch_target = "cpu";
  bool dispatch_json = false;
  dispatch_command->add_option("GRAPH", model, "a graph in text or binary form")->required();
  dispatch_command->add_option("--target", dispatch_target, "cpu, aot, c, ptx or metal")->capture_default_str();
  dispatch_command->add_flag("--json", dispatch_json, "as JSON");
  dispatch_command->add_flag("--exact", options.exact, "keep activations f32 beside quantised weights");
  AddCpuOption(*dispatch_command, options);
  AddSpecialiseOption(*dispatch_command, options);
  dispatch_command->footer(
      "Examples:\n"
      "  quern dispatch graph.qir\n"
      "  quern dispatch graph.qir --target ptx --json\n"
      "  quern dispatch graph.qir --kernels common");

  PlanCommand plan_command(app);
  CompileCommand compile_command(app);
  ProfileCommand profile_command(app);
  BenchCommand bench_command(app);
  KernelCommand kernel_command(app);
  GraphFilesCommands graph_files(app);
  CacheCommand cache_command(app);
  ReplayCommand replay_command(app);
  ReduceCommand reduce_command(app);
  CLI::App* completion_command = app.add_subcommand("completion", "a script that completes commands and options");
  std::string shell;
  completion_command->add_option("SHELL", shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  completion_command->footer("Examples:\n  source <(quern completion bash)\n  quern completion zsh > ~/.zfunc/_quern");
  CLI::App* man_command = app.add_subcommand("man", "this help as a manual page");
  man_command->footer("Examples:\n  quern man > quern.1; man ./quern.1");

  if (const std::optional<int> status = ParseCommandLine(app, argc, argv)) return *status;
  const auto done = [](const std::string& error) { return error.empty() ? Finish() : Fail(error); };
  const auto ended = [](const quern::Error& error) {
    return error.code == quern::ErrorCode::kNone ? Finish() : Fail(error);
  };
  if (run_command.parsed()) return run_command.Run();
  if (chat_command.parsed()) return chat_command.Run();
  if (tokenize_command.parsed()) {
    const quern::Result<void> ran = tokenize_command.Run();
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (serve_command.parsed()) return done(serve_command.Run(argv));
  if (quantise_command.parsed()) {
    const quern::Result<void> ran = quantise_command.Run();
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (imatrix_command.parsed()) {
    const quern::Result<void> ran = imatrix_command.Run();
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (perplexity_command.parsed()) {
    const quern::Result<void> ran = perplexity_command.Run();
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (calibrate_command.parsed()) {
    const quern::Result<void> ran = calibrate_command.Run();
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (embed_command.parsed()) {
    const quern::Result<void> ran = embed_command.Run();
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (profile_command.parsed()) return ended(profile_command.Run());
  if (dump_command.parsed()) return ended(dump_command.Run());
  if (man_command->parsed()) {
    // Installed with the program: the version, and nothing of the machine that it was made on.
    const std::string built = quern::BuildText();
    return std::fputs(ManualPage(app, built.substr(0, built.find(" ("))).c_str(), stdout), Finish();
  }
  if (completion_command->parsed()) {
    std::fputs((shell == "bash" ? BashCompletion(app) : ZshCompletion(app)).c_str(), stdout);
    return Finish();
  }
  if (bench_command.parsed()) return ended(bench_command.Run());
  if (compile_command.parsed()) return done(compile_command.Run());
  if (cache_command.parsed()) return done(cache_command.Run());
  if (reduce_command.parsed()) return done(reduce_command.Run());
  if (plan_command.parsed()) {
    const quern::Result<void> ran = plan_command.Run();
    return ran.ok() ? Finish() : Fail(ran.details());
  }
  if (graph_files.parsed()) {
    bool same = true;
    const quern::Result<void> ran = graph_files.Run(same);
    const bool diff = app.got_subcommand("diff");
    if (!ran.ok() || Finish() != 0) return (ran.ok() ? 0 : Fail(ran.details())), diff ? 2 : 1;
    return same ? 0 : 1;
  }
  if (kernel_command.parsed()) {
    bool right = false;
    const quern::Result<void> ran = kernel_command.Run(right);
    if (!ran.ok() || Finish() != 0) return (ran.ok() ? 0 : Fail(ran.details())), 2;
    return right ? 0 : 1;
  }
  if (replay_command.parsed()) {
    bool passed = false;
    const std::string error = replay_command.Run(passed);
    if (!error.empty() || Finish() != 0) return error.empty() ? 2 : (Fail(error), 2);
    return passed ? 0 : 1;
  }
  if (dispatch_command->parsed()) {
    quern::Result<quern::TextGraph> graph = quern::TextGraph::Open(model);
    if (!graph.ok()) return Fail(graph.details());
    quern::Result<quern::DispatchReport> report = quern::Dispatch(graph->graph(), dispatch_target, options);
    if (!report.ok()) return Fail(report.details());
    std::fputs((dispatch_json ? report->Json() : report->Text()).c_str(), stdout);
    return Finish();
  }
  if (ops_command->parsed() && !ops_target.empty()) {
    quern::Result<std::vector<quern::OpOnTarget>> ops = quern::OpsOnTarget(ops_target, ops_compile);
    if (!ops.ok()) return Fail(ops.details());
    for (const quern::OpOnTarget& op : *ops)
      std::printf("%-40s %s%s\n", op.op.c_str(), op.taken ? "taken" : "refused: ", op.reason.c_str());
    return Finish();
  }
  if (ops_command->parsed()) {
    std::fputs(quern::OpReference(ops_compile).c_str(), stdout);
    return Finish();
  }
  const auto describe_text = [&]() -> quern::Result<std::string> {
    if (quern::OnnxModel::Is(model)) {
      quern::Result<std::vector<std::string>> gaps = quern::OnnxModel::NotCovered(model);
      if (!gaps.ok()) return quern::Result<std::string>::Failed(gaps.details());
      std::string text;
      for (const std::string& gap : *gaps) text += "not covered: " + gap + "\n";
      if (!text.empty()) return text;
    }
    quern::Result<quern::TextGraph> graph = quern::TextGraph::Open(model);
    return graph.ok() ? graph->Describe() : quern::Result<std::string>::Failed(graph.details());
  };
  quern::Result<std::string> text = quern::TextGraph::Is(model) ? describe_text() : quern::Inspect(model);
  if (!text.ok()) return Fail(text.error());
  std::fputs(text->c_str(), stdout);
  return Finish();
}
