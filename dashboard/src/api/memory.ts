import type { Client } from './client.ts';

export interface MemoryStats {
  readonly tenant: string;
  readonly numRecords: Readonly<Record<string, number>>;
  readonly numEdges: number;
  readonly numVectors: number;
  readonly space: string | null;
  readonly embedder: string | null;
  readonly isDegraded: boolean;
}

export interface MemoryItem {
  readonly id: string;
  readonly kind: string;
  readonly createdMs: number;
  readonly text: string;
  /** Similarity to the search text; omitted in lists. */
  readonly similarity?: number | null;
}

export interface MemoryRecord {
  readonly record: {
    readonly id: string;
    readonly kind: string;
    readonly createdMs: number;
    readonly updatedMs: number;
    readonly expiresMs: number | null;
    readonly fields: Readonly<Record<string, unknown>>;
    readonly body: unknown;
    readonly space: string | null;
  };
  readonly text: string;
}

export interface GraphNode {
  readonly id: string;
  readonly kind: string;
  readonly hops: number;
  readonly text: string;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly relation: string;
  readonly weight: number;
}

export interface MemoryGraph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  readonly isComplete: boolean;
}

export interface MemorySession {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly turnCount: number;
  readonly createdMs: number;
  readonly lastActiveMs: number;
}

export interface SessionTurn {
  readonly id: string;
  readonly turn: number;
  readonly query: string;
  readonly answer: string;
  readonly requestId: string | null;
  readonly createdMs: number;
}

export interface DocumentInfo {
  readonly id: string;
  readonly name: string;
  readonly contentType: string;
  readonly sizeBytes: number;
  readonly numChunks: number;
  /** False: adding it was interrupted. */
  readonly isComplete: boolean;
  readonly updatedMs: number;
}

export interface AddedDocument {
  readonly id: string;
  readonly name: string;
  readonly numChunks: number;
  readonly isUnchanged: boolean;
}

export interface DocumentChunk {
  readonly id: string;
  readonly index: number;
  readonly text: string;
  readonly headings: readonly string[];
  readonly startLine: number | null;
  readonly endLine: number | null;
  readonly startPage: number | null;
  readonly endPage: number | null;
  /** The newest requests with this chunk in their prompts. */
  readonly requests: readonly { readonly requestId: string; readonly query: string; readonly timestampMs: number }[];
}

export interface DocumentDetails {
  readonly document: DocumentInfo;
  readonly chunks: readonly DocumentChunk[];
}

/** Endpoints of the tenant's memory. */
export const memoryOf = (client: Client) => ({
  stats: (signal?: AbortSignal) => client.post<MemoryStats>('/admin/memory/stats', {}, { signal }),
  list: (kind: string | null, after: string | null, signal?: AbortSignal) =>
    client.post<{ records: readonly MemoryItem[]; next: string | null }>(
      '/admin/memory/list',
      { limit: 100, ...(kind === null ? {} : { kinds: [kind] }), ...(after === null ? {} : { after }) },
      { signal },
    ),
  search: async (text: string, kind: string | null, signal?: AbortSignal) =>
    (
      await client.post<{ results: readonly MemoryItem[] }>(
        '/admin/memory/search',
        { text, k: 50, ...(kind === null ? {} : { kinds: [kind] }) },
        { signal },
      )
    ).results,
  get: (id: string, signal?: AbortSignal) => client.post<MemoryRecord>('/admin/memory/get', { id }, { signal }),
  add: (text: string) => client.post<{ id: string }>('/admin/memory/add', { text }),
  remove: (id: string) => client.post<{ numRemoved: number }>('/admin/memory/remove', { ids: [id] }),
  graph: (id: string, hops: number, signal?: AbortSignal) =>
    client.post<MemoryGraph>('/admin/memory/graph', { id, hops, maxNodes: 60, maxEdges: 200 }, { signal }),
  sessions: (after: string | null, signal?: AbortSignal) =>
    client.post<{ sessions: readonly MemorySession[]; next: string | null }>(
      '/admin/memory/sessions/list',
      { limit: 100, ...(after === null ? {} : { after }) },
      { signal },
    ),
  session: (sessionId: string, signal?: AbortSignal) =>
    client.post<{ session: MemorySession; turns: readonly SessionTurn[] }>(
      '/admin/memory/sessions/show',
      { sessionId, limit: 100 },
      { signal },
    ),
  documents: (after: string | null, signal?: AbortSignal) =>
    client.get<{ documents: readonly DocumentInfo[]; next: string | null }>('/admin/memory/documents', {
      query: { limit: 100, after },
      signal,
    }),
  document: (id: string, signal?: AbortSignal) =>
    client.get<DocumentDetails>(`/admin/memory/documents/${encodeURIComponent(id)}`, { signal }),
  addDocument: (file: File) =>
    client.post<AddedDocument>('/admin/memory/documents', file, {
      query: { name: file.name },
    }),
  removeDocument: (id: string) => client.remove<unknown>(`/admin/memory/documents/${encodeURIComponent(id)}`),
  removeSession: (sessionId: string) => client.post<unknown>('/admin/memory/sessions/rm', { sessionId }),
});
