// How a command line is read, by quern and by quern-serve alike: options, the variables that may stand for them, and
// one sentence with a suggestion for a line that cannot be.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

// Reads it. The exit status where there is nothing left to do: 0 after --help and --version, 2 after a line that cannot
// be.
//
// Every option that takes a value, and every flag, may be given by a variable of the environment instead: --top-k by
// QUERN_TOP_K, in all commands that have it. Not those that are answered by programs and libraries alike (QUERN_CACHE,
// QUERN_KERNELS, QUERN_PERF_MAP, QUERN_DEBUG_KERNELS): these have a meaning of their own, and keep it.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv);
