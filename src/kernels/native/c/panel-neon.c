// Eight rows times four tokens on 64-bit Arm. The weights of a row group are unpacked to signed bytes once, into a panel that
// stays in the L1 cache for all tokens of the pass. Integer sums and float steps equal those of tiles-neon.c, in the same
// order, so a token's result does not depend on which of the two computed it.
#include "pack.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#include <string.h>
#include "neon.h"

// A block of a panel: i8[512] weights, then f32[16] scales and f32[16] -MAGIC * scales; then the same again if each sixteen
// columns have a scale (Q6K and the halves), or one (Q4K) or two (Q8_MIN) f32[16] of mins.
enum { SCALES_AT = 512, MAGIC_SCALES_AT = 576, EXTRAS_AT = 640 };
static int panel_block_bytes(int layout) {
  return layout == LAYOUT_Q6K || layout == LAYOUT_Q8_MIN || has_half_scales(layout) ? 768 : layout == LAYOUT_Q4K ? 704 : 640;
}

int panel_tokens(int layout, int tokens) {
  (void)layout;
  return tokens < PANEL_MIN_TOKENS ? 0 : tokens;
}
size_t panel_bytes(void) { return (size_t)PANEL_BLOCKS * 768; }
void panel_begin(int layout) { (void)layout; }
void panel_end(void) {}

// Start value of sums (neon.h).
static const int32_t magic_bits[8] __attribute__((aligned(32))) = {MAGIC_BITS, MAGIC_BITS, MAGIC_BITS, MAGIC_BITS, MAGIC_BITS, MAGIC_BITS, MAGIC_BITS, MAGIC_BITS};

// Stores columns 8j to 8j + 3 and 8j + 4 to 8j + 7 of rows 4r to 4r + 3 in the panel.
INLINE void put_columns(int8_t *block, int j, int r, int8x16_t even, int8x16_t odd) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  // Eight columns of a row side by side, rows in pairs.
  const int32x4_t a = vreinterpretq_s32_s8(even), b = vreinterpretq_s32_s8(odd);
  vst1q_s8(block + j * 128 + r * 32, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
  vst1q_s8(block + j * 128 + r * 32 + 16, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
#else
  vst1q_s8(block + j * 128 + r * 16, even);
  vst1q_s8(block + j * 128 + 64 + r * 16, odd);
#endif
}

INLINE void put_scales(uint8_t *at, int r, float32x4_t scales) {
  vst1q_f32((float *)at + r * 4, scales);
  vst1q_f32((float *)at + 16 + r * 4, vmulq_n_f32(scales, -MAGIC));
}

INLINE void unpack_quants(const int layout, const uint8_t *quants, uint8x16_t table, uint8_t *block) {
  const int8_t zero = layout == LAYOUT_Q4 ? 8 : layout == LAYOUT_Q6K ? 32 : 0;
  EACH_QUARTER UNROLL for (int part = 0; part < 2; part++) UNROLL for (int c = 0; c < 4; c += 2) {
    const int8x16_t even = load_columns(layout, quants + r * 16, part, c, table), odd = load_columns(layout, quants + r * 16, part, c + 1, table);
    put_columns((int8_t *)block, part * 2 + c / 2, r, vsubq_s8(even, vdupq_n_s8(zero)), vsubq_s8(odd, vdupq_n_s8(zero)));
  }
}

// Layouts with blocks of 32 columns.
INLINE void unpack_plain(const int layout, const int block_size, const int quants_at, const uint8_t *w, int blocks, const uint8_t *table, uint8_t *panel, const int panel_block) {
  const uint8x16_t values = values_of(layout, table);
  for (int b = 0; b < blocks; b++, w += block_size, panel += panel_block) {
    unpack_quants(layout, w + quants_at, values, panel);
    EACH_QUARTER {
      put_scales(panel + SCALES_AT, r, plain_scales(layout, w, r));
      if (layout != LAYOUT_Q8_MIN) continue;
      UNROLL for (int h = 0; h < 2; h++) vst1q_f32((float *)(panel + EXTRAS_AT) + h * 16 + r * 4, vld1q_f32((const float *)w + 16 + h * 16 + r * 4));
    }
  }
}

static void unpack_q4k(const uint8_t *w, int blocks, uint8_t *panel) {
  for (int b = 0; b < blocks; b++, panel += 704) {
    const uint8_t *super = w + (size_t)(b >> 3) * 2368;
    const int j = b & 7;
    unpack_quants(LAYOUT_Q4K, super + 320 + j * 256, vdupq_n_u8(0), panel);
    EACH_QUARTER {
      put_scales(panel + SCALES_AT, r, q4k_scales(super, halves(super + r * 8), j, r));
      vst1q_f32((float *)(panel + EXTRAS_AT) + r * 4, vnegq_f32(q4k_mins(super, halves(super + 32 + r * 8), j, r)));
    }
  }
}

static void unpack_q6k(const uint8_t *w, int blocks, uint8_t *panel) {
  for (int b = 0; b < blocks; b++, panel += 768) {
    const uint8_t *super = w + (size_t)(b >> 3) * 3360;
    const int j = b & 7;
    unpack_quants(LAYOUT_Q6K, super + 288 + j * 384, vdupq_n_u8(0), panel);
    EACH_QUARTER UNROLL for (int h = 0; h < 2; h++) put_scales(panel + SCALES_AT + h * 128, r, q6k_scales(super, halves(super + r * 8), 2 * j + h, r));
  }
}

static void unpack_halves(const uint8_t *w, int blocks, const uint8_t *table, uint8_t *panel) {
  const uint8x16_t values = values_of(LAYOUT_HALVES_IQ2, table);
  for (int b = 0; b < blocks; b++, w += 384, panel += 768) {
    unpack_quants(LAYOUT_HALVES_IQ2, w + 128, values, panel);
    EACH_QUARTER UNROLL for (int h = 0; h < 2; h++) put_scales(panel + SCALES_AT + h * 128, r, vld1q_f32((const float *)w + h * 16 + r * 4));
  }
}

void panel_unpack(int layout, const uint8_t *w, int first_block, int end_block, const uint8_t *table, uint8_t *panel) {
  const int blocks = end_block - first_block;
  w += (size_t)(first_block * 32 / block_cols(layout)) * block_bytes(layout);
  switch (layout) {
    case LAYOUT_Q4: unpack_plain(LAYOUT_Q4, 288, 32, w, blocks, table, panel, 640); return;
    case LAYOUT_Q8: unpack_plain(LAYOUT_Q8, 544, 32, w, blocks, table, panel, 640); return;
    case LAYOUT_Q8_MIN: unpack_plain(LAYOUT_Q8_MIN, 704, 192, w, blocks, table, panel, 768); return;
    case LAYOUT_Q4K: unpack_q4k(w, blocks, panel); return;
    case LAYOUT_Q6K: unpack_q6k(w, blocks, panel); return;
    case LAYOUT_HALVES_IQ2: case LAYOUT_HALVES_FP4: case LAYOUT_HALVES_ODD: unpack_halves(w, blocks, table, panel); return;
    default: unpack_plain(LAYOUT_CODEBOOK_IQ4, 320, 64, w, blocks, table, panel, 640);
  }
}

// Mins, or scales of sixteen columns, in addition to the common steps.
enum Extras { NO_EXTRAS, ONE_MIN, TWO_MINS, HALF_SCALES };

// Rows 0-7 or 8-15 (`upper`) of a panel, and the four tokens at which `x` and acc[token][16] start.
typedef struct {
  const uint8_t *panel;
  Tokens x;
  int upper, first_block, blocks, block_bytes;
  float *acc;
  const uint8_t *next; // prefetched, `next_step` bytes per block
  int64_t next_step;
} Patch;

#if defined(__ARM_FEATURE_MATMUL_INT8)
// Products of two rows and two tokens at a time: (r0 t0, r0 t1, r1 t0, r1 t1). Accumulators keep that order within a strip.
typedef float32x4_t Products[4][2];

INLINE float32x4_t twice(float32x4_t v, const int upper) { return upper ? vzip2q_f32(v, v) : vzip1q_f32(v, v); }

INLINE void add_products(const uint8_t *scales, const int32x4_t sums[4][2], const float32x4_t d[2], Products acc) {
  UNROLL for (int i = 0; i < 4; i++) {
    const float32x4_t w = twice(vld1q_f32((const float *)scales + i / 2 * 4), i & 1), magic = twice(vld1q_f32((const float *)scales + 16 + i / 2 * 4), i & 1);
    UNROLL for (int t = 0; t < 2; t++) acc[i][t] = vfmaq_f32(acc[i][t], vfmaq_f32(magic, vreinterpretq_f32_s32(sums[i][t]), w), d[t]);
  }
}

INLINE void pairs_of(const float *four, float32x4_t out[2]) {
  UNROLL for (int t = 0; t < 2; t++) out[t] = vcombine_f32(vld1_f32(four + 2 * t), vld1_f32(four + 2 * t));
}

INLINE void add_mins(const uint8_t *mins, const float *sums, Products acc) {
  float32x4_t x[2];
  pairs_of(sums, x);
  UNROLL for (int i = 0; i < 4; i++) UNROLL for (int t = 0; t < 2; t++) acc[i][t] = vfmaq_f32(acc[i][t], twice(vld1q_f32((const float *)mins + i / 2 * 4), i & 1), x[t]);
}

INLINE void run_patch(const Patch patch, const enum Extras extras) {
  const Tokens x = patch.x;
  const uint8_t *p = patch.panel + patch.upper * 64, *scales = patch.panel + SCALES_AT + patch.upper * 32;
  float *target = patch.acc + patch.upper * 8;
  Products acc;
  UNROLL for (int r = 0; r < 2; r++) UNROLL for (int t = 0; t < 2; t++) {
    const float32x4_t even = vld1q_f32(target + t * 32 + r * 4), odd = vld1q_f32(target + t * 32 + 16 + r * 4);
    acc[2 * r][t] = vzip1q_f32(even, odd), acc[2 * r + 1][t] = vzip2q_f32(even, odd);
  }
  for (int b = patch.first_block; b < patch.first_block + patch.blocks; b++, p += patch.block_bytes, scales += patch.block_bytes) {
    const size_t at = (size_t)b * x.width;
    const int8_t *q = x.q + at * 32;
    __builtin_prefetch(patch.next + (b - patch.first_block) * patch.next_step);
    int32x4_t sums[4][2];
    float32x4_t d[2];
    pairs_of(x.d + at, d);
    UNROLL for (int h = 0; h < 2; h++) {
      int8x16_t columns[2][2];
      UNROLL for (int t = 0; t < 2; t++) {
        const int64x2_t even = vreinterpretq_s64_s8(vld1q_s8(q + t * 64 + h * 16)), odd = vreinterpretq_s64_s8(vld1q_s8(q + t * 64 + 32 + h * 16));
        columns[0][t] = vreinterpretq_s8_s64(vzip1q_s64(even, odd)), columns[1][t] = vreinterpretq_s8_s64(vzip2q_s64(even, odd));
      }
      if (h == 0 || extras == HALF_SCALES)
        UNROLL for (int i = 0; i < 4; i++) UNROLL for (int t = 0; t < 2; t++) sums[i][t] = vld1q_s32(magic_bits);
      UNROLL for (int k = 0; k < 2; k++) UNROLL for (int i = 0; i < 4; i++) {
        const int8x16_t rows = vld1q_s8((const int8_t *)p + (h * 2 + k) * 128 + i * 16);
        UNROLL for (int t = 0; t < 2; t++) sums[i][t] = vmmlaq_s32(sums[i][t], rows, columns[k][t]);
      }
      if (extras == HALF_SCALES) add_products(scales + h * 128, sums, d, acc);
    }
    if (extras != HALF_SCALES) add_products(scales, sums, d, acc);
    if (extras == ONE_MIN) add_mins(scales + 128, x.scaled_sum32 + at, acc);
    if (extras == TWO_MINS)
      UNROLL for (int h = 0; h < 2; h++) add_mins(scales + 128 + h * 64, x.scaled_sum16 + 2 * at + h * x.width, acc);
  }
  UNROLL for (int r = 0; r < 2; r++) UNROLL for (int t = 0; t < 2; t++) {
    vst1q_f32(target + t * 32 + r * 4, vuzp1q_f32(acc[2 * r][t], acc[2 * r + 1][t]));
    vst1q_f32(target + t * 32 + 16 + r * 4, vuzp2q_f32(acc[2 * r][t], acc[2 * r + 1][t]));
  }
}
#else
// Compilers keep sixteen weights in registers and spill the sums, or replace the loads below by moves that take a pipe the
// products need; so the loop is in assembly. Products and float steps are separate, because a multiply-add between products
// delays both pipes by a cycle. v0-7: sums (rows 0-3 of four tokens, then rows 4-7), v8-15: accumulators likewise,
// v16-19: weights, v24-31: tokens, later rounded sums.
#define DOT(SUM, W, X, LANE) "sdot v" #SUM ".4s, v" #W ".16b, v" #X ".4b[" #LANE "]\n"
// Products of four columns. NEXT and LATER load operands of the following products.
#define DOTS(LANE, W0, W1, X0, X1, X2, X3, NEXT, LATER) \
  DOT(0, W0, X0, LANE) NEXT DOT(4, W1, X0, LANE) DOT(1, W0, X1, LANE) DOT(5, W1, X1, LANE) LATER DOT(2, W0, X2, LANE) DOT(6, W1, X2, LANE) DOT(3, W0, X3, LANE) DOT(7, W1, X3, LANE)
#define WEIGHTS(W0, W1, AT) "ldp q" #W0 ", q" #W1 ", [%[p], #" #AT "]\n"
#define TOKEN(X, AT) "ldr q" #X ", [%[q], #" #AT "]\n"
#define FETCH_NEXT_TOKENS "prfm pldl1keep, [%[q], #128]\nprfm pldl1keep, [%[q], #192]\n"
#define SCALES(AT) "ldp q20, q21, [%[p], #" #AT "]\nldr q22, [%[d]]\n"
#define START_SUMS "ldp q0, q1, [%[magic]]\nldp q2, q3, [%[magic]]\nldp q4, q5, [%[magic]]\nldp q6, q7, [%[magic]]\n"
#define SCALE(OUT, SUM, W) "fmla v" #OUT ".4s, v" #SUM ".4s, v" #W ".4s\n"
#define ADD(ACC, V, X, T) "fmla v" #ACC ".4s, v" #V ".4s, v" #X ".s[" #T "]\n"
// Rounded sums start at -MAGIC * scale, in v24-31.
#define ADD_SUMS                                                                                                      \
  SCALE(24, 0, 20) SCALE(25, 4, 21) SCALE(26, 1, 20) SCALE(27, 5, 21) SCALE(28, 2, 20) SCALE(29, 6, 21) SCALE(30, 3, 20) SCALE(31, 7, 21) \
  START_SUMS                                                                                                          \
  ADD(8, 24, 22, 0) ADD(12, 25, 22, 0) ADD(9, 26, 22, 1) ADD(13, 27, 22, 1) ADD(10, 28, 22, 2) ADD(14, 29, 22, 2) ADD(11, 30, 22, 3) ADD(15, 31, 22, 3)
#define ADD_MINS(AT)                                                                                                  \
  "ldp q20, q21, [%[p], #" #AT "]\n"                                                                                  \
  "ldr q23, [%[sums]]\nadd %[sums], %[sums], %[width], lsl #2\n"                                                      \
  ADD(8, 20, 23, 0) ADD(12, 21, 23, 0) ADD(9, 20, 23, 1) ADD(13, 21, 23, 1) ADD(10, 20, 23, 2) ADD(14, 21, 23, 2) ADD(11, 20, 23, 3) ADD(15, 21, 23, 3)
#define WHOLE_BLOCK                                                                                                   \
  TOKEN(24, 0) TOKEN(25, 32) TOKEN(26, 64) TOKEN(27, 96) WEIGHTS(16, 17, 0)                                           \
  DOTS(0, 16, 17, 24, 25, 26, 27, WEIGHTS(18, 19, 64), FETCH_NEXT_TOKENS)                                             \
  DOTS(1, 18, 19, 24, 25, 26, 27, WEIGHTS(16, 17, 128), TOKEN(28, 16)) TOKEN(29, 48)                                  \
  DOTS(2, 16, 17, 24, 25, 26, 27, WEIGHTS(18, 19, 192), TOKEN(30, 80)) TOKEN(31, 112)                                 \
  DOTS(3, 18, 19, 24, 25, 26, 27, WEIGHTS(16, 17, 256), )                                                             \
  DOTS(0, 16, 17, 28, 29, 30, 31, WEIGHTS(18, 19, 320), )                                                             \
  DOTS(1, 18, 19, 28, 29, 30, 31, WEIGHTS(16, 17, 384), SCALES(512) WEIGHTS(24, 25, 576) WEIGHTS(26, 27, 576))        \
  DOTS(2, 16, 17, 28, 29, 30, 31, WEIGHTS(18, 19, 448), )                                                             \
  DOTS(3, 18, 19, 28, 29, 30, 31, , ) WEIGHTS(28, 29, 576) WEIGHTS(30, 31, 576) ADD_SUMS
#define HALF_BLOCK(W0, W1, W2, W3, A0, A1, A2, A3, SCALES_AT, MAGIC_AT)                                               \
  TOKEN(24, A0) TOKEN(25, A1) TOKEN(26, A2) TOKEN(27, A3) WEIGHTS(16, 17, W0)                                         \
  DOTS(0, 16, 17, 24, 25, 26, 27, WEIGHTS(18, 19, W1), ) DOTS(1, 18, 19, 24, 25, 26, 27, WEIGHTS(16, 17, W2), )       \
  DOTS(2, 16, 17, 24, 25, 26, 27, WEIGHTS(18, 19, W3), SCALES(SCALES_AT) WEIGHTS(28, 29, MAGIC_AT) WEIGHTS(30, 31, MAGIC_AT)) \
  DOTS(3, 18, 19, 24, 25, 26, 27, , ) WEIGHTS(24, 25, MAGIC_AT) WEIGHTS(26, 27, MAGIC_AT) ADD_SUMS
#define HALF_BLOCKS HALF_BLOCK(0, 64, 128, 192, 0, 32, 64, 96, 512, 576) HALF_BLOCK(256, 320, 384, 448, 16, 48, 80, 112, 640, 704)

#define ACCS(OP) OP " q8, [%[acc]]\n" OP " q9, [%[acc], #64]\n" OP " q10, [%[acc], #128]\n" OP " q11, [%[acc], #192]\n" OP " q12, [%[acc], #16]\n" OP " q13, [%[acc], #80]\n" OP " q14, [%[acc], #144]\n" OP " q15, [%[acc], #208]\n"
#define EACH_PANEL_BLOCK(STEPS)                                                                                       \
  __asm__ volatile(ACCS("ldr") START_SUMS "1:\n" STEPS                                                                \
                   "prfm pldl1keep, [%[next]]\nprfm pldl1keep, [%[next], #64]\nadd %[next], %[next], %[next_step]\n" \
                   "add %[p], %[p], %[step]\nadd %[q], %[q], %[width], lsl #5\nadd %[d], %[d], %[width], lsl #2\n"    \
                   "subs %[n], %[n], #1\nb.ne 1b\n" ACCS("str")                                                       \
                   : [p] "+r"(p), [q] "+r"(q), [d] "+r"(d), [sums] "+r"(sums), [n] "+r"(n), [next] "+r"(next)         \
                   : [acc] "r"(patch.acc + patch.upper * 8), [magic] "r"(magic_bits), [width] "r"((int64_t)patch.x.width), [step] "r"((int64_t)patch.block_bytes), [next_step] "r"(patch.next_step) \
                   : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory")

INLINE void run_patch(const Patch patch, const enum Extras extras) {
  const size_t at = (size_t)patch.first_block * patch.x.width;
  const uint8_t *p = patch.panel + patch.upper * 32, *next = patch.next;
  const int8_t *q = patch.x.q + at * 32;
  const float *d = patch.x.d + at, *sums = extras == ONE_MIN ? patch.x.scaled_sum32 + at : extras == TWO_MINS ? patch.x.scaled_sum16 + 2 * at : d;
  int64_t n = patch.blocks;
  switch (extras) {
    case NO_EXTRAS: EACH_PANEL_BLOCK(WHOLE_BLOCK); return;
    case ONE_MIN: EACH_PANEL_BLOCK(WHOLE_BLOCK ADD_MINS(640)); return;
    case TWO_MINS: EACH_PANEL_BLOCK(WHOLE_BLOCK ADD_MINS(640) ADD_MINS(704)); return;
    case HALF_SCALES: EACH_PANEL_BLOCK(HALF_BLOCKS); return;
  }
}
#endif

static void run_layout(int layout, const Patch patch) {
  switch (layout) {
    case LAYOUT_Q4K: run_patch(patch, ONE_MIN); return;
    case LAYOUT_Q8_MIN: run_patch(patch, TWO_MINS); return;
    case LAYOUT_Q6K: case LAYOUT_HALVES_IQ2: case LAYOUT_HALVES_FP4: case LAYOUT_HALVES_ODD: run_patch(patch, HALF_SCALES); return;
    default: run_patch(patch, NO_EXTRAS);
  }
}

static void run_both_halves(int layout, Patch *patch) {
  for (patch->upper = 0; patch->upper < 2; patch->upper++) {
    run_layout(layout, *patch);
    patch->next += patch->next_step * patch->blocks;
  }
}

enum { QUAD = 4 };

// A last quad that is not full: in a tile of sixteen it reads slots without a token, in a narrower one tokens of the previous
// quad; either way only the sums of its own tokens are kept.
static void run_last_quad(int layout, Patch patch, int done, int count) {
  const int first = patch.x.width < TILE_TOKENS ? count - QUAD : done;
  float sums[QUAD * GROUP_ROWS] = {0}, *const last_acc = patch.acc + done * GROUP_ROWS, *const last_sums = sums + (done - first) * GROUP_ROWS;
  const size_t last_bytes = sizeof(float) * GROUP_ROWS * (size_t)(count - done);
  memcpy(last_sums, last_acc, last_bytes);
  patch.x = tokens_from(patch.x, first);
  patch.acc = sums;
  run_both_halves(layout, &patch);
  memcpy(last_acc, last_sums, last_bytes);
}

void panel_tile(int layout, const uint8_t *panel, Tokens x, int count, int first_block, int end_block, float *acc, const uint8_t *next, size_t next_bytes) {
  const int blocks = end_block - first_block, rounds = 2 * blocks * ((count + QUAD - 1) / QUAD);
  Patch patch = {.panel = panel, .x = x, .first_block = first_block, .blocks = blocks, .block_bytes = panel_block_bytes(layout), .acc = acc, .next = next, .next_step = (int64_t)(next_bytes / rounds)};
  int t = 0;
  for (; t + QUAD <= count; t += QUAD) {
    patch.x = tokens_from(x, t);
    patch.acc = acc + t * GROUP_ROWS;
    run_both_halves(layout, &patch);
  }
  patch.x = x;
  patch.acc = acc;
  if (t < count) run_last_quad(layout, patch, t, count);
}

#endif
