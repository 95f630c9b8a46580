// Rounds activations to signed bytes, one scale for 32 (Q8_0) or 256 (Q8_K) of them, in tiles of tokens (pack.h); the other
// packs round to the same bits.
#include "pack.h"
#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512BW__)
// Largest magnitude; a NaN wins, so that it reaches the whole block through the scale instead of rounding to a number.
static inline float abs_max(const float *x, int n) {
  __m512 max = _mm512_setzero_ps();
  __mmask16 nan = 0;
  for (int i = 0; i < n; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    nan |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    max = _mm512_max_ps(max, _mm512_abs_ps(v));
  }
  return nan ? NAN : _mm512_reduce_max_ps(max);
}

static inline int sum16(__m128i bytes) {
  const __m128i halves = _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
  return _mm_cvtsi128_si32(halves) + _mm_extract_epi16(halves, 4) - 16 * 128;
}

// Two roundings, of the product and to an integer (ties to even), as in the other packs: a fused one would differ.
static inline void round32(const float *x, float factor, int8_t *q, int sums[2]) {
  const __m512 f = _mm512_set1_ps(factor);
  for (int h = 0; h < 2; h++) {
    const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + h * 16), f)));
    _mm_storeu_si128((__m128i *)(q + h * 16), bytes);
    sums[h] = sum16(bytes);
  }
}
#elif defined(__AVX2__)
static inline float abs_max(const float *x, int n) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 max = _mm256_setzero_ps(), nan = max;
  for (int i = 0; i < n; i += 8) {
    const __m256 v = _mm256_loadu_ps(x + i);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    max = _mm256_max_ps(max, _mm256_andnot_ps(sign, v));
  }
  if (_mm256_movemask_ps(nan)) return NAN;
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(max), _mm256_extractf128_ps(max, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

static inline void round32(const float *x, float factor, int8_t *q, int sums[2]) {
  const __m256 f = _mm256_set1_ps(factor);
  __m256i v[4];
  for (int i = 0; i < 4; i++) v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i * 8), f));
  // Packing works within register halves: the last step restores the order of groups of four.
  const __m256i pairs = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  const __m256i bytes = _mm256_permutevar8x32_epi32(pairs, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256((__m256i *)q, bytes);
  const __m256i quarters = _mm256_sad_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
  for (int h = 0; h < 2; h++) {
    const __m128i two = h ? _mm256_extracti128_si256(quarters, 1) : _mm256_castsi256_si128(quarters);
    sums[h] = _mm_cvtsi128_si32(two) + _mm_extract_epi16(two, 4) - 16 * 128;
  }
}
#elif defined(__aarch64__)
// On this processor, the maximum of a NaN and a number is NaN.
static inline float abs_max(const float *x, int n) {
  float32x4_t max = vdupq_n_f32(0), other = max;
  for (int i = 0; i < n; i += 8) max = vmaxq_f32(max, vabsq_f32(vld1q_f32(x + i))), other = vmaxq_f32(other, vabsq_f32(vld1q_f32(x + i + 4)));
  return vmaxvq_f32(vmaxq_f32(max, other));
}

static inline void round32(const float *x, float factor, int8_t *q, int sums[2]) {
  for (int h = 0; h < 2; h++, x += 16, q += 16) {
    int16x4_t v[4];
    for (int i = 0; i < 4; i++) v[i] = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + i * 4), factor)));
    const int8x16_t bytes = vcombine_s8(vqmovn_s16(vcombine_s16(v[0], v[1])), vqmovn_s16(vcombine_s16(v[2], v[3])));
    vst1q_s8(q, bytes);
    sums[h] = vaddlvq_s8(bytes);
  }
}
#else
static inline float abs_max(const float *x, int n) {
  float max = 0;
  int has_nan = 0;
  for (int i = 0; i < n; i++) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
  for (int i = 0; i < n; i++) has_nan |= x[i] != x[i];
  return has_nan ? NAN : max;
}

static inline void round32(const float *x, float factor, int8_t *q, int sums[2]) {
  for (int h = 0; h < 2; h++) {
    sums[h] = 0;
    for (int i = h * 16; i < h * 16 + 16; i++) {
      int v = (int)rintf(x[i] * factor);
      v = v > 127 ? 127 : v < -128 ? -128 : v;
      q[i] = (int8_t)v;
      sums[h] += v;
    }
  }
}
#endif

// The value of largest magnitude, sign kept, the first one on ties.
static float signed_max(const float *x, int n) {
  const float limit = abs_max(x, n);
  for (int i = 0; i < n; i++) if (fabsf(x[i]) == limit) return x[i];
  return limit;
}

// Scales of sixteen blocks at a time: peaks first, then the divisions side by side.
enum { RUN = 16 };

static int run_scales(int kind, const float *x, int blocks, float *factors, float *scales) {
  const int n = blocks < RUN ? blocks : RUN;
  float peaks[RUN] = {0};
  for (int b = 0; b < n; b++) {
    if (kind == ROUND_Q8_0) peaks[b] = abs_max(x + b * 32, 32);
    else peaks[b] = (b & 7) == 0 ? signed_max(x + b * 32, 256) : peaks[b - 1];
  }
  for (int b = 0; b < RUN; b++) {
    const float factor = (kind == ROUND_Q8_0 ? 127 : -127) / peaks[b];
    factors[b] = peaks[b] == 0 ? 0 : factor;
    scales[b] = kind == ROUND_Q8_0 ? peaks[b] / 127 : peaks[b] == 0 ? 0 : 1 / factor;
  }
  if (kind == ROUND_Q8_0) {
    uint16_t halves[RUN];
    narrow_f16(scales, halves, RUN);
    widen_f16(halves, scales, RUN);
  }
  return n;
}

// Sums of a block's 32 values that products with weights need.
#if defined(SIGNED_WEIGHTS)
static inline void put_sums(int kind, const int sums[2], Tokens tile, int b, int t) {
  const size_t width = (size_t)tile.width, at = (size_t)b * width + (size_t)t;
  for (int h = 0; h < 2; h++) tile.scaled_sum16[(2 * (size_t)b + h) * width + t] = tile.d[at] * (float)sums[h];
  const int sum = sums[0] + sums[1];
  if (kind == ROUND_Q8_0) tile.off8[at] = -8 * sum;
  else {
    for (int h = 0; h < 2; h++) tile.off32[(2 * (size_t)b + h) * width + t] = -32 * sums[h];
    tile.scaled_sum32[at] = tile.d[at] * (float)sum;
  }
}
#else
static inline void put_sums(int kind, const int sums[2], Tokens tile, int b, int t) {
  const size_t width = (size_t)tile.width, at = (size_t)b * width + (size_t)t;
  for (int h = 0; h < 2; h++) tile.sum16[2 * at + h] = (int16_t)sums[h];
  const int sum = sums[0] + sums[1];
  tile.off128[at] = SUMS_START - 128 * sum;
  if (kind == ROUND_Q8_0) tile.off8[at] = SUMS_START - 8 * sum;
  else {
    for (int h = 0; h < 2; h++) tile.off32[(2 * (size_t)b + h) * width + t] = -32 * sums[h];
    tile.sum32[((size_t)(b / 2) * width + t) * 2 + (b & 1)] = (int16_t)sum;
  }
}
#endif

// Rounds blocks [first, first + RUN) of a row into slot t of a tile.
static void round_run(int kind, const float *x, int first, int blocks, Tokens tile, int t) {
  const size_t width = (size_t)tile.width;
  float factors[RUN], scales[RUN];
  const int n = run_scales(kind, x + first * 32, blocks - first, factors, scales);
  for (int b = first; b < first + n; b++) {
    const size_t at = (size_t)b * width + (size_t)t;
    int sums[2];
    round32(x + b * 32, factors[b - first], tile.q + at * 32, sums);
    tile.d[at] = scales[b - first];
    put_sums(kind, sums, tile, b, t);
  }
}

void round_row(int kind, const float *x, int cols, Tokens tile, int t) {
  for (int b = 0; b < cols / 32; b += RUN) round_run(kind, x, b, cols / 32, tile, t);
}

void round_row_bf16(const float *x, int cols, float *out) {
  const uint32_t *bits = (const uint32_t *)x;
  for (int i = 0; i < cols; i++) {
    const uint32_t v = bits[i];
    const uint32_t r = (v & 0x7fffffff) > 0x7f800000 ? v | 0x400000 : (v + 0x7fff + ((v >> 16) & 1)) & 0xffff0000;
    memcpy(out + i, &r, 4);
  }
}

// args: 2 x, 3 activations, 4 kind, 5 cols.
void rows_round(const Context *c, const Record *op, int first, int end) {
  const float *x = (const float *)(c->base + arg_u(op, 2));
  uint8_t *target = c->base + arg_u(op, 3);
  const int kind = arg_i(op, 4), cols = arg_i(op, 5), width = tile_width(arg_i(op, WORD_TOKENS));
  if (kind == ROUND_BF16) {
    for (int t = first; t < end; t++) round_row_bf16(x + (size_t)t * cols, cols, (float *)target + (size_t)t * cols);
    return;
  }
  // A few blocks of all tokens at a time: tokens of a tile share the cache lines they write.
  for (int b = 0; b < cols / 32; b += RUN)
    for (int t = first; t < end; t++)
      round_run(kind, x + (size_t)t * cols, b, cols / 32, tile_at(target + (size_t)(t / width) * tile_bytes(cols, width), kind, cols, width), t % width);
}
