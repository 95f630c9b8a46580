// Mixtures of experts: every token chooses a few of the stacked matrices. Rows are sorted by expert, so that the weights of an
// expert are read once for all its rows; each expert's rows are a product of its own (matmul.h).
//
// A pair is a token and one of its choices: token * used + choice. The plan has, as int32:
//   [0] experts with rows; from [4] on, for each: expert, first sorted row, number of rows, first rounded row
// and for each pair: sorted row, first rounded row of its tile, width of the tile, lane in the tile.
#include "matmul.h"
#include "vector-math.h"
#include <string.h>

enum { PLAN_WORDS = 4, MAX_EXPERTS = 1024 };
enum Scores { SCORES_SOFTMAX, SCORES_SIGMOID, SCORES_CHOSEN };

// The experts of the best groups, by the sum of the two best scores of each.
static void mask_groups(const float *ranks, int experts, int groups, int used, uint8_t *masked) {
  const int size = experts / groups;
  float best[MAX_EXPERTS];
  for (int g = 0; g < groups; g++) {
    float first = -INFINITY, second = -INFINITY;
    for (int e = g * size; e < (g + 1) * size; e++) {
      if (ranks[e] > first) second = first, first = ranks[e];
      else if (ranks[e] > second) second = ranks[e];
    }
    best[g] = size > 1 ? first + second : first;
  }
  memset(masked, 1, (size_t)experts);
  for (int i = 0; i < used; i++) {
    int pick = -1;
    for (int g = 0; g < groups; g++)
      if (masked[g * size] && (pick < 0 || best[g] > best[pick])) pick = g;
    memset(masked + pick * size, 0, (size_t)size);
  }
}

static void route_token(const float *logits, const Record *op, const float *bias, const float *scales, int32_t *ids, float *weights) {
  const int experts = arg_i(op, 3), used = arg_i(op, 4), scores = arg_i(op, 5), groups = arg_i(op, 9);
  float score[MAX_EXPERTS], rank[MAX_EXPERTS];
  uint8_t taken[MAX_EXPERTS] = {0};
  if (scores == SCORES_SIGMOID) for (int e = 0; e < experts; e++) score[e] = 1 / (1 + fast_exp(-logits[e]));
  else memcpy(score, logits, sizeof(float) * (size_t)experts);
  double sum = 1;
  float max = -INFINITY;
  if (scores == SCORES_SOFTMAX) {
    for (int e = 0; e < experts; e++) max = logits[e] > max ? logits[e] : max;
    sum = 0;
    for (int e = 0; e < experts; e++) sum += (double)(score[e] = fast_exp(logits[e] - max));
    for (int e = 0; e < experts; e++) score[e] = (float)(score[e] / sum);
  }
  // Without a bias or sums of groups, the order of softmax scores is that of the logits, which packs compute with fewer roundings.
  for (int e = 0; e < experts; e++) rank[e] = bias ? score[e] + bias[e] : scores == SCORES_SOFTMAX && groups == 1 ? logits[e] : score[e];
  if (groups > 1) mask_groups(rank, experts, groups, arg_i(op, 10), taken);
  for (int i = 0; i < used; i++) {
    int best = -1;
    for (int e = 0; e < experts; e++)
      if (!taken[e] && (best < 0 || rank[e] > rank[best])) best = e;
    taken[best] = 1;
    ids[i] = best;
    weights[i] = score[best];
  }
  if (scores == SCORES_CHOSEN) {
    double total = 0;
    for (int i = 1; i < used; i++) max = weights[i] > max ? weights[i] : max;
    max = weights[0] > max ? weights[0] : max;
    for (int i = 0; i < used; i++) total += (double)(weights[i] = fast_exp(weights[i] - max));
    for (int i = 0; i < used; i++) weights[i] = (float)(weights[i] / total);
  }
  if (arg_i(op, 6)) {
    double total = 0;
    for (int i = 0; i < used; i++) total += (double)weights[i];
    if (total < 6.103515625e-5) total = 6.103515625e-5; // the smallest normal half, as in llama.cpp
    for (int i = 0; i < used; i++) weights[i] = (float)(weights[i] / total);
  }
  for (int i = 0; i < used; i++) weights[i] *= arg_f(op, 7);
  if (scales) for (int i = 0; i < used; i++) weights[i] *= scales[ids[i]];
}

// args: 2 logits, 3 experts, 4 used, 5 kind of scores, 6 normalize, 7 scale, 8 bias of the choice or 0, 9 groups, 10 groups used,
// 11 ids, 12 weights, 14 scales of experts or 0.
void rows_route(const Context *c, const Record *op, int first, int end) {
  const int experts = arg_i(op, 3), used = arg_i(op, 4);
  const float *bias = arg_u(op, 8) ? (const float *)(c->base + arg_u(op, 8)) : NULL;
  const float *scales = arg_u(op, 14) ? (const float *)(c->base + arg_u(op, 14)) : NULL;
  for (int t = first; t < end; t++)
    route_token((const float *)(c->base + arg_u(op, 2)) + (size_t)t * experts, op, bias, scales, (int32_t *)(c->base + arg_u(op, 11)) + (size_t)t * used,
                (float *)(c->base + arg_u(op, 12)) + (size_t)t * used);
}

// Rounded rows of an expert: whole tiles, or one that is as wide as there are rows.
static int padded_rows(int count) { return count < TILE_TOKENS ? count : (count + TILE_TOKENS - 1) / TILE_TOKENS * TILE_TOKENS; }

// args: 2 ids, 3 experts, 4 pairs, 5 plan, 6 places of pairs. One token: a single thread sorts.
void rows_plan_experts(const Context *c, const Record *op, int first, int end) {
  const int32_t *ids = (const int32_t *)(c->base + arg_u(op, 2));
  const int experts = arg_i(op, 3), pairs = arg_i(op, 4);
  int32_t *plan = (int32_t *)(c->base + arg_u(op, 5)), *places = (int32_t *)(c->base + arg_u(op, 6));
  int count[MAX_EXPERTS] = {0}, row[MAX_EXPERTS], rounded[MAX_EXPERTS], next[MAX_EXPERTS] = {0}, active = 0, rows = 0, padded = 0;
  if (first == end) return;
  for (int i = 0; i < pairs; i++) count[ids[i]]++;
  for (int e = 0; e < experts; e++) {
    if (count[e] == 0) continue;
    row[e] = rows, rounded[e] = padded;
    int32_t *entry = plan + PLAN_WORDS + PLAN_WORDS * active++;
    entry[0] = e, entry[1] = rows, entry[2] = count[e], entry[3] = padded;
    rows += count[e];
    padded += padded_rows(count[e]);
  }
  plan[0] = active;
  for (int i = 0; i < pairs; i++) {
    const int e = ids[i], n = next[e]++, width = tile_width(count[e]);
    int32_t *place = places + 4 * i;
    place[0] = row[e] + n, place[1] = rounded[e] + n / width * width, place[2] = width, place[3] = n % width;
  }
}

// args: 2 x, 3 target, 4 rounding or -1, 5 cols, 6 choices per token, 7 places of pairs, 8 whether x has a row for each sorted row
// instead of one for each token.
void rows_round_experts(const Context *c, const Record *op, int first, int end) {
  const int kind = arg_i(op, 4), cols = arg_i(op, 5), used = arg_i(op, 6), is_sorted = arg_i(op, 8);
  const int32_t *places = (const int32_t *)(c->base + arg_u(op, 7));
  uint8_t *target = c->base + arg_u(op, 3);
  for (int pair = first * used; pair < end * used; pair++) {
    const int32_t *place = places + 4 * pair;
    const float *x = (const float *)(c->base + arg_u(op, 2)) + (size_t)(is_sorted ? place[0] : pair / used) * cols;
    if (kind == ROUND_Q8_0 || kind == ROUND_Q8_K) round_row(kind, x, cols, tile_at(target + (size_t)place[1] * tile_bytes(cols, 1), kind, cols, place[2]), place[3]);
    else {
      float *row = (float *)target + (size_t)(place[1] + place[3]) * cols;
      if (kind == ROUND_BF16) round_row_bf16(x, cols, row);
      else memcpy(row, x, sizeof(float) * (size_t)cols);
    }
  }
}

// args: 2 weights, 3 layout, 4 rows of an expert, 5 cols, 6 activations, 7 their rounding, 8 tokens, 9 plan, 10 out, 11 bias or 0,
// 12 whether all rows are the same token, 13 groups per chunk, 14 experts; 15 gate and then a second product: 16 weights, 17 layout,
// 18 activations, 19 their rounding, 20 bias; 21 most rounded rows, 22 most experts with rows.
static size_t row_bytes(int layout, int cols) { return layout <= LAYOUT_BF16 ? sizeof(float) * (size_t)cols : tile_bytes(cols, 1); }

static int chunks_of(const Record *op) {
  const int groups = arg_i(op, 4) / GROUP_ROWS, per_chunk = arg_i(op, 13);
  return (groups + per_chunk - 1) / per_chunk;
}

static Product product_of(const Context *c, const Record *op, int at, const int32_t entry[4], uint64_t x, int kind, uint64_t bias) {
  const int rows = arg_i(op, 4), cols = arg_i(op, 5), groups = rows / GROUP_ROWS, layout = arg_i(op, at + 1);
  return (Product){.weights = c->base + arg_u(op, at) + (size_t)entry[0] * groups * group_bytes(layout, cols), .layout = layout, .kind = kind, .cols = cols, .tokens = entry[2],
                   .groups = groups, .x = c->base + x + (arg_i(op, 12) ? 0 : (size_t)entry[3] * row_bytes(layout, cols)), .bias = bias ? (const float *)(c->base + bias) + (size_t)entry[0] * rows : NULL};
}

static int clamp(int v, int low, int high) { return v < low ? low : v > high ? high : v; }

static Matmul matmul_of_expert(const Context *c, const Record *op, int *chunk) {
  const int rows = arg_i(op, 4), chunks = chunks_of(op), index = *chunk / chunks;
  const int32_t *plan = (const int32_t *)(c->base + arg_u(op, 9));
  int32_t entry[4];
  memcpy(entry, plan + PLAN_WORDS + PLAN_WORDS * index, sizeof entry);
  // A thread that wakes up late may read the plan of a later layer: its result is dropped, but it must not leave the buffers.
  entry[0] = clamp(entry[0], 0, arg_i(op, 14) - 1);
  entry[2] = index < plan[0] ? clamp(entry[2], 1, arg_i(op, 8)) : 0;
  entry[3] = clamp(entry[3], 0, arg_i(op, 21) - padded_rows(entry[2]));
  *chunk %= chunks;
  Matmul m = {.rows = rows, .groups = rows / GROUP_ROWS, .tokens = entry[2], .gated = arg_i(op, 15), .per_chunk = arg_i(op, 13), .chunks = chunks, .parts = 1};
  m.out = (float *)(c->base + arg_u(op, 10)) + (size_t)entry[1] * rows;
  m.first = product_of(c, op, 2, entry, arg_u(op, 6), arg_i(op, 7), arg_u(op, 11));
  if (m.gated) m.second = product_of(c, op, 16, entry, arg_u(op, 18), arg_i(op, 19), arg_u(op, 20));
  return m;
}

// The same for all threads, whatever the plan says: one that starts late would wait for another number of chunks.
static int total_chunks(const Record *op) { return arg_i(op, 22) * chunks_of(op); }

void op_experts(const Context *c, const Record *program, const Record *op) { run_chunks(c, program, op, matmul_of_expert, arg_i(op, 8), total_chunks(op)); }
void redo_experts(const Context *c, const Record *program, const Record *op) { redo_chunks(c, program, op, matmul_of_expert, arg_i(op, 8), total_chunks(op)); }

// out[token] += the sum of weight * row over its choices, in their order. args: 2 rows, 3 places of pairs, 4 weights, 5 choices per
// token, 6 dim, 7 out.
void rows_combine(const Context *c, const Record *op, int first, int end) {
  const int used = arg_i(op, 5), dim = arg_i(op, 6);
  const int32_t *places = (const int32_t *)(c->base + arg_u(op, 3));
  const float *weights = (const float *)(c->base + arg_u(op, 4)), *rows = (const float *)(c->base + arg_u(op, 2));
  enum { BLOCK = 256 };
  for (int t = first; t < end; t++)
    for (int from = 0; from < dim; from += BLOCK) {
      const int n = dim - from < BLOCK ? dim - from : BLOCK;
      float sum[BLOCK] = {0}, *out = (float *)(c->base + arg_u(op, 7)) + (size_t)t * dim + from;
      for (int i = 0; i < used; i++) {
        const float w = weights[t * used + i], *row = rows + (size_t)places[4 * (t * used + i)] * dim + from;
        for (int d = 0; d < n; d++) sum[d] += w * row[d];
      }
      for (int d = 0; d < n; d++) out[d] += sum[d];
    }
}
