// Tiles for 64-bit Arm with dot products and too few tokens for panel-neon.c: weights go from memory through registers into
// products, four rows per register. A group of sixteen rows is read from end to end, as one stream that the hardware prefetches:
// software prefetches cost a sixth of the speed of Q8.
#include "pack.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#include "neon.h"

enum { MAX_DIRECT = PANEL_MIN_TOKENS - 1 };
#define EACH_TOKEN UNROLL for (int t = 0; t < count; t++)

// Of rows 4r to 4r + 3, for each token.
typedef int32x4_t Sums[4][MAX_DIRECT];
typedef float32x4_t Accs[4][MAX_DIRECT];

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
  int8x16_t columns[MAX_DIRECT];
  EACH_TOKEN columns[t] = vld1q_s8(q + t * 32);
  UNROLL for (int c = 0; c < 4; c++)
    EACH_QUARTER {
      const int8x16_t n = load_columns(layout, p + r * 16, part, c, values);
      EACH_TOKEN sums[r][t] = dot_lane(sums[r][t], n, columns[t], c);
    }
}

// The excess of the weights' offset is subtracted before the sums start.
INLINE void start_sums(const int count, const int32_t *offsets, Sums sums) {
  int32_t start[MAX_DIRECT][4];
  EACH_TOKEN vst1q_s32(start[t], vdupq_n_s32(MAGIC_BITS + (offsets ? offsets[t] : 0)));
  EACH_QUARTER EACH_TOKEN sums[r][t] = load_again(start[t]);
}

INLINE void add_scaled(const int count, float32x4_t scales, const int32x4_t *sums, const float *d, float32x4_t *acc) {
  const float32x4_t magic = vmulq_n_f32(scales, -MAGIC);
  EACH_TOKEN acc[t] = vfmaq_n_f32(acc[t], vfmaq_f32(magic, vreinterpretq_f32_s32(sums[t]), scales), d[t]);
}

// Layouts with one scale for 32 columns.
INLINE void plain_block(const int layout, const int quants_at, uint8x16_t values, const uint8_t *w, const Tokens x, const int b, Accs acc, const int count) {
  const size_t at = (size_t)b * x.width;
  Sums sums;
  start_sums(count, layout == LAYOUT_Q4 ? x.off8 + at : NULL, sums);
  UNROLL for (int part = 0; part < 2; part++) add_dots(layout, count, part, w + quants_at, values, x.q + at * 32 + part * 16, sums);
  EACH_QUARTER {
    add_scaled(count, plain_scales(layout, w, r), sums[r], x.d + at, acc[r]);
    if (layout == LAYOUT_Q8_MIN)
      EACH_TOKEN UNROLL for (int h = 0; h < 2; h++) acc[r][t] = vfmaq_n_f32(acc[r][t], vld1q_f32((const float *)w + 16 + h * 16 + r * 4), x.scaled_sum16[2 * at + h * x.width + t]);
  }
}

// Codebooks with a scale for sixteen columns.
INLINE void halves_block(uint8x16_t values, const uint8_t *w, const Tokens x, const int b, Accs acc, const int count) {
  const size_t at = (size_t)b * x.width;
  UNROLL for (int part = 0; part < 2; part++) {
    Sums sums;
    start_sums(count, NULL, sums);
    add_dots(LAYOUT_HALVES_IQ2, count, part, w + 128, values, x.q + at * 32 + part * 16, sums);
    EACH_QUARTER add_scaled(count, vld1q_f32((const float *)w + part * 16 + r * 4), sums[r], x.d + at, acc[r]);
  }
}

INLINE void q4k_block(const uint8_t *w, const Tokens x, const int b, Accs acc, const int count) {
  float32x4_t d[4], dmin[4];
  EACH_QUARTER d[r] = halves(w + r * 8), dmin[r] = halves(w + 32 + r * 8);
  for (int j = 0; j < 8; j++) {
    const size_t at = (size_t)(b + j) * x.width;
    Sums sums;
    start_sums(count, NULL, sums);
    UNROLL for (int part = 0; part < 2; part++) add_dots(LAYOUT_Q4K, count, part, w + 320 + j * 256, vdupq_n_u8(0), x.q + at * 32 + part * 16, sums);
    EACH_QUARTER {
      add_scaled(count, q4k_scales(w, d[r], j, r), sums[r], x.d + at, acc[r]);
      const float32x4_t mins = q4k_mins(w, dmin[r], j, r);
      EACH_TOKEN acc[r][t] = vfmsq_n_f32(acc[r][t], mins, x.scaled_sum32[at + t]);
    }
  }
}

INLINE void q6k_block(const uint8_t *w, const Tokens x, const int b, Accs acc, const int count) {
  float32x4_t d[4];
  EACH_QUARTER d[r] = halves(w + r * 8);
  for (int j = 0; j < 8; j++) {
    const size_t at = (size_t)(b + j) * x.width;
    UNROLL for (int part = 0; part < 2; part++) {
      Sums sums;
      start_sums(count, x.off32 + at * 2 + part * x.width, sums);
      add_dots(LAYOUT_Q6K, count, part, w + 288 + j * 384, vdupq_n_u8(0), x.q + at * 32 + part * 16, sums);
      EACH_QUARTER add_scaled(count, q6k_scales(w, d[r], 2 * j + part, r), sums[r], x.d + at, acc[r]);
    }
  }
}

// Compiled for each number of tokens, so that its arrays become registers.
INLINE void run_group(const int layout, const uint8_t *table, const uint8_t *w, const Tokens x, int block, int end, float *out, const int count) {
  const uint8x16_t values = values_of(layout, table);
  Accs acc;
  EACH_QUARTER EACH_TOKEN acc[r][t] = vld1q_f32(out + t * GROUP_ROWS + r * 4);
  for (; block < end; block += layout == LAYOUT_Q4K || layout == LAYOUT_Q6K ? 8 : 1) {
    switch (layout) {
      case LAYOUT_Q4: plain_block(layout, 32, values, w, x, block, acc, count), w += 288; break;
      case LAYOUT_Q8: plain_block(layout, 32, values, w, x, block, acc, count), w += 544; break;
      case LAYOUT_Q8_MIN: plain_block(layout, 192, values, w, x, block, acc, count), w += 704; break;
      case LAYOUT_Q4K: q4k_block(w, x, block, acc, count), w += 2368; break;
      case LAYOUT_Q6K: q6k_block(w, x, block, acc, count), w += 3360; break;
      case LAYOUT_HALVES_IQ2: halves_block(values, w, x, block, acc, count), w += 384; break;
      default: plain_block(layout, 64, values, w, x, block, acc, count), w += 320;
    }
  }
  EACH_QUARTER EACH_TOKEN vst1q_f32(out + t * GROUP_ROWS + r * 4, acc[r][t]);
}

INLINE void run_tile(const int layout, const Tile *tile, Tokens x) {
  for (int g = 0; g < tile->groups; g++) {
    const uint8_t *w = tile->w + g * tile->stride + (size_t)(tile->first_block * 32 / block_cols(layout)) * block_bytes(layout);
    float *acc = tile->acc + g * tile->acc_stride;
    switch (tile->count) {
      case 1: run_group(layout, tile->table, w, x, tile->first_block, tile->end_block, acc, 1); break;
      case 2: run_group(layout, tile->table, w, x, tile->first_block, tile->end_block, acc, 2); break;
      default: run_group(layout, tile->table, w, x, tile->first_block, tile->end_block, acc, 3);
    }
  }
}

void tile_q4(const Tile *tile, Tokens x) { run_tile(LAYOUT_Q4, tile, x); }
void tile_q8(const Tile *tile, Tokens x) { run_tile(LAYOUT_Q8, tile, x); }
void tile_q8_min(const Tile *tile, Tokens x) { run_tile(LAYOUT_Q8_MIN, tile, x); }
void tile_q4k(const Tile *tile, Tokens x) { run_tile(LAYOUT_Q4K, tile, x); }
void tile_q6k(const Tile *tile, Tokens x) { run_tile(LAYOUT_Q6K, tile, x); }
void tile_codebook(const Tile *tile, Tokens x) { run_tile(LAYOUT_CODEBOOK_IQ4, tile, x); }
void tile_halves(const Tile *tile, Tokens x) { run_tile(LAYOUT_HALVES_IQ2, tile, x); }

#endif
