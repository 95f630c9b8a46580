// Tiles with AVX-512 VNNI: one register holds four columns of sixteen rows, and one instruction multiplies it with four
// broadcast activations. Weights are the unsigned operand; offsets come off by the known sums of activations.
#include "pack.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#include <string.h>

static inline __m512i dot4(__m512i sum, __m512i weights, const int8_t *q) {
  int32_t four;
  memcpy(&four, q, 4);
  return _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(four));
}
static inline __m512 halves(const uint8_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
static inline __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
static inline __m512i high_nibbles(__m512i v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15)); }
static inline __m512i bytes16(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
static inline __m512i signed16(const uint8_t *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
static inline int sum32(const Rounded *x, int b) { return x->sums[2 * b] + x->sums[2 * b + 1]; }

static inline __attribute__((always_inline)) __m512i block_dot(const __m512i n[8], const int8_t *q) {
  __m512i a = _mm512_setzero_si512(), b = _mm512_setzero_si512();
  for (int g = 0; g < 8; g += 2) a = dot4(a, n[g], q + g * 4), b = dot4(b, n[g + 1], q + g * 4 + 4);
  return _mm512_add_epi32(a, b);
}

static inline __attribute__((always_inline)) __m512 add_scaled(__m512 acc, __m512i sum, const Rounded *x, int b, int offset, __m512 scales) {
  const __m512i exact = _mm512_sub_epi32(sum, _mm512_set1_epi32(offset * sum32(x, b)));
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), _mm512_mul_ps(scales, _mm512_set1_ps(x->d[b])), acc);
}

// Each body is compiled for every number of tokens, so that accumulators stay in registers.
#define EACH_COUNT(NAME)                                                                                              \
  void NAME(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out) {             \
    switch (tokens) {                                                                                                 \
      case 1: NAME##_n(w, x, 1, cols, table, out); break;                                                             \
      case 2: NAME##_n(w, x, 2, cols, table, out); break;                                                             \
      case 3: NAME##_n(w, x, 3, cols, table, out); break;                                                             \
      case 4: NAME##_n(w, x, 4, cols, table, out); break;                                                             \
      case 5: NAME##_n(w, x, 5, cols, table, out); break;                                                             \
      case 6: NAME##_n(w, x, 6, cols, table, out); break;                                                             \
      case 7: NAME##_n(w, x, 7, cols, table, out); break;                                                             \
      default: NAME##_n(w, x, 8, cols, table, out);                                                                   \
    }                                                                                                                 \
  }
#define BODY static inline __attribute__((always_inline)) void
#define STORE                                                                                                         \
  for (int t = 0; t < tokens; t++) _mm512_storeu_ps(out + t * GROUP_ROWS, acc[t])
#define ZERO_ACC                                                                                                      \
  __m512 acc[MAX_TILE_TOKENS];                                                                                        \
  for (int t = 0; t < tokens; t++) acc[t] = _mm512_setzero_ps()

BODY tile_q4_n(const uint8_t *w, const Rounded *x, const int tokens, int cols, const uint8_t *table, float *out) {
  (void)table;
  ZERO_ACC;
  for (int b = 0; b < cols / 32; b++, w += 288) {
    __m512i n[8];
    _mm_prefetch((const char *)w + 2304, _MM_HINT_T0);
    _mm_prefetch((const char *)w + 2304 + 64, _MM_HINT_T0);
    _mm_prefetch((const char *)w + 2304 + 128, _MM_HINT_T0);
    _mm_prefetch((const char *)w + 2304 + 192, _MM_HINT_T0);
    _mm_prefetch((const char *)w + 2304 + 256, _MM_HINT_T0);
    for (int c = 0; c < 4; c++) {
      const __m512i v = _mm512_loadu_si512(w + 32 + c * 64);
      n[c] = low_nibbles(v);
      n[c + 4] = high_nibbles(v);
    }
    const __m512 scales = halves(w);
    for (int t = 0; t < tokens; t++) acc[t] = add_scaled(acc[t], block_dot(n, x[t].q + b * 32), &x[t], b, 8, scales);
  }
  STORE;
}
EACH_COUNT(tile_q4)

BODY tile_codebook_n(const uint8_t *w, const Rounded *x, const int tokens, int cols, const uint8_t *table, float *out) {
  const __m512i values = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
  ZERO_ACC;
  for (int b = 0; b < cols / 32; b++, w += 320) {
    __m512i n[8];
    for (int c = 0; c < 4; c++) {
      const __m512i v = _mm512_loadu_si512(w + 64 + c * 64);
      n[c] = _mm512_shuffle_epi8(values, low_nibbles(v));
      n[c + 4] = _mm512_shuffle_epi8(values, high_nibbles(v));
    }
    const __m512 scales = _mm512_loadu_ps(w);
    for (int t = 0; t < tokens; t++) acc[t] = add_scaled(acc[t], block_dot(n, x[t].q + b * 32), &x[t], b, 128, scales);
  }
  STORE;
}
EACH_COUNT(tile_codebook)

BODY tile_q8_n(const uint8_t *w, const Rounded *x, const int tokens, int cols, const uint8_t *table, float *out) {
  (void)table;
  ZERO_ACC;
  for (int b = 0; b < cols / 32; b++, w += 544) {
    __m512i n[8];
    for (int i = 0; i < 576; i += 64) _mm_prefetch((const char *)w + 4352 + i, _MM_HINT_T0);
    for (int g = 0; g < 8; g++) n[g] = _mm512_loadu_si512(w + 32 + g * 64);
    const __m512 scales = halves(w);
    for (int t = 0; t < tokens; t++) acc[t] = add_scaled(acc[t], block_dot(n, x[t].q + b * 32), &x[t], b, 128, scales);
  }
  STORE;
}
EACH_COUNT(tile_q8)

BODY tile_q8_min_n(const uint8_t *w, const Rounded *x, const int tokens, int cols, const uint8_t *table, float *out) {
  (void)table;
  ZERO_ACC;
  for (int b = 0; b < cols / 32; b++, w += 704) {
    __m512i n[8];
    for (int g = 0; g < 8; g++) n[g] = _mm512_loadu_si512(w + 192 + g * 64);
    const __m512 scales = _mm512_loadu_ps(w), low = _mm512_loadu_ps(w + 64), high = _mm512_loadu_ps(w + 128);
    for (int t = 0; t < tokens; t++) {
      const float d = x[t].d[b];
      acc[t] = add_scaled(acc[t], block_dot(n, x[t].q + b * 32), &x[t], b, 128, scales);
      acc[t] = _mm512_fmadd_ps(low, _mm512_set1_ps(d * (float)x[t].sums[2 * b]), acc[t]);
      acc[t] = _mm512_fmadd_ps(high, _mm512_set1_ps(d * (float)x[t].sums[2 * b + 1]), acc[t]);
    }
  }
  STORE;
}
EACH_COUNT(tile_q8_min)

BODY tile_q4k_n(const uint8_t *w, const Rounded *x, const int tokens, int cols, const uint8_t *table, float *out) {
  (void)table;
  ZERO_ACC;
  for (int b = 0; b < cols / 256; b++, w += 2368) {
    __m512i sum[MAX_TILE_TOKENS], min[MAX_TILE_TOKENS];
    for (int t = 0; t < tokens; t++) sum[t] = min[t] = _mm512_setzero_si512();
    for (int j = 0; j < 8; j++) {
      const __m512i scales = bytes16(w + 64 + j * 16), mins = bytes16(w + 192 + j * 16);
      __m512i n[8];
      for (int c = 0; c < 4; c++) {
        const uint8_t *p = w + 320 + j * 256 + c * 64;
        _mm_prefetch((const char *)p + 2368, _MM_HINT_T0);
        const __m512i v = _mm512_loadu_si512(p);
        n[c] = low_nibbles(v);
        n[c + 4] = high_nibbles(v);
      }
      for (int t = 0; t < tokens; t++) {
        const __m512i dot = block_dot(n, x[t].q + b * 256 + j * 32);
        sum[t] = _mm512_add_epi32(sum[t], _mm512_mullo_epi32(dot, scales));
        // 6 bits times 13: the low halves alone hold it, and this multiply is twice as fast as a 32-bit one.
        min[t] = _mm512_add_epi32(min[t], _mm512_madd_epi16(mins, _mm512_set1_epi32(sum32(&x[t], b * 8 + j) & 0xffff)));
      }
    }
    const __m512 d = halves(w), dmin = halves(w + 32);
    for (int t = 0; t < tokens; t++) {
      const __m512 xd = _mm512_set1_ps(x[t].d[b * 8]);
      acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t]), _mm512_mul_ps(d, xd), acc[t]);
      acc[t] = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(min[t]), _mm512_mul_ps(dmin, xd), acc[t]);
    }
  }
  STORE;
}
EACH_COUNT(tile_q4k)

static inline __m512i with_high_bits(__m512i low, __m512i highs, int place) {
  const __m512i moved = place == 0 ? _mm512_slli_epi16(highs, 4) : place == 1 ? _mm512_slli_epi16(highs, 2) : place == 2 ? highs : _mm512_srli_epi16(highs, 2);
  return _mm512_or_si512(low, _mm512_and_si512(moved, _mm512_set1_epi8(0x30)));
}

BODY tile_q6k_n(const uint8_t *w, const Rounded *x, const int tokens, int cols, const uint8_t *table, float *out) {
  (void)table;
  ZERO_ACC;
  for (int b = 0; b < cols / 256; b++, w += 3360) {
    __m512i sum[MAX_TILE_TOKENS];
    for (int t = 0; t < tokens; t++) sum[t] = _mm512_setzero_si512();
    for (int j = 0; j < 8; j++) {
      const uint8_t *q = w + 288 + j * 384;
      const __m512i h0 = _mm512_loadu_si512(q + 256), h1 = _mm512_loadu_si512(q + 320);
      __m512i n[8];
      for (int c = 0; c < 4; c++) {
        const __m512i v = _mm512_loadu_si512(q + c * 64), highs = c < 2 ? h0 : h1;
        n[c] = with_high_bits(low_nibbles(v), highs, c & 1);
        n[c + 4] = with_high_bits(high_nibbles(v), highs, (c & 1) + 2);
      }
      for (int h = 0; h < 2; h++) {
        const __m512i scales = signed16(w + 32 + (2 * j + h) * 16);
        for (int t = 0; t < tokens; t++) {
          const int8_t *xq = x[t].q + b * 256 + j * 32 + h * 16;
          __m512i dot = dot4(dot4(_mm512_setzero_si512(), n[h * 4], xq), n[h * 4 + 1], xq + 4);
          dot = dot4(dot4(dot, n[h * 4 + 2], xq + 8), n[h * 4 + 3], xq + 12);
          dot = _mm512_sub_epi32(dot, _mm512_set1_epi32(32 * x[t].sums[b * 16 + j * 2 + h]));
          sum[t] = _mm512_add_epi32(sum[t], _mm512_mullo_epi32(dot, scales));
        }
      }
    }
    const __m512 d = halves(w);
    for (int t = 0; t < tokens; t++)
      acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t]), _mm512_mul_ps(d, _mm512_set1_ps(x[t].d[b * 8])), acc[t]);
  }
  STORE;
}
EACH_COUNT(tile_q6k)

#endif
