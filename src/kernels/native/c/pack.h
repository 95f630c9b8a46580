// Shared by all files of the native kernel pack. TypeScript (../native-pack.ts) records operations; every thread runs the same
// program, with barriers between operations, and takes chunks of each from a counter.
#ifndef RUVLLM_PACK_H
#define RUVLLM_PACK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_WORDS = 32, MAX_RECORDS = 2048, PAGE_TOKENS = 16, GROUP_ROWS = 16 };

// Incremented with every change of records, layouts or the addon's functions; must match ../native-pack.ts, otherwise the
// binary is not used.
enum { ABI = 7 };

// An operation as recorded by TypeScript: word 0 the operation, word 1 its relation to the next, then arguments. Doubles hold
// offsets beyond 4 GiB exactly.
typedef struct {
  double word[RECORD_WORDS];
} Record;

// Word 1. A chained operation and the next one work on the same tokens: a thread takes some tokens through both.
enum Follow { FOLLOW_NOTHING, FOLLOW_BARRIER, FOLLOW_CHAINED };

enum Opcode { OP_ROUND, OP_MATMUL, OP_GATHER, OP_RMS_NORM, OP_ROPE, OP_WRITE_KV, OP_ATTENTION, OP_MAP, OP_COPY_ROWS, OP_REPACK, OP_PACK_PAGES, OP_LOW_RANK_DOWN, OP_LOW_RANK_UP, OP_DISTANCES, OP_IMAGE, OP_TOP_LOGITS, OP_LAYER_NORM, OP_SEARCH_GRAPH, OP_PICK_LINKS, OP_CAUSAL_CONV, OP_SELECTIVE_SCAN, OP_ROUTE, OP_PLAN_EXPERTS, OP_ROUND_EXPERTS, OP_EXPERTS, OP_COMBINE, OP_COPY_BLOCKS, OP_DELTA_SCAN, OP_MIX_STREAMS, OP_MATCH_LENGTHS, OP_SPARSIFY, NUM_OPCODES };

// Kinds of KV pages (../../kv-region.ts).
enum Pages { PAGES_F16, PAGES_F32, PAGES_Q8, PAGES_Q4 };

// Layouts of weights: sixteen rows interleaved, one 32-bit lane per row (see layouts.c), or plain float rows.
enum Layout { LAYOUT_F32, LAYOUT_F16, LAYOUT_BF16, LAYOUT_Q4, LAYOUT_Q8, LAYOUT_Q8_MIN, LAYOUT_Q4K, LAYOUT_Q6K, LAYOUT_CODEBOOK_IQ4, LAYOUT_CODEBOOK_IQ2, LAYOUT_CODEBOOK_FP4, LAYOUT_CODEBOOK_IQ3, LAYOUT_CODEBOOK_ODD, LAYOUT_HALVES_IQ2, LAYOUT_HALVES_FP4, LAYOUT_HALVES_ODD };
static inline int has_half_scales(int layout) { return layout >= LAYOUT_HALVES_IQ2; }

enum Rounding { ROUND_Q8_0, ROUND_Q8_K, ROUND_BF16 };

// A thread's progress in the operations between two barriers. They are complete when all threads together have finished `total`
// chunks, even if a thread was descheduled with a chunk and another thread has computed it again.
typedef struct {
  atomic_int *done; // chunks finished by all threads; updated after each, because a thread may be descheduled in the next
  int total;
  int claim_base; // of the current operation
  double chunk_us; // recent duration of a matmul chunk
} Progress;

typedef struct {
  uint8_t *base;        // the arena
  atomic_int *counters; // one per record of the program and thread
  atomic_uint *claims;  // one per chunk of matmuls between two barriers
  uint8_t *scratch;     // of this thread
  int num_threads, thread;
  unsigned program_number;
  Progress *progress;
} Context;

// Rounded tokens are stored in tiles of up to TILE_TOKENS, which the kernels process side by side: per block of 32 columns the
// bytes of all tokens of the tile, then the other arrays likewise. A tile is as wide as there are tokens, 16 at most.
enum { TILE_TOKENS = 16, TILE_BYTES_PER_BLOCK = 56 };

#if defined(__ARM_FEATURE_DOTPROD)
#define SIGNED_WEIGHTS 1 // products take signed weights: only those with few bits need an offset correction
#endif

// Converting integers to floats uses the units that products need, so sums may start at the bits of MAGIC = 1.5 * 2^23
// instead: read as a float, such a sum is exactly MAGIC + sum while |sum| < 2^22 (at most 32 * 128 * 127 here). One
// multiply-add of it with `scale` onto -MAGIC * scale, exact for scales of up to 22 bits, gives round(sum * scale), like a
// conversion and a product.
#define MAGIC 12582912.0f
enum { MAGIC_BITS = 0x4B400000 };
#if defined(__AVX512VNNI__)
enum { SUMS_START = MAGIC_BITS }; // part of off8 and off128
#else
enum { SUMS_START = 0 };
#endif

typedef struct {
  int8_t *q;        // [blocks][width][32]
  float *d;         // [blocks][width]
#if defined(SIGNED_WEIGHTS)
  float *scaled_sum16; // [blocks][2][width]: d times the sum of half a block
  float *scaled_sum32; // [blocks][width]: d times the sum of a block
#else
  int32_t *off128;  // [blocks][width]: SUMS_START - 128 times the sum of a block, which corrects an offset of 128 in the weights
  int16_t *sum16;   // [blocks][width][2]: sums of half blocks
  int16_t *sum32;   // [blocks / 2][width][2]: sums of two neighbouring blocks
#endif
  int32_t *off8;    // [blocks][width]: SUMS_START - 8 times
  int32_t *off32;   // [blocks][2][width]: -32 times the sum of half a block
  int width;
} Tokens;

static inline int tile_width(int tokens) { return tokens < TILE_TOKENS ? tokens : TILE_TOKENS; }
static inline size_t tile_bytes(int cols, int width) { return (size_t)(cols / 32) * (size_t)width * TILE_BYTES_PER_BLOCK; }

#if defined(SIGNED_WEIGHTS)
// ROUND_Q8_0 has off8, ROUND_Q8_K has off32 and scaled_sum32.
static inline Tokens tile_at(uint8_t *tile, int kind, int cols, int width) {
  const size_t n = (size_t)(cols / 32) * (size_t)width;
  Tokens x = {.q = (int8_t *)tile, .d = (float *)(tile + 32 * n), .scaled_sum16 = (float *)(tile + 36 * n), .width = width};
  if (kind == ROUND_Q8_0) x.off8 = (int32_t *)(tile + 44 * n);
  else x.off32 = (int32_t *)(tile + 44 * n), x.scaled_sum32 = (float *)(tile + 52 * n);
  return x;
}

// The same tile from its token `t` on.
static inline Tokens tokens_from(Tokens x, int t) {
  x.q += t * 32, x.d += t, x.scaled_sum16 += t, x.scaled_sum32 += t, x.off8 += t, x.off32 += t;
  return x;
}
#else
// ROUND_Q8_0 has off8, ROUND_Q8_K has off32 and sum32.
static inline Tokens tile_at(uint8_t *tile, int kind, int cols, int width) {
  const size_t n = (size_t)(cols / 32) * (size_t)width;
  Tokens x = {.q = (int8_t *)tile, .d = (float *)(tile + 32 * n), .off128 = (int32_t *)(tile + 36 * n), .width = width};
  x.sum16 = (int16_t *)(tile + 40 * n);
  if (kind == ROUND_Q8_0) x.off8 = (int32_t *)(tile + 44 * n);
  else x.off32 = (int32_t *)(tile + 44 * n), x.sum32 = (int16_t *)(tile + 52 * n);
  return x;
}

static inline Tokens tokens_from(Tokens x, int t) {
  x.q += t * 32, x.d += t, x.off128 += t, x.off8 += t, x.off32 += t, x.sum16 += 2 * t, x.sum32 += 2 * t;
  return x;
}
#endif

static inline int take_chunk(const Context *c, const Record *program, const Record *op) {
  return atomic_fetch_add_explicit(&c->counters[(op - program) * c->num_threads], 1, memory_order_relaxed);
}

// Work that reads memory in long streams: a thread first takes the chunks of its own part in order, then helps with others, so
// that a slow thread costs only its share. Returns -1 when all are taken.
static inline int part_start(int total, int part, int parts) { return (int)((int64_t)total * part / parts); }
static inline int take_near(const Context *c, const Record *program, const Record *op, int total) {
  for (int i = 0; i < c->num_threads; i++) {
    const int part = (c->thread + i) % c->num_threads;
    const int first = part_start(total, part, c->num_threads), size = part_start(total, part + 1, c->num_threads) - first;
    const int taken = atomic_fetch_add_explicit(&c->counters[(op - program) * c->num_threads + part], 1, memory_order_relaxed);
    if (taken < size) return first + taken;
  }
  return -1;
}

static inline void count_done(const Context *c, int chunks) { atomic_fetch_add(c->progress->done, chunks); }

// A claim on a chunk: a thread that takes it marks it taken, and the first with a result marks it written and writes it. Claims
// contain their operation, so that a thread that wakes up late changes nothing.
enum { MAX_CLAIMS = 1 << 16 };
enum Claim { CLAIM_TAKEN = 1, CLAIM_WRITTEN = 2 };
static inline unsigned claim_of(const Context *c, const Record *program, const Record *op, unsigned state) {
  return (c->program_number * MAX_RECORDS + (unsigned)(op - program)) * 4 + state;
}

static inline uint64_t arg_u(const Record *op, int i) { return (uint64_t)op->word[i]; }
static inline int arg_i(const Record *op, int i) { return (int)op->word[i]; }
static inline float arg_f(const Record *op, int i) { return (float)op->word[i]; }

// Adds the product of some columns, [first_block, end_block) in blocks of 32, to acc[group * acc_stride + token * 16 + row], for
// `groups` of sixteen rows that are `stride` bytes apart and `count` tokens. `groups` > 1 is for few tokens, because memory is
// faster in several streams. A token's arithmetic depends neither on other tokens nor on where the columns are split.
// Implemented by the tiles-*.c of the compiler's target: the pack is built once per instruction set, and TypeScript loads the
// best build that the processor supports.
typedef struct {
  const uint8_t *w;
  size_t stride;
  int groups, count, first_block, end_block, acc_stride;
  const uint8_t *table; // codebooks only
  float *acc;
} Tile;
typedef void TileFn(const Tile *, Tokens);
TileFn tile_q4, tile_q8, tile_q8_min, tile_q4k, tile_q6k, tile_codebook, tile_halves;
enum { MAX_COUNT = 8, MAX_GROUPS = 4 };
// Groups to process at once with `count` tokens: 4 or 2, while there are as many.
static inline int groups_at_once(int count) { return count == 1 ? 4 : 2; }

// Panels (panel-neon.c, tiles-amx.c): weights of a row group are unpacked to signed bytes once, PANEL_BLOCKS blocks at a time, and
// multiplied with all tokens of the pass, tile by tile.
#if defined(__AMX_INT8__)
#define HAS_PANELS 1
enum { PANEL_BLOCKS = 64, PANEL_GROUPS = 2 };
#elif defined(__ARM_FEATURE_DOTPROD)
#define HAS_PANELS 1
enum { PANEL_BLOCKS = 32, PANEL_GROUPS = 1, PANEL_MIN_TOKENS = 4 };
#endif
#if defined(HAS_PANELS)
int panel_tokens(int layout, int tokens); // how many of these tokens panels process, from the first on
size_t panel_bytes(void);
void panel_begin(int layout);
void panel_end(void);
// Unpacks weights of a group from `first_block` up to `end_block`.
void panel_unpack(int layout, const uint8_t *w, int first_block, int end_block, const uint8_t *table, uint8_t *panel);
// `next`: packed weights of which this call may prefetch `next_bytes`, because they are unpacked next.
void panel_tile(int layout, const uint8_t *panel, Tokens x, int count, int first_block, int end_block, float *acc, const uint8_t *next, size_t next_bytes);
#endif

size_t block_bytes(int layout); // of a group of rows
int block_cols(int layout);
size_t group_bytes(int layout, int cols);
// Rounds a row into lane t of a tile.
void round_row(int kind, const float *x, int cols, Tokens tile, int t);
void round_row_bf16(const float *x, int cols, float *out);
float half_to_float(uint16_t h);
void widen_f16(const uint16_t *src, float *out, int n);
void narrow_f16(const float *src, uint16_t *out, int n);
uint16_t float_to_half(float f);
void widen_float(const uint8_t *layer, int kind, int kv_heads, int kv_head, int head_dim, float *keys, float *values);
void widen_packed(const uint8_t *layer, int kind, int kv_head, int head_dim, float *keys, float *values);
const uint8_t *codebook_table(int layout);
void set_iq2_grid(const int8_t *grid);
void set_codebook_indices(void);

// Operations that split their own work.
typedef void OpFn(const Context *, const Record *program, const Record *op);
OpFn op_repack, op_matmul, op_attention, op_low_rank_up, op_distances, op_top_logits, op_search_graph, op_pick_links, op_experts;
// Computes chunks again that other threads have taken but not finished.
OpFn redo_matmul, redo_experts;
// Prefetches the first weights of this thread in a matmul while it waits for others.
void prefetch_matmul(const Context *, const Record *op);
// Operations on tokens, from `first` up to `end` of word 31's.
typedef void RowsFn(const Context *, const Record *op, int first, int end);
RowsFn rows_round, rows_gather, rows_rms_norm, rows_layer_norm, rows_rope, rows_write_kv, rows_map, rows_copy, rows_pack_pages, rows_low_rank_down, rows_causal_conv, rows_selective_scan, rows_route, rows_plan_experts, rows_round_experts, rows_combine, rows_copy_blocks, rows_delta_scan, rows_mix_streams, rows_match_lengths, rows_sparsify;
enum { WORD_TOKENS = 31, MAP_CHUNK = 1024 };

OpFn op_image; // image.c

// Threads.
typedef struct Pool Pool;
Pool *pool_start(int num_threads, int spins, uint8_t *base, size_t scratch_offset, size_t scratch_bytes);
void pool_run(Pool *, const Record *program, int num_ops);
void pool_stop(Pool *);

#endif
