// A text as chunks of tokens that each start anew, as llama.cpp's tools cut one: what is left at its end is not read,
// and the first token of a chunk gives way to the one that begins texts, where the model has them begin so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/model.h"

namespace quern::compiler {

struct TextChunks {
  std::vector<int32_t> ids;
  int64_t chunk = 0;  // tokens
  int64_t count = 0;  // at least one

  std::span<const int32_t> at(int64_t c) const {
    return std::span(ids).subspan(static_cast<size_t>(c * chunk), static_cast<size_t>(chunk));
  }
};

// The model with the tokens of a chunk as its context, which `options` have from then on: 512 where they named none, or
// the model's own length where that is less. Errors: those of OpenModel; kUnimplemented, an encoder.
StatusOr<OpenedModel> OpenForChunks(const std::string& path, Options& options);

// At most `most` chunks of as many tokens as the opened model has positions; 0: all. `parse_special`: control tokens in
// the text become their id. Errors: those of TokenizerOf; kInvalidArgument, a text of less than a chunk.
StatusOr<TextChunks> CutText(const OpenedModel& opened, std::string_view text, int64_t most, bool parse_special);

}  // namespace quern::compiler
