// Paged attention with online softmax, split into (sequence, KV head, tile of tokens): pages are widened to f32 once for all
// query rows of the tile and head group. A row's arithmetic depends only on its own pages, in order.
#include "pack.h"
#include "vector-math.h"
#include <string.h>

// Limits that ../recorded-pack.ts enforces.
enum { MAX_ROWS = 64, MAX_HEAD_DIM = 576 };
static const float LOWEST = -3.0e38f; // lower than any real score, yet finite: differences never become NaN

// args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 k, 8 v, 9 slots, 10 tokens, 11 f32 pages.
void rows_write_kv(const Context *c, const Record *op, int first, int end) {
  const int kv_heads = arg_i(op, 5), head_dim = arg_i(op, 6), is_float = arg_i(op, 11);
  const size_t width = (size_t)kv_heads * head_dim, n = (size_t)head_dim * PAGE_TOKENS;
  const int32_t *slots = (const int32_t *)(c->base + arg_u(op, 9));
  for (int t = first; t < end; t++) {
    uint8_t *page = c->base + arg_u(op, 2) + arg_u(op, 4) + (size_t)(slots[t] / PAGE_TOKENS) * arg_u(op, 3);
    const size_t slot = (size_t)(slots[t] % PAGE_TOKENS);
    const float *k = (const float *)(c->base + arg_u(op, 7)) + t * width, *v = (const float *)(c->base + arg_u(op, 8)) + t * width;
    for (int head = 0; head < kv_heads; head++, k += head_dim, v += head_dim) {
      const size_t key_at = (size_t)head * n + slot, value_at = ((size_t)(kv_heads + head) * PAGE_TOKENS + slot) * head_dim;
      if (is_float) {
        for (int d = 0; d < head_dim; d++) ((float *)page)[key_at + (size_t)d * PAGE_TOKENS] = k[d];
        memcpy((float *)page + value_at, v, sizeof(float) * (size_t)head_dim);
      } else {
        uint16_t halves[MAX_HEAD_DIM];
        narrow_f16(k, halves, head_dim);
        for (int d = 0; d < head_dim; d++) ((uint16_t *)page)[key_at + (size_t)d * PAGE_TOKENS] = halves[d];
        narrow_f16(v, (uint16_t *)page + value_at, head_dim);
      }
    }
  }
}

typedef struct {
  float max, sum;
} State;

// Keys per softmax step: whole pages from a multiple of SPAN on, wherever a tile starts, so that a row's arithmetic does not
// depend on the tile.
enum { SPAN_PAGES = 4, SPAN = SPAN_PAGES * PAGE_TOKENS, ROWS = 32 };

// Groups of sixteen floats that a row has in registers: as many as fit with four rows side by side, four with one row.
enum { SHARED_SIXTEENS = WIDE == 1 ? 4 : 1 };
// s[row][..] = q[row] . keys of `pages` pages, for `count` rows that share each load of keys; scores beyond the last page are undefined.
INLINE void score_pages(const float *const *q, const int count, const int pages, const float *keys, int head_dim, float *s) {
  Register sum[4][SPAN_PAGES * WIDE];
  UNROLL for (int i = 0; i < count; i++) UNROLL for (int j = 0; j < pages * WIDE; j++) sum[i][j] = (Register){0};
  for (int d = 0; d < head_dim; d++)
    UNROLL for (int j = 0; j < pages * WIDE; j++) {
      const Register k = load_register(keys + ((size_t)(j / WIDE) * head_dim + d) * PAGE_TOKENS + j % WIDE * REGISTER_FLOATS);
      UNROLL for (int i = 0; i < count; i++) sum[i][j] += q[i][d] * k;
    }
  UNROLL for (int i = 0; i < count; i++) UNROLL for (int j = 0; j < pages * WIDE; j++) store_register(s + i * SPAN + j * REGISTER_FLOATS, sum[i][j]);
}

INLINE void score_rows(const float *const *q, const int count, const float *keys, int head_dim, float *s) {
  const int pages = count == 1 ? SPAN_PAGES : SHARED_SIXTEENS;
  for (int j = 0; j < SPAN_PAGES; j += pages) score_pages(q, count, pages, keys + (size_t)j * head_dim * PAGE_TOKENS, head_dim, s + j * PAGE_TOKENS);
}

// 16 * `sixteens` floats of out[row] += sum of weights s[row][t] times values[t], t in [from, to), for `count` rows that share each load.
INLINE void add_columns(float *const *out, const int count, const int sixteens, const float *s, const float *values, int head_dim, int from, int to) {
  Register sum[4][4 * WIDE];
  UNROLL for (int i = 0; i < count; i++) UNROLL for (int j = 0; j < sixteens * WIDE; j++) sum[i][j] = load_register(out[i] + j * REGISTER_FLOATS);
  for (int t = from; t < to; t++)
    UNROLL for (int j = 0; j < sixteens * WIDE; j++) {
      const Register v = load_register(values + (size_t)t * head_dim + j * REGISTER_FLOATS);
      UNROLL for (int i = 0; i < count; i++) sum[i][j] += s[i * SPAN + t] * v;
    }
  UNROLL for (int i = 0; i < count; i++) UNROLL for (int j = 0; j < sixteens * WIDE; j++) store_register(out[i] + j * REGISTER_FLOATS, sum[i][j]);
}

INLINE void add_values(float *const *rows, const int count, const float *s, const float *values, int head_dim, int from, int to) {
  const int most = count == 1 ? 4 : SHARED_SIXTEENS;
  float *out[4];
  int d = 0;
  if (from >= to) return;
  for (int sixteens; d + 16 <= head_dim; d += 16 * sixteens) {
    UNROLL for (int i = 0; i < count; i++) out[i] = rows[i] + d;
    sixteens = (head_dim - d) / 16;
    if (sixteens > most) sixteens = most;
    if (most == 1 || sixteens == 1) add_columns(out, count, 1, s, values + d, head_dim, from, to);
    else if (sixteens == 4) add_columns(out, count, 4, s, values + d, head_dim, from, to);
    else if (sixteens == 3) add_columns(out, count, 3, s, values + d, head_dim, from, to);
    else add_columns(out, count, 2, s, values + d, head_dim, from, to);
  }
  for (; d < head_dim; d++)
    for (int i = 0; i < count; i++)
      for (int t = from; t < to; t++) rows[i][d] += s[i * SPAN + t] * values[(size_t)t * head_dim + d];
}

// Turns a row's scores into weights: softcap, mask, running maximum. Returns the factor for the row's earlier sum.
static float soften(float *s, int from, int to, float scale, float cap, State *state) {
  enum { NUM = SPAN / REGISTER_FLOATS };
  Register highest[WIDE], sums[WIDE];
  RegisterInts nan = {0}, first, seen[NUM];
  for (int i = 0; i < REGISTER_FLOATS; i++) first[i] = i;
  UNROLL for (int i = 0; i < WIDE; i++) highest[i] = LOWEST - (Register){0}, sums[i] = (Register){0};
  if (cap > 0) {
    for (int t = 0; t < SPAN; t++) s[t] = cap * fast_tanh(s[t] * scale / cap);
    scale = 1;
  }
  UNROLL for (int j = 0; j < NUM; j++) {
    const RegisterInts t = first + j * REGISTER_FLOATS;
    seen[j] = (t >= from) & (t < to);
    // Masked scores are undefined: their memory was never written.
    const Register v = select_lanes(seen[j], load_register(s + j * REGISTER_FLOATS) * scale, LOWEST - (Register){0});
    nan |= v != v;
    highest[j % WIDE] = select_lanes(v > highest[j % WIDE], v, highest[j % WIDE]);
    store_register(s + j * REGISTER_FLOATS, v);
  }
  float max = state->max;
  int has_nan = 0;
  for (int i = 0; i < PAGE_TOKENS; i++) {
    const float v = highest[i / REGISTER_FLOATS][i % REGISTER_FLOATS];
    max = v > max ? v : max;
    has_nan |= nan[i % REGISTER_FLOATS];
  }
  if (has_nan) max = NAN;
  UNROLL for (int j = 0; j < NUM; j++) {
    const Register v = select_lanes(seen[j], exp_register(load_register(s + j * REGISTER_FLOATS) - max), (Register){0}); // masked: exactly zero
    store_register(s + j * REGISTER_FLOATS, v);
    sums[j % WIDE] += v;
  }
  float sum = 0;
  for (int i = 0; i < PAGE_TOKENS; i++) sum += sums[i / REGISTER_FLOATS][i % REGISTER_FLOATS];
  const float decay = state->max == LOWEST ? 0 : fast_exp(state->max - max);
  state->max = max;
  state->sum = state->sum * decay + sum;
  return decay;
}

// The factor of a row's values if its softmax has one more score, without a value.
static float with_sink(State state, float sink) {
  const float max = sink > state.max ? sink : state.max, scale = fast_exp(state.max - max);
  return scale / (state.sum * scale + fast_exp(sink - max));
}

typedef struct {
  int from, to; // within the span
} Range;

static Range visible(int position, int window, int span_start) {
  const int first = window > 0 && position - window + 1 > span_start ? position - window + 1 - span_start : 0;
  const int end = position - span_start + 1;
  return (Range){first, end < SPAN ? end : SPAN};
}

// Widens the span's pages to f32: keys[page][head_dim][16], values[64][head_dim]. Pages beyond the last are unchanged.
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
  // Without a causal mask, every row is at the end of the context.
  const int step = arg_i(op, 20) ? 0 : 1, lowest = step ? sequence[2] - num_rows + first_token : sequence[2] - 1;
  const int highest = lowest + (tokens - 1) * step;
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
    int i = 0;
    for (; i + 4 <= rows; i += 4) score_rows(q + i, 4, keys, head_dim, s + i * SPAN);
    for (; i < rows; i++) score_rows(q + i, 1, keys, head_dim, s + i * SPAN);
    for (i = 0; i < rows; i++) {
      const Range range = visible(lowest + i / group * step, window, start);
      if (range.from >= range.to) continue;
      const float decay = soften(s + i * SPAN, range.from, range.to, arg_f(op, 13), arg_f(op, 15), &states[i]);
      for (int d = 0; d < head_dim; d++) out[i][d] *= decay;
    }
    for (i = 0; i + 4 <= rows; i += 4) {
      // The range that all four see together; before and after it, each row alone, so that a row adds in order.
      Range r[4], all = {0, SPAN};
      for (int k = 0; k < 4; k++) {
        r[k] = visible(lowest + (i + k) / group * step, window, start);
        all.from = r[k].from > all.from ? r[k].from : all.from;
        all.to = r[k].to < all.to ? r[k].to : all.to;
      }
      if (all.from >= all.to) {
        for (int k = 0; k < 4; k++) add_values(out + i + k, 1, s + (i + k) * SPAN, values, head_dim, r[k].from, r[k].to);
        continue;
      }
      for (int k = 0; k < 4; k++) add_values(out + i + k, 1, s + (i + k) * SPAN, values, head_dim, r[k].from, all.from);
      add_values(out + i, 4, s + i * SPAN, values, head_dim, all.from, all.to);
      for (int k = 0; k < 4; k++) add_values(out + i + k, 1, s + (i + k) * SPAN, values, head_dim, all.to, r[k].to);
    }
    for (; i < rows; i++) {
      const Range range = visible(lowest + i / group * step, window, start);
      add_values(out + i, 1, s + i * SPAN, values, head_dim, range.from, range.to);
    }
  }
  const float *sinks = arg_u(op, 21) ? (const float *)(c->base + arg_u(op, 21)) + kv_head * group : NULL;
  for (int i = 0; i < rows; i++) {
    const float factor = sinks ? with_sink(states[i], sinks[i % group]) : 1 / states[i].sum;
    for (int d = 0; d < head_dim; d++) out[i][d] *= factor;
  }
}

// args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 q, 8 out, 9 heads, 10 sequences, 11 number of sequences,
// 12 pageTables, 13 scale, 14 window, 15 softcap, 16 kind of pages; 17 base with layer, 18 pageBytes, 19 kind of packed pages;
// 20 whether rows see later tokens, 21 sinks of heads or 0.
void op_attention(const Context *c, const Record *program, const Record *op) {
  const int kv_heads = arg_i(op, 5), count = arg_i(op, 11), in_tile = tile_tokens(arg_i(op, 9) / kv_heads);
  const int32_t *sequences = (const int32_t *)(c->base + arg_u(op, 10));
  int total = 0;
  for (int s = 0; s < count; s++) total += (sequences[s * 4 + 1] + in_tile - 1) / in_tile * kv_heads;
  c->progress->total += total;
  for (int next = take_near(c, program, op, total); next >= 0; next = take_near(c, program, op, total), count_done(c, 1)) {
    const int32_t *sequence = sequences;
    int chunk = next;
    for (int chunks; chunk >= (chunks = (sequence[1] + in_tile - 1) / in_tile * kv_heads); sequence += 4) chunk -= chunks;
    attend_tile(c, op, sequence, chunk % kv_heads, chunk / kv_heads * in_tile);
  }
}
