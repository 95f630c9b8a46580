// Functions of one float that compilers vectorize: no branches, no calls.
#ifndef RUVLLM_VECTOR_MATH_H
#define RUVLLM_VECTOR_MATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

// Vector types never cross a call: functions that take or return them are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

// Sixteen floats at any address: one register, or as many as the processor needs.
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
#define INLINE static inline __attribute__((always_inline))
typedef int32_t Ints __attribute__((vector_size(64)));
INLINE Lanes load_lanes(const float *p) { return *(const Lanes *)p; }
INLINE void store_lanes(float *p, Lanes v) { *(Lanes *)p = v; }
#define UNROLL _Pragma("GCC unroll 16")
// clang has only one of the names, GCC before 12 only the other.
#if defined(__clang__)
#define SHUFFLE_LANES(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define SHUFFLE_LANES(v, ...) __builtin_shuffle(v, (Ints){__VA_ARGS__})
#endif

// One register of the processor: compilers keep arrays of wider vectors in memory. Sixteen floats are WIDE of them.
#if defined(__AVX512F__)
#define REGISTER_BYTES 64
#elif defined(__AVX__)
#define REGISTER_BYTES 32
#else
#define REGISTER_BYTES 16
#endif
typedef float Register __attribute__((vector_size(REGISTER_BYTES), aligned(4), may_alias));
typedef int32_t RegisterInts __attribute__((vector_size(REGISTER_BYTES)));
enum { WIDE = 64 / REGISTER_BYTES, REGISTER_FLOATS = REGISTER_BYTES / 4 };
INLINE Register load_register(const float *p) { return *(const Register *)p; }
INLINE void store_register(float *p, Register v) { *(Register *)p = v; }
INLINE Register select_lanes(RegisterInts mask, Register yes, Register no) { return (Register)((mask & (RegisterInts)yes) | (~mask & (RegisterInts)no)); }

INLINE float sum_lanes(Lanes v) {
  float a[16];
  store_lanes(a, v);
  UNROLL for (int i = 0; i < 8; i++) a[i] += a[i + 8];
  UNROLL for (int i = 0; i < 4; i++) a[i] += a[i + 4];
  return a[0] + a[2] + (a[1] + a[3]);
}

// e^x to about 1e-7 relative: range reduction by ln 2 in two parts, then the degree-5 minimax polynomial of Arm's optimized
// routines, as in llama.cpp. NaN stays NaN.
static inline float fast_exp(float x) {
  const float clamped = x < -87.3f ? -87.3f : x > 88.3f ? 88.3f : x;
  const float n = rintf(clamped * 0x1.715476p+0f);
  float r = clamped - n * 0x1.62e4p-1f;
  r = r - n * 0x1.7f7d1cp-20f;
  const float square = r * r;
  const float high = 0x1.0e4020p-7f * r + 0x1.573e2ep-5f, middle = 0x1.555e66p-3f * r + 0x1.fffdb6p-2f;
  const float p = (high * square + middle) * square + (0x1.ffffecp-1f * r + 1);
  const int32_t bits = (int32_t)(((uint32_t)(int32_t)n + 127u) << 23);
  float power;
  memcpy(&power, &bits, 4);
  return p * power;
}

// The same for a whole register. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. NaN stays NaN.
INLINE Register exp_register(Register x) {
  const Register lowest = -87.3f - (Register){0}, highest = 88.3f - (Register){0}, to_integer = 12582912.0f - (Register){0};
  x = select_lanes(x < lowest, lowest, x);
  x = select_lanes(x > highest, highest, x);
  const Register shifted = x * 0x1.715476p+0f + to_integer, n = shifted - to_integer;
  const Register r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f, square = r * r;
  const Register high = 0x1.0e4020p-7f * r + 0x1.573e2ep-5f, middle = 0x1.555e66p-3f * r + 0x1.fffdb6p-2f;
  const Register p = (high * square + middle) * square + (0x1.ffffecp-1f * r + 1);
  return p * (Register)(((RegisterInts)shifted << 23) + 0x3F800000);
}

// Below 0.625 by the odd polynomial of the Cephes library: there, 1 - 2 / (e^2x + 1) would lose the digits of small scores.
static inline float fast_tanh(float x) {
  const float z = x * x, t = 1 - 2 / (fast_exp(2 * fabsf(x)) + 1);
  const float p = (((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z + 1.33314422036e-1f) * z - 3.33332819422e-1f;
  return fabsf(x) < 0.625f ? x + x * z * p : copysignf(t, x);
}

// Largest magnitude, or a NaN if there is one: compared as integers, magnitudes of floats keep their order and NaN is largest.
static inline float peak_magnitude(const float *x, int n) {
  uint32_t peak = 0;
  for (int i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], 4);
    bits &= 0x7fffffff;
    peak = bits > peak ? bits : peak;
  }
  float value;
  memcpy(&value, &peak, 4);
  return value;
}

float half_to_float(uint16_t h);
uint16_t float_to_half(float f);
static inline float round_to_half(float x) { return half_to_float(float_to_half(x)); }

static inline float gelu(float value) {
  if (value <= -10) return 0;
  if (value >= 10) return value;
  const float x = round_to_half(value);
  return round_to_half(0.5f * x * (1 + fast_tanh(0.79788456080286535588f * x * (1 + 0.044715f * x * x))));
}

// x/2 * (1 + erf(x/sqrt 2)): half of erfc(|x|/sqrt 2) by formula 7.1.26 of Abramowitz and Stegun, off by at most 7.5e-8; negative
// values use only that term, so that small results keep their digits.
static inline float erf_gelu(float x) {
  const float z = fabsf(x) * 0.70710678118654752440f, t = 1 / (1 + 0.3275911f * z);
  const float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
  const float tail = x * (0.5f * p * fast_exp(-z * z));
  return x > 0 ? x - tail : tail;
}

INLINE Register silu(Register x) { return x / (1 + exp_register(-x)); }

// The gated unit of gpt-oss: the gate is at most 7, the other factor between -7 and 7.
INLINE Register clamped_swiglu(Register x, Register y) {
  const Register most = 7.0f - (Register){0}, least = -7.0f - (Register){0};
  x = select_lanes(x > most, most, x);
  y = select_lanes(y > most, most, y);
  y = select_lanes(y < least, least, y);
  return x / (1 + exp_register(x * -1.702f)) * (y + 1);
}

enum Gate { GATE_NONE, GATE_SILU, GATE_GELU, GATE_CLAMPED };

// out = activation(x) * y. `out` may be either.
static inline void gate(int kind, const float *x, const float *y, float *out, int n) {
  if (kind == GATE_GELU) for (int i = 0; i < n; i++) out[i] = gelu(x[i]) * y[i];
  else {
    int i = 0;
    if (kind == GATE_CLAMPED) for (; i + REGISTER_FLOATS <= n; i += REGISTER_FLOATS) store_register(out + i, clamped_swiglu(load_register(x + i), load_register(y + i)));
    else for (; i + REGISTER_FLOATS <= n; i += REGISTER_FLOATS) store_register(out + i, silu(load_register(x + i)) * load_register(y + i));
    if (i == n) return;
    // A whole register for the tail, so that a value's result does not depend on its position.
    float last[REGISTER_FLOATS] = {0}, other[REGISTER_FLOATS] = {0};
    memcpy(last, x + i, sizeof(float) * (size_t)(n - i));
    memcpy(other, y + i, sizeof(float) * (size_t)(n - i));
    if (kind == GATE_CLAMPED) store_register(last, clamped_swiglu(load_register(last), load_register(other)));
    else store_register(last, silu(load_register(last)) * load_register(other));
    memcpy(out + i, last, sizeof(float) * (size_t)(n - i));
  }
}

// The sum of f(x[i]) in f64, in eight lanes: exact enough that no row depends on the order of additions.
INLINE double sum_of(const float *x, int dim, double shift, int power) {
  double sums[8] = {0}, sum = 0;
  int i = 0;
  for (; i + 8 <= dim; i += 8)
    for (int k = 0; k < 8; k++) {
      const double v = (double)x[i + k] - shift;
      sums[k] += power == 2 ? v * v : v;
    }
  for (; i < dim; i++) {
    const double v = (double)x[i] - shift;
    sum += power == 2 ? v * v : v;
  }
  for (int k = 0; k < 8; k++) sum += sums[k];
  return sum;
}

#endif
