// Tiles with AVX2, and AVX-VNNI if the build has it. A chunk is two registers of eight rows. Sixteen registers hold the sums of at
// most four tokens, so a tile is processed in steps of four tokens while a block of weights is in the L1 cache.
//
// Without VNNI, two neighbouring products are added in 16 bits with saturation: eight chunks can be added before widening only if
// weights are below 16 (8 * 2 * 15 * 128 < 2^15). Bytes are therefore split into two nibbles.
#include "pack.h"

#if defined(__AVX2__) && !defined(__AVX512VNNI__)
#include <immintrin.h>
#include <string.h>
#include "tiles-steps.h"

#define EACH_HALF UNROLL for (int h = 0; h < 2; h++)

// Of rows 0 to 7 and 8 to 15, for each token of a step.
typedef __m256i Sums[2][STEP];

INLINE __m256i load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE __m256i broadcast4(const void *p) {
  int32_t four;
  memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}
INLINE __m256 halves(const uint8_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE __m256i low_nibbles(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
INLINE __m256i high_nibbles(__m256i v) { return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15)); }
INLINE __m256i bytes8(const uint8_t *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INLINE __m256i signed8(const uint8_t *p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INLINE void fetch(const uint8_t *p, int bytes) {
  UNROLL for (int i = 0; i < bytes; i += 64) _mm_prefetch((const char *)p + i, _MM_HINT_T0);
}

INLINE int is_bytes(const int layout) { return layout == LAYOUT_Q8 || layout == LAYOUT_Q8_MIN || layout >= LAYOUT_CODEBOOK_IQ4; }
INLINE __m256i tables(const int layout, const uint8_t *table) {
  return layout >= LAYOUT_CODEBOOK_IQ4 ? _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table)) : _mm256_setzero_si256();
}

// Columns 4c to 4c + 3 and 16 + 4c to 16 + 4c + 3 of a block whose quants (of eight rows) start at p.
INLINE void load_columns(const int layout, const uint8_t *p, const int c, __m256i table, __m256i *low, __m256i *high) {
  if (layout == LAYOUT_Q8 || layout == LAYOUT_Q8_MIN) {
    *low = load(p + c * 64);
    *high = load(p + 256 + c * 64);
    return;
  }
  const __m256i v = load(p + c * 64);
  *low = low_nibbles(v);
  *high = high_nibbles(v);
  if (layout >= LAYOUT_CODEBOOK_IQ4) *low = _mm256_shuffle_epi8(table, *low), *high = _mm256_shuffle_epi8(table, *high);
}

#if defined(__AVXVNNI__)
// sums += quants of a block times the tokens at q.
INLINE void add_dots(const int layout, const int count, const uint8_t *p, const uint8_t *table, const int8_t *q, Sums sums) {
  const __m256i values = tables(layout, table);
  UNROLL for (int c = 0; c < 4; c++) {
    __m256i low[2], high[2];
    EACH_HALF load_columns(layout, p + h * 32, c, values, &low[h], &high[h]);
    EACH_TOKEN {
      const __m256i x_low = broadcast4(q + t * 32 + c * 4), x_high = broadcast4(q + t * 32 + 16 + c * 4);
      EACH_HALF sums[h][t] = _mm256_dpbusd_avx_epi32(sums[h][t], low[h], x_low);
      EACH_HALF sums[h][t] = _mm256_dpbusd_avx_epi32(sums[h][t], high[h], x_high);
    }
  }
}
#else
INLINE __m256i widened(__m256i sums, __m256i sixteens, const int factor) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(sixteens, _mm256_set1_epi16((short)factor)));
}

INLINE void add_nibble_dots(const int layout, const int count, const uint8_t *p, const int8_t *q, Sums sums) {
  Sums narrow;
  UNROLL for (int c = 0; c < 4; c++) {
    __m256i low[2], high[2];
    EACH_HALF load_columns(layout, p + h * 32, c, _mm256_setzero_si256(), &low[h], &high[h]);
    EACH_TOKEN {
      const __m256i x_low = broadcast4(q + t * 32 + c * 4), x_high = broadcast4(q + t * 32 + 16 + c * 4);
      EACH_HALF {
        const __m256i first = _mm256_maddubs_epi16(low[h], x_low);
        narrow[h][t] = c == 0 ? first : _mm256_add_epi16(narrow[h][t], first);
        narrow[h][t] = _mm256_add_epi16(narrow[h][t], _mm256_maddubs_epi16(high[h], x_high));
      }
    }
  }
  EACH_HALF EACH_TOKEN sums[h][t] = widened(sums[h][t], narrow[h][t], 1);
}

// The nibbles of a byte, or of its codebook value, have separate sums: eight rows at a time.
INLINE void add_byte_dots(const int layout, const int count, const uint8_t *p, const uint8_t *table, const int8_t *q, Sums sums) {
  const __m256i values = tables(layout, table), low_values = low_nibbles(values), high_values = high_nibbles(values);
  EACH_HALF {
    __m256i ones[STEP], sixteens[STEP];
    EACH_TOKEN ones[t] = sixteens[t] = _mm256_setzero_si256();
    UNROLL for (int c = 0; c < 8; c++) {
      __m256i low, high;
      if (layout >= LAYOUT_CODEBOOK_IQ4) {
        const __m256i v = load(p + h * 32 + (c & 3) * 64), index = c < 4 ? low_nibbles(v) : high_nibbles(v);
        low = _mm256_shuffle_epi8(low_values, index), high = _mm256_shuffle_epi8(high_values, index);
      } else {
        const __m256i v = load(p + h * 32 + c * 64);
        low = low_nibbles(v), high = high_nibbles(v);
      }
      EACH_TOKEN {
        const __m256i columns = broadcast4(q + t * 32 + c * 4);
        ones[t] = _mm256_add_epi16(ones[t], _mm256_maddubs_epi16(low, columns));
        sixteens[t] = _mm256_add_epi16(sixteens[t], _mm256_maddubs_epi16(high, columns));
      }
    }
    EACH_TOKEN sums[h][t] = widened(widened(sums[h][t], ones[t], 1), sixteens[t], 16);
  }
}

INLINE void add_dots(const int layout, const int count, const uint8_t *p, const uint8_t *table, const int8_t *q, Sums sums) {
  if (is_bytes(layout)) add_byte_dots(layout, count, p, table, q, sums);
  else add_nibble_dots(layout, count, p, q, sums);
}
#endif

// Layouts with one scale for 32 columns. Accumulators stay in memory: sums need the registers.
INLINE void plain_block(const int layout, const int quants_at, const uint8_t *table, const uint8_t *w, const Tokens x, const int b, float *acc, const int count) {
  const size_t at = (size_t)b * x.width;
  const int32_t *offsets = is_bytes(layout) ? x.off128 : x.off8;
  Sums sums;
  EACH_TOKEN sums[0][t] = sums[1][t] = _mm256_set1_epi32(offsets[at + t]);
  add_dots(layout, count, w + quants_at, table, x.q + at * 32, sums);
  EACH_HALF {
    const __m256 scales = layout == LAYOUT_Q4 || layout == LAYOUT_Q8 ? halves(w + h * 16) : _mm256_loadu_ps((const float *)w + h * 8);
    EACH_TOKEN {
      float *target = acc + t * GROUP_ROWS + h * 8;
      __m256 sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[h][t]), _mm256_mul_ps(scales, _mm256_set1_ps(x.d[at + t])), _mm256_loadu_ps(target));
      if (layout == LAYOUT_Q8_MIN)
        UNROLL for (int k = 0; k < 2; k++)
          sum = _mm256_fmadd_ps(_mm256_loadu_ps((const float *)w + 16 + k * 16 + h * 8), _mm256_set1_ps(x.d[at + t] * (float)x.sum16[2 * (at + t) + k]), sum);
      _mm256_storeu_ps(target, sum);
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

// sums += 16 columns (`part` of a block) of codebook values times the tokens at q.
INLINE void add_half_dots(const int count, const int part, const uint8_t *p, const uint8_t *table, const int8_t *q, Sums sums) {
  const __m256i values = tables(LAYOUT_CODEBOOK_IQ4, table);
#if defined(__AVXVNNI__)
  UNROLL for (int c = 0; c < 4; c++) {
    __m256i n[2];
    EACH_HALF {
      const __m256i v = load(p + c * 64 + h * 32);
      n[h] = _mm256_shuffle_epi8(values, part ? high_nibbles(v) : low_nibbles(v));
    }
    EACH_TOKEN {
      const __m256i columns = broadcast4(q + t * 32 + c * 4);
      EACH_HALF sums[h][t] = _mm256_dpbusd_avx_epi32(sums[h][t], n[h], columns);
    }
  }
#else
  const __m256i low_values = low_nibbles(values), high_values = high_nibbles(values);
  EACH_HALF {
    __m256i ones[STEP], sixteens[STEP];
    EACH_TOKEN ones[t] = sixteens[t] = _mm256_setzero_si256();
    UNROLL for (int c = 0; c < 4; c++) {
      const __m256i v = load(p + c * 64 + h * 32), index = part ? high_nibbles(v) : low_nibbles(v);
      const __m256i low = _mm256_shuffle_epi8(low_values, index), high = _mm256_shuffle_epi8(high_values, index);
      EACH_TOKEN {
        const __m256i columns = broadcast4(q + t * 32 + c * 4);
        ones[t] = _mm256_add_epi16(ones[t], _mm256_maddubs_epi16(low, columns));
        sixteens[t] = _mm256_add_epi16(sixteens[t], _mm256_maddubs_epi16(high, columns));
      }
    }
    EACH_TOKEN sums[h][t] = widened(widened(sums[h][t], ones[t], 1), sixteens[t], 16);
  }
#endif
}

// Codebooks with a scale for sixteen columns.
BODY(tile_halves) {
  const size_t at = (size_t)b * x.width;
  UNROLL for (int part = 0; part < 2; part++) {
    Sums sums;
    EACH_TOKEN sums[0][t] = sums[1][t] = _mm256_set1_epi32(-128 * x.sum16[2 * (at + t) + part]);
    add_half_dots(count, part, w + 128, table, x.q + at * 32 + part * 16, sums);
    EACH_HALF {
      const __m256 scales = _mm256_loadu_ps((const float *)w + part * 16 + h * 8);
      EACH_TOKEN {
        float *target = acc + t * GROUP_ROWS + h * 8;
        _mm256_storeu_ps(target, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[h][t]), _mm256_mul_ps(scales, _mm256_set1_ps(x.d[at + t])), _mm256_loadu_ps(target)));
      }
    }
  }
}
TILE(tile_halves, 1, 384)

// Within 256 columns the sums of 32 are scaled as floats: each product is below 2^24 and exact.
BODY(tile_q4k) {
  __m256 total[2][STEP];
  (void)table;
  EACH_HALF EACH_TOKEN total[h][t] = _mm256_setzero_ps();
  fetch(w + 2368, 320);
  for (int j = 0; j < 8; j++) {
    Sums sums;
    fetch(w + 2368 + 320 + j * 256, 256);
    EACH_HALF EACH_TOKEN sums[h][t] = _mm256_setzero_si256();
    add_dots(LAYOUT_Q4K, count, w + 320 + j * 256, NULL, x.q + (size_t)(b + j) * x.width * 32, sums);
    EACH_HALF {
      const __m256 scales = _mm256_cvtepi32_ps(bytes8(w + 64 + j * 16 + h * 8));
      EACH_TOKEN total[h][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[h][t]), scales, total[h][t]);
    }
  }
  EACH_HALF {
    const __m256 d = halves(w + h * 16), dmin = halves(w + 32 + h * 16);
    __m256i mins[4]; // of two neighbouring blocks, interleaved like the sums of columns
    UNROLL for (int j = 0; j < 4; j++) mins[j] = _mm256_or_si256(bytes8(w + 192 + j * 32 + h * 8), _mm256_slli_epi32(bytes8(w + 208 + j * 32 + h * 8), 16));
    EACH_TOKEN {
      __m256i min = _mm256_setzero_si256();
      UNROLL for (int j = 0; j < 4; j++)
        min = _mm256_add_epi32(min, _mm256_madd_epi16(mins[j], broadcast4(x.sum32 + ((size_t)(b / 2 + j) * x.width + t) * 2)));
      const __m256 xd = _mm256_set1_ps(x.d[(size_t)b * x.width + t]);
      float *target = acc + t * GROUP_ROWS + h * 8;
      const __m256 added = _mm256_fmadd_ps(total[h][t], _mm256_mul_ps(d, xd), _mm256_loadu_ps(target));
      _mm256_storeu_ps(target, _mm256_fnmadd_ps(_mm256_cvtepi32_ps(min), _mm256_mul_ps(dmin, xd), added));
    }
  }
}
TILE(tile_q4k, 8, 2368)

INLINE __m256i with_high_bits(__m256i low, __m256i highs, const int place) {
  const __m256i moved = place == 0 ? _mm256_slli_epi16(highs, 4) : place == 1 ? _mm256_slli_epi16(highs, 2) : place == 2 ? highs : _mm256_srli_epi16(highs, 2);
  return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
}

// sums += 16 columns (`part` of a block) of six-bit quants times the tokens at q.
INLINE void add_six_bit_dots(const int count, const int part, const uint8_t *p, const int8_t *q, Sums sums) {
  UNROLL for (int pair = 0; pair < 2; pair++) {
    __m256i n[2][2];
    UNROLL for (int i = 0; i < 2; i++) EACH_HALF {
      const __m256i v = load(p + (2 * pair + i) * 64 + h * 32), highs = load(p + 256 + pair * 64 + h * 32);
      n[i][h] = with_high_bits(part ? high_nibbles(v) : low_nibbles(v), highs, i + 2 * part);
    }
    EACH_TOKEN {
      const __m256i first = broadcast4(q + t * 32 + pair * 8), second = broadcast4(q + t * 32 + pair * 8 + 4);
#if defined(__AVXVNNI__)
      EACH_HALF sums[h][t] = _mm256_dpbusd_avx_epi32(_mm256_dpbusd_avx_epi32(sums[h][t], n[0][h], first), n[1][h], second);
#else
      // Two chunks fit 16 bits: 2 * 2 * 63 * 128 < 2^15.
      EACH_HALF sums[h][t] = widened(sums[h][t], _mm256_add_epi16(_mm256_maddubs_epi16(n[0][h], first), _mm256_maddubs_epi16(n[1][h], second)), 1);
#endif
    }
  }
}

BODY(tile_q6k) {
  __m256 total[2][STEP];
  (void)table;
  EACH_HALF EACH_TOKEN total[h][t] = _mm256_setzero_ps();
  fetch(w + 3360, 288);
  for (int j = 0; j < 8; j++) {
    const size_t at = (size_t)(b + j) * x.width;
    fetch(w + 3360 + 288 + j * 384, 384);
    UNROLL for (int part = 0; part < 2; part++) {
      Sums sums;
      EACH_TOKEN sums[0][t] = sums[1][t] = _mm256_set1_epi32(x.off32[at * 2 + part * x.width + t]);
      add_six_bit_dots(count, part, w + 288 + j * 384, x.q + at * 32 + part * 16, sums);
      EACH_HALF {
        const __m256 scales = _mm256_cvtepi32_ps(signed8(w + 32 + (2 * j + part) * 16 + h * 8));
        EACH_TOKEN total[h][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[h][t]), scales, total[h][t]);
      }
    }
  }
  EACH_HALF {
    const __m256 d = halves(w + h * 16);
    EACH_TOKEN {
      float *target = acc + t * GROUP_ROWS + h * 8;
      _mm256_storeu_ps(target, _mm256_fmadd_ps(total[h][t], _mm256_mul_ps(d, _mm256_set1_ps(x.d[(size_t)b * x.width + t])), _mm256_loadu_ps(target)));
    }
  }
}
TILE(tile_q6k, 8, 3360)

#endif
