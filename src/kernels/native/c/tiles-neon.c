// Tiles for 64-bit Arm with dot products and too few tokens for panel-neon.c: weights go from memory through registers into
// products, four rows a register. Nibbles and six bits start their sums at what their offset adds too much.
#include "pack.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#include "neon.h"
#include "tiles-steps.h"

// Of rows 4r to 4r + 3, for each token of a step.
typedef int32x4_t Sums[4][STEP];

INLINE void fetch(const uint8_t *p, int bytes) {
  UNROLL for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

INLINE int32x4_t dot_lane(int32x4_t sum, int8x16_t w, int8x16_t x, const int lane) {
  switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, x, 0);
    case 1: return vdotq_laneq_s32(sum, w, x, 1);
    case 2: return vdotq_laneq_s32(sum, w, x, 2);
    default: return vdotq_laneq_s32(sum, w, x, 3);
  }
}

// sums += 16 columns (`part` of a block) of quants times the tokens at q.
INLINE void add_dots(const int layout, const int count, const int part, const uint8_t *p, uint8x16_t values, const int8_t *q, Sums sums) {
  int8x16_t columns[STEP];
  EACH_TOKEN columns[t] = vld1q_s8(q + t * 32);
  UNROLL for (int c = 0; c < 4; c++)
    EACH_QUARTER {
      const int8x16_t n = load_columns(layout, p + r * 16, part, c, values);
      EACH_TOKEN sums[r][t] = dot_lane(sums[r][t], n, columns[t], c);
    }
}

INLINE void start_sums(const int count, const int32_t *offsets, Sums sums) {
  EACH_QUARTER EACH_TOKEN sums[r][t] = vdupq_n_s32(offsets ? offsets[t] : 0);
}

INLINE float32x4_t add_scaled(float32x4_t acc, int32x4_t sum, float32x4_t scales, float d) { return vfmaq_n_f32(acc, vmulq_f32(vcvtq_f32_s32(sum), scales), d); }

// Layouts with one scale for 32 columns. Accumulators stay in memory: sums need the registers.
INLINE void plain_block(const int layout, const int quants_at, const uint8_t *table, const uint8_t *w, const Tokens x, const int b, float *acc, const int count) {
  const size_t at = (size_t)b * x.width;
  const uint8x16_t values = values_of(layout, table);
  Sums sums;
  start_sums(count, layout == LAYOUT_Q4 ? x.off8 + at : NULL, sums);
  UNROLL for (int part = 0; part < 2; part++) add_dots(layout, count, part, w + quants_at, values, x.q + at * 32 + part * 16, sums);
  EACH_QUARTER {
    const float32x4_t scales = plain_scales(layout, w, r);
    EACH_TOKEN {
      float *target = acc + t * GROUP_ROWS + r * 4;
      float32x4_t sum = add_scaled(vld1q_f32(target), sums[r][t], scales, x.d[at + t]);
      if (layout == LAYOUT_Q8_MIN)
        UNROLL for (int h = 0; h < 2; h++) sum = vfmaq_n_f32(sum, vld1q_f32((const float *)w + 16 + h * 16 + r * 4), x.scaled_sum16[2 * at + h * x.width + t]);
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

BODY(tile_q4k) {
  (void)table;
  fetch(w + 2368, 320);
  for (int j = 0; j < 8; j++) {
    const size_t at = (size_t)(b + j) * x.width;
    Sums sums;
    fetch(w + 2368 + 320 + j * 256, 256);
    start_sums(count, NULL, sums);
    UNROLL for (int part = 0; part < 2; part++) add_dots(LAYOUT_Q4K, count, part, w + 320 + j * 256, vdupq_n_u8(0), x.q + at * 32 + part * 16, sums);
    EACH_QUARTER {
      const float32x4_t scales = q4k_scales(w, j, r), mins = q4k_mins(w, j, r);
      EACH_TOKEN {
        float *target = acc + t * GROUP_ROWS + r * 4;
        vst1q_f32(target, vfmaq_n_f32(add_scaled(vld1q_f32(target), sums[r][t], scales, x.d[at + t]), mins, x.scaled_sum32[at + t]));
      }
    }
  }
}
TILE(tile_q4k, 8, 2368)

BODY(tile_q6k) {
  (void)table;
  fetch(w + 3360, 288);
  for (int j = 0; j < 8; j++) {
    const size_t at = (size_t)(b + j) * x.width;
    fetch(w + 3360 + 288 + j * 384, 384);
    UNROLL for (int part = 0; part < 2; part++) {
      Sums sums;
      start_sums(count, x.off32 + at * 2 + part * x.width, sums);
      add_dots(LAYOUT_Q6K, count, part, w + 288 + j * 384, vdupq_n_u8(0), x.q + at * 32 + part * 16, sums);
      EACH_QUARTER {
        const float32x4_t scales = q6k_scales(w, 2 * j + part, r);
        EACH_TOKEN {
          float *target = acc + t * GROUP_ROWS + r * 4;
          vst1q_f32(target, add_scaled(vld1q_f32(target), sums[r][t], scales, x.d[at + t]));
        }
      }
    }
  }
}
TILE(tile_q6k, 8, 3360)

#endif
