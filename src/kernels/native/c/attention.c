// Paged attention with online softmax, cut into (sequence, KV head, tile of tokens): a page is widened to f32 once and meets
// every query row of the tile and head group. A row's arithmetic depends only on its own pages, in order.
#include "pack.h"
#include "vector-math.h"
#include <string.h>

enum { TILE = 8 };
static const float LOWEST = -3.0e38f; // lower than any real score, yet finite: differences never become NaN

// args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 k, 8 v, 9 slots, 10 tokens, 11 f32 pages. A chunk is a token.
void op_write_kv(const Context *c, const Record *program, const Record *op) {
  const int kv_heads = arg_i(op, 5), head_dim = arg_i(op, 6), tokens = arg_i(op, 10), is_float = arg_i(op, 11);
  const size_t width = (size_t)kv_heads * head_dim;
  const int32_t *slots = (const int32_t *)(c->base + arg_u(op, 9));
  for (int t = take_chunk(c, program, op); t < tokens; t = take_chunk(c, program, op)) {
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

static void row_and_page(const float *q, const float *keys, const float *values, float *out, State *state, int head_dim, int from, int to, float scale, float cap) {
  float s[PAGE_TOKENS] = {0};
  for (int d = 0; d < head_dim; d++)
    for (int t = 0; t < PAGE_TOKENS; t++) s[t] += q[d] * keys[d * PAGE_TOKENS + t];
  for (int t = 0; t < PAGE_TOKENS; t++) s[t] *= scale;
  if (cap > 0)
    for (int t = 0; t < PAGE_TOKENS; t++) s[t] = cap * fast_tanh(s[t] / cap);
  float max = state->max;
  for (int t = from; t < to; t++) max = s[t] > max || s[t] != s[t] ? s[t] : max;
  for (int t = 0; t < PAGE_TOKENS; t++) s[t] = fast_exp(s[t] - max);
  // Masked scores must weigh exactly nothing.
  for (int t = 0; t < PAGE_TOKENS; t++) s[t] = t >= from && t < to ? s[t] : 0;
  const float decay = state->max == LOWEST ? 0 : fast_exp(state->max - max);
  float sum = 0;
  for (int t = 0; t < PAGE_TOKENS; t++) sum += s[t];
  state->max = max;
  state->sum = state->sum * decay + sum;
  for (int d = 0; d < head_dim; d++) out[d] *= decay;
  for (int t = from; t < to; t++) {
    const float weight = s[t];
    for (int d = 0; d < head_dim; d++) out[d] += weight * values[t * head_dim + d];
  }
}

static void attend_tile(const Context *c, const Record *op, const int32_t *sequence, int kv_head, int first_token) {
  const int kv_heads = arg_i(op, 5), head_dim = arg_i(op, 6), heads = arg_i(op, 9), window = arg_i(op, 14), is_float = arg_i(op, 16);
  const int num_rows = sequence[1], group = heads / kv_heads;
  const int tokens = num_rows - first_token < TILE ? num_rows - first_token : TILE;
  const int lowest = sequence[2] - num_rows + first_token, highest = lowest + tokens - 1;
  const int32_t *table = (const int32_t *)(c->base + arg_u(op, 12)) + sequence[3];
  const float *q = (const float *)(c->base + arg_u(op, 7));
  float *out = (float *)(c->base + arg_u(op, 8));
  const int page_floats = head_dim * PAGE_TOKENS;
  float *wide = (float *)c->scratch;
  State *states = (State *)(wide + 2 * page_floats);
  for (int i = 0; i < tokens * group; i++) {
    const size_t row = (size_t)(sequence[0] + first_token + i / group) * heads + kv_head * group + i % group;
    memset(out + row * head_dim, 0, sizeof(float) * (size_t)head_dim);
    states[i].max = LOWEST;
    states[i].sum = 0;
  }
  const int first_page = window > 0 && lowest - window + 1 > 0 ? (lowest - window + 1) / PAGE_TOKENS : 0;
  for (int page = first_page; page <= highest / PAGE_TOKENS; page++) {
    const uint8_t *p = c->base + arg_u(op, 2) + arg_u(op, 4) + (size_t)table[page] * arg_u(op, 3);
    const size_t key_at = (size_t)kv_head * page_floats, value_at = (size_t)(kv_heads + kv_head) * page_floats;
    const float *keys = (const float *)p + key_at, *values = (const float *)p + value_at;
    if (!is_float) {
      widen_f16((const uint16_t *)p + key_at, wide, page_floats);
      widen_f16((const uint16_t *)p + value_at, wide + page_floats, page_floats);
      keys = wide, values = wide + page_floats;
    }
    for (int t = 0; t < tokens; t++) {
      const int position = lowest + t, start = page * PAGE_TOKENS;
      const int to = position - start + 1 < PAGE_TOKENS ? position - start + 1 : PAGE_TOKENS;
      const int from = window > 0 && position - window + 1 > start ? position - window + 1 - start : 0;
      if (from >= to) continue;
      for (int h = 0; h < group; h++) {
        const size_t row = (size_t)(sequence[0] + first_token + t) * heads + kv_head * group + h;
        row_and_page(q + row * head_dim, keys, values, out + row * head_dim, &states[t * group + h], head_dim, from, to, arg_f(op, 13), arg_f(op, 15));
      }
    }
  }
  for (int i = 0; i < tokens * group; i++) {
    const size_t row = (size_t)(sequence[0] + first_token + i / group) * heads + kv_head * group + i % group;
    const float factor = 1 / states[i].sum;
    for (int d = 0; d < head_dim; d++) out[row * head_dim + d] *= factor;
  }
}

// args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 q, 8 out, 9 heads, 10 sequences, 11 number of sequences,
// 12 pageTables, 13 scale, 14 window, 15 softcap, 16 f32 pages.
void op_attention(const Context *c, const Record *program, const Record *op) {
  const int kv_heads = arg_i(op, 5), count = arg_i(op, 11);
  const int32_t *sequences = (const int32_t *)(c->base + arg_u(op, 10));
  int next = take_chunk(c, program, op), first = 0;
  for (int s = 0; s < count; s++) {
    const int chunks = (sequences[s * 4 + 1] + TILE - 1) / TILE * kv_heads;
    for (; next < first + chunks; next = take_chunk(c, program, op))
      attend_tile(c, op, sequences + s * 4, (next - first) % kv_heads, (next - first) / kv_heads * TILE);
    first += chunks;
  }
}
