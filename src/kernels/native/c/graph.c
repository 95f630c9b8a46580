// Graphs of vectors: nearest-neighbour search, and the choice of a node's links. Threads share queries and lists, which do not
// depend on each other, so the resulting graph does not depend on the number of threads.
#include "pack.h"
#include "nearness.h"

typedef struct {
  const uint8_t *vectors;
  const float *scales;
  size_t row_bytes;
  int dim, is_bytes, is_l2;
} Table;

// A vector to compare with others.
typedef struct {
  const void *values;
  float scale;
  double square;
  int32_t sum;
} Probe;

typedef struct {
  float score;
  uint32_t tag; // id * 2, + 1 once its neighbours are expanded
} Entry;

// Scratch of a thread (graph-ops.ts).
typedef struct {
  uint32_t *epoch;
  uint16_t *visited; // number of the last search that visited the node
  Entry *pool;
  int32_t *fresh;
} Lane;

enum { LANE_HEADER = 64, AHEAD = 4 };

static Table table_of(const Context *c, const Record *op) {
  Table t = {.vectors = c->base + arg_u(op, 2), .dim = arg_i(op, 3), .is_bytes = arg_i(op, 4), .is_l2 = arg_i(op, 6)};
  t.scales = (const float *)(c->base + arg_u(op, 5));
  t.row_bytes = (size_t)t.dim * (t.is_bytes ? 1 : 4);
  return t;
}

static Lane lane_of(const Context *c, uint64_t lanes, uint64_t lane_bytes, uint64_t num_nodes, int width) {
  uint8_t *at = c->base + lanes + (size_t)c->thread * lane_bytes;
  Lane lane = {.epoch = (uint32_t *)at, .visited = (uint16_t *)(at + LANE_HEADER)};
  lane.pool = (Entry *)(at + LANE_HEADER + ((2 * num_nodes + 63) & ~(uint64_t)63));
  lane.fresh = (int32_t *)(lane.pool + width);
  return lane;
}

static Probe probe_bytes(const Table *t, const int8_t *q, float scale) {
  Probe p = {.values = q, .scale = scale};
  if (t->is_l2) p.square = (double)scale * scale * square_bytes(q, t->dim);
  for (int d = 0; d < t->dim; d++) p.sum += q[d];
  return p;
}

static Probe probe_query(const Table *t, const float *query, int8_t *scratch) {
  if (!t->is_bytes) return (Probe){.values = query};
  const float scale = round_query(query, t->dim, scratch);
  return probe_bytes(t, scratch, scale);
}

static const uint8_t *row_of(const Table *t, int32_t id) { return t->vectors + (size_t)id * t->row_bytes; }

static Probe probe_row(const Table *t, int32_t id) {
  if (!t->is_bytes) return (Probe){.values = row_of(t, id)};
  return probe_bytes(t, (const int8_t *)row_of(t, id), t->scales[id]);
}

// Larger is nearer; NaN is farthest.
static float nearness(const Table *t, const Probe *p, int32_t id) {
  const uint8_t *row = row_of(t, id);
  float score;
  if (!t->is_bytes) score = t->is_l2 ? -square_floats(p->values, (const float *)row, t->dim) : dot_floats(p->values, (const float *)row, t->dim);
  else {
    const int8_t *v = (const int8_t *)row;
    const int32_t dot = dot_bytes(v, p->values, t->dim, p->sum);
    const double scale = t->scales[id];
    if (!t->is_l2) score = (float)dot * (p->scale * t->scales[id]);
    else score = (float)-(p->square + (scale * square_bytes(v, t->dim) - 2.0 * p->scale * dot) * scale);
  }
  return score > -INFINITY ? score : -INFINITY;
}

static int is_before(const Entry *e, float score, uint32_t id) {
  return e->score > score || (e->score == score && e->tag >> 1 < id);
}

// Inserts an entry among the best `width`: nearest first, ties by id. Returns its index, or `width` if it is not among them.
static int pool_add(Entry *pool, int *size, int width, float score, uint32_t id) {
  if (*size == width && is_before(&pool[width - 1], score, id)) return width;
  int low = 0, high = *size;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (is_before(&pool[middle], score, id)) low = middle + 1;
    else high = middle;
  }
  if (low < *size && pool[low].tag >> 1 == id) return width; // duplicate
  if (low == width) return width;
  const int moved = (*size < width ? *size : width - 1) - low;
  memmove(pool + low + 1, pool + low, (size_t)moved * sizeof(Entry));
  pool[low] = (Entry){score, id << 1};
  if (*size < width) ++*size;
  return low;
}

typedef struct {
  const int32_t *links, *upper, *upper_at;
  int degree, upper_degree, num_nodes;
} Graph;

static const int32_t *links_of(const Graph *g, int32_t id, int level) {
  if (level == 0) return g->links + (size_t)id * (size_t)g->degree;
  return g->upper + (size_t)(g->upper_at[id] + level - 1) * (size_t)g->upper_degree;
}

static int32_t descend(const Graph *g, const Table *t, const Probe *p, int32_t node, float *best, int level) {
  for (int32_t next = node;; node = next) {
    const int32_t *row = links_of(g, node, level);
    for (int i = 0; i < g->upper_degree && row[i] >= 0; i++) {
      if (i + 1 < g->upper_degree && row[i + 1] >= 0) ask_for(row_of(t, row[i + 1]), t->row_bytes);
      const float score = nearness(t, p, row[i]);
      if (score > *best || (score == *best && row[i] < next)) *best = score, next = row[i];
    }
    if (next == node) return node;
  }
}

static void begin_search(Lane *lane, int num_nodes) {
  if (++*lane->epoch <= 0xffff) return;
  memset(lane->visited, 0, (size_t)num_nodes * 2);
  *lane->epoch = 1;
}

static int search(const Graph *g, const Table *t, const Probe *p, Lane *lane, int32_t entry, int top, int level, int width) {
  float score = nearness(t, p, entry);
  for (int l = top; l > level; l--) entry = descend(g, t, p, entry, &score, l);
  begin_search(lane, g->num_nodes);
  const uint16_t epoch = (uint16_t)*lane->epoch;
  const int degree = level == 0 ? g->degree : g->upper_degree;
  int size = 0, cursor = 0;
  lane->visited[entry] = epoch;
  pool_add(lane->pool, &size, width, score, (uint32_t)entry);
  while (cursor < size) {
    if (lane->pool[cursor].tag & 1) {
      cursor++;
      continue;
    }
    const int32_t *row = links_of(g, (int32_t)(lane->pool[cursor].tag >> 1), level);
    lane->pool[cursor].tag |= 1;
    int count = 0, lowest = cursor + 1;
    for (int i = 0; i < degree && row[i] >= 0; i++) {
      if (lane->visited[row[i]] == epoch) continue;
      lane->visited[row[i]] = epoch;
      lane->fresh[count++] = row[i];
      if (count <= AHEAD) ask_for(row_of(t, row[i]), t->row_bytes);
    }
    if (cursor + 1 < size) __builtin_prefetch(links_of(g, (int32_t)(lane->pool[cursor + 1].tag >> 1), level));
    for (int i = 0; i < count; i++) {
      if (i + AHEAD < count) ask_for(row_of(t, lane->fresh[i + AHEAD]), t->row_bytes);
      const int at = pool_add(lane->pool, &size, width, nearness(t, p, lane->fresh[i]), (uint32_t)lane->fresh[i]);
      if (at < lowest) lowest = at;
    }
    cursor = lowest;
  }
  return size;
}

// args: 2-6 table, 7 queries, 8 number, 9 links, 10 degree, 11 upper, 12 upper degree, 13 upper at, 14 number of nodes, 15 entry,
// 16 top level, 17 level, 18 width, 19 ids, 20 scores, 21 lanes, 22 bytes of a lane.
void op_search_graph(const Context *c, const Record *program, const Record *op) {
  const Table table = table_of(c, op);
  const float *queries = (const float *)(c->base + arg_u(op, 7));
  const int count = arg_i(op, 8), width = arg_i(op, 18);
  const Graph graph = {(const int32_t *)(c->base + arg_u(op, 9)), (const int32_t *)(c->base + arg_u(op, 11)), (const int32_t *)(c->base + arg_u(op, 13)), arg_i(op, 10), arg_i(op, 12), arg_i(op, 14)};
  int32_t *ids = (int32_t *)(c->base + arg_u(op, 19));
  float *scores = (float *)(c->base + arg_u(op, 20));
  Lane lane = lane_of(c, arg_u(op, 21), arg_u(op, 22), arg_u(op, 14), width);
  for (int i = take_chunk(c, program, op); i < count; i = take_chunk(c, program, op)) {
    const Probe probe = probe_query(&table, queries + (size_t)i * (size_t)table.dim, (int8_t *)c->scratch);
    const int num_results = search(&graph, &table, &probe, &lane, arg_i(op, 15), arg_i(op, 16), arg_i(op, 17), width);
    for (int j = 0; j < width; j++) {
      ids[(size_t)i * (size_t)width + (size_t)j] = j < num_results ? (int32_t)(lane.pool[j].tag >> 1) : -1;
      scores[(size_t)i * (size_t)width + (size_t)j] = j < num_results ? lane.pool[j].score : -INFINITY;
    }
  }
}

// Whether a candidate is nearer to the node than to any node chosen before.
static int is_diverse(const Table *t, int32_t id, float score, const int32_t *chosen, int count) {
  const Probe probe = probe_row(t, id);
  for (int i = 0; i < count; i++)
    if (nearness(t, &probe, chosen[i]) > score) return 0;
  return 1;
}

static void pick(const Table *t, const int32_t *list, const int32_t *candidates, Entry *pool, int width, int degree, int fills, int32_t *out) {
  const Probe probe = probe_row(t, list[0]);
  const int32_t *ids = candidates + list[1];
  int size = 0, count = 0;
  for (int i = 0; i < list[2]; i++) {
    if (i + AHEAD < list[2]) ask_for(row_of(t, ids[i + AHEAD]), t->row_bytes);
    if (ids[i] != list[0]) pool_add(pool, &size, width, nearness(t, &probe, ids[i]), (uint32_t)ids[i]);
  }
  for (int i = 0; i < size && count < degree; i++) {
    const int32_t id = (int32_t)(pool[i].tag >> 1);
    if (!is_diverse(t, id, pool[i].score, out, count)) continue;
    pool[i].tag |= 1;
    out[count++] = id;
  }
  if (fills)
    for (int i = 0; i < size && count < degree; i++)
      if (!(pool[i].tag & 1)) out[count++] = (int32_t)(pool[i].tag >> 1);
  while (count < degree) out[count++] = -1;
}

// args: 2-6 table, 7 lists, 8 number, 9 candidates, 10 width, 11 degree, 12 fills, 13 out, 14 number of nodes, 15 lanes, 16 bytes of a lane.
void op_pick_links(const Context *c, const Record *program, const Record *op) {
  const Table table = table_of(c, op);
  const int32_t *lists = (const int32_t *)(c->base + arg_u(op, 7)), *candidates = (const int32_t *)(c->base + arg_u(op, 9));
  const int count = arg_i(op, 8), width = arg_i(op, 10), degree = arg_i(op, 11);
  int32_t *out = (int32_t *)(c->base + arg_u(op, 13));
  const Lane lane = lane_of(c, arg_u(op, 15), arg_u(op, 16), arg_u(op, 14), width);
  for (int i = take_chunk(c, program, op); i < count; i = take_chunk(c, program, op))
    pick(&table, lists + (size_t)i * 3, candidates, lane.pool, width, degree, arg_i(op, 12), out + (size_t)i * (size_t)degree);
}
