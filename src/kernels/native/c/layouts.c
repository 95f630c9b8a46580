// File blocks to the layouts the tiles compute on, and back to floats for single rows. Every layout holds the exact values of
// its formats. G = 16 rows; lane 4 * r + i of a 64-byte chunk is column 4 * g + i of row r.
//
// Q4       per 32 columns: f16[16] scales, 4 chunks of nibbles: chunk c holds column group c low and c + 4 high; value n - 8
// Q8       per 32 columns: f16[16] scales, 8 chunks of u8; value u - 128
// Q8_MIN   per 32 columns: f32[16] scales, f32[2][16] mins of the halves, 8 chunks of u8; value (u - 128) * scale + min
// Q4K      per 256 columns: f16[16] d, f16[16] dmin, u8[8][16] scales, u8[8][16] mins, 8 x 4 chunks of nibbles
// Q6K      per 256 columns: f16[16] d, i8[16][16] scales, 8 x (4 chunks of low nibbles, 2 chunks of high bits)
// CODEBOOK per 32 columns: f32[16] scales, 4 chunks of nibbles; value table[n] - 128
#include "pack.h"
#include <string.h>

size_t block_bytes(int layout) {
  static const size_t bytes[] = {4 * GROUP_ROWS, 2 * GROUP_ROWS, 2 * GROUP_ROWS, 288, 544, 704, 2368, 3360, 320, 320};
  return bytes[layout];
}
int block_cols(int layout) { return layout <= LAYOUT_BF16 ? 1 : layout == LAYOUT_Q4K || layout == LAYOUT_Q6K ? 256 : 32; }
size_t group_bytes(int layout, int cols) { return (size_t)(cols / block_cols(layout)) * block_bytes(layout); }

static int8_t iq2_grid[256 * 8];
// Codebooks, each value + 128 so that it is unsigned.
static const uint8_t iq4_table[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t iq2_table[16] = {128 - 43, 128 - 25, 128 - 8, 128 + 8, 128 + 25, 128 + 43};

void set_iq2_grid(const int8_t *grid) { memcpy(iq2_grid, grid, sizeof iq2_grid); }
const uint8_t *codebook_table(int layout) { return layout == LAYOUT_CODEBOOK_IQ4 ? iq4_table : iq2_table; }

static uint16_t u16_at(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static uint32_t u32_at(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static float half_at(const uint8_t *p) { return half_to_float(u16_at(p)); }

// Scale (or min) j of the 12 bytes Q4_K and Q5_K share.
static int k_scale(const uint8_t *s, int j) { return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4; }
static int k_min(const uint8_t *s, int j) { return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4; }

// 32 columns of a row as signed bytes with one scale and a min per half; src/quant documents the formats.
typedef struct {
  int8_t q[32];
  float scale, min[2];
} Block;

static void five_bits(const uint8_t *nibbles, uint32_t fifths, int offset, Block *b) {
  for (int j = 0; j < 16; j++) {
    b->q[j] = (int8_t)(((nibbles[j] & 15) | ((fifths >> j) & 1) << 4) - offset);
    b->q[j + 16] = (int8_t)((nibbles[j] >> 4 | ((fifths >> (j + 16)) & 1) << 4) - offset);
  }
}

static int q3k_scale(const uint8_t *p, int s) {
  return ((p[96 + (s & 7)] >> ((s >> 3) * 4) & 15) | (p[104 + (s & 3)] >> ((s >> 2) * 2) & 3) << 4) - 32;
}

static void decode(int type, const uint8_t *row, int b, Block *out) {
  const int j = b & 7; // within a block of 256
  const uint8_t *p;
  out->min[0] = out->min[1] = 0;
  switch (type) {
    case 8: // Q8_0
      p = row + b * 34;
      out->scale = half_at(p);
      memcpy(out->q, p + 2, 32);
      return;
    case 3: // Q4_1
      p = row + b * 20;
      for (int i = 0; i < 16; i++) out->q[i] = p[4 + i] & 15, out->q[i + 16] = p[4 + i] >> 4;
      out->scale = half_at(p);
      out->min[0] = out->min[1] = half_at(p + 2);
      return;
    case 6: // Q5_0
      p = row + b * 22;
      out->scale = half_at(p);
      five_bits(p + 6, u32_at(p + 2), 16, out);
      return;
    case 7: // Q5_1
      p = row + b * 24;
      out->scale = half_at(p);
      out->min[0] = out->min[1] = half_at(p + 2);
      five_bits(p + 8, u32_at(p + 4), 0, out);
      return;
    case 10: // Q2_K: level (<= 3) times scale (<= 15) is small, so d alone is the scale
      p = row + (size_t)(b >> 3) * 84;
      out->scale = half_at(p + 80);
      for (int h = 0; h < 2; h++) out->min[h] = -half_at(p + 82) * (float)(p[2 * j + h] >> 4);
      for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)((p[2 * j + (i >> 4)] & 15) * (p[16 + (j >> 2) * 32 + i] >> ((j & 3) * 2) & 3));
      return;
    case 11: // Q3_K: level (-4..3) times scale (-32..31) reaches +128, never -128: stored negated
      p = row + (size_t)(b >> 3) * 110;
      out->scale = -half_at(p + 108);
      for (int i = 0; i < 32; i++) {
        const int level = (p[32 + (j >> 2) * 32 + i] >> ((j & 3) * 2) & 3) + (p[i] >> j & 1) * 4 - 4;
        out->q[i] = (int8_t)-(level * q3k_scale(p, 2 * j + (i >> 4)));
      }
      return;
    case 13: // Q5_K
      p = row + (size_t)(b >> 3) * 176;
      out->scale = half_at(p) * (float)k_scale(p + 4, j);
      out->min[0] = out->min[1] = -half_at(p + 2) * (float)k_min(p + 4, j);
      for (int i = 0; i < 32; i++) {
        const int pair = p[48 + (j >> 1) * 32 + i];
        out->q[i] = (int8_t)((j & 1 ? pair >> 4 : pair & 15) | (p[16 + i] >> j & 1) << 4);
      }
      return;
    case 16: { // IQ2_XXS
      p = row + (size_t)(b >> 3) * 66;
      const uint8_t *sub = p + 2 + j * 8;
      const uint32_t signs_and_scale = u32_at(sub + 4);
      out->scale = half_at(p) * (0.5f + (float)(signs_and_scale >> 28)) * 0.25f;
      for (int point = 0; point < 4; point++) {
        uint32_t signs = signs_and_scale >> (point * 7) & 127;
        uint32_t parity = signs;
        parity ^= parity >> 4, parity ^= parity >> 2, parity ^= parity >> 1;
        signs |= (parity & 1) << 7; // the eighth sign makes the number of minuses even
        for (int k = 0; k < 8; k++) {
          const int8_t value = iq2_grid[sub[point] * 8 + k];
          out->q[point * 8 + k] = signs >> k & 1 ? (int8_t)-value : value;
        }
      }
      return;
    }
    case 20: // IQ4_NL
      p = row + b * 18;
      out->scale = half_at(p);
      p += 2;
      break;
    default: { // 23, IQ4_XS
      p = row + (size_t)(b >> 3) * 136;
      const int scale = (p[4 + (j >> 1)] >> ((j & 1) * 4) & 15) | (u16_at(p + 2) >> (j * 2) & 3) << 4;
      out->scale = half_at(p) * (float)(scale - 32);
      p += 8 + j * 16;
    }
  }
  for (int i = 0; i < 16; i++) {
    out->q[i] = (int8_t)(iq4_table[p[i] & 15] - 128);
    out->q[i + 16] = (int8_t)(iq4_table[p[i] >> 4] - 128);
  }
}

// Column c (0-31) of row r goes to this byte of a block's chunks, in its low (c < 16) or high nibble.
static int nibble_at(int r, int c) { return ((c & 15) >> 2) * 64 + r * 4 + (c & 3); }
static int byte_at(int r, int c) { return (c >> 2) * 64 + r * 4 + (c & 3); }

static void put_nibble(uint8_t *chunks, int r, int c, int value) {
  uint8_t *p = chunks + nibble_at(r, c);
  *p = (uint8_t)(c < 16 ? (*p & 0xf0) | value : (*p & 0x0f) | value << 4);
}
static int get_nibble(const uint8_t *chunks, int r, int c) {
  const int v = chunks[nibble_at(r, c)];
  return c < 16 ? v & 15 : v >> 4;
}

static void pack_q4(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 32; b++, dst += 288)
    for (int r = 0; r < rows; r++) {
      const uint8_t *block = src + (size_t)r * row_bytes + (size_t)b * 18;
      memcpy(dst + r * 2, block, 2);
      // The file pairs column i with column 16 + i in one byte, as our chunks do.
      for (int c = 0; c < 4; c++) memcpy(dst + 32 + c * 64 + r * 4, block + 2 + c * 4, 4);
    }
}

static void pack_q8(int type, const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst, int has_mins) {
  Block block;
  for (int b = 0; b < cols / 32; b++, dst += has_mins ? 704 : 544)
    for (int r = 0; r < rows; r++) {
      decode(type, src + (size_t)r * row_bytes, b, &block);
      uint8_t *chunks = dst + (has_mins ? 192 : 32);
      if (has_mins) {
        memcpy(dst + r * 4, &block.scale, 4);
        for (int h = 0; h < 2; h++) memcpy(dst + 64 + h * 64 + r * 4, &block.min[h], 4);
      } else {
        const uint16_t half = float_to_half(block.scale); // exact: it was a half in the file
        memcpy(dst + r * 2, &half, 2);
      }
      for (int c = 0; c < 32; c++) chunks[byte_at(r, c)] = (uint8_t)(block.q[c] + 128);
    }
}

static void pack_codebook(int type, int layout, const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  const uint8_t *table = codebook_table(layout);
  uint8_t index[256] = {0};
  for (int i = 0; i < 16; i++)
    if (table[i]) index[table[i]] = (uint8_t)i;
  Block block;
  for (int b = 0; b < cols / 32; b++, dst += 320)
    for (int r = 0; r < rows; r++) {
      decode(type, src + (size_t)r * row_bytes, b, &block);
      memcpy(dst + r * 4, &block.scale, 4);
      for (int c = 0; c < 32; c++) put_nibble(dst + 64, r, c, index[(uint8_t)(block.q[c] + 128)]);
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
        const uint8_t *bytes = block + 16 + (j >> 1) * 32;
        for (int c = 0; c < 32; c++) put_nibble(dst + 320 + j * 256, r, c, j & 1 ? bytes[c] >> 4 : bytes[c] & 15);
      }
    }
}

static int q6k_level(const uint8_t *block, int j, int c) {
  const int half = j >> 2, quarter = j & 3;
  const int low = block[half * 64 + (quarter & 1) * 32 + c];
  return (quarter >= 2 ? low >> 4 : low & 15) | (block[128 + half * 32 + c] >> (quarter * 2) & 3) << 4;
}
// High bits: byte 4 * r + i of chunk h holds, from the low bits up, columns 8h + i, 8h + 4 + i, 16 + 8h + i, 16 + 8h + 4 + i.
static int high_at(int r, int c) { return 256 + ((c >> 3) & 1) * 64 + r * 4 + (c & 3); }
static int high_shift(int c) { return (((c >> 2) & 1) + (c >> 4) * 2) * 2; }

static void pack_q6k(const uint8_t *src, size_t row_bytes, int rows, int cols, uint8_t *dst) {
  for (int b = 0; b < cols / 256; b++, dst += 3360)
    for (int r = 0; r < rows; r++) {
      const uint8_t *block = src + (size_t)r * row_bytes + (size_t)b * 210;
      memcpy(dst + r * 2, block + 208, 2);
      for (int s = 0; s < 16; s++) dst[32 + s * 16 + r] = block[192 + s];
      for (int j = 0; j < 8; j++) {
        uint8_t *chunks = dst + 288 + j * 384;
        for (int c = 0; c < 32; c++) {
          const int level = q6k_level(block, j, c);
          put_nibble(chunks, r, c, level & 15);
          uint8_t *high = chunks + high_at(r, c);
          *high = (uint8_t)((*high & ~(3 << high_shift(c))) | level >> 4 << high_shift(c));
        }
      }
    }
}

// args: 2 source rows, 3 file type, 4 rows, 5 cols, 6 bytes per source row, 7 target, 8 layout. A chunk is 4 groups.
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
      if (n < GROUP_ROWS) memset(dst, 0, stride); // missing rows compute to something finite and are never stored
      if (layout == LAYOUT_Q4) pack_q4(src, row_bytes, n, cols, dst);
      else if (layout == LAYOUT_Q4K) pack_q4k(src, row_bytes, n, cols, dst);
      else if (layout == LAYOUT_Q6K) pack_q6k(src, row_bytes, n, cols, dst);
      else if (layout >= LAYOUT_CODEBOOK_IQ4) pack_codebook(type, layout, src, row_bytes, n, cols, dst);
      else pack_q8(type, src, row_bytes, n, cols, dst, layout == LAYOUT_Q8_MIN);
    }
}

static float f32_at(const uint8_t *p) { float v; memcpy(&v, p, 4); return v; }

static float value_at(int layout, const uint8_t *group, int r, int c) {
  const int i = c & 31, j = (c >> 5) & 7;
  const uint8_t *p;
  switch (layout) {
    case LAYOUT_Q4:
      p = group + (size_t)(c >> 5) * 288;
      return half_at(p + r * 2) * (float)(get_nibble(p + 32, r, i) - 8);
    case LAYOUT_Q8:
      p = group + (size_t)(c >> 5) * 544;
      return half_at(p + r * 2) * (float)(p[32 + byte_at(r, i)] - 128);
    case LAYOUT_Q8_MIN:
      p = group + (size_t)(c >> 5) * 704;
      return f32_at(p + r * 4) * (float)(p[192 + byte_at(r, i)] - 128) + f32_at(p + 64 + (i >> 4) * 64 + r * 4);
    case LAYOUT_Q4K:
      p = group + (size_t)(c >> 8) * 2368;
      return half_at(p + r * 2) * (float)p[64 + j * 16 + r] * (float)get_nibble(p + 320 + j * 256, r, i) -
             half_at(p + 32 + r * 2) * (float)p[192 + j * 16 + r];
    case LAYOUT_Q6K: {
      p = group + (size_t)(c >> 8) * 3360;
      const uint8_t *chunks = p + 288 + j * 384;
      const int level = get_nibble(chunks, r, i) | (chunks[high_at(r, i)] >> high_shift(i) & 3) << 4;
      return half_at(p + r * 2) * (float)(int8_t)p[32 + (2 * j + (i >> 4)) * 16 + r] * (float)(level - 32);
    }
    default:
      p = group + (size_t)(c >> 5) * 320;
      return f32_at(p + r * 4) * (float)(codebook_table(layout)[get_nibble(p + 64, r, i)] - 128);
  }
}

// args: 2 table, 3 layout, 4 cols, 5 ids, 6 out, 7 rows wanted, 8 scale. A token is a row.
void rows_gather(const Context *c, const Record *op, int first, int end) {
  const int layout = arg_i(op, 3), cols = arg_i(op, 4);
  const int32_t *ids = (const int32_t *)(c->base + arg_u(op, 5));
  const float factor = arg_f(op, 8);
  for (int n = first; n < end; n++) {
    float *out = (float *)(c->base + arg_u(op, 6)) + (size_t)n * cols;
    const uint8_t *group = c->base + arg_u(op, 2) + (size_t)(ids[n] / GROUP_ROWS) * group_bytes(layout, cols);
    const int r = ids[n] % GROUP_ROWS;
    if (layout == LAYOUT_F32) memcpy(out, group + (size_t)r * cols * 4, (size_t)cols * 4);
    else if (layout == LAYOUT_F16) widen_f16((const uint16_t *)group + (size_t)r * cols, out, cols);
    else if (layout == LAYOUT_BF16)
      for (int i = 0; i < cols; i++) ((uint32_t *)out)[i] = (uint32_t)((const uint16_t *)group)[(size_t)r * cols + i] << 16;
    else
      for (int i = 0; i < cols; i++) out[i] = value_at(layout, group, r, i);
    if (factor != 1)
      for (int i = 0; i < cols; i++) out[i] *= factor;
  }
}
