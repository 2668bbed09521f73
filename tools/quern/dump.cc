#include "dump.h"

#include <cstdio>
#include <filesystem>

#include "base/output_file.h"
#include "model_options.h"
#include "prompt.h"
#include "quern/text.h"

DumpCommand::DumpCommand(CLI::App& app)
    : command_(app.add_subcommand("dump", "what a model becomes on its way to machine code")) {
  AddModelOptions(*command_, model_, options_);
  AddCpuOption(*command_, options_);
  AddSpecialiseOption(*command_, options_);
  CLI::Option* stage =
      command_->add_option("--stage", dump_.stage, "hir, mir, lir, kir, llvm or asm; ptx or metal, of devices")
          ->capture_default_str();
  command_->add_option("--kernel", dump_.kernel, "with kir and what follows it: kernels whose label contains this");
  CLI::Option* after = command_->add_option("--dump-after", dump_.after, "the graph after this pass")->excludes(stage);
  CLI::Option* stop = command_->add_option("--stop-after", dump_.stop_after, "the same, and no pass after it is run")
                          ->excludes(after)
                          ->excludes(stage);
  command_->add_option("--skip", dump_.skip, "leave this pass out; may be given again")->allow_extra_args(false);
  command_->add_option("--step", dump_.tokens, "tokens of the step to compile for")
      ->capture_default_str()
      ->check(WholeNumber<int64_t>);
  CLI::Option* output = command_->add_option("-o,--output", output_, "write to this file, not to standard output");
  command_->add_option("--each", each_, "a folder for the graph after every pass, a file each")
      ->excludes(stage)
      ->excludes(after)
      ->excludes(stop)
      ->excludes(output);
  RequireValues(*command_);
  command_->footer(
      "Examples:\n"
      "  quern dump models/addition.gguf --stage hir\n"
      "  quern dump models/addition.gguf --dump-after simplify\n"
      "  quern dump models/addition.gguf --skip cse --stop-after dce --step 50\n"
      "  quern dump models/addition.gguf --each passes\n"
      "  quern dump models/addition.gguf --stage asm --kernel layers.0/ffn --cpu x86-64-v3 -o ffn.s\n"
      "  quern dump models/addition.gguf --stage ptx --kernel layers.0/ffn --cpu sm_80\n"
      "  quern dump graph.qir --stage kir");
}

quern::Result<std::string> DumpCommand::Text() {
  if (!quern::TextGraph::Is(model_)) return quern::Dump(model_, options_, dump_);
  quern::Result<quern::TextGraph> graph = quern::TextGraph::Open(model_);
  return graph.ok() ? graph->graph().Dump(dump_, options_) : quern::Result<std::string>::Failed(graph.details());
}

quern::Error DumpCommand::WriteEach() {
  std::error_code made;
  std::filesystem::create_directories(each_, made);
  if (made) return Invalid("cannot make the folder " + each_ + ": " + made.message());
  int count = 0;
  quern::Status written;
  dump_.each = [&](std::string_view pass, std::string_view text) {
    char number[8];
    std::snprintf(number, sizeof(number), "%02d-", ++count);
    const std::string name = number + std::string(pass) + (pass == "plan" ? ".lir" : ".mir");
    if (written.ok())
      written = quern::WriteFile((std::filesystem::path(each_) / name).string(), std::string(text), {&model_, 1});
  };
  const quern::Result<std::string> text = Text();
  if (!text.ok()) return text.details();
  return written.ok() ? quern::Error() : Invalid(std::string(written.message()));
}

quern::Error DumpCommand::Run() {
  if (const quern::Result<void> ok = RefuseOthers(*command_, model_, quern::TextGraph::Is(model_)); !ok.ok())
    return ok.details();
  if (!each_.empty()) return WriteEach();
  if (!output_.empty()) {
    // Before what takes long.
    if (const quern::Status ok = quern::CheckOutput(output_, {&model_, 1}); !ok.ok())
      return Invalid(std::string(ok.message()));
  }
  const quern::Result<std::string> text = Text();
  if (!text.ok()) return text.details();
  if (output_.empty()) return std::fputs(text->c_str(), stdout), quern::Error();
  const quern::Status written = quern::WriteFile(output_, *text, {&model_, 1});
  return written.ok() ? quern::Error() : Invalid(std::string(written.message()));
}
