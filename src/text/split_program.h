// A rule of splitting (pre_tokenizer.h) as a program for kit/split.c, which knows no Unicode: every code point has a
// class, so that all of one class are alike to the rule; sets of characters are bits of classes; an expression is a
// list of steps over them.
//
//   "\s+(?!\S)|\s+"  ->  0 split 4; 1 loop {white} 1..; 2 not before {other}; 3 jump 5; 4 loop {white} 1..; 5 match
//
// What is in a set is asked of ICU's expressions, one code point after the other: nothing here knows how they spell it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kit/vocabulary.h"
#include "text/pre_tokenizer.h"

namespace quern::text {

// The tables of quern_vocabulary of these names.
struct SplitProgram {
  std::vector<uint16_t> blocks;
  std::vector<uint8_t> classes;
  std::vector<uint32_t> sets;
  std::vector<quern_kit_step> steps;
  std::vector<uint32_t> rules;
};

// Error: kUnimplemented, an expression that repeats more than a character, or with other constructs than groups,
// alternatives, ?, *, +, {m,n}, (?i: ), (?! ) of one character, and \z.
StatusOr<SplitProgram> CompileSplitRule(const SplitRule& rule);

}  // namespace quern::text
