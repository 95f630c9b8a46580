// Tiles for 64-bit Arm with dot products, and with products of 2x8 by 8x2 bytes where the build has them (i8mm). A chunk is four
// registers of four rows. Weights are signed here: bytes lose their offset of 128 on the way in, so only nibbles and six bits
// start their sums at what an offset adds too much. A tile goes by in steps of four tokens while a block is in the first cache.
#include "pack.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#include <string.h>
#include "tiles-steps.h"

#define EACH_QUARTER UNROLL for (int r = 0; r < 4; r++)

// Of rows 4r to 4r + 3, for each token of a step.
typedef int32x4_t Sums[4][STEP];

INLINE float32x4_t halves(const uint8_t *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
INLINE int8x16_t low_nibbles(uint8x16_t v) { return vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15))); }
INLINE int8x16_t high_nibbles(uint8x16_t v) { return vreinterpretq_s8_u8(vshrq_n_u8(v, 4)); }
INLINE int8x16_t without_offset(uint8x16_t v) { return vreinterpretq_s8_u8(veorq_u8(v, vdupq_n_u8(128))); }
INLINE void fetch(const uint8_t *p, int bytes) {
  UNROLL for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

INLINE int8x16_t with_high_bits(int8x16_t low, uint8x16_t highs, const int place) {
  const uint8x16_t moved = place == 0 ? vshlq_n_u8(highs, 4) : place == 1 ? vshlq_n_u8(highs, 2) : place == 2 ? highs : vshrq_n_u8(highs, 2);
  return vreinterpretq_s8_u8(vorrq_u8(vreinterpretq_u8_s8(low), vandq_u8(moved, vdupq_n_u8(0x30))));
}

// Columns 16 * part + 4c to 16 * part + 4c + 3 of four rows, of a block whose quants of these rows start at p.
INLINE int8x16_t load_columns(const int layout, const uint8_t *p, const int part, const int c, uint8x16_t table) {
  if (layout == LAYOUT_Q8 || layout == LAYOUT_Q8_MIN) return without_offset(vld1q_u8(p + part * 256 + c * 64));
  const uint8x16_t v = vld1q_u8(p + c * 64);
  const int8x16_t nibbles = part ? high_nibbles(v) : low_nibbles(v);
  if (layout == LAYOUT_Q6K) return with_high_bits(nibbles, vld1q_u8(p + 256 + (c >> 1) * 64), (c & 1) + 2 * part);
  if (layout >= LAYOUT_CODEBOOK_IQ4) return without_offset(vqtbl1q_u8(table, vreinterpretq_u8_s8(nibbles)));
  return nibbles;
}

INLINE uint8x16_t values_of(const int layout, const uint8_t *table) { return layout >= LAYOUT_CODEBOOK_IQ4 ? vld1q_u8(table) : vdupq_n_u8(0); }

INLINE int32x4_t dot_lane(int32x4_t sum, int8x16_t w, int8x16_t x, const int lane) {
  switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, x, 0);
    case 1: return vdotq_laneq_s32(sum, w, x, 1);
    case 2: return vdotq_laneq_s32(sum, w, x, 2);
    default: return vdotq_laneq_s32(sum, w, x, 3);
  }
}

#if defined(__ARM_FEATURE_MATMUL_INT8)
INLINE int8x16_t lower64(int8x16_t a, int8x16_t b) { return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b))); }
INLINE int8x16_t upper64(int8x16_t a, int8x16_t b) { return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b))); }
INLINE int8x16_t lower32(int8x16_t a, int8x16_t b) { return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b))); }
INLINE int8x16_t upper32(int8x16_t a, int8x16_t b) { return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b))); }

// Pairs of tokens: a product has two rows and two tokens (r0 t0, r0 t1, r1 t0, r1 t1), and eight columns of a row must lie side
// by side, which two neighbouring chunks interleaved give. Sums are put in order of rows at the end.
INLINE void add_pair_dots(const int layout, const int pairs, const int part, const uint8_t *p, uint8x16_t table, const int8_t *q, Sums sums) {
  int32x4_t products[4][2][STEP / 2];
  int8x16_t columns[2][STEP / 2];
  UNROLL for (int t = 0; t < pairs; t++) {
    const int8x16_t first = vld1q_s8(q + t * 64), second = vld1q_s8(q + t * 64 + 32);
    columns[0][t] = lower64(first, second), columns[1][t] = upper64(first, second);
  }
  EACH_QUARTER {
    UNROLL for (int t = 0; t < pairs; t++) products[r][0][t] = products[r][1][t] = vdupq_n_s32(0);
    UNROLL for (int k = 0; k < 2; k++) {
      const int8x16_t even = load_columns(layout, p + r * 16, part, 2 * k, table), odd = load_columns(layout, p + r * 16, part, 2 * k + 1, table);
      const int8x16_t rows01 = lower32(even, odd), rows23 = upper32(even, odd);
      UNROLL for (int t = 0; t < pairs; t++) {
        products[r][0][t] = vmmlaq_s32(products[r][0][t], rows01, columns[k][t]);
        products[r][1][t] = vmmlaq_s32(products[r][1][t], rows23, columns[k][t]);
      }
    }
    UNROLL for (int t = 0; t < pairs; t++) {
      sums[r][2 * t] = vaddq_s32(sums[r][2 * t], vuzp1q_s32(products[r][0][t], products[r][1][t]));
      sums[r][2 * t + 1] = vaddq_s32(sums[r][2 * t + 1], vuzp2q_s32(products[r][0][t], products[r][1][t]));
    }
  }
}
#endif

// sums += 16 columns (`part` of a block) of quants times the tokens at q.
INLINE void add_dots(const int layout, const int count, const int part, const uint8_t *p, uint8x16_t table, const int8_t *q, Sums sums) {
  int first = 0;
#if defined(__ARM_FEATURE_MATMUL_INT8)
  if (count > 1) add_pair_dots(layout, count / 2, part, p, table, q, sums), first = count & ~1;
#endif
  if (first == count) return;
  int8x16_t columns[STEP];
  UNROLL for (int t = first; t < count; t++) columns[t] = vld1q_s8(q + t * 32);
  UNROLL for (int c = 0; c < 4; c++)
    EACH_QUARTER {
      const int8x16_t n = load_columns(layout, p + r * 16, part, c, table);
      UNROLL for (int t = first; t < count; t++) sums[r][t] = dot_lane(sums[r][t], n, columns[t], c);
    }
}

// Layouts with one scale for 32 columns. Accumulators stay in memory: sums need the registers.
INLINE void plain_block(const int layout, const int quants_at, const uint8_t *table, const uint8_t *w, const Tokens x, const int b, float *acc, const int count) {
  const size_t at = (size_t)b * x.width;
  const uint8x16_t values = values_of(layout, table);
  Sums sums;
  EACH_QUARTER EACH_TOKEN sums[r][t] = vdupq_n_s32(layout == LAYOUT_Q4 ? x.off8[at + t] : 0);
  UNROLL for (int part = 0; part < 2; part++) add_dots(layout, count, part, w + quants_at, values, x.q + at * 32 + part * 16, sums);
  EACH_QUARTER {
    const float32x4_t scales = layout == LAYOUT_Q4 || layout == LAYOUT_Q8 ? halves(w + r * 8) : vld1q_f32((const float *)w + r * 4);
    EACH_TOKEN {
      float *target = acc + t * GROUP_ROWS + r * 4;
      float32x4_t sum = vfmaq_f32(vld1q_f32(target), vcvtq_f32_s32(sums[r][t]), vmulq_n_f32(scales, x.d[at + t]));
      if (layout == LAYOUT_Q8_MIN)
        UNROLL for (int k = 0; k < 2; k++)
          sum = vfmaq_n_f32(sum, vld1q_f32((const float *)w + 16 + k * 16 + r * 4), x.d[at + t] * (float)x.sum16[2 * (at + t) + k]);
      vst1q_f32(target, sum);
    }
  }
}
BODY(tile_q4) { plain_block(LAYOUT_Q4, 32, table, w, x, b, acc, count); }
TILE(tile_q4, 1, 288)
BODY(tile_q8) { plain_block(LAYOUT_Q8, 32, table, w, x, b, acc, count); }
TILE(tile_q8, 1, 544)
BODY(tile_q8_min) { plain_block(LAYOUT_Q8_MIN, 192, table, w, x, b, acc, count); }
TILE(tile_q8_min, 1, 704)
BODY(tile_codebook) { plain_block(LAYOUT_CODEBOOK_IQ4, 64, table, w, x, b, acc, count); }
TILE(tile_codebook, 1, 320)

// Sixteen unsigned bytes as four registers of floats, and signed ones.
INLINE float32x4_t quarter_of(uint8x16_t v, const int r) {
  const uint16x8_t wide = r < 2 ? vmovl_u8(vget_low_u8(v)) : vmovl_high_u8(v);
  return vcvtq_f32_u32(r & 1 ? vmovl_high_u16(wide) : vmovl_u16(vget_low_u16(wide)));
}
INLINE float32x4_t signed_quarter_of(int8x16_t v, const int r) {
  const int16x8_t wide = r < 2 ? vmovl_s8(vget_low_s8(v)) : vmovl_high_s8(v);
  return vcvtq_f32_s32(r & 1 ? vmovl_high_s16(wide) : vmovl_s16(vget_low_s16(wide)));
}

// Mins of eight blocks times the sums of their columns.
INLINE void min_sums(const uint8_t *mins, const Tokens x, const int b, const int t, int32x4_t out[4]) {
  EACH_QUARTER out[r] = vdupq_n_s32(0);
  UNROLL for (int j = 0; j < 8; j++) {
    const uint8x16_t v = vld1q_u8(mins + j * 16);
    const int16_t sum = x.sum32[((size_t)((b + j) / 2) * x.width + t) * 2 + (j & 1)];
    const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(v))), high = vreinterpretq_s16_u16(vmovl_high_u8(v));
    out[0] = vmlal_n_s16(out[0], vget_low_s16(low), sum), out[1] = vmlal_high_n_s16(out[1], low, sum);
    out[2] = vmlal_n_s16(out[2], vget_low_s16(high), sum), out[3] = vmlal_high_n_s16(out[3], high, sum);
  }
}

// Within 256 columns the sums of 32 are scaled as floats: each product is below 2^24 and exact.
BODY(tile_q4k) {
  float32x4_t total[4][STEP];
  (void)table;
  EACH_QUARTER EACH_TOKEN total[r][t] = vdupq_n_f32(0);
  fetch(w + 2368, 320);
  for (int j = 0; j < 8; j++) {
    Sums sums;
    fetch(w + 2368 + 320 + j * 256, 256);
    EACH_QUARTER EACH_TOKEN sums[r][t] = vdupq_n_s32(0);
    UNROLL for (int part = 0; part < 2; part++)
      add_dots(LAYOUT_Q4K, count, part, w + 320 + j * 256, vdupq_n_u8(0), x.q + (size_t)(b + j) * x.width * 32 + part * 16, sums);
    const uint8x16_t scales = vld1q_u8(w + 64 + j * 16);
    EACH_QUARTER EACH_TOKEN total[r][t] = vfmaq_f32(total[r][t], vcvtq_f32_s32(sums[r][t]), quarter_of(scales, r));
  }
  EACH_TOKEN {
    const float xd = x.d[(size_t)b * x.width + t];
    int32x4_t mins[4];
    min_sums(w + 192, x, b, t, mins);
    EACH_QUARTER {
      float *target = acc + t * GROUP_ROWS + r * 4;
      const float32x4_t added = vfmaq_f32(vld1q_f32(target), total[r][t], vmulq_n_f32(halves(w + r * 8), xd));
      vst1q_f32(target, vfmsq_f32(added, vcvtq_f32_s32(mins[r]), vmulq_n_f32(halves(w + 32 + r * 8), xd)));
    }
  }
}
TILE(tile_q4k, 8, 2368)

BODY(tile_q6k) {
  float32x4_t total[4][STEP];
  (void)table;
  EACH_QUARTER EACH_TOKEN total[r][t] = vdupq_n_f32(0);
  fetch(w + 3360, 288);
  for (int j = 0; j < 8; j++) {
    const size_t at = (size_t)(b + j) * x.width;
    fetch(w + 3360 + 288 + j * 384, 384);
    UNROLL for (int part = 0; part < 2; part++) {
      Sums sums;
      EACH_QUARTER EACH_TOKEN sums[r][t] = vdupq_n_s32(x.off32[at * 2 + part * x.width + t]);
      add_dots(LAYOUT_Q6K, count, part, w + 288 + j * 384, vdupq_n_u8(0), x.q + at * 32 + part * 16, sums);
      const int8x16_t scales = vreinterpretq_s8_u8(vld1q_u8(w + 32 + (2 * j + part) * 16));
      EACH_QUARTER EACH_TOKEN total[r][t] = vfmaq_f32(total[r][t], vcvtq_f32_s32(sums[r][t]), signed_quarter_of(scales, r));
    }
  }
  EACH_QUARTER EACH_TOKEN {
    float *target = acc + t * GROUP_ROWS + r * 4;
    vst1q_f32(target, vfmaq_f32(vld1q_f32(target), total[r][t], vmulq_n_f32(halves(w + r * 8), x.d[(size_t)b * x.width + t])));
  }
}
TILE(tile_q6k, 8, 3360)

#endif
