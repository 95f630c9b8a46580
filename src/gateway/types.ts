/** A request of a client. */
export interface GatewayRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Headers;
  /**
   * The whole body, which may be sent more than once. Called at most once; throws if it is too large, the client leaves or `onBytes`
   * throws, which is called with the size of each part.
   */
  readBody(onBytes: (numBytes: number) => void): Promise<Uint8Array>;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

/** The reader of a stream must read it to its end or call `return` of its iterator. */
export type GatewayBody = Uint8Array | AsyncIterable<Uint8Array>;

export interface GatewayResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: GatewayBody;
}

export interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Throws if the connection breaks before the end. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Connections to nodes. */
export interface Upstream {
  /** Resolves with the head of the response. Rejects with `remote_failed`; its data says whether the node may have seen the request. */
  send(baseUrl: string, request: UpstreamRequest): Promise<UpstreamResponse>;
  close(): void;
}
