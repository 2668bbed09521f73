/* Text to ids: tokens that are cut out of it, and what lies between them, by words of bytes or by characters. */
#include <stdlib.h>
#include <string.h>

#include "kit/tables.h"

/* Bytes of the character that begins with `lead`; a stray continuation byte counts as one. */
static size_t length_of(uint8_t lead) { return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1; }

static int encode_words(const quern_vocabulary* v, const uint8_t* text, size_t size, quern_kit_work* work,
                        quern_kit_ids* ids) {
  const int64_t words = quern_kit_split(v, text, size, work);
  if (words < 0) return 0;
  size_t begin = 0;
  for (int64_t w = 0; w < words; ++w) {
    const size_t end = ((const uint32_t*)work->ends.data)[w], count = end - begin;
    const uint8_t* word = text + begin;
    begin = end;
    const int32_t whole = v->flags & QUERN_VOCABULARY_WHOLE_WORDS ? quern_kit_find(v, word, count) : -1;
    if (whole >= 0) {
      quern_kit_put(ids, whole);
      continue;
    }
    if (!quern_kit_grow(&work->symbols, count * sizeof(quern_kit_symbol))) return 0;
    quern_kit_symbol* symbols = work->symbols.data;
    for (size_t i = 0; i < count; ++i) {
      const int32_t at = (int32_t)i;
      symbols[i] = (quern_kit_symbol){at - 1, i + 1 < count ? at + 1 : -1, (uint32_t)i, 1, v->byte_pieces[word[i]]};
    }
    if (!quern_kit_merge_all(v, word, (int64_t)count, work, ids)) return 0;
  }
  return 1;
}

static int encode_characters(const quern_vocabulary* v, const uint8_t* text, size_t size, int first,
                             quern_kit_work* work, quern_kit_ids* ids) {
  if (!quern_kit_grow(&work->text, 3 * (size + 1))) return 0;
  uint8_t* spelled = work->text.data;
  size_t bytes = 0;
  int space = v->prefix != QUERN_PREFIX_NONE && (v->prefix == QUERN_PREFIX_EACH || text[0] != ' ') &&
              (v->prefix != QUERN_PREFIX_FIRST || first);
  for (size_t at = 0; at < size || space; space = 0) {
    const uint8_t byte = space ? ' ' : text[at++];
    if (byte != ' ') {
      spelled[bytes++] = byte;
      continue;
    }
    memcpy(spelled + bytes, "\xe2\x96\x81", 3); /* U+2581, SentencePiece's visible space */
    bytes += 3;
  }
  int64_t count = 0;
  for (size_t at = 0; at < bytes; ++count) {
    if (!quern_kit_grow(&work->symbols, (size_t)(count + 1) * sizeof(quern_kit_symbol))) return 0;
    const size_t left = bytes - at, own = length_of(spelled[at]), length = own < left ? own : left;
    const int32_t piece = quern_kit_find(v, spelled + at, length), i = (int32_t)count;
    ((quern_kit_symbol*)work->symbols.data)[count] =
        (quern_kit_symbol){i - 1, at + length < bytes ? i + 1 : -1, (uint32_t)at, (uint32_t)length, piece};
    at += length;
  }
  return quern_kit_merge_all(v, spelled, count, work, ids);
}

/* The longest token of a sorted table that the text begins with, or -1. Byte by byte, those that begin like the text
 * are a smaller and smaller part of it. */
static int32_t longest(const quern_vocabulary* v, quern_kit_table table, const uint8_t* text, size_t left,
                       size_t* size) {
  const quern_kit_text* rows = quern_kit_rows(v, table);
  uint32_t low = 0, high = table.count;
  int32_t found = -1;
  for (size_t at = 0;; ++at) {
    if (low < high && rows[low].size == at) {
      found = rows[low++].id;
      *size = at;
    }
    if (low == high || at == left) return found;
    for (int side = 0; side < 2; ++side) { /* the first row not below this byte, then the first above */
      uint32_t from = low, to = high;
      while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (quern_kit_bytes(v, rows[middle])[at] < text[at] + side)
          from = middle + 1;
        else
          to = middle;
      }
      if (side == 0)
        low = from;
      else
        high = from;
    }
  }
}

static int encode_fragments(const quern_vocabulary* v, const uint8_t* text, size_t bytes, int special,
                            quern_kit_work* work, quern_kit_ids* ids) {
  const quern_kit_table table = special ? v->special : v->user;
  const uint32_t* first = special ? v->special_first : v->user_first;
  size_t begin = 0;
  for (size_t at = 0; at <= bytes;) {
    size_t size = 0;
    int32_t found = -1;
    if (at < bytes) {
      if (first[text[at] / 32] >> text[at] % 32 & 1) found = longest(v, table, text + at, bytes - at, &size);
      if (found < 0) {
        ++at;
        continue;
      }
    }
    if (at > begin) {
      const int done = v->flags & QUERN_VOCABULARY_BYTES
                           ? encode_words(v, text + begin, at - begin, work, ids)
                           : encode_characters(v, text + begin, at - begin, begin == 0, work, ids);
      if (!done) return 0;
    }
    if (at == bytes) break;
    quern_kit_put(ids, found);
    begin = at += size;
  }
  return 1;
}

int64_t quern_encode(const quern_vocabulary* v, const char* text, size_t bytes, int32_t flags, int32_t* ids,
                     int64_t room) {
  if (bytes > QUERN_TEXT_MOST) return QUERN_TEXT_LONG;
  quern_kit_ids out = {ids, ids == 0 ? 0 : room, 0};
  quern_kit_work work;
  memset(&work, 0, sizeof(work));
  const int around = flags & QUERN_TEXT_BEGIN;
  if (around && v->flags & QUERN_VOCABULARY_ADD_BEGIN) quern_kit_put(&out, v->begin);
  const int done = encode_fragments(v, (const uint8_t*)text, bytes, (flags & QUERN_TEXT_SPECIAL) != 0, &work, &out);
  if (around && v->flags & QUERN_VOCABULARY_ADD_END) quern_kit_put(&out, v->closing);
  free(work.symbols.data);
  free(work.heap.data);
  free(work.text.data);
  free(work.classes.data);
  free(work.starts.data);
  free(work.ends.data);
  free(work.more_ends.data);
  return done ? out.count : QUERN_TEXT_MEMORY;
}
