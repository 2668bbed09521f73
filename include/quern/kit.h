/* The kit of language models, libquern_kit.a: text to tokens and back, and the drawing of tokens, in plain C. None of
 * it is needed: a model takes ids and gives logits. It asks for malloc and -lm, and for nothing of the system.
 *
 *   int32_t ids[ADDITION_SEQ_MAX];
 *   int64_t count = quern_encode(&addition_vocabulary, text, strlen(text), QUERN_TEXT_BEGIN, ids, ADDITION_SEQ_MAX);
 *   quern_sampler* sampler = quern_sampler_start(&sampling, ADDITION_VOCABULARY);
 *   ...                                                        // a step, which gives a row of logits
 *   int32_t id = quern_sampler_next(sampler, logits);
 *   const char* bytes;
 *   int64_t size = quern_piece(&addition_vocabulary, id, 0, &bytes);
 *
 * The vocabulary is in the model's object by `quern compile --embed-vocabulary`. Ids, pieces and draws are those of
 * `quern run`. What a vocabulary says is never written; any number of threads may use one. */
#ifndef QUERN_KIT_H_
#define QUERN_KIT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled vocabulary, for the functions below. */
struct quern_vocabulary;

/* How a text is taken; added up. */
enum {
  QUERN_TEXT_BEGIN = 1, /* the token that begins a text in front, and the one that ends it behind, where the model
                            wants them */
  QUERN_TEXT_SPECIAL =
      2 /* control tokens in the text, such as </s>, become their id; text of others is taken without */
};

/* What quern_encode gives in place of a count. */
enum {
  QUERN_TEXT_MEMORY = -1, /* no memory */
  QUERN_TEXT_LONG = -2    /* more than QUERN_TEXT_MOST bytes */
};
#define QUERN_TEXT_MOST ((size_t)1 << 28)

/* The ids of `bytes` bytes of text, any bytes, of which the first `room` go to `ids` (null where room is 0). Gives how
 * many there are, which may be more. Works in memory of its own, about 100 bytes for one of text, and frees it. */
int64_t quern_encode(const struct quern_vocabulary* vocabulary, const char* text, size_t bytes, int32_t flags,
                     int32_t* ids, int64_t room);

/* The bytes of a token, which may be part of a character and are part of the vocabulary: *text, not ended by a zero;
 * gives how many. None for control tokens, unless `special` is not 0, and for ids that there are not. */
int64_t quern_piece(const struct quern_vocabulary* vocabulary, int32_t id, int32_t special, const char** text);

int32_t quern_vocabulary_size(const struct quern_vocabulary* vocabulary);
/* The token that begins a text and the one that ends it; -1 where there is none. */
int32_t quern_vocabulary_begin(const struct quern_vocabulary* vocabulary);
int32_t quern_vocabulary_end(const struct quern_vocabulary* vocabulary);
/* Not 0 where generation ends after this token: that of the end, and those by which published models end a turn. */
int32_t quern_vocabulary_is_end(const struct quern_vocabulary* vocabulary, int32_t id);

/* How a token is drawn; docs/text.md has the formulas. All zeros is the likeliest token each time: every step is left
 * out where its number is 0. */
typedef struct quern_sampling {
  double temperature;       /* 0: the likeliest token */
  int32_t top_k;            /* 0: all */
  int32_t penalty_last;     /* tokens that the penalties look back on; 0: 64, -1: all */
  double top_p;             /* in (0, 1]; 0: all */
  double min_p;             /* in [0, 1] */
  double typical_p;         /* in (0, 1]; 0: all */
  double repeat_penalty;    /* above 0; 0: none, as 1 */
  double frequency_penalty; /* 0: none */
  double presence_penalty;  /* 0: none */
  uint64_t seed;            /* the same seed, the same draws */
} quern_sampling;

typedef struct quern_sampler quern_sampler;

/* For rows of `vocabulary` logits. Null: a number that is out of range, or no memory. Used by one thread at a time. */
quern_sampler* quern_sampler_start(const quern_sampling* sampling, int32_t vocabulary);
/* The next token; NaN and minus infinity are never chosen, and where there is nothing else it is 0. Allocates nothing.
 * Of a null pointer: -1. */
int32_t quern_sampler_next(quern_sampler* sampler, const float* logits);
/* Tokens that came before without being drawn, for the penalties: a prompt's. */
void quern_sampler_observe(quern_sampler* sampler, const int32_t* ids, int64_t count);
/* Forgets what came before: another text begins. Draws go on. */
void quern_sampler_forget(quern_sampler* sampler);
/* Null is let pass. */
void quern_sampler_stop(quern_sampler* sampler);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_KIT_H_ */
