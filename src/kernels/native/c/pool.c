// Threads that run a program together. The operations between two barriers are complete when all chunks are done: a waiting
// thread spins briefly, then recomputes matmul chunks of descheduled threads, and only then sleeps. A busy neighbour costs its
// share of the machine instead of stalling the program.
#include "pack.h"
#include "platform.h"
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ volatile("yield")
#else
#define RELAX() ((void)0)
#endif

enum { LATE_US = 10, NAP_US = 500, LINE = 64 };

struct Pool {
  int num_threads, spins;
  pthread_t *threads;
  uint8_t *base;
  size_t scratch_offset, scratch_bytes;
  const Record *program;
  int num_ops;
  atomic_int *counters; // num_threads per record
  atomic_int *done;     // per record that ends with a barrier: chunks finished since the previous one
  atomic_uint *claims;  // MAX_CLAIMS
  unsigned program_number;
  _Alignas(LINE) atomic_int left; // helpers that have left the program
  _Alignas(LINE) atomic_int generation; // incremented to start a program
  _Alignas(LINE) atomic_int sleepers;
  atomic_int is_stopping;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
};

enum Until { IS, IS_NOT };
static int holds(atomic_int *word, enum Until until, int value) {
  return (atomic_load_explicit(word, memory_order_acquire) == value) == (until == IS);
}

static int spin(const Pool *pool, atomic_int *word, enum Until until, int value) {
  for (int i = 0; i < pool->spins; i++) {
    if (holds(word, until, value)) return 1;
    RELAX();
  }
  return 0;
}

// Sleeps until `word` is (or is no longer) `value`, for at most `us` unless that is 0.
static int sleep_until(Pool *pool, atomic_int *word, enum Until until, int value, double us) {
  struct timespec end;
  int is_late = 0;
  if (us > 0) {
    clock_gettime(CLOCK_REALTIME, &end);
    const long ns = end.tv_nsec + (long)(us * 1e3);
    end = (struct timespec){end.tv_sec + ns / 1000000000, ns % 1000000000};
  }
  pthread_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->sleepers, 1);
  while (!(atomic_load(word) == value) == (until == IS) && !is_late)
    is_late = us > 0 ? pthread_cond_timedwait(&pool->changed, &pool->mutex, &end) != 0 : pthread_cond_wait(&pool->changed, &pool->mutex) != 0;
  atomic_fetch_sub(&pool->sleepers, 1);
  pthread_mutex_unlock(&pool->mutex);
  return !is_late;
}

static void wake(Pool *pool) {
  if (atomic_load(&pool->sleepers) == 0) return;
  pthread_mutex_lock(&pool->mutex); // held by a sleeper between its check and its wait
  pthread_cond_broadcast(&pool->changed);
  pthread_mutex_unlock(&pool->mutex);
}

// Completes the operations from `first` to `last`.
static void barrier(Pool *pool, const Context *c, const Record *program, const Record *first, const Record *last) {
  Progress *progress = c->progress;
  if (pool->num_threads == 1) return;
  if (holds(progress->done, IS, progress->total)) wake(pool); // this thread may have done the last chunk
  else if (!spin(pool, progress->done, IS, progress->total)) {
    // A chunk that takes twice as long as ours did is probably not being computed.
    if (!(pool->spins > 0 && progress->chunk_us > LATE_US && sleep_until(pool, progress->done, IS, progress->total, 2 * progress->chunk_us))) {
      progress->claim_base = 0;
      for (const Record *op = first; op <= last; op++)
        if (arg_i(op, 0) == OP_MATMUL) redo_matmul(c, program, op);
        else if (arg_i(op, 0) == OP_EXPERTS) redo_experts(c, program, op);
      // The thread with the last chunk may be descheduled before it can wake us: check again now and then.
      while (!sleep_until(pool, progress->done, IS, progress->total, NAP_US)) {}
      wake(pool);
    }
  }
}

static OpFn *const operations[NUM_OPCODES] = {
    [OP_MATMUL] = op_matmul, [OP_ATTENTION] = op_attention, [OP_REPACK] = op_repack, [OP_LOW_RANK_UP] = op_low_rank_up, [OP_DISTANCES] = op_distances, [OP_IMAGE] = op_image,
    [OP_TOP_LOGITS] = op_top_logits, [OP_SEARCH_GRAPH] = op_search_graph, [OP_PICK_LINKS] = op_pick_links, [OP_EXPERTS] = op_experts};
static RowsFn *const row_operations[NUM_OPCODES] = {
    [OP_ROUND] = rows_round, [OP_GATHER] = rows_gather, [OP_RMS_NORM] = rows_rms_norm, [OP_LAYER_NORM] = rows_layer_norm, [OP_ROPE] = rows_rope,
    [OP_WRITE_KV] = rows_write_kv, [OP_MAP] = rows_map, [OP_COPY_ROWS] = rows_copy,
    [OP_PACK_PAGES] = rows_pack_pages, [OP_LOW_RANK_DOWN] = rows_low_rank_down,
    [OP_CAUSAL_CONV] = rows_causal_conv, [OP_SELECTIVE_SCAN] = rows_selective_scan,
    [OP_ROUTE] = rows_route, [OP_PLAN_EXPERTS] = rows_plan_experts, [OP_ROUND_EXPERTS] = rows_round_experts, [OP_COMBINE] = rows_combine, [OP_COPY_BLOCKS] = rows_copy_blocks, [OP_DELTA_SCAN] = rows_delta_scan,
    [OP_MIX_STREAMS] = rows_mix_streams, [OP_MATCH_LENGTHS] = rows_match_lengths, [OP_SPARSIFY] = rows_sparsify};

// Takes a few tokens at a time through a chain of operations; returns the last operation of the chain.
static const Record *run_chain(const Context *context, const Record *program, const Record *first_op) {
  const Record *last_op = first_op;
  while (arg_i(last_op, 1) == FOLLOW_CHAINED) last_op++;
  const int tokens = arg_i(first_op, WORD_TOKENS);
  // Half a tile of rounded tokens at a time: threads that share one would contend for its cache lines.
  const int share = tokens / (context->num_threads * 2), chunk = share < 1 ? 1 : share > 8 ? 8 : share, chunks = (tokens + chunk - 1) / chunk;
  context->progress->total += chunks;
  for (int taken = take_near(context, program, first_op, chunks); taken >= 0; taken = take_near(context, program, first_op, chunks), count_done(context, 1)) {
    const int first = taken * chunk, end = first + chunk < tokens ? first + chunk : tokens;
    for (const Record *op = first_op; op <= last_op; op++) row_operations[arg_i(op, 0)](context, op, first, end);
  }
  return last_op;
}

// Begins the operations up to the next barrier, whose record counts their finished chunks.
static void begin(Pool *pool, Progress *progress, const Record *op, const Record *end) {
  while (op < end && arg_i(op, 1) != FOLLOW_BARRIER) op++;
  *progress = (Progress){.done = &pool->done[op < end ? op - pool->program : 0], .chunk_us = progress->chunk_us};
}

static int counts_chunks(int opcode) { return opcode == OP_MATMUL || opcode == OP_ATTENTION || opcode == OP_TOP_LOGITS || opcode == OP_EXPERTS; }

static void run_as(Pool *pool, int thread) {
  Progress progress = {0};
  const Context context = {pool->base, pool->counters, pool->claims, pool->base + pool->scratch_offset + (size_t)thread * pool->scratch_bytes, pool->num_threads, thread, pool->program_number, &progress};
  const Record *program = pool->program, *end = program + pool->num_ops, *first = program;
  begin(pool, &progress, first, end);
  for (const Record *op = program; op < end; op++) {
    if (row_operations[arg_i(op, 0)]) op = run_chain(&context, program, op);
    else {
      operations[arg_i(op, 0)](&context, program, op);
      // Other operations are complete when every thread has passed them.
      if (!counts_chunks(arg_i(op, 0))) progress.total += pool->num_threads, count_done(&context, 1);
    }
    if (arg_i(op, 1) != FOLLOW_BARRIER) continue;
    if (arg_i(op, 0) == OP_MATMUL) {
      const Record *next = op + 1;
      while (next < end && arg_i(next, 0) != OP_MATMUL) next++;
      if (next < end) prefetch_matmul(&context, next);
    }
    barrier(pool, &context, program, first, op);
    first = op + 1;
    begin(pool, &progress, first, end);
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
    Pool *pool = start.pool;
    if (!spin(pool, &pool->generation, IS_NOT, seen)) sleep_until(pool, &pool->generation, IS_NOT, seen, 0);
    seen = atomic_load(&pool->generation);
    if (atomic_load(&pool->is_stopping)) return NULL;
    run_as(pool, start.thread);
    atomic_fetch_add(&pool->left, 1);
    wake(pool);
  }
}

static void free_pool(Pool *pool) {
  pthread_mutex_destroy(&pool->mutex);
  pthread_cond_destroy(&pool->changed);
  free(pool->threads);
  free(pool->counters);
  free(pool->done);
  free(pool->claims);
  free_aligned(pool);
}

Pool *pool_start(int num_threads, int spins, uint8_t *base, size_t scratch_offset, size_t scratch_bytes) {
  Pool *pool = allocate_aligned(LINE, (sizeof(Pool) + LINE - 1) / LINE * LINE);
  if (!pool) return NULL;
  memset(pool, 0, sizeof *pool);
  pool->num_threads = num_threads;
  pool->spins = spins;
  pool->base = base;
  pool->scratch_offset = scratch_offset;
  pool->scratch_bytes = scratch_bytes;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->changed, NULL);
  pool->threads = calloc((size_t)num_threads, sizeof(pthread_t));
  pool->counters = calloc((size_t)num_threads * MAX_RECORDS, sizeof(atomic_int));
  pool->done = calloc(MAX_RECORDS, sizeof(atomic_int));
  pool->claims = calloc(MAX_CLAIMS, sizeof(atomic_uint));
  if (!pool->threads || !pool->counters || !pool->done || !pool->claims) {
    free_pool(pool);
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

// A search of one vector or one list: waking helpers would cost more than it saves.
static int is_solo(const Record *op) { return (arg_i(op, 0) == OP_SEARCH_GRAPH || arg_i(op, 0) == OP_PICK_LINKS) && arg_i(op, 8) == 1; }

void pool_run(Pool *pool, const Record *program, int num_ops) {
  const int helpers = pool->num_threads - 1;
  pool->program = program;
  pool->num_ops = num_ops;
  pool->program_number++;
  memset(pool->counters, 0, sizeof(atomic_int) * (size_t)num_ops * (size_t)pool->num_threads);
  memset(pool->done, 0, sizeof(atomic_int) * (size_t)num_ops);
  if (num_ops == 1 && is_solo(program)) {
    const Context context = {.base = pool->base, .counters = pool->counters, .scratch = pool->base + pool->scratch_offset, .num_threads = pool->num_threads};
    operations[arg_i(program, 0)](&context, program, program);
    return;
  }
  atomic_store(&pool->left, 0);
  atomic_fetch_add(&pool->generation, 1);
  wake(pool);
  run_as(pool, 0);
  // All helpers must have left this program before the next one starts.
  if (!spin(pool, &pool->left, IS, helpers)) sleep_until(pool, &pool->left, IS, helpers, 0);
}

void pool_stop(Pool *pool) {
  atomic_store(&pool->is_stopping, 1);
  atomic_fetch_add(&pool->generation, 1);
  wake(pool);
  for (int t = 1; t < pool->num_threads; t++) pthread_join(pool->threads[t], NULL);
  free_pool(pool);
}
