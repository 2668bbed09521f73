/* Reading a vocabulary's tables, and what encode.c, split.c and merge.c have of each other. */
#ifndef QUERN_KIT_TABLES_H_
#define QUERN_KIT_TABLES_H_

#include <stddef.h>
#include <stdint.h>

#include "kit/vocabulary.h"
#include "quern/kit.h"

static inline const void* quern_kit_rows(const quern_vocabulary* v, quern_kit_table table) {
  return (const char*)v + table.offset;
}
static inline const uint8_t* quern_kit_bytes(const quern_vocabulary* v, quern_kit_text text) {
  return (const uint8_t*)v + text.offset;
}

/* Where ids go. */
typedef struct quern_kit_ids {
  int32_t* at;
  int64_t room, count;
} quern_kit_ids;
static inline void quern_kit_put(quern_kit_ids* ids, int32_t id) {
  if (id < 0) return;
  if (ids->count < ids->room) ids->at[ids->count] = id;
  ++ids->count;
}

/* Memory that grows. */
typedef struct quern_kit_room {
  void* data;
  size_t bytes;
} quern_kit_room;
/* At least so many bytes, the old ones kept; 0: there is no memory. */
int quern_kit_grow(quern_kit_room* room, size_t bytes);

typedef struct quern_kit_symbol {
  int32_t previous, next; /* -1: none */
  uint32_t at, size;      /* in the text; merged ones have no size */
  int32_t piece;          /* -1: none */
} quern_kit_symbol;

/* Room to work in, for a whole text. */
typedef struct quern_kit_work {
  quern_kit_room symbols, heap, text, classes, starts, ends, more_ends;
} quern_kit_work;

/* The piece of a text, or -1. */
int32_t quern_kit_find(const quern_vocabulary* v, const uint8_t* text, size_t size);

/* Merges the neighbours among `count` symbols of `text`, best first, and puts their tokens; 0: no memory. */
int quern_kit_merge_all(const quern_vocabulary* v, const uint8_t* text, int64_t count, quern_kit_work* work,
                        quern_kit_ids* ids);

/* Cuts a text into words: gives how many there are, whose ends in bytes are in work->ends; -1: no memory. */
int64_t quern_kit_split(const quern_vocabulary* v, const uint8_t* text, size_t size, quern_kit_work* work);

#endif /* QUERN_KIT_TABLES_H_ */
