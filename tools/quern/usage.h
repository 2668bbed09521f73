// What is wrong with a command line, in one sentence with a suggestion.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

// The sentence of `error`: of a command or an option that there is not, its name and the one that may have been meant.
// `argv` is what was parsed.
std::string UsageSentence(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);
