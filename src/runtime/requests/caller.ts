/** Position of a request in its client's trace, as the W3C headers state it. */
export interface TraceContext {
  readonly traceId: string;
  /** The headers as received, for exporters that read them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The caller of a request: who is charged for it, and when it ends. */
export interface RequestCaller {
  /** Unique per request; appears in the answer, the audit log and feedback. */
  readonly requestId: string;
  readonly tenant: string;
  /** Aborts the request, for example when the client disconnects. */
  readonly signal: AbortSignal;
  /** The client's trace that this request belongs to; null if there is none. */
  readonly trace: TraceContext | null;
  /** Higher runs first: an integer from -10 to 10. Default: that of the request's options, or else 0. */
  readonly priority?: number;
}
