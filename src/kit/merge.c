/* Merging: of the neighbours whose texts together are a piece, those of the highest score (or the first rank) become
 * one, the leftmost first, until there are none. */
#include <stdlib.h>
#include <string.h>

#include "kit/tables.h"

typedef struct candidate {
  float score;
  int32_t left, right, result;
  uint32_t size; /* of both together when it was found: tells a stale one */
} candidate;

static int before(const candidate* a, const candidate* b) {
  return a->score > b->score || (a->score == b->score && a->left < b->left);
}

int quern_kit_grow(quern_kit_room* room, size_t bytes) {
  if (bytes <= room->bytes) return 1;
  const size_t wanted = bytes + bytes / 2 + 64;
  void* data = realloc(room->data, wanted);
  if (data == 0) return 0;
  room->data = data;
  room->bytes = wanted;
  return 1;
}

int32_t quern_kit_find(const quern_vocabulary* v, const uint8_t* text, size_t size) {
  const quern_kit_text* rows = quern_kit_rows(v, v->texts);
  uint32_t low = 0, high = v->texts.count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const size_t own = rows[middle].size;
    int order = memcmp(quern_kit_bytes(v, rows[middle]), text, own < size ? own : size);
    if (order == 0) order = own < size ? -1 : own > size;
    if (order == 0) return rows[middle].id;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return -1;
}

/* The merge of two pieces, or null. */
static const quern_kit_merge* merge_of(const quern_vocabulary* v, int32_t left, int32_t right) {
  if (left < 0 || right < 0) return 0;
  const uint32_t* first = quern_kit_rows(v, v->first);
  const quern_kit_merge* rows = quern_kit_rows(v, v->merges);
  uint32_t low = first[left], high = first[left + 1];
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (rows[middle].right == right) return &rows[middle];
    if (rows[middle].right < right)
      low = middle + 1;
    else
      high = middle;
  }
  return 0;
}

typedef struct heap {
  quern_kit_room* room;
  int64_t count;
} heap;

static int push(heap* h, candidate added) {
  if (!quern_kit_grow(h->room, (size_t)(h->count + 1) * sizeof(candidate))) return 0;
  candidate* rows = h->room->data;
  int64_t at = h->count++;
  for (int64_t above; at > 0; at = above) {
    above = (at - 1) / 2;
    if (!before(&added, &rows[above])) break;
    rows[at] = rows[above];
  }
  rows[at] = added;
  return 1;
}

static candidate pop(heap* h) {
  candidate* rows = h->room->data;
  const candidate top = rows[0], last = rows[--h->count];
  int64_t at = 0;
  for (int64_t below; (below = 2 * at + 1) < h->count; at = below) {
    if (below + 1 < h->count && before(&rows[below + 1], &rows[below])) ++below;
    if (!before(&rows[below], &last)) break;
    rows[at] = rows[below];
  }
  rows[at] = last;
  return top;
}

static int consider(const quern_vocabulary* v, const uint8_t* text, const quern_kit_symbol* symbols, int32_t left,
                    int32_t right, heap* h) {
  if (left < 0 || right < 0) return 1;
  const quern_kit_symbol *l = &symbols[left], *r = &symbols[right];
  const uint32_t size = l->size + r->size;
  if (v->flags & (QUERN_VOCABULARY_BYTES | QUERN_VOCABULARY_RANKED)) {
    const quern_kit_merge* merge = merge_of(v, l->piece, r->piece);
    if (merge == 0) return 1;
    const candidate ranked = {-(float)merge->rank, left, right, merge->result, size};
    return push(h, ranked);
  }
  const int32_t found = quern_kit_find(v, text + l->at, size);
  if (found < 0) return 1;
  const candidate scored = {((const float*)quern_kit_rows(v, v->scores))[found], left, right, found, size};
  return push(h, scored);
}

int quern_kit_merge_all(const quern_vocabulary* v, const uint8_t* text, int64_t count, quern_kit_work* work,
                        quern_kit_ids* ids) {
  quern_kit_symbol* symbols = work->symbols.data;
  const int32_t* tokens_of = quern_kit_rows(v, v->tokens_of);
  heap h = {&work->heap, 0};
  for (int32_t i = 1; i < count; ++i) {
    if (!consider(v, text, symbols, i - 1, i, &h)) return 0;
  }
  while (h.count > 0) {
    const candidate best = pop(&h);
    quern_kit_symbol *left = &symbols[best.left], *right = &symbols[best.right];
    if (left->size == 0 || right->size == 0 || left->size + right->size != best.size) continue;
    left->size = best.size;
    left->piece = best.result;
    right->size = 0;
    left->next = right->next;
    if (right->next >= 0) symbols[right->next].previous = best.left;
    if (!consider(v, text, symbols, left->previous, best.left, &h)) return 0;
    if (!consider(v, text, symbols, best.left, left->next, &h)) return 0;
  }
  for (int32_t i = count > 0 ? 0 : -1; i >= 0; i = symbols[i].next) {
    const int32_t token = symbols[i].piece < 0 ? -1 : tokens_of[symbols[i].piece];
    if (token >= 0) {
      quern_kit_put(ids, token);
    } else {
      for (uint32_t b = 0; b < symbols[i].size; ++b) quern_kit_put(ids, v->byte_tokens[text[symbols[i].at + b]]);
    }
  }
  return 1;
}
