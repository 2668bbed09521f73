// What there is to type, made from the parser that reads it: completion for shells, and the manual page. Both say what
// --help says, since it is their only source.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

// A script that bash sources: commands, then the options of a command, file names elsewhere.
std::string BashCompletion(const CLI::App& app);
// The same for zsh, with what each is for.
std::string ZshCompletion(const CLI::App& app);
// quern(1) in the man macros.
std::string ManualPage(const CLI::App& app, const std::string& version);
