// Functions of one float that compilers vectorize: no branches, no calls.
#ifndef RUVLLM_VECTOR_MATH_H
#define RUVLLM_VECTOR_MATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

// e^x to about 1e-7 relative: range reduction by ln 2 in two parts, degree-6 polynomial (Cephes). A NaN stays one.
static inline float fast_exp(float x) {
  const float clamped = x < -87.3f ? -87.3f : x > 88.3f ? 88.3f : x;
  const float n = rintf(clamped * 1.44269504088896341f);
  float r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1;
  const int32_t bits = (int32_t)(((uint32_t)(int32_t)n + 127u) << 23);
  float power;
  memcpy(&power, &bits, 4);
  return p * power;
}

static inline float fast_tanh(float x) {
  const float t = 1 - 2 / (fast_exp(2 * fabsf(x)) + 1);
  return copysignf(t, x);
}
#endif
