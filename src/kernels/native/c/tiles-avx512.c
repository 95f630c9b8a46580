// Tiles with AVX-512 VNNI: one register holds four columns of sixteen rows, and one instruction multiplies it with four
// broadcast activations. Weights are the unsigned operand; sums start at minus their offset's excess. Two row groups at a time
// share each broadcast: with one, loads would be the limit instead of multiplications.
#include "pack.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
// Unrolls loops over registers: otherwise their arrays would be in memory.
#define UNROLL _Pragma("GCC unroll 8")
#define EACH_GROUP UNROLL for (int g = 0; g < groups; g++)
#define EACH_TOKEN UNROLL for (int t = 0; t < count; t++)

INLINE __m512i broadcast4(const void *p) {
  int32_t four;
  memcpy(&four, p, 4);
  return _mm512_set1_epi32(four);
}
INLINE __m512 halves(const uint8_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
INLINE __m512i high_nibbles(__m512i v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15)); }
INLINE __m512i bytes16(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
INLINE __m512i signed16(const uint8_t *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
// Force-inlined: GCC considers a function that only prefetches as one without effects, and drops its calls.
INLINE void fetch(const uint8_t *p, int bytes) {
  UNROLL for (int i = 0; i < bytes; i += 64) _mm_prefetch((const char *)p + i, _MM_HINT_T0);
}

// A body is compiled for each shape, so that its arrays become registers.
#define SHAPE(NAME, GROUPS, COUNT) case GROUPS * 16 + COUNT: NAME##_of(tile, x, GROUPS, COUNT); break
#define SHAPES(NAME)                                                                                                  \
  void NAME(const Tile *tile, Tokens x) {                                                                             \
    switch (tile->groups * 16 + tile->count) {                                                                        \
      SHAPE(NAME, 4, 1); SHAPE(NAME, 2, 1); SHAPE(NAME, 1, 1); SHAPE(NAME, 2, 2); SHAPE(NAME, 1, 2); SHAPE(NAME, 2, 3);\
      SHAPE(NAME, 1, 3); SHAPE(NAME, 2, 4); SHAPE(NAME, 1, 4); SHAPE(NAME, 2, 5); SHAPE(NAME, 1, 5); SHAPE(NAME, 2, 6);\
      SHAPE(NAME, 1, 6); SHAPE(NAME, 2, 7); SHAPE(NAME, 1, 7); SHAPE(NAME, 2, 8); SHAPE(NAME, 1, 8);                  \
    }                                                                                                                 \
  }
#define BODY(NAME) INLINE void NAME##_of(const Tile *tile, const Tokens x, const int groups, const int count)

// Prefetch distance of a stream.
enum { AHEAD_BYTES = 2304 };

// The address at that distance: in the same row group or, near its end, in the next one of this stream.
INLINE const uint8_t *ahead(const Tile *tile, const int groups, const uint8_t *p, int bytes, int is_last) {
  return p + bytes + (is_last ? (groups - 1) * tile->stride : 0);
}

typedef __m512i Sums[MAX_GROUPS][MAX_COUNT];

// Columns 4c to 4c + 3 and 16 + 4c to 16 + 4c + 3 of a block whose quants start at p.
INLINE void load_columns(const int layout, const uint8_t *p, const int c, __m512i table, __m512i *low, __m512i *high) {
  if (layout == LAYOUT_Q8 || layout == LAYOUT_Q8_MIN) {
    *low = _mm512_loadu_si512(p + c * 64);
    *high = _mm512_loadu_si512(p + 256 + c * 64);
    return;
  }
  const __m512i v = _mm512_loadu_si512(p + c * 64);
  *low = low_nibbles(v);
  *high = high_nibbles(v);
  if (layout >= LAYOUT_CODEBOOK_IQ4) *low = _mm512_shuffle_epi8(table, *low), *high = _mm512_shuffle_epi8(table, *high);
}

// sums += quants of a block of each group (at p, `stride` apart) times the tokens at q.
INLINE void add_dots(const int layout, const int groups, const int count, const uint8_t *p, size_t stride, __m512i table, const int8_t *q, Sums sums) {
  UNROLL for (int c = 0; c < 4; c++) {
    __m512i low[MAX_GROUPS], high[MAX_GROUPS];
    EACH_GROUP load_columns(layout, p + g * stride, c, table, &low[g], &high[g]);
    EACH_TOKEN {
      const __m512i x_low = broadcast4(q + t * 32 + c * 4), x_high = broadcast4(q + t * 32 + 16 + c * 4);
      EACH_GROUP sums[g][t] = _mm512_dpbusd_epi32(sums[g][t], low[g], x_low);
      EACH_GROUP sums[g][t] = _mm512_dpbusd_epi32(sums[g][t], high[g], x_high);
    }
  }
}

// Layouts with one scale for 32 columns. Accumulators stay in memory: sums need the registers.
INLINE void plain_tile(const int layout, const int bytes, const int quants_at, const Tile *tile, const Tokens x, const int groups, const int count) {
  const __m512i table = layout >= LAYOUT_CODEBOOK_IQ4 ? _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)tile->table)) : _mm512_setzero_si512();
  const int32_t *offsets = layout == LAYOUT_Q4 ? x.off8 : x.off128;
  __m512 acc[MAX_GROUPS][MAX_COUNT];
  EACH_GROUP EACH_TOKEN acc[g][t] = _mm512_loadu_ps(tile->acc + g * tile->acc_stride + t * GROUP_ROWS);
  for (int b = tile->first_block; b < tile->end_block; b++) {
    const uint8_t *w = tile->w + (size_t)b * bytes;
    const size_t at = (size_t)b * x.width;
    Sums sums;
    EACH_TOKEN {
      const __m512i offset = _mm512_set1_epi32(offsets[at + t]);
      EACH_GROUP sums[g][t] = offset;
    }
    const uint8_t *next = ahead(tile, groups, w, AHEAD_BYTES, (b + AHEAD_BYTES / bytes) >= tile->end_block);
    EACH_GROUP fetch(next + g * tile->stride, bytes);
    add_dots(layout, groups, count, w + quants_at, tile->stride, table, x.q + at * 32, sums);
    EACH_GROUP {
      const uint8_t *p = w + g * tile->stride;
      const __m512 scales = layout == LAYOUT_Q4 || layout == LAYOUT_Q8 ? halves(p) : _mm512_loadu_ps(p);
      const __m512 start = _mm512_mul_ps(scales, _mm512_set1_ps(-MAGIC));
      EACH_TOKEN {
        const __m512 scaled = _mm512_fmadd_ps(_mm512_castsi512_ps(sums[g][t]), scales, start);
        acc[g][t] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(x.d[at + t]), acc[g][t]);
        if (layout == LAYOUT_Q8_MIN)
          UNROLL for (int h = 0; h < 2; h++)
            acc[g][t] = _mm512_fmadd_ps(_mm512_loadu_ps(p + 64 + h * 64), _mm512_set1_ps(x.d[at + t] * (float)x.sum16[2 * (at + t) + h]), acc[g][t]);
      }
    }
  }
  EACH_GROUP EACH_TOKEN _mm512_storeu_ps(tile->acc + g * tile->acc_stride + t * GROUP_ROWS, acc[g][t]);
}
BODY(tile_q4) { plain_tile(LAYOUT_Q4, 288, 32, tile, x, groups, count); }
SHAPES(tile_q4)
BODY(tile_q8) { plain_tile(LAYOUT_Q8, 544, 32, tile, x, groups, count); }
SHAPES(tile_q8)
BODY(tile_q8_min) { plain_tile(LAYOUT_Q8_MIN, 704, 192, tile, x, groups, count); }
SHAPES(tile_q8_min)
BODY(tile_codebook) { plain_tile(LAYOUT_CODEBOOK_IQ4, 320, 64, tile, x, groups, count); }
SHAPES(tile_codebook)

// Codebooks with a scale for sixteen columns: two sums per block, so one row group at a time.
BODY(tile_halves) {
  const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)tile->table));
  EACH_GROUP {
    __m512 acc[MAX_COUNT];
    EACH_TOKEN acc[t] = _mm512_loadu_ps(tile->acc + g * tile->acc_stride + t * GROUP_ROWS);
    for (int b = tile->first_block; b < tile->end_block; b++) {
      const uint8_t *w = tile->w + g * tile->stride + (size_t)b * 384;
      const size_t at = (size_t)b * x.width;
      fetch(w + AHEAD_BYTES, 384);
      UNROLL for (int h = 0; h < 2; h++) {
        __m512i n[4];
        UNROLL for (int c = 0; c < 4; c++) {
          const __m512i v = _mm512_loadu_si512(w + 128 + c * 64);
          n[c] = _mm512_shuffle_epi8(table, h ? high_nibbles(v) : low_nibbles(v));
        }
        const __m512 scales = _mm512_loadu_ps(w + h * 64);
        EACH_TOKEN {
          const int8_t *xq = x.q + (at + t) * 32 + h * 16;
          __m512i sum = _mm512_set1_epi32(-128 * x.sum16[2 * (at + t) + h]);
          UNROLL for (int c = 0; c < 4; c++) sum = _mm512_dpbusd_epi32(sum, n[c], broadcast4(xq + c * 4));
          acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scales), _mm512_set1_ps(x.d[at + t]), acc[t]);
        }
      }
    }
    EACH_TOKEN _mm512_storeu_ps(tile->acc + g * tile->acc_stride + t * GROUP_ROWS, acc[t]);
  }
}
SHAPES(tile_halves)

// Within 256 columns the sums of 32 are scaled as floats: each product is below 2^24 and exact.
BODY(tile_q4k) {
  for (int b = tile->first_block; b < tile->end_block; b += 8) {
    const uint8_t *w = tile->w + (size_t)(b / 8) * 2368;
    __m512 total[MAX_GROUPS][MAX_COUNT];
    EACH_GROUP EACH_TOKEN total[g][t] = _mm512_setzero_ps();
    const uint8_t *next = ahead(tile, groups, w, 2368, b + 8 >= tile->end_block);
    EACH_GROUP fetch(next + g * tile->stride, 320);
    for (int j = 0; j < 8; j++) {
      Sums sums;
      EACH_GROUP fetch(next + g * tile->stride + 320 + j * 256, 256);
      EACH_GROUP EACH_TOKEN sums[g][t] = _mm512_setzero_si512();
      add_dots(LAYOUT_Q4K, groups, count, w + 320 + j * 256, tile->stride, _mm512_setzero_si512(), x.q + (size_t)(b + j) * x.width * 32, sums);
      EACH_GROUP {
        const __m512 scales = _mm512_cvtepi32_ps(bytes16(w + g * tile->stride + 64 + j * 16));
        EACH_TOKEN total[g][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[g][t]), scales, total[g][t]);
      }
    }
    EACH_GROUP {
      const uint8_t *p = w + g * tile->stride;
      const __m512 d = halves(p), dmin = halves(p + 32);
      __m512i mins[4];
      UNROLL for (int j = 0; j < 4; j++) mins[j] = _mm512_or_si512(bytes16(p + 192 + j * 32), _mm512_slli_epi32(bytes16(p + 208 + j * 32), 16));
      EACH_TOKEN {
        __m512i min = _mm512_setzero_si512();
        UNROLL for (int j = 0; j < 4; j++) min = _mm512_dpwssd_epi32(min, mins[j], broadcast4(x.sum32 + ((size_t)(b / 2 + j) * x.width + t) * 2));
        const __m512 xd = _mm512_set1_ps(x.d[(size_t)b * x.width + t]);
        float *acc = tile->acc + g * tile->acc_stride + t * GROUP_ROWS;
        const __m512 added = _mm512_fmadd_ps(total[g][t], _mm512_mul_ps(d, xd), _mm512_loadu_ps(acc));
        _mm512_storeu_ps(acc, _mm512_fnmadd_ps(_mm512_cvtepi32_ps(min), _mm512_mul_ps(dmin, xd), added));
      }
    }
  }
}
SHAPES(tile_q4k)

INLINE __m512i with_high_bits(__m512i low, __m512i highs, const int place) {
  const __m512i moved = place == 0 ? _mm512_slli_epi16(highs, 4) : place == 1 ? _mm512_slli_epi16(highs, 2) : place == 2 ? highs : _mm512_srli_epi16(highs, 2);
  return _mm512_or_si512(low, _mm512_and_si512(moved, _mm512_set1_epi8(0x30)));
}

// Each sixteen columns have a scale: two sums per block, so one row group at a time.
BODY(tile_q6k) {
  for (int b = tile->first_block; b < tile->end_block; b += 8)
    EACH_GROUP {
      const uint8_t *w = tile->w + g * tile->stride + (size_t)(b / 8) * 3360;
      __m512 total[MAX_COUNT];
      EACH_TOKEN total[t] = _mm512_setzero_ps();
      fetch(w + 3360, 288);
      for (int j = 0; j < 8; j++) {
        const uint8_t *q = w + 288 + j * 384;
        const size_t at = (size_t)(b + j) * x.width;
        fetch(q + 3360, 384);
        UNROLL for (int h = 0; h < 2; h++) {
          __m512i n[4];
          UNROLL for (int c = 0; c < 4; c++) {
            const __m512i v = _mm512_loadu_si512(q + c * 64), highs = _mm512_loadu_si512(q + 256 + (c >> 1) * 64);
            n[c] = with_high_bits(h ? high_nibbles(v) : low_nibbles(v), highs, (c & 1) + 2 * h);
          }
          const __m512 scales = _mm512_cvtepi32_ps(signed16(w + 32 + (2 * j + h) * 16));
          EACH_TOKEN {
            const int8_t *xq = x.q + (at + t) * 32 + h * 16;
            __m512i sum = _mm512_set1_epi32(x.off32[at * 2 + h * x.width + t]);
            UNROLL for (int c = 0; c < 4; c++) sum = _mm512_dpbusd_epi32(sum, n[c], broadcast4(xq + c * 4));
            total[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scales, total[t]);
          }
        }
      }
      const __m512 d = halves(w);
      EACH_TOKEN {
        float *acc = tile->acc + g * tile->acc_stride + t * GROUP_ROWS;
        const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x.d[(size_t)b * x.width + t]));
        _mm512_storeu_ps(acc, _mm512_fmadd_ps(total[t], scale, _mm512_loadu_ps(acc)));
      }
    }
}
SHAPES(tile_q6k)

#endif
