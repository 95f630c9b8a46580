// Shared by the addon of the kernels and the one that only names features.
#ifndef RUVLLM_CPU_FEATURES_H
#define RUVLLM_CPU_FEATURES_H
#define NAPI_VERSION 8
#if defined(_WIN32)
#define NAPI_EXTERN // napi-windows.c has the functions
#endif
#include "platform.h"
#include <node_api.h>
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#define CHECK(call)                                                                                                   \
  do {                                                                                                                \
    if ((call) != napi_ok) {                                                                                          \
      napi_throw_error(env, NULL, "native kernels: " #call " failed");                                                \
      return NULL;                                                                                                    \
    }                                                                                                                 \
  } while (0)

// trimMemory(): gives freed memory back to the system; glibc keeps it for the next allocation.
static napi_value trim_memory(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
  return NULL;
}

// cpuFeatures(): the features of this processor and system that builds may need.
static napi_value cpu_features(napi_env env, napi_callback_info info) {
  napi_value list, name;
  uint32_t length = 0;
  Feature features[MAX_FEATURES];
  const int n = find_features(features);
  (void)info;
  CHECK(napi_create_array(env, &list));
  for (int i = 0; i < n; i++) {
    if (!features[i].has) continue;
    CHECK(napi_create_string_utf8(env, features[i].name, NAPI_AUTO_LENGTH, &name));
    CHECK(napi_set_element(env, list, length++, name));
  }
  return list;
}
#endif
