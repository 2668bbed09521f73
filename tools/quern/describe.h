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

// Every option that takes a value, and every flag, may be given by a variable of the environment instead: --top-k by
// QUERN_TOP_K, in all commands that have it. Not those that are answered by programs and libraries alike (QUERN_CACHE,
// QUERN_KERNELS, QUERN_PERF_MAP, QUERN_DEBUG_KERNELS): these have a meaning of their own, and keep it.
void AddEnvironment(CLI::App& app);
