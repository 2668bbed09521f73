#include "profile.h"

#include <algorithm>
#include <cstdio>

#include "base/output_file.h"
#include "interrupt.h"
#include "model_options.h"
#include "prompt.h"
#include "terminal.h"

namespace {

// Decoding steps that warm up: the first compiles and pages weights in, the second finds caches filled.
constexpr int64_t kWarmUpTokens = 2;

// The error, or nothing; the model stays as it is.
std::string Write(const std::string& path, const std::string& text, const std::string& model) {
  return std::string(quern::WriteFile(path, text, {&model, 1}).message());
}

constexpr quern::ErrorCode kNone = quern::ErrorCode::kNone;

// What the sentence says; of an empty one, nothing.
quern::Error Said(std::string message) {
  quern::Error error;
  if (!message.empty()) error.code = quern::ErrorCode::kInvalid;
  error.message = std::move(message);
  return error;
}

}  // namespace

ProfileCommand::ProfileCommand(CLI::App& app)
    : command_(app.add_subcommand("profile", "where the time goes, by kernel and by block of the graph")),
      text_(*command_, true) {
  AddModelOptions(*command_, model_, options_);
  AddCpuOption(*command_, options_);
  AddSpecialiseOption(*command_, options_);
  AddRunOptions(*command_, options_);
  CLI::Option* prompt = command_->add_option("-p,--prompt", prompt_, "text to complete")->capture_default_str();
  AddIdsOption(*command_, ids_)->excludes(prompt);
  command_->add_option("-n,--tokens", tokens_, "tokens to decode after the prompt, at most")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  command_->add_option("--repeat", repeat_, "times that prompt and tokens are measured")
      ->capture_default_str()
      ->check(Between(1, 1000));
  command_->add_option("--top", top_, "kernels in a table at most; 0: all")
      ->capture_default_str()
      ->check(WholeNumber<int>);
  command_->add_option("--json", json_, "write everything that was measured to this file");
  command_->add_option("--trace", trace_, "write a trace for Perfetto or chrome://tracing to this file");
  command_->add_option("--html", html_, "write a report for a browser to this file, which needs nothing else");
  command_->add_flag("--counters", profiler_.counters,
                     "read hardware counters as well, where there are any; times grow");
  command_->add_flag("--probe", profiler_.probe, "measure this machine's peaks again, and take the best");
  // With two profiles there is nothing to run, and no model.
  CLI::Option* model = command_->get_option("MODEL");
  model->required(false);
  command_->add_option("--diff", diff_, "two files of --json, before and after: what became slower or faster")
      ->expected(2)
      ->excludes(model);
  model_option_ = model;
  command_->footer(
      "Examples:\n"
      "  quern profile models/addition.gguf --prompt \"27+58=\"\n"
      "  quern profile model.gguf --prompt \"Once upon a time\" --tokens 64 --threads 1 --top 10\n"
      "  quern profile model.gguf --tokens-in 1,403,407 --json profile.json --trace trace.json\n"
      "  quern profile model.gguf --prompt \"Once upon a time\" --html report.html\n"
      "  quern profile graph.qir --size SEQ=5 --repeat 100\n"
      "  quern profile --diff before.json after.json");
}

quern::Error ProfileCommand::Steps(quern::Session& session, quern::Profiler& profiler, const std::vector<int32_t>& ids,
                                   int64_t tokens, bool warm_up) {
  quern::Sampler greedy({});
  session.Reset();
  profiler.Phase("prefill", warm_up);
  quern::Result<std::vector<float>> logits = session.Step(ids);
  profiler.Phase("decode", warm_up);
  for (int64_t t = 0; logits.ok() && t < tokens; ++t) {
    const int32_t next = greedy.Next(*logits);
    logits = session.Step(std::span(&next, 1));
  }
  return logits.details();
}

quern::Error ProfileCommand::RunDiff() {
  std::string texts[2];
  for (size_t i = 0; i < 2; ++i) {
    quern::Result<std::string> text = PromptOf({.file = diff_[i]});
    if (!text.ok()) return text.details();
    texts[i] = *std::move(text);
  }
  quern::Result<std::string> diff = quern::ProfileDiff(texts[0], texts[1], OutputColumns());
  if (!diff.ok()) return diff.details();
  std::fputs(diff->c_str(), stdout);
  return {};
}

quern::Error ProfileCommand::Run() {
  if (!diff_.empty()) return RunDiff();
  if (model_option_->count() == 0) return Said("MODEL is required, or --diff and two profiles");
  for (const std::string& path : {json_, trace_, html_}) {
    if (const quern::Status ok = quern::CheckOutput(path, {&model_, 1}); !ok.ok())
      return Said(std::string(ok.message()));
  }
  options_.cancel = CancelOnInterrupt();
  const bool graph = quern::TextGraph::Is(model_);
  if (const quern::Result<void> ok = RefuseOthers(*command_, model_, graph); !ok.ok()) return ok.details();
  return graph ? RunGraph() : RunModel();
}

quern::Error ProfileCommand::RunGraph() {
  quern::Result<quern::TextGraph> text = text_.Open(model_);
  if (!text.ok()) return text.details();
  quern::Result<quern::Program> program = text->Compile(options_);
  if (!program.ok()) return program.details();
  quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*program, profiler_);
  if (!profiler.ok()) return profiler.details();
  profiler->Phase("run", true);
  quern::Result<void> ran = text->Run(*program);
  profiler->Phase("run", false);
  for (int r = 0; ran.ok() && r < repeat_; ++r) ran = text->Run(*program);
  return ran.ok() ? Report(*profiler) : ran.details();
}

quern::Error ProfileCommand::RunModel() {
  quern::Result<quern::Session> session = quern::Session::Open(model_, options_);
  if (!session.ok()) return session.details();
  std::vector<int32_t> ids = ids_;
  if (ids.empty()) {
    quern::Result<std::vector<int32_t>> prompt = session->Tokenize(prompt_);
    if (!prompt.ok()) return prompt.details();
    ids = *std::move(prompt);
  }
  if (ids.empty()) return Said("the prompt has no tokens");
  quern::Result<quern::Profiler> profiler = quern::Profiler::Attach(*session, profiler_);
  if (!profiler.ok()) return profiler.details();
  const int64_t room = std::max<int64_t>(session->context() - static_cast<int64_t>(ids.size()), 0);
  const int64_t tokens = std::min<int64_t>(tokens_, room);
  quern::Error error = Steps(*session, *profiler, ids, std::min(tokens, kWarmUpTokens), true);
  for (int r = 0; error.code == kNone && r < repeat_; ++r) error = Steps(*session, *profiler, ids, tokens, false);
  return error.code == kNone ? Report(*profiler) : error;
}

quern::Error ProfileCommand::Report(quern::Profiler& profiler) {
  quern::Error error;
  quern::Result<std::string> table = profiler.Table(top_, OutputColumns());
  if (!table.ok()) return table.details();
  std::fputs(table->c_str(), stdout);
  if (!json_.empty()) {
    quern::Result<std::string> json = profiler.Json();
    error = json.ok() ? Said(Write(json_, *json, model_)) : json.details();
  }
  if (error.code == kNone && !trace_.empty()) {
    quern::Result<std::string> trace = profiler.Trace();
    error = trace.ok() ? Said(Write(trace_, *trace, model_)) : trace.details();
  }
  if (error.code == kNone && !html_.empty()) {
    quern::Result<std::string> html = profiler.Html();
    error = html.ok() ? Said(Write(html_, *html, model_)) : html.details();
  }
  return error;
}
