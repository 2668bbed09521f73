#include "describe.h"

#include <vector>

namespace {

using Options = std::vector<const CLI::Option*>;
using Commands = std::vector<const CLI::App*>;

Commands CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

Options OptionsOf(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string Joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Words of a command as a shell's.
std::vector<std::string> WordsOf(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* inner : CommandsOf(command)) words.push_back(inner->get_name());
  for (const CLI::Option* option : OptionsOf(command)) {
    for (const std::string& name : NamesOf(*option)) words.push_back(name);
  }
  return words;
}

std::string ReplacedAll(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Inside of '..' of a shell.
std::string Quoted(const std::string& text) { return ReplacedAll(text, "'", "'\\''"); }

// As text of a manual page.
std::string Roff(const std::string& text) {
  std::string safe = ReplacedAll(ReplacedAll(text, "\\", "\\e"), "-", "\\-");
  if (!safe.empty() && (safe[0] == '.' || safe[0] == '\'')) safe = "\\&" + safe;
  return ReplacedAll(ReplacedAll(safe, "\n.", "\n\\&."), "\n'", "\n\\&'");
}

std::string OptionsText(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    std::vector<std::string> all = NamesOf(*option);
    if (option->get_positional()) all.insert(all.begin(), option->get_name(true));
    std::string names = ReplacedAll(Joined(all, ", "), "-", "\\-");
    if (TakesValue(*option) && !option->get_positional())
      names += "\\fR \\fI" + Roff(option->get_type_name().empty() ? "VALUE" : option->get_type_name());
    text += ".TP\n\\fB" + names + "\\fR\n" + Roff(option->get_description());
    if (!option->get_default_str().empty()) text += " (" + Roff(option->get_default_str()) + " when not given)";
    if (!option->get_envname().empty()) text += "; or by \\fB" + Roff(option->get_envname()) + "\\fR";
    text += "\n";
  }
  return text;
}

// A footer as it stands.
std::string FooterText(const CLI::App& command) {
  const std::string footer = command.get_footer();
  return footer.empty() ? "" : ".PP\n.nf\n" + Roff(footer) + "\n.fi\n";
}

void AppendCommands(const CLI::App& app, const std::string& path, std::string& text) {
  for (const CLI::App* command : CommandsOf(app)) {
    const std::string name = path + " " + command->get_name();
    text += ".SS " + Roff(name) + "\n" + Roff(command->get_description()) + ".\n" + OptionsText(*command) +
            FooterText(*command);
    AppendCommands(*command, name, text);
  }
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : CommandsOf(app)) {
    const Commands inner = CommandsOf(*command);
    for (const CLI::App* verb : inner) {
      cases += "    '" + command->get_name() + " " + verb->get_name() + "') words='" + Joined(WordsOf(*verb), " ") +
               "' ;;\n";
    }
    cases += "    '" + command->get_name() + (inner.empty() ? " '*" : " '*") + ") words='" +
             Joined(WordsOf(*command), " ") + "' ;;\n";
  }
  return "# Completion of quern for bash: source it, or put it where bash-completion looks.\n"
         "_quern() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words=''\n"
         "  case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n" +
         cases +
         "  esac\n"
         "  [[ $COMP_CWORD -eq 1 ]] && words='" +
         Joined(WordsOf(app), " ") +
         "'\n"
         "  COMPREPLY=()\n"
         "  if [[ $current == -* || $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  else\n"
         "    local verbs=''\n"
         "    [[ $COMP_CWORD -eq 2 ]] && for word in $words; do [[ $word == -* ]] || verbs+=\" $word\"; done\n"
         "    COMPREPLY=($(compgen -W \"$verbs\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _quern quern\n";
}

std::string ZshCompletion(const CLI::App& app) {
  const auto described = [](const std::string& name, const std::string& about) {
    return "'" + Quoted(ReplacedAll(name, ":", "\\:")) + ":" + Quoted(ReplacedAll(about, "\n", " ")) + "'";
  };
  std::string commands, cases;
  for (const CLI::App* command : CommandsOf(app)) {
    commands += "    " + described(command->get_name(), command->get_description()) + "\n";
    cases += "    " + command->get_name() + ")\n      choices=(\n";
    for (const CLI::App* verb : CommandsOf(*command))
      cases += "        " + described(verb->get_name(), verb->get_description()) + "\n";
    for (const CLI::Option* option : OptionsOf(*command)) {
      for (const std::string& name : NamesOf(*option))
        cases += "        " + described(name, option->get_description()) + "\n";
    }
    cases += "      ) ;;\n";
  }
  return "#compdef quern\n"
         "# Completion of quern for zsh: put it into a folder of $fpath as _quern.\n"
         "_quern() {\n"
         "  local -a commands choices\n"
         "  commands=(\n" +
         commands +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  case $words[2] in\n" +
         cases +
         "  esac\n"
         "  if [[ $PREFIX == -* ]]; then _describe option choices; else _files; fi\n"
         "}\n"
         "(( $+functions[compdef] )) && compdef _quern quern\n";
}

std::string ManualPage(const CLI::App& app, const std::string& version) {
  std::string text = ".TH QUERN 1 \"\" \"" + Roff(version) + "\" \"Quern\"\n.SH NAME\nquern \\- " +
                     Roff(app.get_description()) +
                     "\n.SH SYNOPSIS\n\\fBquern\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH OPTIONS\n" +
                     OptionsText(app) + ".SH COMMANDS\n";
  AppendCommands(app, "quern", text);
  text +=
      ".SH EXIT STATUS\n0: done. 1: what was asked for could not be done; of replay, diff and kernel, what the file "
      "has "
      "fails or differs. 2: the command line is wrong; of replay, diff and kernel, a file cannot be read. 130: "
      "interrupted.\n.SH EXAMPLES\n.nf\n" +
      Roff(app.get_footer()) + "\n.fi\n";
  return text;
}
