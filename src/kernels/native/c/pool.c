// Threads that run a program in lockstep. A waiting thread spins briefly, then sleeps on a condition, so that a busy
// neighbour costs its share of the machine and not a collapse.
#include "pack.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ volatile("yield")
#else
#define RELAX() ((void)0)
#endif

// About 20 us of pauses: most operations at decode end within.
enum { SPINS = 500, LINE = 64 };

struct Pool {
  int num_threads;
  pthread_t *threads;
  uint8_t *base;
  size_t scratch_offset, scratch_bytes;
  const Record *program;
  int num_ops;
  atomic_int *counters; // num_threads for each record
  _Alignas(LINE) atomic_int arrived;
  _Alignas(LINE) atomic_int phase; // bumped when all have arrived
  _Alignas(LINE) atomic_int generation; // bumped to start a program
  _Alignas(LINE) atomic_int sleepers;
  atomic_int is_stopping;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
};

// Returns once `word` is no longer `seen`.
static void wait_for_change(Pool *pool, atomic_int *word, int seen) {
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(word, memory_order_acquire) != seen) return;
    RELAX();
  }
  pthread_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->sleepers, 1);
  while (atomic_load(word) == seen) pthread_cond_wait(&pool->changed, &pool->mutex);
  atomic_fetch_sub(&pool->sleepers, 1);
  pthread_mutex_unlock(&pool->mutex);
}

static void change(Pool *pool, atomic_int *word) {
  atomic_fetch_add(word, 1);
  if (atomic_load(&pool->sleepers) == 0) return;
  pthread_mutex_lock(&pool->mutex); // a sleeper between its check and its wait holds this
  pthread_cond_broadcast(&pool->changed);
  pthread_mutex_unlock(&pool->mutex);
}

static void barrier(Pool *pool) {
  if (pool->num_threads == 1) return;
  const int seen = atomic_load(&pool->phase);
  if (atomic_fetch_add(&pool->arrived, 1) == pool->num_threads - 1) {
    atomic_store(&pool->arrived, 0);
    change(pool, &pool->phase);
  } else wait_for_change(pool, &pool->phase, seen);
}

static OpFn *const operations[NUM_OPCODES] = {
    [OP_MATMUL] = op_matmul, [OP_ATTENTION] = op_attention, [OP_REPACK] = op_repack, [OP_LOW_RANK_UP] = op_low_rank_up, [OP_DISTANCES] = op_distances, [OP_IMAGE] = op_image,
    [OP_TOP_LOGITS] = op_top_logits};
static RowsFn *const row_operations[NUM_OPCODES] = {
    [OP_ROUND] = rows_round, [OP_GATHER] = rows_gather, [OP_RMS_NORM] = rows_rms_norm, [OP_ROPE] = rows_rope,
    [OP_WRITE_KV] = rows_write_kv, [OP_MAP] = rows_map, [OP_COPY_ROWS] = rows_copy,
    [OP_PACK_PAGES] = rows_pack_pages, [OP_LOW_RANK_DOWN] = rows_low_rank_down};

// Takes a few tokens at a time through a chain of operations on tokens; returns the last of the chain.
static const Record *run_chain(const Context *context, const Record *program, const Record *first_op) {
  const Record *last_op = first_op;
  while (arg_i(last_op, 1) == FOLLOW_CHAINED) last_op++;
  const int tokens = arg_i(first_op, WORD_TOKENS);
  const int share = tokens / (context->num_threads * 4), chunk = share < 1 ? 1 : share > 16 ? 16 : share;
  for (int first = take_chunk(context, program, first_op) * chunk; first < tokens; first = take_chunk(context, program, first_op) * chunk) {
    const int end = first + chunk < tokens ? first + chunk : tokens;
    for (const Record *op = first_op; op <= last_op; op++) row_operations[arg_i(op, 0)](context, op, first, end);
  }
  return last_op;
}

static void run_as(Pool *pool, int thread) {
  const Context context = {pool->base, pool->counters, pool->base + pool->scratch_offset + (size_t)thread * pool->scratch_bytes, pool->num_threads, thread};
  const Record *program = pool->program, *end = program + pool->num_ops;
  for (const Record *op = program; op < end; op++) {
    if (row_operations[arg_i(op, 0)]) op = run_chain(&context, program, op);
    else operations[arg_i(op, 0)](&context, program, op);
    if (arg_i(op, 1) != FOLLOW_BARRIER) continue;
    if (arg_i(op, 0) == OP_MATMUL) {
      const Record *next = op + 1;
      while (next < end && arg_i(next, 0) != OP_MATMUL) next++;
      if (next < end) prefetch_matmul(&context, next);
    }
    barrier(pool);
  }
}

typedef struct {
  Pool *pool;
  int thread;
} Start;

static void *help(void *argument) {
  const Start start = *(Start *)argument;
  free(argument);
  int seen = 0;
  for (;;) {
    wait_for_change(start.pool, &start.pool->generation, seen);
    seen = atomic_load(&start.pool->generation);
    if (atomic_load(&start.pool->is_stopping)) return NULL;
    run_as(start.pool, start.thread);
  }
}

Pool *pool_start(int num_threads, uint8_t *base, size_t scratch_offset, size_t scratch_bytes) {
  Pool *pool = aligned_alloc(LINE, (sizeof(Pool) + LINE - 1) / LINE * LINE);
  if (!pool) return NULL;
  memset(pool, 0, sizeof *pool);
  pool->num_threads = num_threads;
  pool->base = base;
  pool->scratch_offset = scratch_offset;
  pool->scratch_bytes = scratch_bytes;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->changed, NULL);
  pool->threads = calloc((size_t)num_threads, sizeof(pthread_t));
  pool->counters = calloc((size_t)num_threads * MAX_RECORDS, sizeof(atomic_int));
  if (!pool->threads || !pool->counters) {
    free(pool->threads);
    free(pool->counters);
    free(pool);
    return NULL;
  }
  for (int t = 1; t < num_threads; t++) {
    Start *start = malloc(sizeof *start);
    *start = (Start){pool, t};
    if (pthread_create(&pool->threads[t], NULL, help, start) != 0) { // fewer threads are slower, not wrong
      free(start);
      pool->num_threads = t;
      break;
    }
  }
  return pool;
}

void pool_run(Pool *pool, const Record *program, int num_ops) {
  pool->program = program;
  pool->num_ops = num_ops;
  memset(pool->counters, 0, sizeof(atomic_int) * (size_t)num_ops * (size_t)pool->num_threads);
  if (pool->num_threads > 1) change(pool, &pool->generation);
  run_as(pool, 0);
}

void pool_stop(Pool *pool) {
  atomic_store(&pool->is_stopping, 1);
  change(pool, &pool->generation);
  for (int t = 1; t < pool->num_threads; t++) pthread_join(pool->threads[t], NULL);
  pthread_mutex_destroy(&pool->mutex);
  pthread_cond_destroy(&pool->changed);
  free(pool->threads);
  free(pool->counters);
  free(pool);
}
