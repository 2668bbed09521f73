// An importance matrix: for each weight of a product the sums, over the tokens of some text, of the squares of what its
// columns are multiplied with. Quantising by it errs less where these are large. As llama.cpp has them, in files of two
// forms that are told apart by their first bytes:
//
//   GGUF   general.type "imatrix"; imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size; of each weight NAME the
//          tensors NAME.in_sum2 f32[matrices, columns] and NAME.counts f32[matrices, 1]. Other tensors are left alone
//   .dat   i32 entries, at least 1; of each i32 length, name, i32 calls, i32 numbers, f32 numbers: means times calls.
//          Then, where it goes on, i32 chunks, i32 length, the name of the text
//
// Everything in a file is checked: no sum or count is negative, NaN or infinite.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace quern {

struct ImportanceMatrix {
  // Of a weight of one matrix, or of several, as experts have them, one after the other.
  struct Entry {
    std::vector<float> sums;    // [matrices, columns]
    std::vector<float> counts;  // tokens of each matrix, or one for all
  };
  std::map<std::string, Entry, std::less<>> entries;  // by the weight's tensor: "blk.0.attn_q.weight"
  std::vector<std::string> datasets;                  // names of the texts
  int64_t chunks = 0, chunk_size = 0;                 // 0 where the file does not say
};

// Of each column the mean over tokens; 1 in matrices that no token came to.
std::vector<float> MeansOf(const ImportanceMatrix::Entry& entry);

// Errors: Unavailable, a file that cannot be read; InvalidArgument, what is wrong and where. `bytes` alone: the same of
// bytes in memory (tests, fuzzing).
StatusOr<ImportanceMatrix> ReadImportance(const std::string& path);
StatusOr<ImportanceMatrix> ParseImportance(std::span<const uint8_t> bytes);
// The bytes of a file, in GGUF.
std::string ImportanceFile(const ImportanceMatrix& matrix);

}  // namespace quern
