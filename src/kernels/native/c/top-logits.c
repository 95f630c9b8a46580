// The k largest logits of each row and the row's sum of exponentials, in two operations: all threads compute maxima of blocks
// and sums of chunks, then one thread per row searches only blocks whose maximum can be among the best. Chunks depend only on
// the vocabulary, so sums have the same bits on any number of threads.
#include "pack.h"
#include "vector-math.h"

enum { BLOCK = 64, CHUNK = 4096 }; // must match ../../top-logits-op.ts, which sizes the scratch

typedef int32_t Ints __attribute__((vector_size(64), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(128), aligned(4)));

typedef struct {
  float max, sum, bad;
} Part;

// The largest of BLOCK values, ignoring NaN; counts NaN and +Infinity in `bad`.
INLINE float block_max(const float *x, Ints *bad) {
  Lanes most;
  UNROLL for (int j = 0; j < 16; j++) most[j] = -INFINITY;
  UNROLL for (int i = 0; i < BLOCK; i += 16) {
    const Lanes v = load_lanes(x + i);
    const Ints is_more = v > most;
    most = (Lanes)((is_more & (Ints)v) | (~is_more & (Ints)most));
    *bad += ~(v < INFINITY) & 1;
  }
  float a[16];
  store_lanes(a, most);
  UNROLL for (int width = 8; width > 0; width /= 2)
    UNROLL for (int i = 0; i < width; i++) a[i] = a[i] > a[i + width] ? a[i] : a[i + width];
  return a[0];
}

INLINE void add_powers(const float *x, float max, Doubles *sum) {
  float e[16];
  for (int j = 0; j < 16; j++) e[j] = fast_exp(x[j] - max);
  *sum += __builtin_convertvector(load_lanes(e), Doubles);
}

static Part scan_chunk(const float *x, int count, float *maxima) {
  float last[BLOCK];
  const int whole = count / BLOCK * BLOCK;
  for (int i = 0; i < BLOCK; i++) last[i] = whole + i < count ? x[whole + i] : -INFINITY;
  Ints bad = {0};
  Part part = {-INFINITY, 0, 0};
  for (int i = 0; i < count; i += BLOCK) {
    const float max = block_max(i < whole ? x + i : last, &bad);
    maxima[i / BLOCK] = max;
    if (max > part.max) part.max = max;
  }
  for (int j = 0; j < 16; j++) part.bad += (float)bad[j];
  if (part.max == -INFINITY) return part;
  Doubles powers = {0};
  for (int i = 0; i < whole; i += 16) add_powers(x + i, part.max, &powers);
  for (int i = 0; whole + i < count; i += 16) add_powers(last + i, part.max, &powers);
  double sum = 0;
  for (int j = 0; j < 16; j++) sum += powers[j];
  part.sum = (float)sum;
  return part;
}

// A heap with the worst on top: most values fail one comparison.
typedef struct {
  float *values;
  int32_t *ids;
  int count, k;
} Heap;

static inline int ranks_before(float a, int id_a, float b, int id_b) { return a > b || (a == b && id_a < id_b); }

static void sift_down(Heap *h, int count, float value, int id) {
  int at = 0;
  for (;;) {
    int child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && ranks_before(h->values[child], h->ids[child], h->values[child + 1], h->ids[child + 1])) child++;
    if (!ranks_before(value, id, h->values[child], h->ids[child])) break;
    h->values[at] = h->values[child], h->ids[at] = h->ids[child];
    at = child;
  }
  h->values[at] = value, h->ids[at] = id;
}

// Ids are in ascending order: of equal values, earlier ones stay.
static inline void offer(Heap *h, float value, int id) {
  if (h->count == h->k) {
    if (value > h->values[0]) sift_down(h, h->k, value, id);
    return;
  }
  int at = h->count++;
  while (at > 0 && ranks_before(h->values[(at - 1) / 2], h->ids[(at - 1) / 2], value, id)) {
    h->values[at] = h->values[(at - 1) / 2], h->ids[at] = h->ids[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  h->values[at] = value, h->ids[at] = id;
}

static void sort_heap(Heap *h) {
  for (int end = h->count - 1; end > 0; end--) {
    const float value = h->values[end];
    const int id = h->ids[end];
    h->values[end] = h->values[0], h->ids[end] = h->ids[0];
    sift_down(h, end, value, id);
  }
}

static void find_best(const float *x, int vocab, const float *maxima, Heap *h) {
  const int blocks = (vocab + BLOCK - 1) / BLOCK;
  float least = -INFINITY;
  if (blocks > h->k) { // k blocks have values of at least the kth largest maximum
    for (int b = 0; b < blocks; b++) offer(h, maxima[b], b);
    least = h->values[0];
    h->count = 0;
  }
  for (int b = 0; b < blocks; b++) {
    if (maxima[b] < least) continue;
    const int end = (b + 1) * BLOCK < vocab ? (b + 1) * BLOCK : vocab;
    for (int i = b * BLOCK; i < end; i++)
      if (x[i] >= least) offer(h, x[i], i);
  }
  sort_heap(h);
  for (int i = h->count; i < h->k; i++) h->values[i] = NAN, h->ids[i] = 0; // only if there are NaN
}

// args: 2 logits, 3 number of rows, 4 vocabulary, 5 k, 6 values, 7 ids, 8 stats, 9 scratch, 10 whether the parts are ready.
void op_top_logits(const Context *c, const Record *program, const Record *op) {
  const int rows = arg_i(op, 3), vocab = arg_i(op, 4), k = arg_i(op, 5);
  const float *logits = (const float *)(c->base + arg_u(op, 2));
  float *scratch = (float *)(c->base + arg_u(op, 9));
  const int blocks = (vocab + BLOCK - 1) / BLOCK, chunks = (vocab + CHUNK - 1) / CHUNK;
  const size_t scratch_floats = (size_t)blocks + 3 * (size_t)chunks;
  if (!arg_i(op, 10)) {
    c->progress->total += rows * chunks;
    for (int i = take_near(c, program, op, rows * chunks); i >= 0; i = take_near(c, program, op, rows * chunks), count_done(c, 1)) {
      const int row = i / chunks, chunk = i % chunks, first = chunk * CHUNK;
      float *maxima = scratch + (size_t)row * scratch_floats;
      const int count = vocab - first < CHUNK ? vocab - first : CHUNK;
      const Part part = scan_chunk(logits + (size_t)row * vocab + first, count, maxima + first / BLOCK);
      memcpy(maxima + blocks + 3 * chunk, &part, sizeof part);
    }
    return;
  }
  c->progress->total += rows;
  for (int row = take_near(c, program, op, rows); row >= 0; row = take_near(c, program, op, rows), count_done(c, 1)) {
    const float *maxima = scratch + (size_t)row * scratch_floats, *parts = maxima + blocks;
    Heap heap = {(float *)(c->base + arg_u(op, 6)) + (size_t)row * k, (int32_t *)(c->base + arg_u(op, 7)) + (size_t)row * k, 0, k};
    find_best(logits + (size_t)row * vocab, vocab, maxima, &heap);
    Part all = {heap.values[0], 0, 0};
    double sum = 0;
    for (int i = 0; i < chunks; i++) {
      Part part;
      memcpy(&part, parts + 3 * i, sizeof part);
      all.bad += part.bad;
      if (part.max > -INFINITY) sum += part.sum * exp((double)part.max - all.max);
    }
    all.sum = (float)sum;
    memcpy((float *)(c->base + arg_u(op, 8)) + (size_t)row * 3, &all, sizeof all);
  }
}
