// The pack behind Node-API. TypeScript checks all sizes; here only misuse of the addon is rejected.
#include "pack.h"
#include "platform.h"
#include "cpu-features.h"
#include <stdlib.h>

static void free_arena(napi_env env, void *data, void *hint) {
  (void)env;
  release_memory(data, (size_t)(uintptr_t)hint);
}

// createArena(sizeBytes): zeroed memory in large pages if available, committed on first touch.
static napi_value create_arena(napi_env env, napi_callback_info info) {
  napi_value argument, buffer;
  size_t count = 1;
  double size;
  CHECK(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  CHECK(napi_get_value_double(env, argument, &size));
  void *data = reserve_memory((size_t)size);
  if (!data) {
    napi_throw_error(env, "ENOMEM", "the system refused the memory");
    return NULL;
  }
  if (napi_create_external_arraybuffer(env, data, (size_t)size, free_arena, (void *)(uintptr_t)(size_t)size, &buffer) != napi_ok) {
    release_memory(data, (size_t)size);
    napi_throw_error(env, NULL, "this runtime has no external array buffers");
    return NULL;
  }
  return buffer;
}

static int read_range(napi_env env, const napi_value *arguments, uint8_t **at, size_t *bytes) {
  void *base;
  size_t size;
  double offset, count;
  if (napi_get_arraybuffer_info(env, arguments[0], &base, &size) != napi_ok) return 0;
  if (napi_get_value_double(env, arguments[1], &offset) != napi_ok || napi_get_value_double(env, arguments[2], &count) != napi_ok) return 0;
  if (!(offset >= 0 && count >= 0 && offset + count <= (double)size)) return 0;
  *at = (uint8_t *)base + (size_t)offset;
  *bytes = (size_t)count;
  return 1;
}

// mapFile(arena, offset, sizeBytes, file, fileOffset): maps whole pages of a file into the arena; false if the system cannot.
// Writes stay private to this process.
static napi_value map_file(napi_env env, napi_callback_info info) {
  napi_value arguments[5], result;
  size_t count = 5, bytes;
  uint8_t *at;
  int32_t file;
  double file_offset;
  CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  CHECK(napi_get_value_int32(env, arguments[3], &file));
  CHECK(napi_get_value_double(env, arguments[4], &file_offset));
  if (!read_range(env, arguments, &at, &bytes)) {
    napi_throw_range_error(env, NULL, "a range outside of the arena");
    return NULL;
  }
  CHECK(napi_get_boolean(env, map_file_pages(at, bytes, file, (uint64_t)file_offset), &result));
  return result;
}

// clearMemory(arena, offset, sizeBytes): replaces whole pages by zeros.
static napi_value clear_memory(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 3, bytes;
  uint8_t *at;
  CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  if (!read_range(env, arguments, &at, &bytes)) {
    napi_throw_range_error(env, NULL, "a range outside of the arena");
    return NULL;
  }
  if (!clear_pages(at, bytes)) napi_throw_error(env, "ENOMEM", "the system refused the memory");
  return NULL;
}

typedef struct {
  uint8_t *at;
  size_t bytes;
} Range;

static void *populate(void *argument) {
  const Range range = *(Range *)argument;
  free(argument);
  populate_pages(range.at, range.bytes);
  return NULL;
}

// prepareMemory(arena, offset, sizeBytes): maps memory in the background, because that takes as long as filling it.
static napi_value prepare_memory(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 3;
  pthread_t thread;
  CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  Range *range = malloc(sizeof *range);
  if (!range || !read_range(env, arguments, &range->at, &range->bytes)) {
    free(range);
    napi_throw_range_error(env, NULL, "a range outside of the arena");
    return NULL;
  }
  const size_t page = 4096, before = (size_t)range->at % page;
  range->at -= before;
  range->bytes += before;
  if (pthread_create(&thread, NULL, populate, range) == 0) pthread_detach(thread);
  else free(range);
  return NULL;
}

// startPool(arena, numThreads, scratchOffset, scratchBytes, iq2Grid, spins): returns a handle for run and stopPool.
static napi_value start_pool(napi_env env, napi_callback_info info) {
  napi_value arguments[6], handle;
  size_t count = 6, grid_bytes;
  void *base, *grid;
  int32_t num_threads, spins;
  double scratch_offset, scratch_bytes;
  CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  CHECK(napi_get_arraybuffer_info(env, arguments[0], &base, NULL));
  CHECK(napi_get_value_int32(env, arguments[1], &num_threads));
  CHECK(napi_get_value_double(env, arguments[2], &scratch_offset));
  CHECK(napi_get_value_double(env, arguments[3], &scratch_bytes));
  CHECK(napi_get_typedarray_info(env, arguments[4], NULL, &grid_bytes, &grid, NULL, NULL));
  CHECK(napi_get_value_int32(env, arguments[5], &spins));
  if (grid_bytes == 2048) set_iq2_grid(grid);
  set_codebook_indices();
  Pool *pool = pool_start(num_threads, spins, base, (size_t)scratch_offset, (size_t)scratch_bytes);
  if (!pool) {
    napi_throw_error(env, "ENOMEM", "no memory for the thread pool");
    return NULL;
  }
  CHECK(napi_create_external(env, pool, NULL, NULL, &handle));
  return handle;
}

// run(pool, program: Float64Array, numOps)
static napi_value run(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 3, length;
  void *pool, *program;
  int32_t num_ops;
  CHECK(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  CHECK(napi_get_value_external(env, arguments[0], &pool));
  CHECK(napi_get_typedarray_info(env, arguments[1], NULL, &length, &program, NULL, NULL));
  CHECK(napi_get_value_int32(env, arguments[2], &num_ops));
  if (num_ops < 0 || num_ops > MAX_RECORDS || (size_t)num_ops * RECORD_WORDS > length) {
    napi_throw_range_error(env, NULL, "more operations than the program holds");
    return NULL;
  }
  pool_run(pool, program, num_ops);
  return NULL;
}

static napi_value stop_pool(napi_env env, napi_callback_info info) {
  napi_value argument;
  size_t count = 1;
  void *pool;
  CHECK(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  CHECK(napi_get_value_external(env, argument, &pool));
  pool_stop(pool);
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value abi;
  CHECK(napi_create_int32(env, ABI, &abi));
  const napi_property_descriptor exports_list[] = {
      {"abi", NULL, NULL, NULL, NULL, abi, napi_enumerable, NULL},
      {"createArena", NULL, create_arena, NULL, NULL, NULL, napi_default, NULL},
      {"mapFile", NULL, map_file, NULL, NULL, NULL, napi_default, NULL},
      {"clearMemory", NULL, clear_memory, NULL, NULL, NULL, napi_default, NULL},
      {"prepareMemory", NULL, prepare_memory, NULL, NULL, NULL, napi_default, NULL},
      {"startPool", NULL, start_pool, NULL, NULL, NULL, napi_default, NULL},
      {"run", NULL, run, NULL, NULL, NULL, napi_default, NULL},
      {"stopPool", NULL, stop_pool, NULL, NULL, NULL, napi_default, NULL},
      {"cpuFeatures", NULL, cpu_features, NULL, NULL, NULL, napi_default, NULL},
      {"trimMemory", NULL, trim_memory, NULL, NULL, NULL, napi_default, NULL},
  };
  CHECK(napi_define_properties(env, exports, sizeof exports_list / sizeof *exports_list, exports_list));
  return exports;
}
