// The cache of compiled kernels (docs/cache.md), looked into and tidied up. Results are text for people, as `quern
// cache` prints it. Of the options, `cache` says which folder; errors of all: there is no cache (it is off), or its
// folder cannot be used.
#pragma once

#include <cstdint>
#include <string>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

// Every entry, most recently used first: its bytes, its level, what it is called, and what it computes; damaged files
// with the reason.
Result<std::string> ListCache(const Options& options);

// For each kernel of the model, variant by variant, whether a start with these options finds it; where not, in which
// fields the key of the nearest entry differs. Errors: those of opening the model too.
Result<std::string> ExplainCache(const std::string& model, const Options& options);

// Checks every file, and compiles again what this Quern made for a level that this machine has: the bytes must be the
// same. Damaged files are removed. Error, kInvalid: some object differs; the sentence names it.
Result<std::string> VerifyCache(const Options& options);

// Removes what was used least recently until at most `bytes` are left, and what this Quern cannot use: files of other
// builds and damaged ones.
Result<std::string> CollectCache(const Options& options, int64_t bytes);

// Removes every entry.
Result<std::string> ClearCache(const Options& options);

}  // namespace quern
