#include "usage.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "errors.h"

namespace {

constexpr int kUsage = 2;

using Names = std::vector<std::string>;

std::string Meant(const std::string& name, const Names& known) {
  const std::string nearest = quern::Nearest(name, {known.begin(), known.end()});
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

std::string Joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "--temp=1" without its value.
std::string NameOf(const std::string& option) { return option.substr(0, option.find('=')); }

Names CommandsOf(const CLI::App& app) {
  Names names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// The command that the first word names, or null.
CLI::App* CommandNamed(CLI::App& app, const Names& typed) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    if (!typed.empty() && command->get_name() == typed[0]) return command;
  }
  return nullptr;
}

bool Has(const CLI::App& app, const std::string& option) { return app.get_option_no_throw(option) != nullptr; }

// `app`, the command that was named, and the one that was named of its own.
std::vector<const CLI::App*> LevelsOf(const CLI::App& app) {
  std::vector<const CLI::App*> levels = {&app};
  while (!levels.back()->get_subcommands().empty()) levels.push_back(levels.back()->get_subcommands().back());
  return levels;
}

std::string NoSuchOption(const std::vector<const CLI::App*>& levels, size_t at, const std::string& name) {
  const auto known = std::find_if(levels.begin(), levels.end(), [&](const auto* level) { return Has(*level, name); });
  if (known != levels.end()) {
    const bool behind = known - levels.begin() > static_cast<ptrdiff_t>(at);
    return name + " goes " + (behind ? "behind " + (*known)->get_name() : "before " + levels[at]->get_name());
  }
  Names options;  // of one letter all are alike
  for (const CLI::Option* option : levels[at]->get_options()) {
    for (const std::string& other : option->get_lnames()) options.push_back("--" + other);
  }
  return "there is no option " + name + Meant(name, options);
}

std::string NoSuchCommand(const CLI::App& app, const std::string& name) {
  const Names commands = CommandsOf(app);
  const std::string sentence = "there is no command " + name, meant = Meant(name, commands);
  return sentence + (meant.empty() ? "; there are " + Joined(commands) : meant);
}

// Of what nobody asked for; empty when there is nothing of that kind.
std::string OfExtras(const std::vector<const CLI::App*>& levels) {
  for (size_t at = 0; at < levels.size(); ++at) {
    const Names extras = levels[at]->remaining();
    std::string sentence;
    for (const std::string& extra : extras) {
      if (extra.size() < 2 || extra[0] != '-') continue;
      sentence += (sentence.empty() ? "" : "; ") + NoSuchOption(levels, at, NameOf(extra));
    }
    if (!sentence.empty()) return sentence;
    const bool wants_command = levels[at]->get_require_subcommand_min() > 0;
    if (extras.empty() || levels[at]->get_prefix_command()) continue;
    if (wants_command) return NoSuchCommand(*levels[at], extras.front());
    sentence = "not expected:";
    for (const std::string& extra : extras) sentence += " " + extra;
    return sentence;
  }
  return "";
}

// The parser's own words where they say enough; it calls an option by its long name, help calls it MODEL.
std::string OfError(const CLI::App& command, const CLI::ParseError& error) {
  const std::string words = error.what();
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::RequiredError:
      if (words.starts_with("--model ")) return "MODEL is required";
      if (command.get_require_subcommand_min() > 0 && command.get_subcommands().empty())
        return "a command is required; there are " + Joined(CommandsOf(command));
      return words;
    case CLI::ExitCodes::ConversionError: {
      // "Could not convert: --temp = hot"
      const size_t colon = words.find(": "), equals = words.find(" = ");
      if (colon == std::string::npos || equals == std::string::npos) return words;
      const std::string name = words.substr(colon + 2, equals - colon - 2), value = words.substr(equals + 3);
      const CLI::Option* const option = command.get_option_no_throw(name);
      const bool flag = option != nullptr && option->get_items_expected_max() == 0;
      return name + ": \"" + value + "\" is " + (flag ? "neither true nor false" : "not a number");
    }
    case CLI::ExitCodes::ArgumentMismatch: {
      // "--prompt: 1 required TEXT missing"
      const size_t one = words.find(": 1 required ");
      return one == std::string::npos ? words : words.substr(0, one) + " needs a value";
    }
    default: return words;
  }
}

// Which variables gave the options that `sentence` names: whoever reads it did not type them.
std::string OfVariables(const CLI::App& command, const std::string& sentence, const Names& typed) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    const char* const value = option->get_envname().empty() ? nullptr : std::getenv(option->get_envname().c_str());
    if (value == nullptr || *value == '\0') continue;
    bool named = false, given = false;
    const auto look = [&](const std::string& name) {
      const size_t at = sentence.find(name), end = at + name.size();
      named |= at != std::string::npos &&
               (end == sentence.size() || !(std::isalnum(sentence[end]) != 0 || sentence[end] == '-'));
      given |= std::any_of(typed.begin(), typed.end(), [&](const auto& word) { return NameOf(word) == name; });
    };
    for (const std::string& name : option->get_lnames()) look("--" + name);
    for (const std::string& name : option->get_snames()) look("-" + name);
    if (named && !given) text += "; " + option->get_envname() + " is set";
  }
  return text;
}

void AddEnvironment(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!option->nonpositional() || option->get_lnames().empty() || option->get_positional()) continue;
    const std::string& name = option->get_lnames().front();
    if (name == "help" || name == "version" || name == "cache" || name == "kernels" || name == "perf-map" ||
        name == "debug-kernels")
      continue;
    std::string variable = "QUERN_" + name;
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    option->envname(variable);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) AddEnvironment(*command);
}

}  // namespace

std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv) {
  const Names typed(argv + std::min(argc, 1), argv + argc);
  // Of the command that is asked for alone: the parser reads the variables of all, and one name may be a flag of this
  // and a file of that.
  CLI::App* const asked = CommandNamed(app, typed);
  AddEnvironment(asked == nullptr ? app : *asked);
  std::string sentence;
  try {
    app.parse(argc, argv);
    AddEnvironment(app);  // for who describes them
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error), Finish();
    const std::vector<const CLI::App*> levels = LevelsOf(app);
    const bool help = !typed.empty() && typed[0] == "help";
    if (help && (typed.size() == 1 || levels.size() > 1)) return std::fputs(app.help().c_str(), stdout), Finish();
    sentence = help ? NoSuchCommand(app, typed[1]) : OfExtras(levels);
    if (sentence.empty()) sentence = OfError(*levels.back(), error);
    sentence += OfVariables(*levels.back(), sentence, typed);
    const std::string verb = levels.size() > 1 ? " " + levels[1]->get_name() : "";
    Fail(sentence + " (" + app.get_name() + verb + " --help has examples)");
  }
  return kUsage;
}
