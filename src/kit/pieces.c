/* What a vocabulary says of its tokens. */
#include "kit/tables.h"

int64_t quern_piece(const quern_vocabulary* v, int32_t id, int32_t special, const char** text) {
  *text = "";
  if (id < 0 || id >= v->tokens) return 0;
  const quern_kit_text shown = ((const quern_kit_text*)quern_kit_rows(v, v->shown))[id];
  if (!special && shown.id & QUERN_TOKEN_HIDDEN) return 0;
  if (!special && shown.id & QUERN_TOKEN_UNKNOWN) {
    *text = "\xe2\x96\x85"; /* U+2585 */
    return 3;
  }
  *text = (const char*)quern_kit_bytes(v, shown);
  return shown.size;
}

int32_t quern_vocabulary_size(const quern_vocabulary* v) { return v->tokens; }
int32_t quern_vocabulary_begin(const quern_vocabulary* v) { return v->begin; }
int32_t quern_vocabulary_end(const quern_vocabulary* v) { return v->end; }
int32_t quern_vocabulary_is_end(const quern_vocabulary* v, int32_t id) {
  if (id < 0 || id >= v->tokens) return 0;
  return ((const quern_kit_text*)quern_kit_rows(v, v->shown))[id].id & QUERN_TOKEN_ENDS ? 1 : 0;
}
