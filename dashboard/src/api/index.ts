import type { Client } from './client.ts';
import type {
  Adapter,
  ApiKey,
  FeedbackReceipt,
  FeedbackReport,
  FeedbackRequest,
  Identity,
  KeyScope,
  ListOf,
  ModelEntry,
  Props,
} from './types.ts';

type Signal = AbortSignal | undefined;

/** Endpoints shared by several views; larger families have their own file. */
export const endpoints = (client: Client) => ({
  /** Whether this server requires an API key. */
  needsKey: async (signal?: Signal) =>
    (await client.get<{ needs_key: boolean }>('/dashboard.json', { signal })).needs_key,
  whoami: (signal?: Signal) => client.get<Identity>('/v1/whoami', { signal }),
  models: async (signal?: Signal) => (await client.get<ListOf<ModelEntry>>('/v1/models', { signal })).data,
  props: (signal?: Signal) => client.get<Props>('/props', { signal }),
  feedback: (feedback: FeedbackRequest) => client.post<FeedbackReport>('/v1/feedback', { ...feedback, source: 'ui' }),
  feedbackReceipt: (requestId: string) => client.get<FeedbackReceipt>(`/v1/feedback/${encodeURIComponent(requestId)}`),
  keys: async (signal?: Signal) => (await client.get<ListOf<ApiKey>>('/admin/keys', { signal })).data,
  createKey: (key: { name: string; tenant?: string; scopes: readonly KeyScope[] }) =>
    client.post<ApiKey & { readonly token: string }>('/admin/keys', key),
  revokeKey: (id: string) => client.remove<ApiKey>(`/admin/keys/${encodeURIComponent(id)}`),
  adapters: async (signal?: Signal) => (await client.get<ListOf<Adapter>>('/admin/adapters', { signal })).data,
  loadAdapter: (adapter: { name: string; path: string; model?: string }) =>
    client.post<Adapter>('/admin/adapters', adapter),
  unloadAdapter: (id: string, tenant: string | null) =>
    client.remove<unknown>(`/admin/adapters/${id.split('/').map(encodeURIComponent).join('/')}`, { query: { tenant } }),
});

export type Endpoints = ReturnType<typeof endpoints>;
