/** Where `ruvllm serve` listens by default. In a file of its own, because clients need no other default. */
export const SERVE_ADDRESS = { host: '127.0.0.1', port: 8080 } as const;
