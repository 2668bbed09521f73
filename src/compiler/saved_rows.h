// What a model keeps of a text's tokens, as bytes: a mark, how many states and tokens there are, and for each state the
// bytes of a row, then the rows. Sessions and sequences of one model read what the other wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"

namespace quern::compiler {

// Rows of one state: keys or values, one for each token, or what tokens carry on, one for all of them.
struct KeptRows {
  int64_t bytes = 0;  // of a row
  bool carried = false;
  // Of a text of `length` tokens; what they carry on is nothing before the first.
  int64_t all(int64_t length) const { return bytes * (carried ? (length > 0 ? 1 : 0) : length); }
};

// `copy` writes the rows of a state.
std::vector<uint8_t> WriteRows(std::span<const KeptRows> rows, int64_t length,
                               const std::function<void(size_t state, uint8_t* to)>& copy);

struct SavedRows {
  int64_t length = 0;
  std::vector<const uint8_t*> states;  // where the rows of each begin
};
// What WriteRows made for the same `rows`, of no more than `context` tokens. The bytes are not trusted: kInvalid.
StatusOr<SavedRows> ReadRows(std::span<const uint8_t> bytes, std::span<const KeptRows> rows, int64_t context);

}  // namespace quern::compiler
