// Kernels written by hand, in KIR text (docs/kir.md): what `quern kernel` does.
//
//   quern::Result<std::vector<quern::KernelRun>> runs = quern::RunKernels("scale.kir", {}, {.sizes = {{"M", 64}}});
//   if (!runs.ok()) return Complain(runs.error());      // "3:7: expected an expression, got ..."
//   runs->front().difference.empty();                   // it computes what the interpreter does
//   runs->front().bytes / runs->front().median_ns;      // GB/s
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quern/quern.h"
#include "quern/result.h"

namespace quern {

struct KernelOptions {
  std::string kernel = {};                    // of the file's kernels the one of that name; empty: all
  std::map<std::string, int64_t> sizes = {};  // of symbols; others: 8, or the nearest there is
  uint64_t seed = 1;                          // of the operands: floats in -2..2, whole numbers from -8 to 71
  // How far a float may be from the interpreter's, relative to its size and to that of the largest in its buffer.
  double tolerance = 1e-5;
  double sample_ms = 10;  // what a sample lasts at least, in runs that are averaged
  int samples = 15;       // 0: the kernel is not timed
};

struct KernelRun {
  std::string kernel;
  std::map<std::string, int64_t> sizes;  // of all its symbols
  int64_t chunks = 0;                    // of its grid
  int64_t checked = 0;                   // chunks that the interpreter ran as well: all of them, or as many as it can
  // What differs first: "y[3] = 1.5, not 1.25"; empty: nothing does.
  std::string difference;
  // By the text (the rules of docs/profiling.md): float operations, operations of dot products of bytes, distinct bytes
  // read and written.
  double operations = 0, int8_operations = 0, bytes = 0;
  bool estimate = false;  // these are upper bounds
  // Wall times of a run of all chunks, in nanoseconds; 0 where it was not timed.
  double median_ns = 0, first_quartile_ns = 0, third_quartile_ns = 0, least_ns = 0;
  int threads = 1;
  std::string level;  // of the processor
};

// Reads the kernels of a file, verifies them, compiles them for Options::cpu, runs them on seeded random operands
// beside the interpreter in double, and times them on Options::threads threads (with 0: one). Errors: kResource (no
// file, operands of more than 2^32 bytes); kInvalid with line and column, or with what the verifier found;
// kUnknownName (no such kernel or symbol); kOutOfRange (a size); kUnsupported (a kernel for blocks of threads).
Result<std::vector<KernelRun>> RunKernels(const std::string& path, const Options& options = {},
                                          const KernelOptions& run = {});

}  // namespace quern
