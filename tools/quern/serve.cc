#include "serve.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

ServeCommand::ServeCommand(CLI::App& app)
    : command_(app.add_subcommand("serve", "a model behind OpenAI's interface, with a page to try it in")),
      arguments_(*command_) {}

std::string ServeCommand::Run(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (self.parent_path() / "quern-serve").string();
  char** const arguments = argv + 1;  // the verb's place is that of the program's name
  arguments[0] = program.data();
  execv(program.c_str(), arguments);
  return program + ": " + std::strerror(errno);
}
