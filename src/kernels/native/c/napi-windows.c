// Node-API of the program that loads this library, looked up on first use. A library linked against node.exe by name fails to
// load in programs with another name (Electron, a single executable).
#if defined(_WIN32)
#define NAPI_VERSION 8
#define NAPI_EXTERN
#define WIN32_LEAN_AND_MEAN
#include <node_api.h>
#include <windows.h>

#define FORWARD(name, parameters, arguments)                                                                          \
  napi_status name parameters {                                                                                       \
    static __typeof__(&name) target;                                                                                  \
    if (!target) target = (__typeof__(&name))(void *)GetProcAddress(GetModuleHandleW(NULL), #name);                   \
    return target ? target arguments : napi_generic_failure;                                                          \
  }

FORWARD(napi_create_array, (napi_env env, napi_value *out), (env, out))
FORWARD(napi_create_int32, (napi_env env, int32_t value, napi_value *out), (env, value, out))
FORWARD(napi_get_boolean, (napi_env env, bool value, napi_value *out), (env, value, out))
FORWARD(napi_create_string_utf8, (napi_env env, const char *text, size_t length, napi_value *out), (env, text, length, out))
FORWARD(napi_create_external, (napi_env env, void *data, napi_finalize finalize, void *hint, napi_value *out), (env, data, finalize, hint, out))
FORWARD(napi_create_external_arraybuffer, (napi_env env, void *data, size_t bytes, napi_finalize finalize, void *hint, napi_value *out), (env, data, bytes, finalize, hint, out))
FORWARD(napi_define_properties, (napi_env env, napi_value object, size_t count, const napi_property_descriptor *properties), (env, object, count, properties))
FORWARD(napi_set_element, (napi_env env, napi_value object, uint32_t index, napi_value value), (env, object, index, value))
FORWARD(napi_get_cb_info, (napi_env env, napi_callback_info info, size_t *count, napi_value *arguments, napi_value *self, void **data), (env, info, count, arguments, self, data))
FORWARD(napi_get_arraybuffer_info, (napi_env env, napi_value buffer, void **data, size_t *bytes), (env, buffer, data, bytes))
FORWARD(napi_get_typedarray_info, (napi_env env, napi_value array, napi_typedarray_type *type, size_t *length, void **data, napi_value *buffer, size_t *offset), (env, array, type, length, data, buffer, offset))
FORWARD(napi_get_value_double, (napi_env env, napi_value value, double *out), (env, value, out))
FORWARD(napi_get_value_int32, (napi_env env, napi_value value, int32_t *out), (env, value, out))
FORWARD(napi_get_value_external, (napi_env env, napi_value value, void **out), (env, value, out))
FORWARD(napi_throw_error, (napi_env env, const char *code, const char *message), (env, code, message))
FORWARD(napi_throw_range_error, (napi_env env, const char *code, const char *message), (env, code, message))
#endif
