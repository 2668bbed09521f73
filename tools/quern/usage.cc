#include "usage.h"

#include "base/nearest.h"

namespace {

std::string Meant(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = quern::Nearest(name, {known.begin(), known.end()});
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

// "--temp=1" without its value.
std::string NameOf(const std::string& option) { return option.substr(0, option.find('=')); }

}  // namespace

std::string UsageSentence(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  // The parser calls an option by its long name, help calls it MODEL.
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
      std::string(error.what()).starts_with("--model "))
    return "MODEL is required";
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  if (parsed.empty() && argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      commands.push_back(command->get_name());
    const std::string meant = Meant(argv[1], commands);
    std::string sentence = std::string("there is no command ") + argv[1] + meant;
    if (!meant.empty()) return sentence;
    sentence += "; there are";
    for (size_t i = 0; i < commands.size(); ++i) sentence += (i == 0 ? " " : ", ") + commands[i];
    return sentence;
  }
  if (parsed.empty() || error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return error.what();
  const CLI::App* command = parsed.back();
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  const std::vector<std::string> extras = command->remaining(true);
  std::vector<std::string> options;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    for (const std::string& name : option->get_snames()) options.push_back("-" + name);
  }
  std::string sentence;
  for (const std::string& extra : extras) {
    if (extra.size() < 2 || extra[0] != '-') continue;
    sentence +=
        (sentence.empty() ? "" : "; ") + ("there is no option " + NameOf(extra)) + Meant(NameOf(extra), options);
  }
  if (!sentence.empty() || extras.empty()) return sentence.empty() ? error.what() : sentence;
  sentence = "not expected:";
  for (const std::string& extra : extras) sentence += " " + extra;
  return sentence;
}
