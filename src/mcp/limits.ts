/** The newest protocol version first. */
export const PROTOCOL_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

/** Bounds on the messages of the other side, which may misbehave or be hostile. */
export const MCP_LIMITS = {
  /** Bytes of one message. A tool may return a picture in base64. */
  maxMessageBytes: 8 << 20,
  /** Nesting depth of a message: enough to list a tool that is too deep, which is then left out. */
  maxJsonDepth: 512,
  /** Values of a message; lists, objects and keys count six each. */
  maxJsonValues: 500_000,
  /** Characters of an id that is a text: replies repeat it. */
  maxIdChars: 256,
  /** Requests of one client, or of one server, that are answered at the same time. */
  maxOpenRequests: 64,
  /** Bytes that a process may print after each request it gets: a flood ends the connection. */
  maxBytesPerSend: 16 << 20,
  /** Messages of a stream over HTTP before the reply to a request, such as progress: each may ask us to send something. */
  maxMessagesPerReply: 2000,
  /** Lines of a process that are no JSON, such as log lines on the wrong stream. */
  maxInvalidLines: 100,
  /** Milliseconds to start and initialize a server; `npx` may download its package first. */
  openTimeoutMs: 60_000,
  /** Milliseconds to deliver a notification or a reply. */
  deliverTimeoutMs: 10_000,
  /** Milliseconds for all pages of the list of tools. */
  listTimeoutMs: 30_000,
  maxTools: 1000,
  maxPages: 100,
  /** Bytes of all pages of the list: more than fits into the context of a model. */
  maxListBytes: 2 << 20,
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
