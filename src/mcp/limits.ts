/** The newest protocol version first. */
export const PROTOCOL_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

/** Bounds on the messages of a server that misbehaves or is hostile. */
export const MCP_LIMITS = {
  /** Bytes of one message. A tool may return a picture in base64. */
  maxMessageBytes: 8 << 20,
  /** Bytes that a process may print after each message it gets: a flood ends the connection. */
  maxBytesPerSend: 16 << 20,
  /** Lines of a process that are no JSON, such as log lines on the wrong stream. */
  maxInvalidLines: 100,
  /** Milliseconds to start and initialize a server; `npx` may download its package first. */
  openTimeoutMs: 60_000,
  /** Milliseconds for a page of the list of tools. */
  listTimeoutMs: 30_000,
  maxTools: 1000,
  maxPages: 100,
  maxDescriptionChars: 4096,
  /** Characters of a tool's JSON schema. */
  maxSchemaChars: 32_768,
  /** The specification asks for at most 128. */
  maxToolNameChars: 128,
} as const;

/** Default limits of a tool call. */
export const CALL_LIMITS = {
  timeoutMs: 60_000,
  /** UTF-8 bytes of a result: about 16,000 tokens. */
  maxResultBytes: 65_536,
} as const;
