// Loads packed weights (layouts.c) into registers of four rows; shared by tiles-neon.c and panel-neon.c.
#ifndef RUVLLM_NEON_H
#define RUVLLM_NEON_H
#include <arm_neon.h>
#include "pack.h"

#define INLINE static inline __attribute__((always_inline))
// Unrolls loops over registers: otherwise their arrays would be in memory.
#define UNROLL _Pragma("GCC unroll 16")
#define EACH_QUARTER UNROLL for (int r = 0; r < 4; r++)

INLINE float32x4_t halves(const uint8_t *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
INLINE int8x16_t low_nibbles(uint8x16_t v) { return vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15))); }
INLINE int8x16_t high_nibbles(uint8x16_t v) { return vreinterpretq_s8_u8(vshrq_n_u8(v, 4)); }
INLINE int8x16_t without_offset(uint8x16_t v) { return vreinterpretq_s8_u8(veorq_u8(v, vdupq_n_u8(128))); }

INLINE int8x16_t with_high_bits(int8x16_t low, uint8x16_t highs, const int place) {
  const uint8x16_t moved = place == 0 ? vshlq_n_u8(highs, 4) : place == 1 ? vshlq_n_u8(highs, 2) : place == 2 ? highs : vshrq_n_u8(highs, 2);
  return vreinterpretq_s8_u8(vorrq_u8(vreinterpretq_u8_s8(low), vandq_u8(moved, vdupq_n_u8(0x30))));
}

// Codebook values as signed bytes.
INLINE uint8x16_t values_of(const int layout, const uint8_t *table) {
  return layout >= LAYOUT_CODEBOOK_IQ4 ? veorq_u8(vld1q_u8(table), vdupq_n_u8(128)) : vdupq_n_u8(0);
}

// Columns 16 * part + 4c to 16 * part + 4c + 3 of four rows, from a block whose quants of these rows start at p. Nibbles are 8
// (Q4) and six bits 32 (Q6K) above their values.
INLINE int8x16_t load_columns(const int layout, const uint8_t *p, const int part, const int c, uint8x16_t values) {
  if (layout == LAYOUT_Q8 || layout == LAYOUT_Q8_MIN) return without_offset(vld1q_u8(p + part * 256 + c * 64));
  const uint8x16_t v = vld1q_u8(p + c * 64);
  const int8x16_t nibbles = part ? high_nibbles(v) : low_nibbles(v);
  if (layout == LAYOUT_Q6K) return with_high_bits(nibbles, vld1q_u8(p + 256 + (c >> 1) * 64), (c & 1) + 2 * part);
  if (layout >= LAYOUT_CODEBOOK_IQ4) return vreinterpretq_s8_u8(vqtbl1q_u8(values, vreinterpretq_u8_s8(nibbles)));
  return nibbles;
}

// Forces a load: compilers would use a move, on the pipes that products need.
INLINE int32x4_t load_again(const int32_t *p) {
  int32x4_t v;
  __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*(const int32x4_t *)p));
  return v;
}

// Scales of rows 4r to 4r + 3. Products of a half and a small integer are exact.
INLINE float32x4_t plain_scales(const int layout, const uint8_t *w, const int r) {
  return layout == LAYOUT_Q4 || layout == LAYOUT_Q8 ? halves(w + r * 8) : vld1q_f32((const float *)w + r * 4);
}
// Spreads bytes 4r to 4r + 3 to the bottom (signed: to the top, then down) of a lane each; a table lookup beats two widenings.
INLINE uint8x16_t spread_quarter(const uint8_t *bytes, const int r, const int byte) {
  uint8_t places[16];
  UNROLL for (int i = 0; i < 16; i++) places[i] = i % 4 == byte ? (uint8_t)(4 * r + i / 4) : 255;
  return vqtbl1q_u8(vld1q_u8(bytes), vld1q_u8(places));
}
INLINE float32x4_t quarter_of(const uint8_t *bytes, const int r) { return vcvtq_f32_u32(vreinterpretq_u32_u8(spread_quarter(bytes, r, 0))); }
INLINE float32x4_t signed_quarter_of(const uint8_t *bytes, const int r) { return vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u8(spread_quarter(bytes, r, 3)), 24)); }
INLINE float32x4_t q4k_scales(const uint8_t *super, float32x4_t d, const int j, const int r) { return vmulq_f32(d, quarter_of(super + 64 + j * 16, r)); }
INLINE float32x4_t q4k_mins(const uint8_t *super, float32x4_t dmin, const int j, const int r) { return vmulq_f32(dmin, quarter_of(super + 192 + j * 16, r)); }
INLINE float32x4_t q6k_scales(const uint8_t *super, float32x4_t d, const int s, const int r) { return vmulq_f32(d, signed_quarter_of(super + 32 + s * 16, r)); }

#endif
