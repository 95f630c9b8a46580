#include "pack.h"
#include <math.h>
#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
void widen_f16(const uint16_t *src, float *out, int n) {
  int i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
  for (; i < n; i++) out[i] = half_to_float(src[i]);
}
#else
void widen_f16(const uint16_t *src, float *out, int n) { for (int i = 0; i < n; i++) out[i] = half_to_float(src[i]); }
#endif

static float abs_max(const float *x, int n) {
  float m = 0;
  for (int i = 0; i < n; i++) m = fabsf(x[i]) > m || x[i] != x[i] ? fabsf(x[i]) : m;
  return m;
}

// The value of largest magnitude, sign kept, the first one on ties.
static float signed_max(const float *x, int n) {
  const float limit = abs_max(x, n);
  for (int i = 0; i < n; i++) if (fabsf(x[i]) == limit) return x[i];
  return limit;
}

static void round_row(int kind, const float *x, int cols, uint8_t *target) {
  int8_t *q = (int8_t *)target;
  float *d = (float *)(target + cols);
  int16_t *sums = (int16_t *)(target + cols + cols / 32 * 4);
  float factor = 0, scale = 0;
  for (int b = 0; b < cols / 32; b++) {
    const float *xb = x + b * 32;
    if (kind == ROUND_Q8_0) {
      const float peak = abs_max(xb, 32);
      factor = peak == 0 ? 0 : 127 / peak;
      scale = half_to_float(float_to_half(peak / 127));
    } else if ((b & 7) == 0) {
      const float peak = signed_max(xb, 256);
      factor = peak == 0 ? 0 : -127 / peak;
      scale = peak == 0 ? 0 : 1 / factor;
    }
    d[b] = scale;
    for (int h = 0; h < 2; h++) {
      int sum = 0;
      for (int i = h * 16; i < h * 16 + 16; i++) {
        // Two roundings, the product's and the integer's (ties to even), as in the other packs: a fused one would differ.
        int v = (int)rintf(xb[i] * factor);
        v = v > 127 ? 127 : v < -128 ? -128 : v;
        q[b * 32 + i] = (int8_t)v;
        sum += v;
      }
      sums[b * 2 + h] = (int16_t)sum;
    }
  }
}

static void round_row_bf16(const float *x, int cols, float *out) {
  const uint32_t *bits = (const uint32_t *)x;
  for (int i = 0; i < cols; i++) {
    const uint32_t v = bits[i];
    const uint32_t r = (v & 0x7fffffff) > 0x7f800000 ? v | 0x400000 : (v + 0x7fff + ((v >> 16) & 1)) & 0xffff0000;
    memcpy(out + i, &r, 4);
  }
}

// args: 2 x, 3 activations, 4 kind, 5 cols, 6 tokens. A chunk is four tokens.
void op_round(const Context *c, const Record *program, const Record *op) {
  const float *x = (const float *)(c->base + arg_u(op, 2));
  uint8_t *target = c->base + arg_u(op, 3);
  const int kind = arg_i(op, 4), cols = arg_i(op, 5), tokens = arg_i(op, 6);
  for (int first = take_chunk(c, program, op) * 4; first < tokens; first = take_chunk(c, program, op) * 4)
    for (int t = first; t < tokens && t < first + 4; t++) {
      if (kind == ROUND_BF16) round_row_bf16(x + (size_t)t * cols, cols, (float *)target + (size_t)t * cols);
      else round_row(kind, x + (size_t)t * cols, cols, target + (size_t)t * rounded_bytes((size_t)cols));
    }
}

static float dot_f32(const float *a, const float *b, int n) {
  float sums[16] = {0}, rest = 0;
  int i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 16; k++) sums[k] += a[i + k] * b[i + k];
  for (; i < n; i++) rest += a[i] * b[i];
  for (int k = 0; k < 8; k++) sums[k] += sums[k + 8];
  for (int k = 0; k < 4; k++) sums[k] += sums[k + 4];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest;
}

static void store(const float *value, float *out, int rows, const float *bias, int accumulate) {
  for (int r = 0; r < rows; r++) out[r] = value[r] + (bias ? bias[r] : 0) + (accumulate ? out[r] : 0);
}

static void float_group(int layout, const uint8_t *w, int cols, const float *x, int tokens, float *out, int out_stride, int rows, const float *bias, int accumulate, uint8_t *scratch) {
  float *row = (float *)scratch;
  for (int r = 0; r < rows; r++) {
    const float *weights = (const float *)w + (size_t)r * cols;
    if (layout == LAYOUT_F16) widen_f16((const uint16_t *)w + (size_t)r * cols, row, cols), weights = row;
    if (layout == LAYOUT_BF16) {
      for (int i = 0; i < cols; i++) ((uint32_t *)row)[i] = (uint32_t)((const uint16_t *)w)[(size_t)r * cols + i] << 16;
      weights = row;
    }
    for (int t = 0; t < tokens; t++) {
      const float value = dot_f32(weights, x + (size_t)t * cols, cols);
      store(&value, out + (size_t)t * out_stride + r, 1, bias ? bias + r : NULL, accumulate);
    }
  }
}

static TileFn *tile_of(int layout) {
  switch (layout) {
    case LAYOUT_Q4: return tile_q4;
    case LAYOUT_Q8: return tile_q8;
    case LAYOUT_Q8_MIN: return tile_q8_min;
    case LAYOUT_Q4K: return tile_q4k;
    case LAYOUT_Q6K: return tile_q6k;
    default: return tile_codebook;
  }
}

// args: 2 weights, 3 layout, 4 rows, 5 cols, 6 activations (or plain x), 7 -, 8 tokens, 9 -, 10 out, 11 bias or 0,
// 12 accumulate, 13 groups per chunk, 14 tiles per pass: within a chunk of rows the tokens go by in passes that stay in cache.
void op_matmul(const Context *c, const Record *program, const Record *op) {
  const int layout = arg_i(op, 3), rows = arg_i(op, 4), cols = arg_i(op, 5), tokens = arg_i(op, 8);
  const int accumulate = arg_i(op, 12), per_chunk = arg_i(op, 13), per_pass = arg_i(op, 14) * MAX_TILE_TOKENS;
  const uint8_t *weights = c->base + arg_u(op, 2), *x = c->base + arg_u(op, 6);
  float *out = (float *)(c->base + arg_u(op, 10));
  const float *bias = arg_u(op, 11) ? (const float *)(c->base + arg_u(op, 11)) : NULL;
  const int groups = (rows + GROUP_ROWS - 1) / GROUP_ROWS;
  const size_t stride = group_bytes(layout, cols), token_bytes = rounded_bytes((size_t)cols);
  TileFn *tile = tile_of(layout);
  float result[AMX_TOKENS * GROUP_ROWS];
#if defined(__AMX_INT8__)
  const int has_amx = layout > LAYOUT_BF16 && tokens >= AMX_TOKENS;
  if (has_amx) amx_begin();
#endif
  for (int first = take_chunk(c, program, op) * per_chunk; first < groups; first = take_chunk(c, program, op) * per_chunk) {
    const int end = first + per_chunk < groups ? first + per_chunk : groups;
    for (int pass = 0; pass < tokens; pass += per_pass) {
      const int pass_end = pass + per_pass < tokens ? pass + per_pass : tokens;
      for (int g = first; g < end; g++) {
        const int n = rows - g * GROUP_ROWS < GROUP_ROWS ? rows - g * GROUP_ROWS : GROUP_ROWS;
        const uint8_t *w = weights + (size_t)g * stride;
        const float *group_bias = bias ? bias + g * GROUP_ROWS : NULL;
        if (layout <= LAYOUT_BF16) {
          float_group(layout, w, cols, (const float *)x + (size_t)pass * cols, pass_end - pass, out + (size_t)pass * rows + g * GROUP_ROWS, rows, n, group_bias, accumulate, c->scratch);
          continue;
        }
        int t = pass;
#if defined(__AMX_INT8__)
        if (has_amx && pass_end - t >= AMX_TOKENS && amx_unpack(layout, w, cols, c->scratch))
          for (; t + AMX_TOKENS <= pass_end; t += AMX_TOKENS) {
            amx_tile(c->scratch, x + (size_t)t * token_bytes, token_bytes, cols, result);
            for (int i = 0; i < AMX_TOKENS; i++) store(result + i * GROUP_ROWS, out + (size_t)(t + i) * rows + g * GROUP_ROWS, n, group_bias, accumulate);
          }
#endif
        for (; t < pass_end; t += MAX_TILE_TOKENS) {
          const int count = pass_end - t < MAX_TILE_TOKENS ? pass_end - t : MAX_TILE_TOKENS;
          Rounded tile_x[MAX_TILE_TOKENS];
          for (int i = 0; i < count; i++) tile_x[i] = rounded_at(x + (size_t)(t + i) * token_bytes, (size_t)cols);
          tile(w, tile_x, count, cols, codebook_table(layout), result);
          for (int i = 0; i < count; i++) store(result + i * GROUP_ROWS, out + (size_t)(t + i) * rows + g * GROUP_ROWS, n, group_bias, accumulate);
        }
      }
    }
  }
#if defined(__AMX_INT8__)
  if (has_amx) amx_end();
#endif
}
