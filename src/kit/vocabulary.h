/* A compiled vocabulary: what src/text knows of a tokenizer, as tables that need no Unicode and no maps. Written by
 * text/compile_vocabulary.cc, read by the rest of this folder; one piece of memory, aligned to 64 bytes, little-endian.
 *
 * A piece is a text that a symbol may be while neighbours are merged: the tokens, under their ids, and behind them what
 * only merges name. Texts of byte-level vocabularies are bytes here, not the characters that stand for them. */
#ifndef QUERN_KIT_VOCABULARY_H_
#define QUERN_KIT_VOCABULARY_H_

#include <stdint.h>

#include "quern/kit.h"

typedef struct quern_vocabulary quern_vocabulary;
enum { QUERN_VOCABULARY_VERSION = 1 };

/* Where a table begins, from the start of the vocabulary, and how many rows it has. */
typedef struct quern_kit_table {
  uint32_t offset, count;
} quern_kit_table;

/* A text, from the start of the vocabulary, and what it is. */
typedef struct quern_kit_text {
  uint32_t offset, size;
  int32_t id;
} quern_kit_text;

/* Of the piece whose rows these are, with the one to its right. */
typedef struct quern_kit_merge {
  int32_t right, rank, result;
} quern_kit_merge;

/* A step of an expression, over characters that are classes. */
enum {
  QUERN_STEP_MATCH,      /* the expression matches */
  QUERN_STEP_SET,        /* a character of set a */
  QUERN_STEP_LOOP,       /* as many of set a as there are, least to most; fewer where what follows does not match */
  QUERN_STEP_SPLIT,      /* goes on, or else at step a */
  QUERN_STEP_JUMP,       /* to step a */
  QUERN_STEP_NOT_BEFORE, /* no character of set a comes next */
  QUERN_STEP_AT_END      /* nothing comes next */
};
typedef struct quern_kit_step {
  uint32_t op, a, least, most;
} quern_kit_step;
/* Of one expression: each puts at most one row on the stack. */
enum { QUERN_KIT_MOST_STEPS = 128, QUERN_KIT_SET_WORDS = 8 };

enum { QUERN_TOKEN_HIDDEN = 1, QUERN_TOKEN_UNKNOWN = 2, QUERN_TOKEN_ENDS = 4 };

enum {
  QUERN_VOCABULARY_ADD_BEGIN = 1,
  QUERN_VOCABULARY_ADD_END = 2,
  QUERN_VOCABULARY_BYTES = 4,       /* byte-level: split by expressions, merged by rank; else SentencePiece */
  QUERN_VOCABULARY_RANKED = 8,      /* SentencePiece that merges by rank, not by score */
  QUERN_VOCABULARY_WHOLE_WORDS = 16 /* a word that is a token is that token */
};

/* Which fragments get a space in front. */
enum { QUERN_PREFIX_NONE, QUERN_PREFIX_EACH, QUERN_PREFIX_UNLESS_SPACE, QUERN_PREFIX_FIRST };

struct quern_vocabulary {
  uint32_t version, flags, prefix;
  int32_t tokens, begin, end;
  int32_t closing; /* what ADD_END adds; -1: nothing */
  uint32_t reserved;
  quern_kit_table shown;                    /* quern_kit_text a token: its bytes in output; id is QUERN_TOKEN_* flags */
  quern_kit_table texts;                    /* quern_kit_text, sorted by text: the piece of each */
  quern_kit_table special;                  /* the same: tokens that are cut out of a text, control tokens among them */
  quern_kit_table user;                     /* the same without those */
  quern_kit_table scores;                   /* float a token */
  quern_kit_table tokens_of;                /* int32_t a piece: its token, or -1 */
  quern_kit_table first;                    /* uint32_t a piece and one more: where its rows of merges begin */
  quern_kit_table merges;                   /* quern_kit_merge, the right ones rising */
  quern_kit_table blocks;                   /* uint16_t for 256 code points: their block of classes */
  quern_kit_table classes;                  /* uint8_t a code point of a block */
  quern_kit_table sets;                     /* uint32_t, QUERN_KIT_SET_WORDS a set: a bit for each class */
  quern_kit_table steps;                    /* quern_kit_step */
  quern_kit_table rules;                    /* uint32_t an expression: its first step */
  uint32_t special_first[8], user_first[8]; /* a bit for each byte that one of them begins with */
  int32_t byte_pieces[256];                 /* of each byte, the piece it is at first */
  int32_t byte_tokens[256];                 /* the token that it becomes where nothing else is known, or -1 */
};

#endif /* QUERN_KIT_VOCABULARY_H_ */
