// Random memory for the parameters of a kernel, and comparison of what two runs left in it.
//
// Floats are uniform in -2..2, integers in -8..71 (unsigned: 0..79), block formats hold random quants under scales near
// 1/64, so that sums of a few thousand products stay far from overflow. Planar rows are quantised random floats, with
// the bytes between the planes 0. The same seed gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/extent.h"
#include "base/status.h"
#include "kir/kir.h"

namespace quern::kir {

// Bytes for a buffer of this type; `binding` has the derived symbols.
StatusOr<std::vector<uint8_t>> RandomBuffer(const BufferType& type, const Binding& binding, std::mt19937_64& random);

// Where `got` differs from `want`: "[7] = 1.5, not 1.25", or "". NaN equals NaN. With tolerance 0 the bytes agree else,
// otherwise floats within tolerance * (|want| + the largest |want|), `each` alone: tolerance * |want|, and decoded
// blocks within one step of their scale.
std::string FirstDifference(const BufferType& type, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want,
                            double tolerance, bool each = false);

// Sets the factor of a block, and that of its minimums where it has one: of random bytes they may be infinite.
void PutScales(DType format, uint8_t* block, float d, float dmin);

// What to run of a grid: all of it in two parts, or, of more than `most` chunks, the first, the last and one between.
using ChunkRanges = std::vector<std::pair<int64_t, int64_t>>;
ChunkRanges RandomChunks(int64_t chunks, int64_t most, std::mt19937_64& random);

}  // namespace quern::kir
