#include "reduce.h"

#include <cstdio>
#include <filesystem>

#include "base/output_file.h"
#include "model_options.h"

ReduceCommand::ReduceCommand(CLI::App& app)
    : command_(app.add_subcommand("reduce", "make a reproduction smaller for as long as it fails in the same way")) {
  command_->add_option("FILE", path_, "a .qir file; its values lie beside it")->required();
  command_->add_option("-o,--output", options_.output, "the smaller file; NAME-reduced.qir when not given");
  command_->add_option("--command", options_.command,
                       "what fails, with {} for the file, by its exit status; when not given, quern replay "
                       "{}, by the op and the kind of what it finds");
  command_->add_option("--seconds", options_.seconds, "after which a run counts as hanging")
      ->capture_default_str()
      ->check(Between(0.001, 86400.0));
  command_->add_option("--attempts", options_.attempts, "runs at most")
      ->capture_default_str()
      ->check(Between(1, 1000000));
  command_->footer(
      "Examples:\n"
      "  quern reduce check-layers.0-ffn-MatMul.qir\n"
      "  quern reduce slow.qir -o fast.qir --command 'timeout 5 quern replay {}'");
}

std::string ReduceCommand::Run() {
  if (const quern::Status may = quern::CheckOutput(options_.output, {}); !may.ok()) return std::string(may.message());
  if (options_.command.empty()) {
    // The file fails in processes of their own: a kernel that crashes takes only its own down.
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return "cannot find this program: " + error.message();
    options_.command = "'" + self.string() + "' replay --brief {}";
    options_.same_output = true;
  }
  options_.log = [](std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  quern::Result<std::string> reduced = quern::Reduce(path_, options_);
  if (!reduced.ok()) return reduced.error();
  std::printf("%s\n", reduced->c_str());
  return "";
}
