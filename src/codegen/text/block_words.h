// What the helpers that decode block formats say of one format, as text, from base/block_format.h:
//
//   $B elements and $N bytes of a block     $G elements that share a scale     $S quants a sum, of activations
//   $M, $X, $A whether groups have minimums and scales of their own, and blocks a number that is added, 1 or 0
//   $fields    lines that name the bytes that element `i` of `block` needs, all before any branch so that neighbours
//              share them, and from them its fields: `code`, `d` and where there are any `scale`, `minimum`, `dmin`,
//              `added`
//   $given     these as parameters     $names their names     $members as members of a structure, $of_e as those of `e`
//   $value     the product that they stand for and, after a comma, the minimum; $less takes that away, or adds `added`
//   $levels    the numbers of its table     $grid the words of its grid
#pragma once

#include "codegen/text/language.h"

namespace quern::text {

// Precondition: IsBlock(dtype).
Language::Words BlockWords(DType dtype);

}  // namespace quern::text
