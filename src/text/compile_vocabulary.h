// A tokenizer as one piece of memory that kit/encode.c reads, in C and without Unicode: the vocabulary of a model that
// is compiled ahead of time.
//
//   QUERN_ASSIGN(const std::string vocabulary, CompileVocabulary(tokenizer));   // bytes of a quern_vocabulary
//
// The ids, pieces and ends are the tokenizer's. The same tokenizer gives the same bytes.
#pragma once

#include <string>

#include "base/status.h"
#include "text/tokenizer.h"

namespace quern::text {

// Errors: kUnimplemented, a tokenizer that does not merge (WordPiece), a rule of splitting that is no program, or
// tables of more than 4 GB.
StatusOr<std::string> CompileVocabulary(const Tokenizer& tokenizer);

}  // namespace quern::text
