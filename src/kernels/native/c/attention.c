// Paged attention with online softmax, cut into (sequence, KV head, tile of tokens): pages are widened to f32 once and meet
// every query row of the tile and head group. A row's arithmetic depends only on its own pages, in order.
#include "lanes.h"
#include "pack.h"
#include "vector-math.h"
#include <string.h>

// At most, heads of a group included (../recorded-pack.ts bounds them).
enum { MAX_ROWS = 64 };
static const float LOWEST = -3.0e38f; // lower than any real score, yet finite: differences never become NaN

// args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 k, 8 v, 9 slots, 10 tokens, 11 f32 pages.
void rows_write_kv(const Context *c, const Record *op, int first, int end) {
  const int kv_heads = arg_i(op, 5), head_dim = arg_i(op, 6), is_float = arg_i(op, 11);
  const size_t width = (size_t)kv_heads * head_dim;
  const int32_t *slots = (const int32_t *)(c->base + arg_u(op, 9));
  for (int t = first; t < end; t++) {
    uint8_t *page = c->base + arg_u(op, 2) + arg_u(op, 4) + (size_t)(slots[t] / PAGE_TOKENS) * arg_u(op, 3);
    const size_t slot = (size_t)(slots[t] % PAGE_TOKENS);
    const float *k = (const float *)(c->base + arg_u(op, 7)) + t * width, *v = (const float *)(c->base + arg_u(op, 8)) + t * width;
    for (size_t i = 0; i < width; i++) {
      const size_t key_at = i * PAGE_TOKENS + slot;
      const size_t value_at = width * PAGE_TOKENS + (i / head_dim * PAGE_TOKENS + slot) * head_dim + i % head_dim;
      if (is_float) ((float *)page)[key_at] = k[i], ((float *)page)[value_at] = v[i];
      else ((uint16_t *)page)[key_at] = float_to_half(k[i]), ((uint16_t *)page)[value_at] = float_to_half(v[i]);
    }
  }
}

typedef struct {
  float max, sum;
} State;

// Keys that one step of the softmax takes: whole pages from a multiple of SPAN on, wherever a tile begins, so that a row's
// arithmetic is its own.
enum { SPAN_PAGES = 4, SPAN = SPAN_PAGES * PAGE_TOKENS, ROWS = 32 };

// s[row][16] = q[row] . keys of a page, for `count` rows that share each load of keys.
INLINE void score_rows(const float *const *q, const int count, const float *keys, int head_dim, float *s) {
  Lanes sum[8];
  UNROLL for (int i = 0; i < count; i++) sum[i] = (Lanes){0};
  for (int d = 0; d < head_dim; d++) {
    const Lanes k = load(keys + d * PAGE_TOKENS);
    UNROLL for (int i = 0; i < count; i++) sum[i] += q[i][d] * k;
  }
  UNROLL for (int i = 0; i < count; i++) store(s + i * SPAN, sum[i]);
}

// out[row] += sum of weights s[row][t] times values[t], t in [from, to), for `count` rows that share each load of values.
INLINE void add_values(float *const *out, const int count, const float *s, const float *values, int head_dim, int from, int to) {
  int d = 0;
  for (; d + 64 <= head_dim; d += 64) {
    Lanes sum[4][4];
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int j = 0; j < 4; j++) sum[i][j] = load(out[i] + d + j * 16);
    for (int t = from; t < to; t++)
      UNROLL for (int j = 0; j < 4; j++) {
        const Lanes v = load(values + (size_t)t * head_dim + d + j * 16);
        UNROLL for (int i = 0; i < count; i++) sum[i][j] += s[i * SPAN + t] * v;
      }
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int j = 0; j < 4; j++) store(out[i] + d + j * 16, sum[i][j]);
  }
  for (; d + 16 <= head_dim; d += 16)
    for (int i = 0; i < count; i++) {
      Lanes sum = load(out[i] + d);
      for (int t = from; t < to; t++) sum += s[i * SPAN + t] * load(values + (size_t)t * head_dim + d);
      store(out[i] + d, sum);
    }
  for (; d < head_dim; d++)
    for (int i = 0; i < count; i++)
      for (int t = from; t < to; t++) out[i][d] += s[i * SPAN + t] * values[(size_t)t * head_dim + d];
}

// Scores to weights of one row: softcap, mask, running maximum. Returns what the row's earlier sum must be multiplied with.
static float soften(float *s, int from, int to, float scale, float cap, State *state) {
  for (int t = 0; t < SPAN; t++) s[t] *= scale;
  if (cap > 0)
    for (int t = 0; t < SPAN; t++) s[t] = cap * fast_tanh(s[t] / cap);
  float max = state->max;
  float highest[16];
  int has_nan = 0;
  // Masked scores may be anything: memory that was never written.
  for (int t = 0; t < from; t++) s[t] = LOWEST;
  for (int t = to; t < SPAN; t++) s[t] = LOWEST;
  for (int i = 0; i < 16; i++) highest[i] = LOWEST;
  for (int t = 0; t < SPAN; t += 16)
    for (int i = 0; i < 16; i++) {
      highest[i] = s[t + i] > highest[i] ? s[t + i] : highest[i];
      has_nan |= s[t + i] != s[t + i];
    }
  for (int i = 0; i < 16; i++) max = highest[i] > max ? highest[i] : max;
  if (has_nan) max = NAN;
  for (int t = 0; t < SPAN; t++) s[t] = fast_exp(s[t] - max);
  for (int t = 0; t < from; t++) s[t] = 0; // exactly nothing
  for (int t = to; t < SPAN; t++) s[t] = 0;
  const float decay = state->max == LOWEST ? 0 : fast_exp(state->max - max);
  float sums[16] = {0}, sum = 0;
  for (int t = 0; t < SPAN; t += 16)
    for (int i = 0; i < 16; i++) sums[i] += s[t + i];
  for (int i = 0; i < 16; i++) sum += sums[i];
  state->max = max;
  state->sum = state->sum * decay + sum;
  return decay;
}

typedef struct {
  int from, to; // within the span
} Range;

static Range visible(int position, int window, int span_start) {
  const int first = window > 0 && position - window + 1 > span_start ? position - window + 1 - span_start : 0;
  const int end = position - span_start + 1;
  return (Range){first, end < SPAN ? end : SPAN};
}

// Pages of the span as f32: keys[page][head_dim][16], values[64][head_dim]. Pages beyond the last are left alone.
static void widen_span(const Context *c, const Record *op, const int32_t *table, int kv_head, int first_page, int end_page, float *keys, float *values) {
  const int kv_heads = arg_i(op, 5), head_dim = arg_i(op, 6), n = head_dim * PAGE_TOKENS;
  for (int page = first_page; page < end_page; page++, keys += n, values += n) {
    const int id = table[page];
    if (id < 0) widen_packed(c->base + arg_u(op, 17) + (size_t)~id * arg_u(op, 18), arg_i(op, 19), kv_head, head_dim, keys, values);
    else widen_float(c->base + arg_u(op, 2) + arg_u(op, 4) + (size_t)id * arg_u(op, 3), arg_i(op, 16), kv_heads, kv_head, head_dim, keys, values);
  }
}

static int tile_tokens(int group) { return group < ROWS ? ROWS / group : 1; }

static void attend_tile(const Context *c, const Record *op, const int32_t *sequence, int kv_head, int first_token) {
  const int kv_heads = arg_i(op, 5), head_dim = arg_i(op, 6), heads = arg_i(op, 9), window = arg_i(op, 14);
  const int num_rows = sequence[1], group = heads / kv_heads, in_tile = tile_tokens(group);
  const int tokens = num_rows - first_token < in_tile ? num_rows - first_token : in_tile, rows = tokens * group;
  const int lowest = sequence[2] - num_rows + first_token, highest = lowest + tokens - 1;
  const int32_t *table = (const int32_t *)(c->base + arg_u(op, 12)) + sequence[3];
  float *keys = (float *)c->scratch, *values = keys + (size_t)SPAN * head_dim, *s = values + (size_t)SPAN * head_dim;
  State *states = (State *)(s + (size_t)MAX_ROWS * SPAN);
  const float *q[MAX_ROWS];
  float *out[MAX_ROWS];
  for (int i = 0; i < rows; i++) {
    const size_t row = (size_t)(sequence[0] + first_token + i / group) * heads + kv_head * group + i % group;
    q[i] = (const float *)(c->base + arg_u(op, 7)) + row * head_dim;
    out[i] = (float *)(c->base + arg_u(op, 8)) + row * head_dim;
    memset(out[i], 0, sizeof(float) * (size_t)head_dim);
    states[i] = (State){LOWEST, 0};
  }
  const int first_seen = window > 0 && lowest - window + 1 > 0 ? lowest - window + 1 : 0;
  for (int start = first_seen / SPAN * SPAN; start <= highest; start += SPAN) {
    const int first_page = start / PAGE_TOKENS, last = highest / PAGE_TOKENS;
    const int end_page = first_page + SPAN_PAGES < last + 1 ? first_page + SPAN_PAGES : last + 1;
    widen_span(c, op, table, kv_head, first_page, end_page, keys, values);
    for (int page = 0; page < end_page - first_page; page++) {
      const float *k = keys + (size_t)page * PAGE_TOKENS * head_dim;
      int i = 0;
      for (; i + 8 <= rows; i += 8) score_rows(q + i, 8, k, head_dim, s + i * SPAN + page * PAGE_TOKENS);
      for (; i + 4 <= rows; i += 4) score_rows(q + i, 4, k, head_dim, s + i * SPAN + page * PAGE_TOKENS);
      for (; i < rows; i++) score_rows(q + i, 1, k, head_dim, s + i * SPAN + page * PAGE_TOKENS);
    }
    for (int i = 0; i < rows; i++) {
      const Range range = visible(lowest + i / group, window, start);
      if (range.from >= range.to) continue;
      const float decay = soften(s + i * SPAN, range.from, range.to, arg_f(op, 13), arg_f(op, 15), &states[i]);
      for (int d = 0; d < head_dim; d++) out[i][d] *= decay;
    }
    for (int i = 0; i < rows;) {
      const Range range = visible(lowest + i / group, window, start);
      int alike = 1;
      while (alike < 4 && i + alike < rows) {
        const Range other = visible(lowest + (i + alike) / group, window, start);
        if (other.from != range.from || other.to != range.to) break;
        alike++;
      }
      if (range.from >= range.to) alike = 1;
      else if (alike == 4) add_values(out + i, 4, s + i * SPAN, values, head_dim, range.from, range.to);
      else if (alike >= 2) add_values(out + i, 2, s + i * SPAN, values, head_dim, range.from, range.to), alike = 2;
      else add_values(out + i, 1, s + i * SPAN, values, head_dim, range.from, range.to);
      i += alike;
    }
  }
  for (int i = 0; i < rows; i++) {
    const float factor = 1 / states[i].sum;
    for (int d = 0; d < head_dim; d++) out[i][d] *= factor;
  }
}

// args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 q, 8 out, 9 heads, 10 sequences, 11 number of sequences,
// 12 pageTables, 13 scale, 14 window, 15 softcap, 16 kind of pages; 17 base with layer, 18 pageBytes, 19 kind of packed pages.
void op_attention(const Context *c, const Record *program, const Record *op) {
  const int kv_heads = arg_i(op, 5), count = arg_i(op, 11), in_tile = tile_tokens(arg_i(op, 9) / kv_heads);
  const int32_t *sequences = (const int32_t *)(c->base + arg_u(op, 10));
  int next = take_chunk(c, program, op), first = 0;
  for (int s = 0; s < count; s++) {
    const int chunks = (sequences[s * 4 + 1] + in_tile - 1) / in_tile * kv_heads;
    for (; next < first + chunks; next = take_chunk(c, program, op))
      attend_tile(c, op, sequences + s * 4, (next - first) % kv_heads, (next - first) / kv_heads * in_tile);
    first += chunks;
  }
}
