// A product as chunks: a number of row groups times some tokens. Shared by plain matrices and those of experts.
#ifndef RUVLLM_MATMUL_H
#define RUVLLM_MATMUL_H
#include "pack.h"

typedef struct {
  const uint8_t *weights;
  int layout, kind, cols, tokens, groups;
  uint8_t *x; // tiles of rounded tokens, or plain rows
  const float *bias;
} Product;

// acc[token][16] of the float weights of a row group.
void multiply_floats(const Product *, int group, int first_token, int tokens, float *acc);

// Of a chunk: the sums of its tokens and groups fit into a thread's scratch.
enum { PASS_TOKENS = 512, MAX_CHUNK_GROUPS = 4 };

typedef struct {
  Product first, second;
  float *out;
  int rows, tokens, accumulate, gated, groups, per_chunk, chunks, parts;
} Matmul;

// The product that `*chunk` of an operation belongs to; `*chunk` becomes the number within it.
typedef Matmul MatmulOf(const Context *, const Record *op, int *chunk);
// Takes chunks until none of `total` is left. A chunk with at most PASS_TOKENS tokens may be computed twice and counts once.
void run_chunks(const Context *, const Record *program, const Record *op, MatmulOf *, int tokens, int total);
// Computes chunks again that other threads have taken but not finished.
void redo_chunks(const Context *, const Record *program, const Record *op, MatmulOf *, int tokens, int total);
#endif
