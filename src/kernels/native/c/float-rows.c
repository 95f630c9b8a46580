#include "matmul.h"
#include "vector-math.h"
#include <string.h>

// Products of float weights. A strip of the tokens' columns stays in the first cache for all rows of a group.
enum { STRIP = 256, TOKENS = 64, ROWS = 4, COLUMNS = 16 };
// Sums of a tile and its weights fit into the registers: 32 of Arm and AVX-512, otherwise 16.
#if defined(__aarch64__) || defined(__AVX512F__)
enum { TILE = 4 };
#else
enum { TILE = 2 };
#endif

// sums[row][token] += rows . x over n columns, a multiple of 16. A sum has 16 parts, each of every sixteenth column in order, whatever
// the numbers of rows and tokens.
INLINE void add_tile(const float *w, size_t row_stride, const float *x, size_t token_stride, int n, const int tokens, Lanes *sums) {
  for (int part = 0; part < COLUMNS; part += REGISTER_FLOATS) {
    Register s[ROWS][TILE];
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int t = 0; t < tokens; t++) s[r][t] = load_register((float *)&sums[r * TOKENS + t] + part);
    for (int i = part; i < n; i += COLUMNS) {
      Register weights[ROWS];
      UNROLL for (int r = 0; r < ROWS; r++) weights[r] = load_register(w + (size_t)r * row_stride + i);
      UNROLL for (int t = 0; t < tokens; t++) {
        const Register v = load_register(x + (size_t)t * token_stride + i);
        UNROLL for (int r = 0; r < ROWS; r++) s[r][t] += weights[r] * v;
      }
    }
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int t = 0; t < tokens; t++) store_register((float *)&sums[r * TOKENS + t] + part, s[r][t]);
  }
}

// Columns [from, from + n) of four rows as floats: where they are, or in `wide`.
static const float *widen_rows(int layout, const uint8_t *w, size_t cols, int from, int n, float *wide) {
  if (layout == LAYOUT_F32) return (const float *)w + from;
  for (int r = 0; r < ROWS; r++) {
    const uint16_t *narrow = (const uint16_t *)w + (size_t)r * cols + from;
    if (layout == LAYOUT_F16) widen_f16(narrow, wide + r * STRIP, n);
    else for (int i = 0; i < n; i++) ((uint32_t *)wide)[r * STRIP + i] = (uint32_t)narrow[i] << 16;
  }
  return wide;
}

// acc[token][16] of one row group and at most TOKENS tokens.
static void multiply_block(int layout, const uint8_t *group, const float *x, int columns, int tokens, float *acc) {
  Lanes sums[GROUP_ROWS * TOKENS];
  float wide[ROWS * STRIP];
  const size_t cols = (size_t)columns, row_bytes = cols * (layout == LAYOUT_F32 ? 4 : 2), row_stride = layout == LAYOUT_F32 ? cols : STRIP;
  const int whole = columns - columns % COLUMNS;
  for (int r = 0; r < GROUP_ROWS; r++) memset(sums + r * TOKENS, 0, (size_t)tokens * sizeof(Lanes));
  for (int from = 0; from < whole; from += STRIP) {
    const int n = whole - from < STRIP ? whole - from : STRIP;
    for (int r = 0; r < GROUP_ROWS; r += ROWS) {
      const float *w = widen_rows(layout, group + (size_t)r * row_bytes, cols, from, n, wide);
      int t = 0;
      for (; t + TILE <= tokens; t += TILE) add_tile(w, row_stride, x + (size_t)t * cols + from, cols, n, TILE, sums + r * TOKENS + t);
      for (; t < tokens; t++) add_tile(w, row_stride, x + (size_t)t * cols + from, cols, n, 1, sums + r * TOKENS + t);
    }
  }
  for (int r = 0; r < GROUP_ROWS; r += ROWS) {
    const float *w = widen_rows(layout, group + (size_t)r * row_bytes, cols, whole, columns - whole, wide);
    for (int k = 0; k < ROWS; k++)
      for (int t = 0; t < tokens; t++) {
        float tail = 0;
        for (int i = 0; i < columns - whole; i++) tail += w[(size_t)k * row_stride + i] * x[(size_t)t * cols + whole + i];
        acc[t * GROUP_ROWS + r + k] = sum_lanes(sums[(r + k) * TOKENS + t]) + tail;
      }
  }
}

void multiply_floats(const Product *p, int g, int first_token, int tokens, float *acc) {
  const uint8_t *group = p->weights + (size_t)g * group_bytes(p->layout, p->cols);
  const float *x = (const float *)p->x + (size_t)first_token * (size_t)p->cols;
  for (int t = 0; t < tokens; t += TOKENS)
    multiply_block(p->layout, group, x + (size_t)t * (size_t)p->cols, p->cols, tokens - t < TOKENS ? tokens - t : TOKENS, acc + (size_t)t * GROUP_ROWS);
}
