// Tiles in plain C for any processor; compilers vectorize the loops over sixteen rows.
#include "pack.h"
#include <string.h>

#if !defined(__AVX2__) && !defined(__ARM_FEATURE_DOTPROD)

static void add_chunk(const uint8_t *chunk, const int8_t *q, int32_t sum[GROUP_ROWS]) {
  for (int r = 0; r < GROUP_ROWS; r++)
    sum[r] += chunk[4 * r] * q[0] + chunk[4 * r + 1] * q[1] + chunk[4 * r + 2] * q[2] + chunk[4 * r + 3] * q[3];
}

static void low_nibbles(const uint8_t *src, uint8_t *out) { for (int i = 0; i < 64; i++) out[i] = src[i] & 15; }
static void high_nibbles(const uint8_t *src, uint8_t *out) { for (int i = 0; i < 64; i++) out[i] = src[i] >> 4; }

static void halves(const uint8_t *p, float *out) {
  uint16_t h[GROUP_ROWS];
  memcpy(h, p, sizeof h);
  for (int r = 0; r < GROUP_ROWS; r++) out[r] = half_to_float(h[r]);
}

// One block of 32 columns as eight unpacked chunks: acc += scale * d * sum; the sum starts at minus the excess of the weights'
// offset.
static void add_block(uint8_t chunks[8][64], const float *scales, const int32_t *offsets, const Tokens *x, int count, int b, float *acc) {
  for (int t = 0; t < count; t++) {
    const size_t at = (size_t)b * x->width + t;
    int32_t sum[GROUP_ROWS];
    for (int r = 0; r < GROUP_ROWS; r++) sum[r] = offsets[at];
    for (int g = 0; g < 8; g++) add_chunk(chunks[g], x->q + at * 32 + g * 4, sum);
    for (int r = 0; r < GROUP_ROWS; r++) acc[t * GROUP_ROWS + r] += (float)sum[r] * (x->d[at] * scales[r]);
  }
}

// Calls BODY for each block and group with `w` at the block and `acc` at the group.
#define EACH_BLOCK(STEP, BYTES)                                                                                       \
  for (int g = 0; g < tile->groups; g++)                                                                              \
    for (int b = tile->first_block; b < tile->end_block; b += STEP)                                                   \
      for (const uint8_t *w = tile->w + g * tile->stride + (size_t)(b / STEP) * BYTES, *once = w; once; once = NULL)
#define ACC (tile->acc + g * tile->acc_stride)

void tile_q4(const Tile *tile, Tokens x) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS];
  EACH_BLOCK(1, 288) {
    halves(w, scales);
    for (int c = 0; c < 4; c++) low_nibbles(w + 32 + c * 64, chunks[c]), high_nibbles(w + 32 + c * 64, chunks[c + 4]);
    add_block(chunks, scales, x.off8, &x, tile->count, b, ACC);
  }
}

void tile_codebook(const Tile *tile, Tokens x) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS];
  EACH_BLOCK(1, 320) {
    memcpy(scales, w, sizeof scales);
    for (int c = 0; c < 4; c++)
      for (int i = 0; i < 64; i++) {
        chunks[c][i] = tile->table[w[64 + c * 64 + i] & 15];
        chunks[c + 4][i] = tile->table[w[64 + c * 64 + i] >> 4];
      }
    add_block(chunks, scales, x.off128, &x, tile->count, b, ACC);
  }
}

void tile_halves(const Tile *tile, Tokens x) {
  uint8_t chunks[4][64];
  float scales[2][GROUP_ROWS];
  EACH_BLOCK(1, 384) {
    memcpy(scales, w, sizeof scales);
    for (int h = 0; h < 2; h++) {
      for (int c = 0; c < 4; c++)
        for (int i = 0; i < 64; i++) chunks[c][i] = tile->table[w[128 + c * 64 + i] >> (4 * h) & 15];
      for (int t = 0; t < tile->count; t++) {
        const size_t at = (size_t)b * x.width + t;
        int32_t sum[GROUP_ROWS];
        for (int r = 0; r < GROUP_ROWS; r++) sum[r] = -128 * x.sum16[2 * at + h];
        for (int c = 0; c < 4; c++) add_chunk(chunks[c], x.q + at * 32 + h * 16 + c * 4, sum);
        for (int r = 0; r < GROUP_ROWS; r++) ACC[t * GROUP_ROWS + r] += (float)sum[r] * (x.d[at] * scales[h][r]);
      }
    }
  }
}

void tile_q8(const Tile *tile, Tokens x) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS];
  EACH_BLOCK(1, 544) {
    halves(w, scales);
    memcpy(chunks, w + 32, sizeof chunks);
    add_block(chunks, scales, x.off128, &x, tile->count, b, ACC);
  }
}

void tile_q8_min(const Tile *tile, Tokens x) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS], mins[2][GROUP_ROWS];
  EACH_BLOCK(1, 704) {
    memcpy(scales, w, sizeof scales);
    memcpy(mins, w + 64, sizeof mins);
    memcpy(chunks, w + 192, sizeof chunks);
    add_block(chunks, scales, x.off128, &x, tile->count, b, ACC);
    for (int t = 0; t < tile->count; t++)
      for (int h = 0; h < 2; h++) {
        const size_t at = (size_t)b * x.width + t;
        for (int r = 0; r < GROUP_ROWS; r++) ACC[t * GROUP_ROWS + r] += mins[h][r] * (x.d[at] * (float)x.sum16[2 * at + h]);
      }
  }
}

// Within 256 columns the sums of 32 are scaled as floats: each product is below 2^24 and exact.
void tile_q4k(const Tile *tile, Tokens x) {
  uint8_t chunks[8][64];
  float d[GROUP_ROWS], dmin[GROUP_ROWS];
  EACH_BLOCK(8, 2368) {
    float sums[MAX_COUNT][GROUP_ROWS] = {{0}};
    int32_t mins[MAX_COUNT][GROUP_ROWS] = {{0}};
    halves(w, d);
    halves(w + 32, dmin);
    for (int j = 0; j < 8; j++) {
      const uint8_t *q = w + 320 + j * 256;
      for (int c = 0; c < 4; c++) low_nibbles(q + c * 64, chunks[c]), high_nibbles(q + c * 64, chunks[c + 4]);
      for (int t = 0; t < tile->count; t++) {
        const size_t at = (size_t)(b + j) * x.width + t;
        int32_t sum[GROUP_ROWS] = {0};
        for (int k = 0; k < 8; k++) add_chunk(chunks[k], x.q + at * 32 + k * 4, sum);
        for (int r = 0; r < GROUP_ROWS; r++) {
          sums[t][r] += (float)sum[r] * (float)w[64 + j * 16 + r];
          mins[t][r] += w[192 + j * 16 + r] * (x.sum16[2 * at] + x.sum16[2 * at + 1]);
        }
      }
    }
    for (int t = 0; t < tile->count; t++) {
      const float xd = x.d[(size_t)b * x.width + t];
      for (int r = 0; r < GROUP_ROWS; r++) ACC[t * GROUP_ROWS + r] += sums[t][r] * (d[r] * xd) - (float)mins[t][r] * (dmin[r] * xd);
    }
  }
}

void tile_q6k(const Tile *tile, Tokens x) {
  uint8_t chunks[8][64];
  float d[GROUP_ROWS];
  EACH_BLOCK(8, 3360) {
    float sums[MAX_COUNT][GROUP_ROWS] = {{0}};
    halves(w, d);
    for (int j = 0; j < 8; j++) {
      const uint8_t *q = w + 288 + j * 384;
      for (int c = 0; c < 8; c++)
        for (int i = 0; i < 64; i++) {
          const int low = c < 4 ? q[c * 64 + i] & 15 : q[(c - 4) * 64 + i] >> 4;
          const int high = q[256 + ((c >> 1) & 1) * 64 + i] >> (((c & 1) + (c >> 2) * 2) * 2) & 3;
          chunks[c][i] = (uint8_t)(low | high << 4);
        }
      for (int t = 0; t < tile->count; t++)
        for (int h = 0; h < 2; h++) {
          const size_t at = (size_t)(b + j) * x.width + t;
          int32_t sum[GROUP_ROWS];
          for (int r = 0; r < GROUP_ROWS; r++) sum[r] = -32 * x.sum16[2 * at + h];
          for (int k = 0; k < 4; k++) add_chunk(chunks[h * 4 + k], x.q + at * 32 + h * 16 + k * 4, sum);
          for (int r = 0; r < GROUP_ROWS; r++) sums[t][r] += (float)sum[r] * (float)(int8_t)w[32 + (2 * j + h) * 16 + r];
        }
    }
    for (int t = 0; t < tile->count; t++) {
      const float xd = x.d[(size_t)b * x.width + t];
      for (int r = 0; r < GROUP_ROWS; r++) ACC[t * GROUP_ROWS + r] += sums[t][r] * (d[r] * xd);
    }
  }
}

#endif
