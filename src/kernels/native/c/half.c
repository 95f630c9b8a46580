// Halves to floats and back, singly or in rows.
#include "pack.h"
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// No step computes with a subnormal float: those cost a hundred cycles each, and small scales are subnormal halves.
float half_to_float(uint16_t h) {
  const uint32_t exponent = h & 0x7c00;
  union { uint32_t u; float f; } v = {((uint32_t)(h & 0x7fff) << 13) + (112u << 23)}, small = {(uint32_t)(h & 0x3ff) << 13 | 113u << 23};
  small.f -= 0x1p-14f;
  if (exponent == 0) v.f = small.f;
  if (exponent == 0x7c00) v.u |= 0x7f800000;
  v.u |= (uint32_t)(h & 0x8000) << 16;
  return v.f;
}

uint16_t float_to_half(float f) {
  union { float f; uint32_t u; } v = {f};
  const uint32_t sign = (v.u >> 16) & 0x8000, magnitude = v.u & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    v.u = magnitude;
    v.f += 0.5f;
    return (uint16_t)(sign | (v.u - 0x3f000000));
  }
  return (uint16_t)(sign | ((magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13));
}

void widen_f16(const uint16_t *src, float *out, int n) {
  int i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(src + i))));
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
#elif defined(__aarch64__)
  for (; i + 4 <= n; i += 4) vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(src + i))));
#endif
  for (; i < n; i++) out[i] = half_to_float(src[i]);
}

void narrow_f16(const float *src, uint16_t *out, int n) {
  int i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), 0));
#elif defined(__aarch64__)
  for (; i + 4 <= n; i += 4) vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(src + i))));
#endif
  for (; i < n; i++) out[i] = float_to_half(src[i]);
}
