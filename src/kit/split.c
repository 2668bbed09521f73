/* Text into words, by the expressions of a vocabulary: what an expression matches is a word, what lies between matches
 * too, and the next expression works on each word alone.
 *
 * Expressions repeat single characters only (text/split_program.cc sees to that), so that to match one takes a stack of
 * as many rows as it has steps, however long the text: a loop that may give characters back is one row. */
#include "kit/tables.h"

/* The code point that begins here, or -1 for a byte that is no part of valid UTF-8; how long it is. */
static int32_t decode(const uint8_t* text, size_t left, size_t* size) {
  const uint8_t lead = text[0];
  *size = 1;
  if (lead < 0x80) return lead;
  const size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || left < wanted) return -1;
  int32_t point = lead & (0xff >> (wanted + 1));
  for (size_t i = 1; i < wanted; ++i) {
    if ((text[i] & 0xc0) != 0x80) return -1;
    point = point << 6 | (text[i] & 0x3f);
  }
  const int32_t least = wanted == 4 ? 0x10000 : wanted == 3 ? 0x800 : 0x80;
  if (point < least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return -1;
  *size = wanted;
  return point;
}

static int has(const uint32_t* sets, uint32_t set, uint8_t class) {
  return sets[set * QUERN_KIT_SET_WORDS + class / 32] >> class % 32 & 1;
}

/* Where the match that begins at `at` ends, in characters before `end`; -1: there is none. */
static int64_t match(const uint32_t* sets, const quern_kit_step* steps, const uint8_t* classes, int64_t at,
                     int64_t end) {
  struct {
    uint32_t step;
    int64_t at, least;
  } stack[QUERN_KIT_MOST_STEPS];
  uint32_t depth = 0, now = 0;
  for (;;) {
    const quern_kit_step* step = &steps[now++];
    int fits = 1;
    if (step->op == QUERN_STEP_MATCH) return at;
    if (step->op == QUERN_STEP_SET) {
      fits = at < end && has(sets, step->a, classes[at]);
      at += fits;
    } else if (step->op == QUERN_STEP_LOOP) {
      const int64_t from = at;
      while (at < end && at - from < step->most && has(sets, step->a, classes[at])) ++at;
      fits = at - from >= step->least;
      if (at - from > step->least) {
        stack[depth].step = now;
        stack[depth].at = at - 1;
        stack[depth++].least = from + step->least;
      }
    } else if (step->op == QUERN_STEP_SPLIT) {
      stack[depth].step = step->a;
      stack[depth].at = at;
      stack[depth++].least = at;
    } else if (step->op == QUERN_STEP_JUMP) {
      now = step->a;
    } else if (step->op == QUERN_STEP_NOT_BEFORE) {
      fits = !(at < end && has(sets, step->a, classes[at]));
    } else {
      fits = at == end;
    }
    if (fits) continue;
    if (depth == 0) return -1;
    now = stack[depth - 1].step;
    at = stack[depth - 1].at;
    if (at > stack[depth - 1].least)
      --stack[depth - 1].at;
    else
      --depth;
  }
}

int64_t quern_kit_split(const quern_vocabulary* v, const uint8_t* text, size_t size, quern_kit_work* work) {
  if (!quern_kit_grow(&work->classes, size) || !quern_kit_grow(&work->starts, (size + 1) * sizeof(uint32_t)) ||
      !quern_kit_grow(&work->ends, (size + 1) * sizeof(uint32_t)) ||
      !quern_kit_grow(&work->more_ends, (size + 1) * sizeof(uint32_t)))
    return -1;
  const uint16_t* blocks = quern_kit_rows(v, v->blocks);
  const uint8_t* class_of = quern_kit_rows(v, v->classes);
  const uint32_t* sets = quern_kit_rows(v, v->sets);
  const uint32_t* rules = quern_kit_rows(v, v->rules);
  const quern_kit_step* steps = quern_kit_rows(v, v->steps);
  uint8_t* classes = work->classes.data;
  uint32_t *starts = work->starts.data, *ends = work->ends.data, *more = work->more_ends.data;
  int64_t characters = 0;
  for (size_t at = 0, length; at < size; at += length) {
    const int32_t point = decode(text + at, size - at, &length);
    const int32_t known = point < 0 ? 0xfffd : point;
    classes[characters] = class_of[blocks[known >> 8] * 256 + (known & 0xff)];
    starts[characters++] = (uint32_t)at;
  }
  starts[characters] = (uint32_t)size;
  int64_t words = characters > 0;
  ends[0] = (uint32_t)characters;
  for (uint32_t r = 0; r < v->rules.count; ++r) {
    int64_t made = 0, begin = 0;
    for (int64_t w = 0; w < words; ++w) {
      const int64_t end = ends[w];
      for (int64_t from = begin; from < end;) {
        const int64_t to = match(sets, steps + rules[r], classes, from, end);
        if (to <= from) {
          ++from;
          continue;
        }
        if (from > begin) more[made++] = (uint32_t)from;
        more[made++] = (uint32_t)to;
        begin = from = to;
      }
      if (end > begin) more[made++] = (uint32_t)end;
      begin = end;
    }
    uint32_t* swapped = ends;
    ends = more;
    more = swapped;
    words = made;
  }
  uint32_t* result = work->ends.data;
  for (int64_t w = 0; w < words; ++w) result[w] = starts[ends[w]];
  return words;
}
