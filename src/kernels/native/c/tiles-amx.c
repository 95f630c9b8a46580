// Sixteen rows times sixteen tokens with AMX: one instruction multiplies 16 x 32 activations with 32 x 16 weights. Weights of a
// row group are unpacked to signed bytes once for all tokens of the pass. Integer sums and float steps equal those of the other
// tiles, in the same order, so a token's result does not depend on which tile computed it.
#include "pack.h"

#if defined(__AMX_INT8__)
#include <immintrin.h>
#include <string.h>

typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_per_row[16];
  uint8_t rows[16];
} TileConfig;

// Tiles 0-1: sums (16 tokens x 16 rows), 4-5: activations (16 tokens x 32 bytes), 6-7: weights (8 x 64 bytes); for scales of
// sixteen columns, 4-5 and 6-7 are half as deep. Constant, because compilers assume that loading the configuration reads only its
// first bytes and drop stores to the others.
static _Alignas(64) const TileConfig config = {
    .palette = 1, .bytes_per_row = {64, 64, 0, 0, 32, 32, 64, 64}, .rows = {16, 16, 0, 0, 16, 16, 8, 8}};
static _Alignas(64) const TileConfig half_config = {
    .palette = 1, .bytes_per_row = {64, 64, 0, 0, 16, 16, 64, 64}, .rows = {16, 16, 0, 0, 16, 16, 4, 4}};
static _Thread_local const TileConfig *configured;
void panel_begin(int layout) {
  const TileConfig *next = layout == LAYOUT_Q6K || has_half_scales(layout) ? &half_config : &config;
  if (configured != next) _tile_loadconfig(next);
  configured = next;
}
// Tiles in use make every thread switch more expensive.
void panel_end(void) {
  if (configured) _tile_release();
  configured = NULL;
}

// A last tile with fewer tokens costs as much as a whole one: below this number, vectors are faster.
enum { MIN_LAST = 6 };
int panel_tokens(int layout, int tokens) {
  const int last = tokens % TILE_TOKENS;
  if (layout == LAYOUT_Q8_MIN || tokens < TILE_TOKENS) return 0;
  return last < MIN_LAST ? tokens - last : tokens;
}

// The panel: i8[blocks][8][16][4], then f32[blocks][16] scales; for the halves and K layouts f32[blocks][2][16] (Q4K: only the first of
// the two), then per 256 columns f32[16] d and, for Q4K, f32[16] dmin and i16[4][16][2] mins.
enum { K_TAIL = 64 + 64 + 256 };
size_t panel_bytes(void) { return (size_t)PANEL_BLOCKS * (512 + 128) + (size_t)PANEL_BLOCKS / 8 * K_TAIL; }

static inline __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
static inline __m512i high_nibbles(__m512i v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15)); }
static inline __m512 halves(const uint8_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
static inline __m512i bytes16(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
static inline __m512i signed16(const uint8_t *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }

static void unpack_plain(int layout, const uint8_t *w, int blocks, const uint8_t *table, uint8_t *panel, float *scales) {
  const __m512i eight = _mm512_set1_epi8(8), sign = _mm512_set1_epi8(-128);
  const __m512i values = _mm512_xor_si512(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), sign);
  for (int b = 0; b < blocks; b++, panel += 512, scales += GROUP_ROWS) {
    if (layout == LAYOUT_Q8) {
      _mm512_storeu_ps(scales, halves(w));
      for (int c = 0; c < 8; c++) _mm512_storeu_si512(panel + c * 64, _mm512_xor_si512(_mm512_loadu_si512(w + 32 + c * 64), sign));
      w += 544;
    } else if (layout == LAYOUT_Q4) {
      _mm512_storeu_ps(scales, halves(w));
      for (int c = 0; c < 4; c++) {
        const __m512i v = _mm512_loadu_si512(w + 32 + c * 64);
        _mm512_storeu_si512(panel + c * 64, _mm512_sub_epi8(low_nibbles(v), eight));
        _mm512_storeu_si512(panel + 256 + c * 64, _mm512_sub_epi8(high_nibbles(v), eight));
      }
      w += 288;
    } else {
      _mm512_storeu_ps(scales, _mm512_loadu_ps(w));
      for (int c = 0; c < 4; c++) {
        const __m512i v = _mm512_loadu_si512(w + 64 + c * 64);
        _mm512_storeu_si512(panel + c * 64, _mm512_shuffle_epi8(values, low_nibbles(v)));
        _mm512_storeu_si512(panel + 256 + c * 64, _mm512_shuffle_epi8(values, high_nibbles(v)));
      }
      w += 320;
    }
  }
}

static void unpack_halves(const uint8_t *w, int blocks, const uint8_t *table, uint8_t *panel, float *scales) {
  const __m512i values = _mm512_xor_si512(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), _mm512_set1_epi8(-128));
  for (int b = 0; b < blocks; b++, w += 384, panel += 512, scales += 2 * GROUP_ROWS) {
    for (int h = 0; h < 2; h++) _mm512_storeu_ps(scales + h * GROUP_ROWS, _mm512_loadu_ps(w + h * 64));
    for (int c = 0; c < 4; c++) {
      const __m512i v = _mm512_loadu_si512(w + 128 + c * 64);
      _mm512_storeu_si512(panel + c * 64, _mm512_shuffle_epi8(values, low_nibbles(v)));
      _mm512_storeu_si512(panel + 256 + c * 64, _mm512_shuffle_epi8(values, high_nibbles(v)));
    }
  }
}

static void unpack_q4k(const uint8_t *w, int blocks, uint8_t *panel, float *scales, uint8_t *tail) {
  for (int b = 0; b < blocks; b += 8, w += 2368, tail += K_TAIL) {
    _mm512_storeu_ps((float *)tail, halves(w));
    _mm512_storeu_ps((float *)(tail + 64), halves(w + 32));
    for (int j = 0; j < 8; j++, panel += 512, scales += 2 * GROUP_ROWS) {
      _mm512_storeu_ps(scales, _mm512_cvtepi32_ps(bytes16(w + 64 + j * 16)));
      for (int c = 0; c < 4; c++) {
        const __m512i v = _mm512_loadu_si512(w + 320 + j * 256 + c * 64);
        _mm512_storeu_si512(panel + c * 64, low_nibbles(v));
        _mm512_storeu_si512(panel + 256 + c * 64, high_nibbles(v));
      }
    }
    for (int j = 0; j < 8; j += 2)
      _mm512_storeu_si512(tail + 128 + j * 32, _mm512_or_si512(bytes16(w + 192 + j * 16), _mm512_slli_epi32(bytes16(w + 208 + j * 16), 16)));
  }
}

static void unpack_q6k(const uint8_t *w, int blocks, uint8_t *panel, float *scales, uint8_t *tail) {
  const __m512i bits = _mm512_set1_epi8(0x30), offset = _mm512_set1_epi8(32);
  for (int b = 0; b < blocks; b += 8, w += 3360, tail += K_TAIL) {
    _mm512_storeu_ps((float *)tail, halves(w));
    for (int j = 0; j < 8; j++, panel += 512, scales += 2 * GROUP_ROWS) {
      const uint8_t *q = w + 288 + j * 384;
      _mm512_storeu_ps(scales, _mm512_cvtepi32_ps(signed16(w + 32 + 2 * j * 16)));
      _mm512_storeu_ps(scales + GROUP_ROWS, _mm512_cvtepi32_ps(signed16(w + 48 + 2 * j * 16)));
      for (int c = 0; c < 4; c++) {
        const __m512i v = _mm512_loadu_si512(q + c * 64), highs = _mm512_loadu_si512(q + 256 + (c >> 1) * 64);
        const __m512i low = c & 1 ? _mm512_slli_epi16(highs, 2) : _mm512_slli_epi16(highs, 4);
        const __m512i high = c & 1 ? _mm512_srli_epi16(highs, 2) : highs;
        _mm512_storeu_si512(panel + c * 64, _mm512_sub_epi8(_mm512_or_si512(low_nibbles(v), _mm512_and_si512(low, bits)), offset));
        _mm512_storeu_si512(panel + 256 + c * 64, _mm512_sub_epi8(_mm512_or_si512(high_nibbles(v), _mm512_and_si512(high, bits)), offset));
      }
    }
  }
}

void panel_unpack(int layout, const uint8_t *w, int first_block, int end_block, const uint8_t *table, uint8_t *panel) {
  const int blocks = end_block - first_block;
  float *scales = (float *)(panel + (size_t)blocks * 512);
  w += (size_t)first_block * 32 / (size_t)block_cols(layout) * block_bytes(layout);
  if (layout == LAYOUT_Q4K) unpack_q4k(w, blocks, panel, scales, panel + (size_t)blocks * 640);
  else if (layout == LAYOUT_Q6K) unpack_q6k(w, blocks, panel, scales, panel + (size_t)blocks * 640);
  else if (has_half_scales(layout)) unpack_halves(w, blocks, table, panel, scales);
  else unpack_plain(layout, w, blocks, table, panel, scales);
}

typedef int32_t Sums[16][16];
// Unrolled early, so that accumulators become registers.
#define EACH_TOKEN _Pragma("GCC unroll 16") for (int t = 0; t < 16; t++)

// Sums of block b go to tile 0 or 1; the next product runs while the last one is scaled.
#define MULTIPLY(SUMS, X, W, b)                                                                                       \
  do {                                                                                                                \
    _tile_zero(SUMS);                                                                                                 \
    ADD_PRODUCTS(SUMS, X, W, b);                                                                                      \
  } while (0)
#define ADD_PRODUCTS(SUMS, X, W, b)                                                                                   \
  do {                                                                                                                \
    _tile_loadd(X, q + (size_t)(b) * 512, 32);                                                                        \
    _tile_loadd(W, panel + (size_t)(b) * 512, 64);                                                                    \
    _tile_dpbssd(SUMS, X, W);                                                                                         \
  } while (0)

static void tile_plain(const uint8_t *panel, int blocks, const int8_t *q, const float *d, float *out) {
  _Alignas(64) Sums sums[2];
  static _Alignas(64) const int32_t magic[16] = {[0 ... 15] = MAGIC_BITS};
  const float *scales = (const float *)(panel + (size_t)blocks * 512);
  __m512 acc[16];
  EACH_TOKEN acc[t] = _mm512_loadu_ps(out + t * GROUP_ROWS);
// Every row of a tile of sums starts at the same bits (pack.h).
#define MULTIPLY_ON(TILE, X, W, b)                                                                                    \
  do {                                                                                                                \
    _tile_loadd(TILE, magic, 0);                                                                                      \
    ADD_PRODUCTS(TILE, X, W, b);                                                                                      \
  } while (0)
#define SCALE(TILE, b)                                                                                                \
  do {                                                                                                                \
    _tile_stored(TILE, sums[TILE], 64);                                                                               \
    const __m512 scale = _mm512_loadu_ps(scales + (size_t)(b) * GROUP_ROWS), start = _mm512_mul_ps(scale, _mm512_set1_ps(-MAGIC)); \
    EACH_TOKEN {                                                                                                      \
      const __m512 scaled = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_load_si512(sums[TILE][t])), scale, start);     \
      acc[t] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(d[(size_t)(b) * 16 + t]), acc[t]);                              \
    }                                                                                                                 \
  } while (0)
  MULTIPLY_ON(0, 4, 6, 0);
  int b = 0;
  for (; b + 2 < blocks; b += 2) {
    MULTIPLY_ON(1, 5, 7, b + 1);
    SCALE(0, b);
    MULTIPLY_ON(0, 4, 6, b + 2);
    SCALE(1, b + 1);
  }
  if (b + 1 < blocks) MULTIPLY_ON(1, 5, 7, b + 1);
  SCALE(0, b);
  if (b + 1 < blocks) SCALE(1, b + 1);
#undef SCALE
#undef MULTIPLY_ON
  EACH_TOKEN _mm512_storeu_ps(out + t * GROUP_ROWS, acc[t]);
}

static void tile_k4(const uint8_t *panel, int blocks, Tokens x, int first_block, float *out) {
  _Alignas(64) Sums sums[2];
  const float *scales = (const float *)(panel + (size_t)blocks * 512);
  const uint8_t *tail = panel + (size_t)blocks * 640;
  const int8_t *q = x.q + (size_t)first_block * 512;
#define SCALE(TILE, b)                                                                                                \
  do {                                                                                                                \
    _tile_stored(TILE, sums[TILE], 64);                                                                               \
    const __m512 scale = _mm512_loadu_ps(scales + (size_t)(b) * 2 * GROUP_ROWS);                                      \
    EACH_TOKEN                                                                                      \
      sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums[TILE][t])), scale, sum[t]);                  \
  } while (0)
  for (int first = 0; first < blocks; first += 8, tail += K_TAIL) {
    __m512 sum[16];
    EACH_TOKEN sum[t] = _mm512_setzero_ps();
    MULTIPLY(0, 4, 6, first);
    for (int j = 0; j < 8; j += 2) {
      MULTIPLY(1, 5, 7, first + j + 1);
      SCALE(0, first + j);
      if (j < 6) MULTIPLY(0, 4, 6, first + j + 2);
      SCALE(1, first + j + 1);
    }
    const __m512 d = _mm512_loadu_ps((const float *)tail), dmin = _mm512_loadu_ps((const float *)(tail + 64));
    const float *xd = x.d + (size_t)(first_block + first) * 16;
    EACH_TOKEN {
      const __m512 scale = _mm512_set1_ps(xd[t]);
      __m512i min = _mm512_setzero_si512();
      for (int j = 0; j < 4; j++) {
        int32_t pair;
        memcpy(&pair, x.sum32 + ((size_t)((first_block + first) / 2 + j) * 16 + t) * 2, 4);
        min = _mm512_dpwssd_epi32(min, _mm512_loadu_si512(tail + 128 + j * 64), _mm512_set1_epi32(pair));
      }
      const __m512 before = _mm512_loadu_ps(out + t * GROUP_ROWS);
      const __m512 added = _mm512_fmadd_ps(sum[t], _mm512_mul_ps(d, scale), before);
      _mm512_storeu_ps(out + t * GROUP_ROWS, _mm512_fnmadd_ps(_mm512_cvtepi32_ps(min), _mm512_mul_ps(dmin, scale), added));
    }
  }
#undef SCALE
}

// Products of the two halves of block b, each in its own sums.
#define MULTIPLY_HALVES(b)                                                                                            \
  do {                                                                                                                \
    const int8_t *xq = q + (size_t)(b) * 512;                                                                         \
    const uint8_t *w = panel + (size_t)(b) * 512;                                                                     \
    _tile_zero(0);                                                                                                    \
    _tile_loadd(4, xq, 32);                                                                                           \
    _tile_loadd(6, w, 64);                                                                                            \
    _tile_dpbssd(0, 4, 6);                                                                                            \
    _tile_zero(1);                                                                                                    \
    _tile_loadd(5, xq + 16, 32);                                                                                      \
    _tile_loadd(7, w + 256, 64);                                                                                      \
    _tile_dpbssd(1, 5, 7);                                                                                            \
    _tile_stored(0, sums[0], 64);                                                                                     \
    _tile_stored(1, sums[1], 64);                                                                                     \
  } while (0)

static void tile_half_scales(const uint8_t *panel, int blocks, const int8_t *q, const float *d, float *out) {
  _Alignas(64) Sums sums[2];
  const float *scales = (const float *)(panel + (size_t)blocks * 512);
  __m512 acc[16];
  EACH_TOKEN acc[t] = _mm512_loadu_ps(out + t * GROUP_ROWS);
  for (int b = 0; b < blocks; b++, scales += 2 * GROUP_ROWS, d += 16) {
    MULTIPLY_HALVES(b);
    for (int h = 0; h < 2; h++) {
      const __m512 scale = _mm512_loadu_ps(scales + h * GROUP_ROWS);
      EACH_TOKEN acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums[h][t])), scale), _mm512_set1_ps(d[t]), acc[t]);
    }
  }
  EACH_TOKEN _mm512_storeu_ps(out + t * GROUP_ROWS, acc[t]);
}

static void tile_k6(const uint8_t *panel, int blocks, Tokens x, int first_block, float *out) {
  _Alignas(64) Sums sums[2];
  const float *scales = (const float *)(panel + (size_t)blocks * 512);
  const uint8_t *tail = panel + (size_t)blocks * 640;
  const int8_t *q = x.q + (size_t)first_block * 512;
  for (int first = 0; first < blocks; first += 8, tail += K_TAIL) {
    __m512 sum[16];
    EACH_TOKEN sum[t] = _mm512_setzero_ps();
    for (int half = 0; half < 16; half += 2) { // half blocks: each sixteen columns have a scale
      const float *scale = scales + (size_t)(first * 2 + half) * GROUP_ROWS;
      MULTIPLY_HALVES(first + half / 2);
      const __m512 low = _mm512_loadu_ps(scale), high = _mm512_loadu_ps(scale + GROUP_ROWS);
      EACH_TOKEN {
        sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums[0][t])), low, sum[t]);
        sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums[1][t])), high, sum[t]);
      }
    }
    const __m512 d = _mm512_loadu_ps((const float *)tail);
    const float *xd = x.d + (size_t)(first_block + first) * 16;
    EACH_TOKEN {
      const __m512 before = _mm512_loadu_ps(out + t * GROUP_ROWS);
      _mm512_storeu_ps(out + t * GROUP_ROWS, _mm512_fmadd_ps(sum[t], _mm512_mul_ps(d, _mm512_set1_ps(xd[t])), before));
    }
  }
}

// Adds the product of some columns of a row group, unpacked to a panel, to acc[token * 16 + row]. All sixteen lanes of a tile are
// computed; those beyond `count` have no sums of their own, and their activations are of earlier tokens.
void panel_tile(int layout, const uint8_t *panel, Tokens x, int count, int first_block, int end_block, float *acc, const uint8_t *next, size_t next_bytes) {
  const int blocks = end_block - first_block;
  for (size_t i = 0; i < next_bytes; i += 64) __builtin_prefetch(next + i, 0, 2);
  if (count < TILE_TOKENS) {
    _Alignas(64) float all[TILE_TOKENS * GROUP_ROWS] = {0};
    memcpy(all, acc, sizeof(float) * (size_t)count * GROUP_ROWS);
    panel_tile(layout, panel, x, TILE_TOKENS, first_block, end_block, all, next, 0);
    memcpy(acc, all, sizeof(float) * (size_t)count * GROUP_ROWS);
    return;
  }
  if (layout == LAYOUT_Q4K) tile_k4(panel, blocks, x, first_block, acc);
  else if (layout == LAYOUT_Q6K) tile_k6(panel, blocks, x, first_block, acc);
  else if (has_half_scales(layout)) tile_half_scales(panel, blocks, x.q + (size_t)first_block * 512, x.d + (size_t)first_block * 16, acc);
  else tile_plain(panel, blocks, x.q + (size_t)first_block * 512, x.d + (size_t)first_block * 16, acc);
}
#endif
