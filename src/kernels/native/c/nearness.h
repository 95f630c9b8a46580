// Nearness of two vectors of floats or bytes; shared by scans and graphs.
#ifndef RUVLLM_NEARNESS_H
#define RUVLLM_NEARNESS_H
#include "vector-math.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Four sums of sixteen lanes: enough additions in flight to keep up with memory.
#define SUM_FLOATS(TERM)                                                                                              \
  Lanes sum[4] = {{0}, {0}, {0}, {0}};                                                                                \
  int i = 0;                                                                                                          \
  float tail = 0;                                                                                                     \
  for (; i + 64 <= n; i += 64) UNROLL for (int j = 0; j < 4; j++) {                                                   \
      const Lanes a = load_lanes(x + i + j * 16), b = load_lanes(y + i + j * 16);                                                 \
      sum[j] += TERM(a, b);                                                                                           \
    }                                                                                                                 \
  for (; i + 16 <= n; i += 16) {                                                                                      \
    const Lanes a = load_lanes(x + i), b = load_lanes(y + i);                                                                     \
    sum[0] += TERM(a, b);                                                                                             \
  }                                                                                                                   \
  for (; i < n; i++) tail += TERM(x[i], y[i]);                                                                        \
  return sum_lanes(sum[0] + sum[1] + (sum[2] + sum[3])) + tail
#define PRODUCT(a, b) ((a) * (b))
#define SQUARE(a, b) (((a) - (b)) * ((a) - (b)))

static inline float dot_floats(const float *x, const float *y, int n) { SUM_FLOATS(PRODUCT); }
static inline float square_floats(const float *x, const float *y, int n) { SUM_FLOATS(SQUARE); }

// Dot product of bytes, summed exactly.
#if defined(__AVX512VNNI__)
// The instruction multiplies unsigned by signed bytes: x + 128 is unsigned, and 128 times the sum of y is subtracted.
static inline int32_t dot_bytes(const int8_t *x, const int8_t *y, int n, int32_t sum_of_y) {
  const __m512i flip = _mm512_set1_epi8(-128);
  __m512i sum[4];
  UNROLL for (int j = 0; j < 4; j++) sum[j] = _mm512_setzero_si512();
  int i = 0;
  for (; i + 256 <= n; i += 256)
    UNROLL for (int j = 0; j < 4; j++)
      sum[j] = _mm512_dpbusd_epi32(sum[j], _mm512_xor_si512(_mm512_loadu_si512(x + i + j * 64), flip), _mm512_loadu_si512(y + i + j * 64));
  for (; i < n; i += 64) {
    const __mmask64 in = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
    sum[0] = _mm512_dpbusd_epi32(sum[0], _mm512_xor_si512(_mm512_maskz_loadu_epi8(in, x + i), flip), _mm512_maskz_loadu_epi8(in, y + i));
  }
  const __m512i all = _mm512_add_epi32(_mm512_add_epi32(sum[0], sum[1]), _mm512_add_epi32(sum[2], sum[3]));
  return _mm512_reduce_add_epi32(all) - 128 * sum_of_y;
}
#elif defined(__AVX2__)
static inline int32_t dot_bytes(const int8_t *x, const int8_t *y, int n, int32_t sum_of_y) {
  (void)sum_of_y;
  __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  int i = 0;
  for (; i + 32 <= n; i += 32)
    UNROLL for (int j = 0; j < 2; j++) {
      const __m256i a = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(x + i + j * 16)));
      const __m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(y + i + j * 16)));
      sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(a, b));
    }
  int32_t lanes[8], total = 0;
  _mm256_storeu_si256((__m256i *)lanes, _mm256_add_epi32(sum[0], sum[1]));
  for (int j = 0; j < 8; j++) total += lanes[j];
  for (; i < n; i++) total += x[i] * y[i];
  return total;
}
#else
static inline int32_t dot_bytes(const int8_t *x, const int8_t *y, int n, int32_t sum_of_y) {
  (void)sum_of_y;
  int32_t total = 0;
  for (int i = 0; i < n; i++) total += x[i] * y[i];
  return total;
}
#endif

// Sum of squared bytes, exact.
static inline int32_t square_bytes(const int8_t *x, int n) {
  int32_t total = 0;
  int i = 0;
#if defined(__AVX512VNNI__)
  __m512i products = _mm512_setzero_si512(), sum = products;
  for (; i < n; i += 64) {
    const __m512i v = _mm512_maskz_loadu_epi8(n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0, x + i);
    products = _mm512_dpbusd_epi32(products, _mm512_xor_si512(v, _mm512_set1_epi8(-128)), v);
    sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), v);
  }
  total = _mm512_reduce_add_epi32(_mm512_sub_epi32(products, _mm512_slli_epi32(sum, 7)));
#elif defined(__AVX2__)
  __m256i sum = _mm256_setzero_si256();
  for (; i + 16 <= n; i += 16) {
    const __m256i a = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(x + i)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, a));
  }
  int32_t lanes[8];
  _mm256_storeu_si256((__m256i *)lanes, sum);
  for (int j = 0; j < 8; j++) total += lanes[j];
#endif
  for (; i < n; i++) total += x[i] * x[i];
  return total;
}

// Returns the scale; NaN if the query is not finite.
static inline float round_query(const float *x, int n, int8_t *q) {
  const float scale = peak_magnitude(x, n) / 127;
  if (!(scale > 0 && scale <= 3.4e38f)) {
    for (int i = 0; i < n; i++) q[i] = 0;
    return scale == 0 ? 0 : NAN;
  }
  for (int i = 0; i < n; i++) {
    const float value = rintf(x[i] / scale); // exceeds 127 when the scale is nearly zero
    q[i] = (int8_t)(value > 127 ? 127 : value < -127 ? -127 : value);
  }
  return scale;
}

static inline void ask_for(const uint8_t *p, size_t bytes) {
  // The hardware prefetcher fetches the remainder.
  for (size_t i = 0; i < bytes && i < 1024; i += 64) __builtin_prefetch(p + i);
}

#endif
