#include "matmul.h"
#include "platform.h"
#include "vector-math.h"
#include <string.h>

static const float *bias_at(const Context *c, const Record *op, int i) { return arg_u(op, i) ? (const float *)(c->base + arg_u(op, i)) : NULL; }

static TileFn *tile_of(int layout) {
  switch (layout) {
    case LAYOUT_Q4: return tile_q4;
    case LAYOUT_Q8: return tile_q8;
    case LAYOUT_Q8_MIN: return tile_q8_min;
    case LAYOUT_Q4K: return tile_q4k;
    case LAYOUT_Q6K: return tile_q6k;
    default: return has_half_scales(layout) ? tile_halves : tile_codebook;
  }
}

// Columns per strip: with the activations of a pass and the unpacked weights, they stay in the L2 cache.
enum { PREFETCH_BYTES = 4096 };
#if defined(HAS_PANELS)
enum { STRIP_BLOCKS = PANEL_BLOCKS };
static int panel_groups(void) { return PANEL_GROUPS; }
#else
enum { STRIP_BLOCKS = 64 };
static int panel_groups(void) { return 1; }
#endif

static Tokens tile_of_token(const Product *p, int t) {
  const int width = tile_width(p->tokens);
  return tile_at(p->x + (size_t)(t / width) * tile_bytes(p->cols, width), p->kind, p->cols, width);
}

// acc[g][token][16] of `groups` neighbouring row groups and the tokens of a pass, which starts at a whole tile.
static void multiply(const Context *c, const Product *p, int first_group, int groups, int first_token, int tokens, float *acc) {
  const size_t stride = group_bytes(p->layout, p->cols);
  const int blocks = p->cols / 32;
  TileFn *const tile_fn = tile_of(p->layout);
  uint8_t *panel = c->scratch + 2 * sizeof(float) * MAX_CHUNK_GROUPS * PASS_TOKENS * GROUP_ROWS;
  if (p->layout <= LAYOUT_BF16) {
    for (int g = 0; g < groups; g++) multiply_floats(p, first_group + g, first_token, tokens, acc + (size_t)g * tokens * GROUP_ROWS);
    return;
  }
  memset(acc, 0, sizeof(float) * (size_t)groups * (size_t)tokens * GROUP_ROWS);
  Tile tile = {.stride = stride, .acc_stride = tokens * GROUP_ROWS, .table = codebook_table(p->layout)};
  int whole = 0; // tokens processed by panels
#if defined(HAS_PANELS)
  whole = panel_tokens(p->layout, tokens);
  if (whole > 0) panel_begin(p->layout);
#endif
  const int strip = tokens < TILE_TOKENS && whole == 0 ? blocks : STRIP_BLOCKS;
  for (int block = 0; block < blocks; block += strip) {
    tile.first_block = block;
    tile.end_block = block + strip < blocks ? block + strip : blocks;
    for (int g = 0, at_once; g < groups; g += at_once) {
      at_once = whole > 0 ? panel_groups() : groups_at_once(tokens);
      while (at_once > groups - g) at_once /= 2;
      tile.groups = at_once;
      tile.w = p->weights + (size_t)(first_group + g) * stride;
#if defined(HAS_PANELS)
      if (whole > 0) {
        // Next: the same columns of the next groups, then the next columns of all, then the next chunk.
        const int next_g = g + at_once < groups ? g + at_once : tile.end_block < blocks ? 0 : groups;
        const int next_block = g + at_once < groups ? block : tile.end_block < blocks ? tile.end_block : 0;
        const uint8_t *next = p->weights + (size_t)(first_group + next_g) * stride + group_bytes(p->layout, next_block * 32);
        const size_t next_bytes = first_group + next_g < p->groups ? group_bytes(p->layout, (tile.end_block - block) * 32) : 0;
        for (int i = 0; i < at_once; i++) panel_unpack(p->layout, tile.w + (size_t)i * stride, tile.first_block, tile.end_block, tile.table, panel + i * panel_bytes());
        for (int t = 0; t < whole; t += TILE_TOKENS)
          for (int i = 0; i < at_once; i++) {
            const size_t from = next_bytes * (size_t)t / whole, to = next_bytes * (size_t)(t + TILE_TOKENS < whole ? t + TILE_TOKENS : whole) / whole;
            panel_tile(p->layout, panel + i * panel_bytes(), tile_of_token(p, first_token + t), whole - t < TILE_TOKENS ? whole - t : TILE_TOKENS, tile.first_block, tile.end_block, acc + ((size_t)(g + i) * tokens + t) * GROUP_ROWS, next + i * stride + from, to - from);
          }
      }
#endif
      for (int t = whole; t < tokens; t += tile.count) {
        const int left = tokens - t;
        tile.count = left < MAX_COUNT ? left : MAX_COUNT;
        tile.acc = acc + ((size_t)g * tokens + t) * GROUP_ROWS;
        tile_fn(&tile, tokens_from(tile_of_token(p, first_token + t), (first_token + t) % tile_width(p->tokens)));
      }
    }
  }
}

// Small weights and many tokens: each thread has its own tokens, whose rows then never move between the processors' caches.
// Large weights are unpacked once for all tokens instead.
static int token_parts(const Context *c, int tokens, size_t bytes) {
  return bytes < 1 << 20 && tokens >= 2 * TILE_TOKENS * c->num_threads ? c->num_threads : 1;
}

// args: 2 weights, 3 layout, 4 rows, 5 cols, 6 activations (or plain x), 7 their rounding, 8 tokens, 9 -, 10 out, 11 bias or 0,
// 12 accumulate, 13 groups per chunk, 14 -; 15 gate: 0 none, 1 silu, 2 gelu, and then a second product that it multiplies:
// 16 weights, 17 layout, 18 activations, 19 their rounding, 20 bias.
static Matmul matmul_of(const Context *c, const Record *op) {
  const int rows = arg_i(op, 4), cols = arg_i(op, 5), tokens = arg_i(op, 8), groups = (rows + GROUP_ROWS - 1) / GROUP_ROWS;
  Matmul m = {.rows = rows, .groups = groups, .tokens = tokens, .accumulate = arg_i(op, 12), .gated = arg_i(op, 15), .out = (float *)(c->base + arg_u(op, 10))};
  m.first = (Product){c->base + arg_u(op, 2), arg_i(op, 3), arg_i(op, 7), cols, tokens, groups, c->base + arg_u(op, 6), bias_at(c, op, 11)};
  m.second = (Product){c->base + arg_u(op, 16), arg_i(op, 17), arg_i(op, 19), cols, tokens, groups, c->base + arg_u(op, 18), bias_at(c, op, 20)};
  m.parts = token_parts(c, tokens, (size_t)m.groups * group_bytes(m.first.layout, cols));
  m.per_chunk = m.parts > 1 ? MAX_CHUNK_GROUPS : arg_i(op, 13);
  m.chunks = (m.groups + m.per_chunk - 1) / m.per_chunk;
  return m;
}

static void add_bias(const Product *p, int rows, int first_group, int groups, int tokens, float *acc) {
  if (!p->bias) return;
  for (int g = 0; g < groups; g++) {
    const int row = (first_group + g) * GROUP_ROWS, valid = rows - row < GROUP_ROWS ? rows - row : GROUP_ROWS;
    for (int t = 0; t < tokens; t++)
      for (int r = 0; r < valid; r++) acc[((size_t)g * tokens + t) * GROUP_ROWS + r] += p->bias[row + r];
  }
}

// Writes finished acc[g][token][16] to out[token][row], without other stores, and one group after the other for each token: rows
// of `out` are far apart, and x86 drains stores that miss the cache one at a time if stores that hit come between.
static void write_out(const Matmul *m, int first_group, int groups, int first_token, int tokens, const float *acc) {
  enum { AHEAD = 8 };
  const int first_row = first_group * GROUP_ROWS;
  for (int t = 0; t < tokens; t++) {
    float *row = m->out + (size_t)(first_token + t) * m->rows + first_row;
    const int is_ahead = t + AHEAD < tokens;
    for (int g = 0; g < groups; g++, row += GROUP_ROWS) {
      const float *sums = acc + ((size_t)g * tokens + t) * GROUP_ROWS;
      const int valid = m->rows - first_row - g * GROUP_ROWS;
      if (is_ahead) __builtin_prefetch(row + (size_t)AHEAD * m->rows, 1);
      if (valid >= GROUP_ROWS && m->accumulate) store_lanes(row, load_lanes(sums) + load_lanes(row));
      else if (valid >= GROUP_ROWS) store_lanes(row, load_lanes(sums));
      else for (int r = 0; r < valid; r++) row[r] = m->accumulate ? sums[r] + row[r] : sums[r];
    }
  }
}

// Computes a chunk, and writes it unless another thread has. Returns whether it was written here. All passes over tokens but the
// last are written without a check: a chunk with several passes is never computed twice.
static int run_chunk(const Context *c, const Matmul *m, int chunk, atomic_uint *claim, unsigned taken, unsigned written) {
  float *acc = (float *)c->scratch, *other = acc + (size_t)MAX_CHUNK_GROUPS * PASS_TOKENS * GROUP_ROWS;
  const int tiles = (m->tokens + TILE_TOKENS - 1) / TILE_TOKENS, part = chunk / m->chunks;
  const int start = chunk % m->chunks * m->per_chunk, n = start + m->per_chunk < m->groups ? m->per_chunk : m->groups - start;
  const int end_tile = part_start(tiles, part + 1, m->parts), end = end_tile < tiles ? end_tile * TILE_TOKENS : m->tokens;
  if (m->tokens == 0) return !claim || atomic_compare_exchange_strong(claim, &(unsigned){taken}, written);
  for (int pass = part_start(tiles, part, m->parts) * TILE_TOKENS; pass < end; pass += PASS_TOKENS) {
    const int count = end - pass < PASS_TOKENS ? end - pass : PASS_TOKENS;
    multiply(c, &m->first, start, n, pass, count, acc);
    add_bias(&m->first, m->rows, start, n, count, acc);
    if (m->gated) {
      multiply(c, &m->second, start, n, pass, count, other);
      add_bias(&m->second, m->rows, start, n, count, other);
      gate(m->gated, acc, other, acc, n * count * GROUP_ROWS);
    }
    if (claim && !atomic_compare_exchange_strong(claim, &(unsigned){taken}, written)) return 0;
    write_out(m, start, n, pass, count, acc);
  }
  return 1;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// Whether chunks can be computed twice: all their results fit at once, and there is a claim for each.
static int is_claimed(const Context *c, int tokens, int total) {
  return c->num_threads > 1 && tokens <= PASS_TOKENS && c->progress->claim_base + total <= MAX_CLAIMS;
}

void run_chunks(const Context *c, const Record *program, const Record *op, MatmulOf *matmul_of_chunk, int tokens, int total) {
  Progress *progress = c->progress;
  const int claimed = is_claimed(c, tokens, total);
  const unsigned taken = claim_of(c, program, op, CLAIM_TAKEN), written = claim_of(c, program, op, CLAIM_WRITTEN);
  const double start = now_us();
  int mine = 0;
  for (int chunk = take_near(c, program, op, total); chunk >= 0; chunk = take_near(c, program, op, total), mine++) {
    atomic_uint *claim = claimed ? &c->claims[progress->claim_base + chunk] : NULL;
    if (claim) atomic_store(claim, taken);
    int own = chunk;
    const Matmul m = matmul_of_chunk(c, op, &own);
    count_done(c, run_chunk(c, &m, own, claim, taken, written));
  }
  if (mine > 0) progress->chunk_us = (now_us() - start) / mine;
  progress->total += total;
  if (claimed) progress->claim_base += total;
#if defined(HAS_PANELS)
  panel_end();
#endif
}

void redo_chunks(const Context *c, const Record *program, const Record *op, MatmulOf *matmul_of_chunk, int tokens, int total) {
  const unsigned taken = claim_of(c, program, op, CLAIM_TAKEN), written = claim_of(c, program, op, CLAIM_WRITTEN);
  if (!is_claimed(c, tokens, total)) return;
  for (int chunk = 0; chunk < total; chunk++) {
    atomic_uint *claim = &c->claims[c->progress->claim_base + chunk];
    if (atomic_load(claim) != taken) continue;
    int own = chunk;
    const Matmul m = matmul_of_chunk(c, op, &own);
    count_done(c, run_chunk(c, &m, own, claim, taken, written));
  }
  c->progress->claim_base += total;
#if defined(HAS_PANELS)
  panel_end();
#endif
}

static Matmul whole_matmul(const Context *c, const Record *op, int *chunk) {
  (void)chunk;
  return matmul_of(c, op);
}

void op_matmul(const Context *c, const Record *program, const Record *op) {
  const Matmul m = matmul_of(c, op);
  run_chunks(c, program, op, whole_matmul, m.tokens, m.parts * m.chunks);
}

void redo_matmul(const Context *c, const Record *program, const Record *op) {
  const Matmul m = matmul_of(c, op);
  redo_chunks(c, program, op, whole_matmul, m.tokens, m.parts * m.chunks);
}

void prefetch_matmul(const Context *c, const Record *op) {
  const int layout = arg_i(op, 3), rows = arg_i(op, 4), cols = arg_i(op, 5), per_chunk = arg_i(op, 13);
  if (arg_i(op, 8) >= TILE_TOKENS) return; // not memory-bound
  const size_t stride = group_bytes(layout, cols);
  const int groups = (rows + GROUP_ROWS - 1) / GROUP_ROWS, chunks = (groups + per_chunk - 1) / per_chunk;
  const int first = part_start(chunks, c->thread, c->num_threads) * per_chunk;
  const uint8_t *w = c->base + arg_u(op, 2) + (size_t)first * stride;
  for (int g = 0; g < MAX_GROUPS && first + g < groups; g++)
    for (size_t i = 0; i < PREFETCH_BYTES && i < stride; i += 64) __builtin_prefetch(w + (size_t)g * stride + i, 0, 2);
}
