/* The next token from a row of logits: the steps of generate/sampler.cc and generate/stages, in their order, with the
 * same arithmetic, so that the same numbers and the same seed give the same token. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quern/kit.h"

typedef struct candidate {
  int32_t id;
  float logit;
  double weight;   /* probability, not normalised */
  double distance; /* typical_p: of the surprise from the entropy */
} candidate;

struct quern_sampler {
  quern_sampling o;
  int32_t vocabulary, penalised;
  uint64_t draws;
  int64_t seen;    /* tokens so far */
  int32_t* last;   /* the last o.penalty_last of them, in turn; null: all count */
  int32_t* counts; /* of each token among those */
  candidate* rows;
};

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): 53 bits of it as a number in [0, 1). */
static double uniform(quern_sampler* s) {
  uint32_t c[4] = {(uint32_t)s->draws, (uint32_t)(s->draws >> 32), 0, 0};
  uint32_t k[2] = {(uint32_t)s->o.seed, (uint32_t)(s->o.seed >> 32)};
  ++s->draws;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    const uint32_t c0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k[0], c2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k[1];
    c[0] = c0;
    c[1] = (uint32_t)p1;
    c[2] = c2;
    c[3] = (uint32_t)p0;
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return (double)(((uint64_t)c[0] << 32 | c[1]) >> 11) * 0x1p-53;
}

/* Most likely first, smaller ids first among equals. */
static int before(const candidate* a, const candidate* b) {
  return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}
static int by_logit(const void* a, const void* b) { return before(a, b) ? -1 : 1; }
static int by_id(const void* a, const void* b) {
  return ((const candidate*)a)->id < ((const candidate*)b)->id ? -1 : 1;
}
/* Nearest to the entropy first, then the more likely. */
static int by_distance(const void* a, const void* b) {
  const double da = ((const candidate*)a)->distance, db = ((const candidate*)b)->distance;
  return da != db ? (da < db ? -1 : 1) : by_logit(a, b);
}

/* The k-th in the order of `before`, by quickselect, which moves rows. */
static float kth_logit(candidate* rows, int64_t count, int64_t k) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    const candidate pivot = rows[low + (high - low) / 2];
    int64_t i = low - 1, j = high + 1;
    for (;;) {
      do ++i;
      while (before(&rows[i], &pivot));
      do --j;
      while (before(&pivot, &rows[j]));
      if (i >= j) break;
      const candidate row = rows[i];
      rows[i] = rows[j];
      rows[j] = row;
    }
    if (k <= j)
      high = j;
    else
      low = j + 1;
  }
  return rows[k].logit;
}

static int64_t top_k(const quern_sampler* s, int64_t count) {
  if (s->o.top_k == 0 || s->o.top_k >= count) return count;
  const float least = kth_logit(s->rows, count, s->o.top_k - 1);
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!(s->rows[i].logit < least)) s->rows[kept++] = s->rows[i];
  }
  return kept;
}

/* The first rows whose weights reach `share` of the total together, at least one. */
static int64_t reach(const candidate* rows, int64_t count, double share, double total) {
  double reached = 0;
  int64_t kept = 0;
  while (kept < count && reached < share * total) reached += rows[kept++].weight;
  return kept > 0 ? kept : 1;
}

static double total_of(const candidate* rows, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += rows[i].weight;
  return total;
}

static int64_t typical(const quern_sampler* s, int64_t count) {
  qsort(s->rows, (size_t)count, sizeof(candidate), by_logit); /* sums are in this order */
  const double total = total_of(s->rows, count);
  double entropy = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double p = s->rows[i].weight / total;
    if (p > 0) entropy -= p * log(p);
  }
  for (int64_t i = 0; i < count; ++i) {
    const double p = s->rows[i].weight / total;
    s->rows[i].distance = p > 0 ? fabs(-log(p) - entropy) : INFINITY;
  }
  qsort(s->rows, (size_t)count, sizeof(candidate), by_distance);
  return reach(s->rows, count, s->o.typical_p, total);
}

static int64_t top_p(const quern_sampler* s, int64_t count) {
  qsort(s->rows, (size_t)count, sizeof(candidate), by_logit);
  return reach(s->rows, count, s->o.top_p, total_of(s->rows, count));
}

static int64_t min_p(const quern_sampler* s, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = s->rows[i].weight > largest ? s->rows[i].weight : largest;
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!(s->rows[i].weight < s->o.min_p * largest)) s->rows[kept++] = s->rows[i];
  }
  return kept;
}

static void penalise(const quern_sampler* s, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    candidate* row = &s->rows[i];
    const int32_t times = s->counts[row->id];
    if (times == 0) continue;
    double logit = row->logit;
    logit = logit > 0 ? logit / s->o.repeat_penalty : logit * s->o.repeat_penalty;
    row->logit = (float)(logit - times * s->o.frequency_penalty - s->o.presence_penalty);
  }
}

static int32_t choose(quern_sampler* s, const float* logits) {
  int64_t count = 0;
  for (int32_t id = 0; id < s->vocabulary; ++id) {
    if (!(logits[id] > -INFINITY)) continue; /* nor NaN */
    s->rows[count] = (candidate){id, logits[id], 1, 0};
    ++count;
  }
  if (count == 0) return 0;
  if (s->penalised) penalise(s, count);
  count = top_k(s, count);
  const candidate* best = &s->rows[0];
  for (int64_t i = 1; i < count; ++i) best = before(&s->rows[i], best) ? &s->rows[i] : best;
  if (s->o.temperature == 0) return best->id;
  const float largest = best->logit;
  const double temperature = s->o.temperature < 1e-6 ? 1e-6 : s->o.temperature;
  for (int64_t i = 0; i < count; ++i) {
    /* Infinite logits share everything between them; inf - inf would be NaN. */
    const float logit = s->rows[i].logit;
    s->rows[i].weight = logit == largest ? 1 : exp(((double)logit - largest) / temperature);
  }
  if (s->o.typical_p < 1) count = typical(s, count);
  if (s->o.top_p < 1) count = top_p(s, count);
  if (s->o.min_p > 0) count = min_p(s, count);
  qsort(s->rows, (size_t)count, sizeof(candidate), by_id);
  best = &s->rows[0];
  for (int64_t i = 1; i < count; ++i) best = before(&s->rows[i], best) ? &s->rows[i] : best;
  const double target = uniform(s) * total_of(s->rows, count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += s->rows[i].weight;
    if (target < sum) return s->rows[i].id;
  }
  return best->id; /* rounding left the sum just under the target */
}

quern_sampler* quern_sampler_start(const quern_sampling* sampling, int32_t vocabulary) {
  if (sampling == 0 || vocabulary < 1) return 0;
  quern_sampling o = *sampling;
  if (o.penalty_last == 0) o.penalty_last = 64;
  if (o.top_p == 0) o.top_p = 1;
  if (o.typical_p == 0) o.typical_p = 1;
  if (o.repeat_penalty == 0) o.repeat_penalty = 1;
  if (!(o.temperature >= 0) || isinf(o.temperature) || o.top_k < 0 || !(o.top_p > 0 && o.top_p <= 1) ||
      !(o.min_p >= 0 && o.min_p <= 1) || !(o.typical_p > 0 && o.typical_p <= 1) || !(o.repeat_penalty > 0) ||
      isinf(o.repeat_penalty) || !isfinite(o.frequency_penalty) || !isfinite(o.presence_penalty) || o.penalty_last < -1)
    return 0;
  quern_sampler* s = calloc(1, sizeof(quern_sampler));
  if (s == 0) return 0;
  s->o = o;
  s->vocabulary = vocabulary;
  s->penalised = o.repeat_penalty != 1 || o.frequency_penalty != 0 || o.presence_penalty != 0;
  s->rows = malloc((size_t)vocabulary * sizeof(candidate));
  if (s->penalised) {
    s->counts = calloc((size_t)vocabulary, sizeof(int32_t));
    if (o.penalty_last > 0) s->last = malloc((size_t)o.penalty_last * sizeof(int32_t));
  }
  if (s->rows == 0 || (s->penalised && (s->counts == 0 || (o.penalty_last > 0 && s->last == 0)))) {
    quern_sampler_stop(s);
    return 0;
  }
  return s;
}

void quern_sampler_observe(quern_sampler* s, const int32_t* ids, int64_t count) {
  if (s == 0 || !s->penalised) return;
  for (int64_t i = 0; i < count; ++i) {
    if (s->last != 0) {
      int32_t* slot = &s->last[s->seen % s->o.penalty_last];
      if (s->seen >= s->o.penalty_last && *slot >= 0 && *slot < s->vocabulary) --s->counts[*slot];
      *slot = ids[i];
    }
    ++s->seen;
    if (ids[i] >= 0 && ids[i] < s->vocabulary) ++s->counts[ids[i]];
  }
}

int32_t quern_sampler_next(quern_sampler* s, const float* logits) {
  if (s == 0 || logits == 0) return -1;
  const int32_t id = choose(s, logits);
  quern_sampler_observe(s, &id, 1);
  return id;
}

void quern_sampler_forget(quern_sampler* s) {
  if (s == 0) return;
  s->seen = 0;
  if (s->counts != 0) memset(s->counts, 0, (size_t)s->vocabulary * sizeof(int32_t));
}

void quern_sampler_stop(quern_sampler* s) {
  if (s == 0) return;
  free(s->last);
  free(s->counts);
  free(s->rows);
  free(s);
}
