// An addon that only names the features of this processor: with it, a clone compiles just the build that fits.
#if defined(FEATURES_ONLY)
#include "cpu-features.h"
#include "pack.h"

NAPI_MODULE_INIT() {
  napi_value abi;
  CHECK(napi_create_int32(env, ABI, &abi));
  const napi_property_descriptor exports_list[] = {
      {"abi", NULL, NULL, NULL, NULL, abi, napi_enumerable, NULL},
      {"cpuFeatures", NULL, cpu_features, NULL, NULL, NULL, napi_default, NULL},
      {"trimMemory", NULL, trim_memory, NULL, NULL, NULL, napi_default, NULL},
  };
  CHECK(napi_define_properties(env, exports, sizeof exports_list / sizeof *exports_list, exports_list));
  return exports;
}
#endif
