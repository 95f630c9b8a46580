// Tiles in plain C for any processor; loops over sixteen rows that a compiler turns into whatever vectors there are.
#include "pack.h"
#include <string.h>

#if !defined(__AVX512VNNI__)

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

static int sum32(const Rounded *x, int b) { return x->sums[2 * b] + x->sums[2 * b + 1]; }

// One block of 32 columns given as eight unpacked chunks: acc += scale * d * (sum - offset * sum of activations).
static void add_block(uint8_t chunks[8][64], const float *scales, int offset, const Rounded *x, int tokens, int b, float *out) {
  for (int t = 0; t < tokens; t++) {
    int32_t sum[GROUP_ROWS] = {0};
    for (int g = 0; g < 8; g++) add_chunk(chunks[g], x[t].q + b * 32 + g * 4, sum);
    const int correction = offset * sum32(&x[t], b);
    for (int r = 0; r < GROUP_ROWS; r++) out[t * GROUP_ROWS + r] += (float)(sum[r] - correction) * (x[t].d[b] * scales[r]);
  }
}

static void clear(float *out, int tokens) { memset(out, 0, sizeof(float) * GROUP_ROWS * (size_t)tokens); }

void tile_q4(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS];
  (void)table;
  clear(out, tokens);
  for (int b = 0; b < cols / 32; b++, w += 288) {
    halves(w, scales);
    for (int c = 0; c < 4; c++) low_nibbles(w + 32 + c * 64, chunks[c]), high_nibbles(w + 32 + c * 64, chunks[c + 4]);
    add_block(chunks, scales, 8, x, tokens, b, out);
  }
}

void tile_codebook(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS];
  clear(out, tokens);
  for (int b = 0; b < cols / 32; b++, w += 320) {
    memcpy(scales, w, sizeof scales);
    for (int c = 0; c < 4; c++)
      for (int i = 0; i < 64; i++) {
        chunks[c][i] = table[w[64 + c * 64 + i] & 15];
        chunks[c + 4][i] = table[w[64 + c * 64 + i] >> 4];
      }
    add_block(chunks, scales, 128, x, tokens, b, out);
  }
}

void tile_q8(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS];
  (void)table;
  clear(out, tokens);
  for (int b = 0; b < cols / 32; b++, w += 544) {
    halves(w, scales);
    memcpy(chunks, w + 32, sizeof chunks);
    add_block(chunks, scales, 128, x, tokens, b, out);
  }
}

void tile_q8_min(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out) {
  uint8_t chunks[8][64];
  float scales[GROUP_ROWS], mins[2][GROUP_ROWS];
  (void)table;
  clear(out, tokens);
  for (int b = 0; b < cols / 32; b++, w += 704) {
    memcpy(scales, w, sizeof scales);
    memcpy(mins, w + 64, sizeof mins);
    memcpy(chunks, w + 192, sizeof chunks);
    add_block(chunks, scales, 128, x, tokens, b, out);
    for (int t = 0; t < tokens; t++)
      for (int h = 0; h < 2; h++)
        for (int r = 0; r < GROUP_ROWS; r++)
          out[t * GROUP_ROWS + r] += mins[h][r] * (x[t].d[b] * (float)x[t].sums[2 * b + h]);
  }
}

void tile_q4k(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out) {
  uint8_t chunks[8][64];
  float d[GROUP_ROWS], dmin[GROUP_ROWS];
  (void)table;
  clear(out, tokens);
  for (int b = 0; b < cols / 256; b++, w += 2368) {
    int32_t sums[MAX_TILE_TOKENS][GROUP_ROWS] = {{0}}, mins[MAX_TILE_TOKENS][GROUP_ROWS] = {{0}};
    halves(w, d);
    halves(w + 32, dmin);
    for (int j = 0; j < 8; j++) {
      const uint8_t *q = w + 320 + j * 256;
      for (int c = 0; c < 4; c++) low_nibbles(q + c * 64, chunks[c]), high_nibbles(q + c * 64, chunks[c + 4]);
      for (int t = 0; t < tokens; t++) {
        int32_t sum[GROUP_ROWS] = {0};
        for (int g = 0; g < 8; g++) add_chunk(chunks[g], x[t].q + b * 256 + j * 32 + g * 4, sum);
        for (int r = 0; r < GROUP_ROWS; r++) {
          sums[t][r] += sum[r] * w[64 + j * 16 + r];
          mins[t][r] += w[192 + j * 16 + r] * sum32(&x[t], b * 8 + j);
        }
      }
    }
    for (int t = 0; t < tokens; t++)
      for (int r = 0; r < GROUP_ROWS; r++)
        out[t * GROUP_ROWS + r] += (float)sums[t][r] * (d[r] * x[t].d[b * 8]) - (float)mins[t][r] * (dmin[r] * x[t].d[b * 8]);
  }
}

void tile_q6k(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out) {
  uint8_t chunks[8][64];
  float d[GROUP_ROWS];
  (void)table;
  clear(out, tokens);
  for (int b = 0; b < cols / 256; b++, w += 3360) {
    int32_t sums[MAX_TILE_TOKENS][GROUP_ROWS] = {{0}};
    halves(w, d);
    for (int j = 0; j < 8; j++) {
      const uint8_t *q = w + 288 + j * 384;
      for (int c = 0; c < 8; c++)
        for (int i = 0; i < 64; i++) {
          const int low = c < 4 ? q[c * 64 + i] & 15 : q[(c - 4) * 64 + i] >> 4;
          const int high = q[256 + ((c >> 1) & 1) * 64 + i] >> (((c & 1) + (c >> 2) * 2) * 2) & 3;
          chunks[c][i] = (uint8_t)(low | high << 4);
        }
      for (int t = 0; t < tokens; t++)
        for (int h = 0; h < 2; h++) {
          int32_t sum[GROUP_ROWS] = {0};
          for (int g = 0; g < 4; g++) add_chunk(chunks[h * 4 + g], x[t].q + b * 256 + j * 32 + h * 16 + g * 4, sum);
          const int correction = 32 * x[t].sums[b * 16 + j * 2 + h];
          for (int r = 0; r < GROUP_ROWS; r++) sums[t][r] += (sum[r] - correction) * (int8_t)w[32 + (2 * j + h) * 16 + r];
        }
    }
    for (int t = 0; t < tokens; t++)
      for (int r = 0; r < GROUP_ROWS; r++) out[t * GROUP_ROWS + r] += (float)sums[t][r] * (d[r] * x[t].d[b * 8]);
  }
}

#endif
