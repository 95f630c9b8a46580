// Sixteen floats that every compiler target has, in one register or several.
#ifndef RUVLLM_LANES_H
#define RUVLLM_LANES_H

// Nothing of this type crosses a call: the functions are all inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))
INLINE Lanes load(const float *p) { return *(const Lanes *)p; }
INLINE void store(float *p, Lanes v) { *(Lanes *)p = v; }

INLINE float sum_lanes(Lanes v) {
  float a[16];
  store(a, v);
  UNROLL for (int i = 0; i < 8; i++) a[i] += a[i + 8];
  UNROLL for (int i = 0; i < 4; i++) a[i] += a[i + 4];
  return a[0] + a[2] + (a[1] + a[3]);
}
#endif
