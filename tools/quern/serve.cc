#include "serve.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

ServeCommand::ServeCommand(CLI::App& app)
    : command_(app.add_subcommand("serve", "a model behind OpenAI's interface, with a page to try it in")) {
  command_->prefix_command();
  command_->set_help_flag();
}

std::string ServeCommand::Run() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / "quern-serve").string();
  std::vector<std::string> arguments = command_->remaining();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return program + ": " + std::strerror(errno);
}
