// Sixteen rows against sixteen tokens with AMX: one instruction multiplies 16 x 32 activations with 32 x 16 weights. Weights of
// a row group are unpacked to signed bytes once and meet all tokens of the pass. Sums are the same integers as in the other
// tiles, and the float steps are the same in the same order, so a token's result does not depend on which tile computed it.
#include "pack.h"

#if defined(__AMX_INT8__)
#include <immintrin.h>
#include <string.h>

typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_per_row[16];
  uint8_t rows[16];
} TileConfig;

// Tiles 0-1: sums (16 tokens x 16 rows), 2-3: activations (16 tokens x 32 bytes), 4-5: weights (8 x 64 bytes). Constant, because
// compilers believe that loading the configuration reads only its first bytes and drop stores to the rest.
static _Alignas(64) const TileConfig config = {
    .palette = 1, .bytes_per_row = {64, 64, 32, 32, 64, 64}, .rows = {16, 16, 16, 16, 8, 8}};
void amx_begin(void) { _tile_loadconfig(&config); }
void amx_end(void) { _tile_release(); }

size_t amx_panel_bytes(int cols) { return (size_t)cols * GROUP_ROWS + (size_t)cols / 32 * 64; }

// The panel: i8[cols / 32][8][16][4], then f32[cols / 32][16] scales.
int amx_unpack(int layout, const uint8_t *w, int cols, uint8_t *panel) {
  const __m512i mask = _mm512_set1_epi8(15), eight = _mm512_set1_epi8(8), sign = _mm512_set1_epi8(-128);
  float *scales = (float *)(panel + (size_t)cols * GROUP_ROWS);
  if (layout != LAYOUT_Q4 && layout != LAYOUT_Q8) return 0;
  for (int b = 0; b < cols / 32; b++, panel += 512, scales += GROUP_ROWS) {
    _mm512_storeu_ps(scales, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)w)));
    if (layout == LAYOUT_Q4) {
      for (int c = 0; c < 4; c++) {
        const __m512i v = _mm512_loadu_si512(w + 32 + c * 64);
        _mm512_storeu_si512(panel + c * 64, _mm512_sub_epi8(_mm512_and_si512(v, mask), eight));
        _mm512_storeu_si512(panel + 256 + c * 64, _mm512_sub_epi8(_mm512_and_si512(_mm512_srli_epi16(v, 4), mask), eight));
      }
      w += 288;
    } else {
      for (int c = 0; c < 8; c++) _mm512_storeu_si512(panel + c * 64, _mm512_xor_si512(_mm512_loadu_si512(w + 32 + c * 64), sign));
      w += 544;
    }
  }
  return 1;
}

// x: 16 rounded tokens, `stride` bytes apart. out[t * 16 + r].
void amx_tile(const uint8_t *panel, const uint8_t *x, size_t stride, int cols, float *out) {
  _Alignas(64) int32_t sums[2][16][16];
  const float *scales = (const float *)(panel + (size_t)cols * GROUP_ROWS);
  __m512 acc[16];
  for (int t = 0; t < 16; t++) acc[t] = _mm512_setzero_ps();
  const int blocks = cols / 32;
  _tile_zero(0);
  _tile_loadd(2, x, (long)stride);
  _tile_loadd(4, panel, 64);
  _tile_dpbssd(0, 2, 4);
  for (int b = 0; b < blocks; b++) {
    // The next product is under way while this one is scaled.
    if (b & 1) {
      _tile_stored(1, sums[1], 64);
      if (b + 1 < blocks) {
        _tile_zero(0);
        _tile_loadd(2, x + (b + 1) * 32, (long)stride);
        _tile_loadd(4, panel + (size_t)(b + 1) * 512, 64);
        _tile_dpbssd(0, 2, 4);
      }
    } else {
      _tile_stored(0, sums[0], 64);
      if (b + 1 < blocks) {
        _tile_zero(1);
        _tile_loadd(3, x + (b + 1) * 32, (long)stride);
        _tile_loadd(5, panel + (size_t)(b + 1) * 512, 64);
        _tile_dpbssd(1, 3, 5);
      }
    }
    const __m512 scale = _mm512_loadu_ps(scales + (size_t)b * GROUP_ROWS);
    const uint8_t *d = x + cols + (size_t)b * 4;
    for (int t = 0; t < 16; t++) {
      float dt;
      memcpy(&dt, d + (size_t)t * stride, 4);
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums[b & 1][t]));
      acc[t] = _mm512_fmadd_ps(sum, _mm512_mul_ps(scale, _mm512_set1_ps(dt)), acc[t]);
    }
  }
  for (int t = 0; t < 16; t++) _mm512_storeu_ps(out + t * GROUP_ROWS, acc[t]);
}
#endif
