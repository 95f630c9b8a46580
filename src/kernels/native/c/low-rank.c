// Low-rank deltas of adapters: first down to the rank, then up to the rows. A token's arithmetic never depends on the others.
#include "pack.h"
#include "vector-math.h"

enum { BLOCK = 64, MAX_RANK = 64 };

// out[row] = a[row] . x, for `count` rows that share each load of x.
INLINE void dot_rows(const float *a, size_t stride, const int count, const float *x, int n, float *out) {
  Lanes sum[4][2];
  UNROLL for (int r = 0; r < count; r++) sum[r][0] = sum[r][1] = (Lanes){0};
  int i = 0;
  for (; i + 32 <= n; i += 32) {
    const Lanes x0 = load_lanes(x + i), x1 = load_lanes(x + i + 16);
    UNROLL for (int r = 0; r < count; r++) {
      sum[r][0] += load_lanes(a + r * stride + i) * x0;
      sum[r][1] += load_lanes(a + r * stride + i + 16) * x1;
    }
  }
  for (int r = 0; r < count; r++) {
    float tail = 0;
    for (int j = i; j < n; j++) tail += a[r * stride + j] * x[j];
    out[r] = sum_lanes(sum[r][0] + sum[r][1]) + tail;
  }
}

static const int32_t *row_list(const Context *c, const Record *op, int word) {
  return arg_u(op, word) ? (const int32_t *)(c->base + arg_u(op, word)) : NULL;
}

// args: 2 x, 3 a, 4 scratch, 5 columns, 6 rank, 7 row list or 0, 8 tokens. An item of the chain is one value of the scratch.
void rows_low_rank_down(const Context *c, const Record *op, int first, int end) {
  const size_t cols = arg_u(op, 5);
  const int rank = arg_i(op, 6);
  const int32_t *rows = row_list(c, op, 7);
  float *out = (float *)(c->base + arg_u(op, 4));
  for (int item = first, count; item < end; item += count) {
    const int i = item / rank, r = item % rank, left = rank - r < end - item ? rank - r : end - item;
    const float *x = (const float *)(c->base + arg_u(op, 2)) + (size_t)(rows ? rows[i] : i) * cols;
    const float *a = (const float *)(c->base + arg_u(op, 3)) + (size_t)r * cols;
    count = left >= 4 ? 4 : 1;
    if (count == 4) dot_rows(a, cols, 4, x, (int)cols, out + item);
    else dot_rows(a, cols, 1, x, (int)cols, out + item);
  }
}

// args: 2 scratch, 3 b, 4 out, 5 rows, 6 rank, 7 row list or 0, 8 tokens, 9 scale. A chunk is a block of rows, which is
// transposed so that its rows are lanes, then multiplied with all tokens.
void op_low_rank_up(const Context *c, const Record *program, const Record *op) {
  const int num_rows = arg_i(op, 5), rank = arg_i(op, 6), tokens = arg_i(op, 8);
  const int32_t *rows = row_list(c, op, 7);
  const float scale = arg_f(op, 9);
  float *turned = (float *)c->scratch; // [rank][BLOCK]
  for (int first = take_chunk(c, program, op) * BLOCK; first < num_rows; first = take_chunk(c, program, op) * BLOCK) {
    const int count = num_rows - first < BLOCK ? num_rows - first : BLOCK;
    const float *b = (const float *)(c->base + arg_u(op, 3)) + (size_t)first * rank;
    for (int n = 0; n < BLOCK; n++)
      for (int r = 0; r < rank; r++) turned[r * BLOCK + n] = n < count ? b[(size_t)n * rank + r] : 0;
    for (int i = 0; i < tokens; i++) {
      const float *inner = (const float *)(c->base + arg_u(op, 2)) + (size_t)i * rank;
      float *out = (float *)(c->base + arg_u(op, 4)) + (size_t)(rows ? rows[i] : i) * num_rows + first, sums[BLOCK];
      Lanes sum[4] = {{0}, {0}, {0}, {0}};
      for (int r = 0; r < rank; r++)
        UNROLL for (int j = 0; j < 4; j++) sum[j] += inner[r] * load_lanes(turned + r * BLOCK + j * 16);
      UNROLL for (int j = 0; j < 4; j++) store_lanes(sums + j * 16, scale * sum[j]);
      for (int n = 0; n < count; n++) out[n] += sums[n];
    }
  }
}
