/** The tenant that holds what the memory knows of itself; no API key can have it. */
export const STATE_TENANT = 'ruvllm';
