// The JSON form of a program: what `quern compile --target` writes beside the text, and what every host runtime reads.
// Its fields are in docs/gpu.md. Deterministic; sizes are polynomials in the symbols, as text ("256*PAST_SEQ + 64").
//
//   const std::string json = WriteManifest(program, {.text = "llama.ptx"});
//   QUERN_ASSIGN(const Manifest read, ReadManifest(json));    // read.program, which verifies
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "device/program.h"

namespace quern::device {

inline constexpr int kManifestVersion = 2;

// What the manifest says beside the program.
struct ManifestFiles {
  std::string text;                 // file of the kernels, in the manifest's folder
  int64_t weight_bytes = 0;         // of the model file that parameters lie in; 0: none
  int64_t weight_header_bytes = 0;  // before its first tensor, and
  std::string weight_header_hash;   // their hash, quern_header_hash in hex
  bool operator==(const ManifestFiles&) const = default;
};

struct Manifest {
  Program program;
  ManifestFiles files;
};

std::string WriteManifest(const Program& program, const ManifestFiles& files);

// The text may be anything. Errors say where and what: "manifest: variants[0].launches[3].kernel: a number expected".
StatusOr<Manifest> ReadManifest(std::string_view json);

}  // namespace quern::device
