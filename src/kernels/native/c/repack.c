// Converts file blocks to the layouts of layouts.c; src/quant documents the formats. A row's 32 columns are built in a few
// registers, then stored one 32-bit word per chunk: this limits the speed of loading, so nothing is done value by value.
#include "pack.h"
#include <string.h>

static uint16_t u16_at(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static uint32_t u32_at(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static float half_at(const uint8_t *p) { return half_to_float(u16_at(p)); }

// Eight bytes at a time, `n` in each. Products and sums below never carry out of their byte.
#define EACH(n) ((uint64_t)(n) * 0x0101010101010101u)
static inline uint64_t u64_at(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline void put_u64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }

// Scale (or min) j of the 12 bytes that Q4_K and Q5_K share.
static int k_scale(const uint8_t *s, int j) { return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4; }
static int k_min(const uint8_t *s, int j) { return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4; }

// 32 columns of a row: unsigned bytes, offset by 128, with one scale and a min per half.
typedef struct {
  uint8_t q[32];
  float scale, min[2];
} Block;

// Spreads bit i of `bits` to byte i, as 0 or 1.
static inline void spread_bits(uint32_t bits, uint8_t out[32]) {
  for (int i = 0; i < 4; i++) {
    // Each byte keeps one of the eight bits; adding 127 carries it into bit 7 and never into the next byte.
    uint64_t v = EACH(bits >> (8 * i) & 255) & 0x8040201008040201u;
    v = (v + EACH(127)) >> 7 & EACH(1);
    memcpy(out + 8 * i, &v, 8);
  }
}

static inline void halves_of(const uint8_t *nibbles, uint8_t q[32]) {
  for (int i = 0; i < 16; i++) q[i] = nibbles[i] & 15;
  for (int i = 0; i < 16; i++) q[i + 16] = nibbles[i] >> 4;
}

static inline void five_bits(const uint8_t *nibbles, uint32_t fifths, int offset, uint8_t q[32]) {
  uint8_t high[32], low[32];
  spread_bits(fifths, high);
  halves_of(nibbles, low);
  for (int i = 0; i < 32; i++) q[i] = (uint8_t)((low[i] | high[i] << 4) + offset);
}

static void decode_q8_0(const uint8_t *row, int b, Block *out) {
  const uint8_t *p = row + (size_t)b * 34;
  out->scale = half_at(p);
  for (int i = 0; i < 32; i++) out->q[i] = p[2 + i] ^ 128;
}

static void decode_q4_1(const uint8_t *row, int b, Block *out) {
  const uint8_t *p = row + (size_t)b * 20;
  out->scale = half_at(p);
  out->min[0] = out->min[1] = half_at(p + 2);
  halves_of(p + 4, out->q);
  for (int i = 0; i < 32; i++) out->q[i] |= 128;
}

static void decode_q5_0(const uint8_t *row, int b, Block *out) {
  const uint8_t *p = row + (size_t)b * 22;
  out->scale = half_at(p);
  five_bits(p + 6, u32_at(p + 2), 128 - 16, out->q);
}

static void decode_q5_1(const uint8_t *row, int b, Block *out) {
  const uint8_t *p = row + (size_t)b * 24;
  out->scale = half_at(p);
  out->min[0] = out->min[1] = half_at(p + 2);
  five_bits(p + 8, u32_at(p + 4), 128, out->q);
}

// Level (<= 3) times scale (<= 15) is small, so the scale is d alone.
static void decode_q2_k(const uint8_t *row, int b, Block *out) {
  const uint8_t *p = row + (size_t)(b >> 3) * 84;
  const int j = b & 7, shift = (j & 3) * 2;
  const uint8_t *levels = p + 16 + (j >> 2) * 32;
  const float dmin = -half_at(p + 82);
  out->scale = half_at(p + 80);
  for (int h = 0; h < 2; h++) {
    const uint64_t scale = p[2 * j + h] & 15;
    out->min[h] = dmin * (float)(p[2 * j + h] >> 4);
    for (int i = 16 * h; i < 16 * h + 16; i += 8) put_u64(out->q + i, (u64_at(levels + i) >> shift & EACH(3)) * scale + EACH(128));
  }
}

static int q3k_scale(const uint8_t *p, int s) {
  return ((p[96 + (s & 7)] >> ((s >> 3) * 4) & 15) | (p[104 + (s & 3)] >> ((s >> 2) * 2) & 3) << 4) - 32;
}

// Level (-4..3) times scale (-32..31) reaches +128 but never -128: stored negated.
static void decode_q3_k(const uint8_t *row, int b, Block *out) {
  const uint8_t *p = row + (size_t)(b >> 3) * 110;
  const int j = b & 7, shift = (j & 3) * 2;
  const uint8_t *levels = p + 32 + (j >> 2) * 32;
  out->scale = -half_at(p + 108);
  for (int h = 0; h < 2; h++) {
    const int scale = q3k_scale(p, 2 * j + h);
    const uint64_t zero = EACH(128 + 4 * scale);
    for (int i = 16 * h; i < 16 * h + 16; i += 8) {
      const uint64_t level = (u64_at(levels + i) >> shift & EACH(3)) | (u64_at(p + i) >> j & EACH(1)) << 2; // offset by 4
      put_u64(out->q + i, zero - level * (uint64_t)scale); // a negative scale wraps around, and back
    }
  }
}

static void decode_q5_k(const uint8_t *row, int b, Block *out) {
  const uint8_t *p = row + (size_t)(b >> 3) * 176;
  const int j = b & 7, shift = (j & 1) * 4;
  const uint8_t *pairs = p + 48 + (j >> 1) * 32;
  out->scale = half_at(p) * (float)k_scale(p + 4, j);
  out->min[0] = out->min[1] = -half_at(p + 2) * (float)k_min(p + 4, j);
  for (int i = 0; i < 32; i += 8)
    put_u64(out->q + i, (u64_at(pairs + i) >> shift & EACH(15)) | (u64_at(p + 16 + i) >> j & EACH(1)) << 4 | EACH(128));
}

// One word per chunk: chunk w of sixteen rows holds word w of each.
static inline void put_words(uint8_t *chunks, int r, const uint8_t *bytes, int words) {
  for (int w = 0; w < words; w++) memcpy(chunks + w * 64 + r * 4, bytes + w * 4, 4);
}

typedef void DecodeFn(const uint8_t *row, int b, Block *out);

static inline void pack_q8(DecodeFn *decode, const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  Block block;
  for (int b = 0; b < cols / 32; b++, dst += 544)
    for (int r = 0; r < rows; r++) {
      decode(src + (size_t)r * row_bytes, b, &block);
      const uint16_t half = float_to_half(block.scale); // exact: it was a half in the file
      memcpy(dst + r * 2, &half, 2);
      put_words(dst + 32, r, block.q, 8);
    }
}

static inline void pack_q8_min(DecodeFn *decode, const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  Block block;
  for (int b = 0; b < cols / 32; b++, dst += 704)
    for (int r = 0; r < rows; r++) {
      decode(src + (size_t)r * row_bytes, b, &block);
      memcpy(dst + r * 4, &block.scale, 4);
      for (int h = 0; h < 2; h++) memcpy(dst + 64 + h * 64 + r * 4, &block.min[h], 4);
      put_words(dst + 192, r, block.q, 8);
    }
}

static void pack_q4(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 32; b++, dst += 288)
    for (int r = 0; r < rows; r++) {
      const uint8_t *block = src + (size_t)r * row_bytes + (size_t)b * 18;
      memcpy(dst + r * 2, block, 2);
      put_words(dst + 32, r, block + 2, 4); // the file pairs column i with column 16 + i in one byte, like our chunks
    }
}

static void pack_iq4_nl(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 32; b++, dst += 320)
    for (int r = 0; r < rows; r++) {
      const uint8_t *block = src + (size_t)r * row_bytes + (size_t)b * 18;
      const float scale = half_at(block);
      memcpy(dst + r * 4, &scale, 4);
      put_words(dst + 64, r, block + 2, 4);
    }
}

// 2^(e - 128). Sums times such a scale overflow from 2^100 on: the file is refused.
static void pack_mxfp4(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst, int32_t *refused) {
  for (int b = 0; b < cols / 32; b++, dst += 320)
    for (int r = 0; r < rows; r++) {
      const uint8_t *block = src + (size_t)r * row_bytes + (size_t)b * 17;
      const uint32_t bits = block[0] < 2 ? 0x00200000u << block[0] : (uint32_t)(block[0] - 1) << 23;
      if (block[0] >= 228) *refused = 1;
      memcpy(dst + r * 4, &bits, 4);
      put_words(dst + 64, r, block + 1, 4);
    }
}

static void pack_iq4_xs(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 32; b++, dst += 320)
    for (int r = 0; r < rows; r++) {
      const int j = b & 7;
      const uint8_t *p = src + (size_t)r * row_bytes + (size_t)(b >> 3) * 136;
      const int level = (p[4 + (j >> 1)] >> ((j & 1) * 4) & 15) | (u16_at(p + 2) >> (j * 2) & 3) << 4;
      const float scale = half_at(p) * (float)(level - 32);
      memcpy(dst + r * 4, &scale, 4);
      put_words(dst + 64, r, p + 8 + j * 16, 4);
    }
}

// The points of IQ2_XXS as indices into its table, and masks of the bytes whose sign bit is set. The table is symmetric: entry
// 5 - i is minus entry i.
static uint64_t iq2_places[256], sign_bytes[128];
enum { IQ2_LAST_PLACE = 5 };

void set_iq2_grid(const int8_t *grid) {
  const uint8_t *table = codebook_table(LAYOUT_CODEBOOK_IQ2);
  for (int point = 0; point < 256; point++) {
    uint8_t places[8] = {0};
    for (int k = 0; k < 8; k++)
      for (int i = 0; i <= IQ2_LAST_PLACE; i++)
        if (table[i] == (uint8_t)(grid[point * 8 + k] + 128)) places[k] = (uint8_t)i;
    memcpy(&iq2_places[point], places, 8);
  }
  for (uint32_t signs = 0; signs < 128; signs++) {
    uint8_t bytes[8];
    for (int k = 0; k < 7; k++) bytes[k] = signs >> k & 1 ? 255 : 0;
    bytes[7] = __builtin_parity(signs) ? 255 : 0; // the eighth sign makes the number of minuses even
    memcpy(&sign_bytes[signs], bytes, 8);
  }
}

static void pack_iq2_xxs(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 32; b++, dst += 320)
    for (int r = 0; r < rows; r++) {
      const uint8_t *p = src + (size_t)r * row_bytes + (size_t)(b >> 3) * 66, *sub = p + 2 + (b & 7) * 8;
      const uint32_t signs_and_scale = u32_at(sub + 4);
      const float scale = half_at(p) * (0.5f + (float)(signs_and_scale >> 28)) * 0.25f;
      memcpy(dst + r * 4, &scale, 4);
      uint64_t q[4];
      for (int point = 0; point < 4; point++) {
        const uint64_t place = iq2_places[sub[point]], minus = sign_bytes[signs_and_scale >> (point * 7) & 127];
        q[point] = (place & ~minus) | ((EACH(IQ2_LAST_PLACE) - place) & minus);
      }
      const uint64_t nibbles[2] = {q[0] | q[2] << 4, q[1] | q[3] << 4};
      put_words(dst + 64, r, (const uint8_t *)nibbles, 4);
    }
}

// Index of each level (as a byte) in the codebooks, by layout.
static uint8_t level_index[LAYOUT_HALVES_ODD + 1][256];

void set_codebook_indices(void) {
  for (int layout = LAYOUT_CODEBOOK_IQ4; layout <= LAYOUT_HALVES_ODD; layout++)
    for (int i = 15; i >= 0; i--) level_index[layout][(uint8_t)(codebook_table(layout)[i] - 128)] = (uint8_t)i;
}

// Rows that TypeScript has decoded (../../../quant/format.ts): i8[cols] levels, then f32[cols / 16] scales.
static void pack_levels(int layout, const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  const uint8_t *index = level_index[layout];
  for (int b = 0; b < cols / 32; b++, dst += block_bytes(layout))
    for (int r = 0; r < rows; r++) {
      const uint8_t *levels = src + (size_t)r * row_bytes + (size_t)b * 32;
      const uint8_t *scales = src + (size_t)r * row_bytes + cols + (size_t)b * 8;
      uint8_t q[32];
      memcpy(dst + r * 4, scales, 4);
      if (layout == LAYOUT_Q8_MIN) {
        // Q8_K has floats of 24 bits; sums that start at MAGIC (pack.h) need 22.
        uint32_t bits = u32_at(scales);
        bits = (bits + 1 + (bits >> 2 & 1)) & ~3u;
        memcpy(dst + r * 4, &bits, 4);
        memset(dst + 64 + r * 4, 0, 4);
        memset(dst + 128 + r * 4, 0, 4);
        for (int i = 0; i < 32; i++) q[i] = levels[i] ^ 128;
        put_words(dst + 192, r, q, 8);
        continue;
      }
      if (has_half_scales(layout)) memcpy(dst + 64 + r * 4, scales + 4, 4);
      for (int i = 0; i < 16; i++) q[i] = (uint8_t)(index[levels[i]] | index[levels[i + 16]] << 4);
      put_words(dst + (has_half_scales(layout) ? 128 : 64), r, q, 4);
    }
}

static void pack_q4k(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 256; b++, dst += 2368)
    for (int r = 0; r < rows; r++) {
      const uint8_t *block = src + (size_t)r * row_bytes + (size_t)b * 144;
      memcpy(dst + r * 2, block, 2);
      memcpy(dst + 32 + r * 2, block + 2, 2);
      for (int j = 0; j < 8; j++) {
        dst[64 + j * 16 + r] = (uint8_t)k_scale(block + 4, j);
        dst[192 + j * 16 + r] = (uint8_t)k_min(block + 4, j);
      }
      for (int pair = 0; pair < 4; pair++) {
        const uint8_t *bytes = block + 16 + pair * 32;
        uint8_t low[16], high[16];
        for (int i = 0; i < 16; i++) low[i] = (uint8_t)((bytes[i] & 15) | bytes[i + 16] << 4);
        for (int i = 0; i < 16; i++) high[i] = (uint8_t)(bytes[i] >> 4 | (bytes[i + 16] & 0xf0));
        put_words(dst + 320 + pair * 512, r, low, 4);
        put_words(dst + 320 + pair * 512 + 256, r, high, 4);
      }
    }
}

static void pack_q6k(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 256; b++, dst += 3360)
    for (int r = 0; r < rows; r++) {
      const uint8_t *block = src + (size_t)r * row_bytes + (size_t)b * 210;
      memcpy(dst + r * 2, block + 208, 2);
      for (int s = 0; s < 16; s++) dst[32 + s * 16 + r] = block[192 + s];
      for (int j = 0; j < 8; j++) {
        const int half = j >> 2, quarter = j & 3, shift = quarter >= 2 ? 4 : 0;
        const uint8_t *low = block + half * 64 + (quarter & 1) * 32, *high = block + 128 + half * 32;
        uint64_t nibbles[2];
        for (int i = 0; i < 2; i++)
          nibbles[i] = (u64_at(low + 8 * i) >> shift & EACH(15)) | (u64_at(low + 8 * i + 16) >> shift & EACH(15)) << 4;
        put_words(dst + 288 + j * 384, r, (const uint8_t *)nibbles, 4);
        // Two bits per byte, four columns per word; see high_at in layouts.c.
        uint32_t bits[8], words[2];
        for (int w = 0; w < 8; w++) bits[w] = u32_at(high + 4 * w) >> (quarter * 2) & 0x03030303;
        for (int h = 0; h < 2; h++) words[h] = bits[2 * h] | bits[2 * h + 1] << 2 | bits[2 * h + 4] << 4 | bits[2 * h + 5] << 6;
        put_words(dst + 288 + j * 384 + 256, r, (const uint8_t *)words, 2);
      }
    }
}

// By file type: one copy of the loop per decoder, so that it is inlined.
static void pack_group(int type, int layout, int32_t *refused, const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  switch (type) {
    case 2: pack_q4(src, row_bytes, rows, cols, dst); return;
    case 3: pack_q8_min(decode_q4_1, src, row_bytes, rows, cols, dst); return;
    case 6: pack_q8(decode_q5_0, src, row_bytes, rows, cols, dst); return;
    case 7: pack_q8_min(decode_q5_1, src, row_bytes, rows, cols, dst); return;
    case 8: pack_q8(decode_q8_0, src, row_bytes, rows, cols, dst); return;
    case 10: pack_q8_min(decode_q2_k, src, row_bytes, rows, cols, dst); return;
    case 11: pack_q8(decode_q3_k, src, row_bytes, rows, cols, dst); return;
    case 12: pack_q4k(src, row_bytes, rows, cols, dst); return;
    case 13: pack_q8_min(decode_q5_k, src, row_bytes, rows, cols, dst); return;
    case 14: pack_q6k(src, row_bytes, rows, cols, dst); return;
    case 16: pack_iq2_xxs(src, row_bytes, rows, cols, dst); return;
    case 20: pack_iq4_nl(src, row_bytes, rows, cols, dst); return;
    case 23: pack_iq4_xs(src, row_bytes, rows, cols, dst); return;
    case 39: pack_mxfp4(src, row_bytes, rows, cols, dst, refused); return;
    default: pack_levels(layout, src, row_bytes, rows, cols, dst); // LEVELS_TYPE
  }
}

// args: 2 source rows, 3 file type, 4 rows, 5 cols, 6 bytes per source row, 7 target, 8 layout, 9 an int32 that becomes 1 if a
// scale is refused. A chunk is 4 groups.
void op_repack(const Context *c, const Record *program, const Record *op) {
  const uint8_t *source = c->base + arg_u(op, 2);
  const int type = arg_i(op, 3), rows = arg_i(op, 4), cols = arg_i(op, 5), layout = arg_i(op, 8);
  const size_t row_bytes = arg_u(op, 6), stride = group_bytes(layout, cols);
  uint8_t *target = c->base + arg_u(op, 7);
  const int groups = (rows + GROUP_ROWS - 1) / GROUP_ROWS;
  for (int first = take_chunk(c, program, op) * 4; first < groups; first = take_chunk(c, program, op) * 4)
    for (int g = first; g < groups && g < first + 4; g++) {
      const uint8_t *src = source + (size_t)g * GROUP_ROWS * row_bytes;
      uint8_t *dst = target + (size_t)g * stride;
      const int n = rows - g * GROUP_ROWS < GROUP_ROWS ? rows - g * GROUP_ROWS : GROUP_ROWS;
      if (layout <= LAYOUT_BF16) {
        memcpy(dst, src, (size_t)n * row_bytes);
        continue;
      }
      if (n < GROUP_ROWS) memset(dst, 0, stride); // missing rows give finite results that are never stored
      pack_group(type, layout, (int32_t *)(c->base + arg_u(op, 9)), src, row_bytes, n, cols, dst);
    }
}
