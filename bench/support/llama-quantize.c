// Calls the quantizer of llama.cpp's library: llama-quantize SOURCE TARGET FILE_TYPE.
#include <stdint.h>
#include <stdlib.h>

// The first two fields are all that is set. The rest has the library's defaults, whatever its size up to this.
struct parameters {
  int32_t num_threads;
  int32_t file_type;
  char rest[504];
};

struct parameters llama_model_quantize_default_params(void);
uint32_t llama_model_quantize(const char *source, const char *target, const struct parameters *parameters);
void llama_backend_init(void);

int main(int count, char **arguments) {
  if (count != 4) return 2;
  llama_backend_init();
  struct parameters parameters = llama_model_quantize_default_params();
  parameters.num_threads = 2;
  parameters.file_type = atoi(arguments[3]);
  return (int)llama_model_quantize(arguments[1], arguments[2], &parameters);
}
