// Shared by all files of the native kernel pack. The TypeScript side (../native-pack.ts) records operations; every thread runs
// the same program, with barriers between operations, taking chunks of each from a counter.
#ifndef RUVLLM_PACK_H
#define RUVLLM_PACK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_WORDS = 32, MAX_RECORDS = 2048, PAGE_TOKENS = 16, GROUP_ROWS = 16 };

// An operation as TypeScript wrote it: word 0 the operation, word 1 whether a barrier follows, then arguments. Doubles hold
// offsets beyond 4 GiB exactly.
typedef struct {
  double word[RECORD_WORDS];
} Record;

enum Opcode { OP_ROUND, OP_MATMUL, OP_GATHER, OP_RMS_NORM, OP_ROPE, OP_WRITE_KV, OP_ATTENTION, OP_MAP, OP_COPY_ROWS, OP_REPACK };

// Layouts of weights: sixteen rows interleaved, a 32-bit lane a row (see layouts.c), or plain float rows.
enum Layout { LAYOUT_F32, LAYOUT_F16, LAYOUT_BF16, LAYOUT_Q4, LAYOUT_Q8, LAYOUT_Q8_MIN, LAYOUT_Q4K, LAYOUT_Q6K, LAYOUT_CODEBOOK_IQ4, LAYOUT_CODEBOOK_IQ2 };

enum Rounding { ROUND_Q8_0, ROUND_Q8_K, ROUND_BF16 };

typedef struct {
  uint8_t *base;        // the arena
  atomic_int *counters; // one per record of the program
  uint8_t *scratch;     // this thread's own
} Context;

// A token after rounding: i8 q[cols], f32 d[cols / 32], i16 sums[cols / 16] (of 16 neighbouring q each).
typedef struct {
  const int8_t *q;
  const float *d;
  const int16_t *sums;
} Rounded;

static inline size_t rounded_bytes(size_t cols) { return cols + cols / 32 * 4 + cols / 16 * 2; }
static inline Rounded rounded_at(const uint8_t *p, size_t cols) {
  Rounded r = {(const int8_t *)p, (const float *)(p + cols), (const int16_t *)(p + cols + cols / 32 * 4)};
  return r;
}

static inline int take_chunk(const Context *c, const Record *program, const Record *op) {
  return atomic_fetch_add_explicit(&c->counters[op - program], 1, memory_order_relaxed);
}

static inline uint64_t arg_u(const Record *op, int i) { return (uint64_t)op->word[i]; }
static inline int arg_i(const Record *op, int i) { return (int)op->word[i]; }
static inline float arg_f(const Record *op, int i) { return (float)op->word[i]; }

// Sixteen rows against `tokens` rounded tokens: out[t * 16 + r]. A token's arithmetic never depends on the others.
// tiles-generic.c or tiles-avx512.c implements them, whichever the compiler's target allows: the pack is built once per
// instruction set, and TypeScript loads the best build the processor runs.
typedef void TileFn(const uint8_t *w, const Rounded *x, int tokens, int cols, const uint8_t *table, float *out);
TileFn tile_q4, tile_q8, tile_q8_min, tile_q4k, tile_q6k, tile_codebook;

#if defined(__AMX_INT8__)
void amx_begin(void);
void amx_end(void);
size_t amx_panel_bytes(int cols);
int amx_unpack(int layout, const uint8_t *w, int cols, uint8_t *panel); // 0: not a layout AMX serves
void amx_tile(const uint8_t *panel, const uint8_t *x, size_t stride, int cols, float *out);
#endif

enum { MAX_TILE_TOKENS = 8, AMX_TOKENS = 16 };

size_t group_bytes(int layout, int cols);
float half_to_float(uint16_t h);
void widen_f16(const uint16_t *src, float *out, int n);
uint16_t float_to_half(float f);
const uint8_t *codebook_table(int layout);
void set_iq2_grid(const int8_t *grid);

void op_repack(const Context *, const Record *program, const Record *op);
void op_gather(const Context *, const Record *program, const Record *op);
void op_round(const Context *, const Record *program, const Record *op);
void op_matmul(const Context *, const Record *program, const Record *op);
void op_rms_norm(const Context *, const Record *program, const Record *op);
void op_rope(const Context *, const Record *program, const Record *op);
void op_map(const Context *, const Record *program, const Record *op);
void op_copy_rows(const Context *, const Record *program, const Record *op);
void op_write_kv(const Context *, const Record *program, const Record *op);
void op_attention(const Context *, const Record *program, const Record *op);

// Threads.
typedef struct Pool Pool;
Pool *pool_start(int num_threads, uint8_t *base, size_t scratch_offset, size_t scratch_bytes);
void pool_run(Pool *, const Record *program, int num_ops);
void pool_stop(Pool *);

#endif
