// Signs of eight elements in seven bits: the eighth is such that the number of minuses is even. Parts of expressions of
// formats (base/block_format.h): whether element i has a minus, 0 or 1.
#pragma once

// `bits` is an expression, the seven bits. 27030 says of each number below 16 whether it has an odd number of ones.
#define QUERN_EVEN_SIGNS(bits) "(" bits " | (27030 >> ((" bits " ^ (" bits ") >> 4) & 15) & 1) << 7) >> i % 8 & 1"

// Of groups of 32 with four times seven bits, in the bytes from `first`, an expression, on.
#define QUERN_SEVEN_SIGNS(first)                                     \
  QUERN_EVEN_SIGNS("((u8[" first " + i / 8 % 4 * 7 / 8] | u8[" first \
                   " + i / 8 % 4 * 7 / 8 + 1] << 8) >> "             \
                   "i / 8 % 4 * 7 % 8 & 127)")
