import type { Client } from './client.ts';

/** Search filters; omitted filters match everything. */
export interface AuditQuery {
  /** Sorts by semantic similarity to this text, most similar first. */
  readonly similarTo?: string;
  /** Words in the prompt, answer or error. */
  readonly text?: string;
  readonly model?: string;
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly minTotalMs?: number;
  readonly hasError?: boolean;
  readonly sessionId?: string;
}

export interface AuditRow {
  readonly id: string;
  readonly createdMs: number;
  readonly similarity: number | null;
  /** The latest rating of the answer. */
  readonly rating: { readonly quality: number; readonly verdict: string } | null;
  readonly link: { readonly sequence: number; readonly hash: string };
  readonly entry: {
    readonly requestId: string;
    readonly sessionId: string | null;
    readonly timestampMs: number;
    readonly model: string;
    readonly routing: {
      readonly model: string;
      readonly confidence: number;
      readonly contextSize: number;
    } | null;
    readonly quality: number | null;
    readonly latency: {
      readonly totalMs: number;
      readonly ttftMs: number | null;
      readonly queueMs: number | null;
      readonly promptMs: number | null;
      readonly generationMs: number;
    };
    readonly query: string;
    readonly response: string;
    readonly numCut: number;
    readonly numPromptTokens: number;
    readonly numOutputTokens: number;
    readonly error: { readonly code: string; readonly message: string } | null;
    readonly repairs: readonly string[];
  };
}

export interface AuditPage {
  readonly entries: readonly AuditRow[];
  readonly next: string | null;
  readonly isComplete: boolean;
}

export interface Span {
  readonly name: string;
  readonly startMs: number;
  readonly durationMs: number;
}

export interface AuditDetails {
  readonly entry: AuditRow;
  readonly spans: readonly Span[];
  readonly sources: readonly { readonly id: string; readonly kind: string; readonly text: string }[];
  readonly judged: {
    readonly verdict: string | null;
    readonly quality: number | null;
    readonly correction: string | null;
    /** Sampling of the answer; null: not known. */
    readonly temperature: number | null;
    readonly topP: number | null;
    readonly feedback: readonly {
      readonly atMs: number;
      readonly source: string;
      readonly score: number | null;
      readonly comment: string | null;
      readonly hasCorrection: boolean;
    }[];
  } | null;
}

export interface ChainReport {
  readonly isIntact: boolean;
  readonly numChecked: number;
  readonly numArchived: number;
  readonly numDropped: number;
  readonly head: { readonly sequence: number; readonly hash: string };
  readonly brokenAt: { readonly sequence: number; readonly reason: string } | null;
}

/** Endpoints of the audit log. */
export const auditOf = (client: Client) => ({
  search: (query: AuditQuery, after: string | null, signal?: AbortSignal) =>
    client.post<AuditPage>(
      '/admin/memory/audit/search',
      { ...query, limit: 250, ...(after === null ? {} : { after }) },
      { signal },
    ),
  show: (requestId: string, signal?: AbortSignal) =>
    client.post<AuditDetails>('/admin/memory/audit/show', { requestId }, { signal }),
  similar: async (requestId: string, signal?: AbortSignal) =>
    (
      await client.post<{ entries: readonly AuditRow[] }>(
        '/admin/memory/audit/similar',
        { requestId, limit: 8 },
        { signal },
      )
    ).entries,
  verify: (signal?: AbortSignal) => client.post<ChainReport>('/admin/memory/audit/verify', {}, { signal }),
});
