/** Objects of alice that bob requests. */
export interface Objects {
  readonly requestId: string;
  readonly responseId: string;
  readonly conversationId: string;
  /** Of the conversation. */
  readonly itemId: string;
  /** A stored chat completion. */
  readonly chatId: string;
  /** An uploaded file of batch requests. */
  readonly fileId: string;
  readonly batchId: string;
  /** A conversation of the dashboard. */
  readonly dashboardChatId: string;
  readonly recordId: string;
  readonly documentId: string;
  /** Of the memory; shaped like an id so that responses can be compared. */
  readonly sessionId: string;
}

export interface Call {
  readonly path?: string;
  readonly body?: object;
  /** Status for a key with the scope. */
  readonly status: number;
  /**
   * How the route names an object of a tenant, and the status for its owner; other tenants get a 404. `nothing`: it names
   * none; `any tenant`: it is for administrators, who see all.
   */
  readonly owned: 'nothing' | 'any tenant' | ((objects: Objects) => Pick<Call, 'path' | 'body' | 'status'>);
}

const UNKNOWN_ID = '0199a0b4-7c00-7000-8000-00000000ffff';
const messages = [{ role: 'user', content: 'hi' }];
export const chat = { model: 'toy', messages, max_tokens: 2 };
const rerank = { model: 'toy', query: 'hi', documents: ['hi', 'no'], method: 'embeddings' };

/** All routes: a new one fails until it has a line here with a deliberate `owned`. */
export const CALLS: Readonly<Record<string, Call>> = {
  'POST /mcp': { body: { jsonrpc: '2.0', id: 1, method: 'ping' }, status: 200, owned: 'nothing' },
  'GET /fleet/state': { status: 404, owned: 'nothing' },
  'GET /fleet/events': { status: 404, owned: 'nothing' },
  'POST /v1/chat/completions': { body: chat, status: 200, owned: 'nothing' },
  'GET /v1/chats': { status: 200, owned: 'nothing' },
  'GET /v1/chats/:id': {
    path: '/v1/chats/none',
    status: 404,
    owned: ({ dashboardChatId }) => ({ path: `/v1/chats/${dashboardChatId}`, status: 200 }),
  },
  'POST /v1/chats/:id': {
    path: '/v1/chats/new',
    body: { title: 'New', version: 0, content: {} },
    status: 200,
    owned: 'nothing', // the same id of another key is another conversation
  },
  'DELETE /v1/chats/:id': {
    path: '/v1/chats/none',
    status: 404,
    owned: ({ dashboardChatId }) => ({ path: `/v1/chats/${dashboardChatId}`, status: 200 }),
  },
  'GET /v1/model-files/:id{.+}': { path: '/v1/model-files/toy', status: 501, owned: 'nothing' },
  'POST /v1/completions': { body: { model: 'toy', prompt: 'hi', max_tokens: 2 }, status: 200, owned: 'nothing' },
  'POST /v1/responses': {
    body: { model: 'toy', input: 'hi', max_output_tokens: 2 },
    status: 200,
    owned: ({ responseId }) => ({
      body: { model: 'toy', input: 'on', max_output_tokens: 1, previous_response_id: responseId },
      status: 200,
    }),
  },
  'GET /v1/responses/:id': {
    path: '/v1/responses/resp_none',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}`, status: 200 }),
  },
  'DELETE /v1/responses/:id': {
    path: '/v1/responses/resp_none',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}`, status: 200 }),
  },
  'GET /v1/responses/:id/input_items': {
    path: '/v1/responses/resp_none/input_items',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}/input_items`, status: 200 }),
  },
  'POST /v1/responses/:id/cancel': {
    path: '/v1/responses/resp_none/cancel',
    status: 404,
    owned: ({ responseId }) => ({ path: `/v1/responses/${responseId}/cancel`, status: 400 }),
  },
  'POST /v1/responses/input_tokens': {
    body: { model: 'toy', input: 'hi' },
    status: 200,
    owned: ({ responseId }) => ({
      body: { model: 'toy', input: 'on', previous_response_id: responseId },
      status: 200,
    }),
  },
  'POST /v1/conversations': { body: {}, status: 200, owned: 'nothing' },
  'GET /v1/conversations/:id': {
    path: '/v1/conversations/conv_none',
    status: 404,
    owned: ({ conversationId }) => ({ path: `/v1/conversations/${conversationId}`, status: 200 }),
  },
  'POST /v1/conversations/:id': {
    path: '/v1/conversations/conv_none',
    body: { metadata: {} },
    status: 404,
    owned: ({ conversationId }) => ({
      path: `/v1/conversations/${conversationId}`,
      body: { metadata: {} },
      status: 200,
    }),
  },
  'DELETE /v1/conversations/:id': {
    path: '/v1/conversations/conv_none',
    status: 404,
    owned: ({ conversationId }) => ({ path: `/v1/conversations/${conversationId}`, status: 200 }),
  },
  'POST /v1/conversations/:id/items': {
    path: '/v1/conversations/conv_none/items',
    body: { items: messages },
    status: 404,
    owned: ({ conversationId }) => ({
      path: `/v1/conversations/${conversationId}/items`,
      body: { items: messages },
      status: 200,
    }),
  },
  'GET /v1/conversations/:id/items': {
    path: '/v1/conversations/conv_none/items',
    status: 404,
    owned: ({ conversationId }) => ({ path: `/v1/conversations/${conversationId}/items`, status: 200 }),
  },
  'GET /v1/conversations/:id/items/:item': {
    path: '/v1/conversations/conv_none/items/msg_none',
    status: 404,
    owned: ({ conversationId, itemId }) => ({
      path: `/v1/conversations/${conversationId}/items/${itemId}`,
      status: 200,
    }),
  },
  'DELETE /v1/conversations/:id/items/:item': {
    path: '/v1/conversations/conv_none/items/msg_none',
    status: 404,
    owned: ({ conversationId, itemId }) => ({
      path: `/v1/conversations/${conversationId}/items/${itemId}`,
      status: 200,
    }),
  },
  'GET /v1/chat/completions': { status: 200, owned: 'nothing' },
  'GET /chat/completions': { status: 200, owned: 'nothing' },
  'GET /v1/chat/completions/:id': {
    path: '/v1/chat/completions/chatcmpl-none',
    status: 404,
    owned: ({ chatId }) => ({ path: `/v1/chat/completions/${chatId}`, status: 200 }),
  },
  'POST /v1/chat/completions/:id': {
    path: '/v1/chat/completions/chatcmpl-none',
    body: { metadata: {} },
    status: 404,
    owned: ({ chatId }) => ({ path: `/v1/chat/completions/${chatId}`, body: { metadata: {} }, status: 200 }),
  },
  'DELETE /v1/chat/completions/:id': {
    path: '/v1/chat/completions/chatcmpl-none',
    status: 404,
    owned: ({ chatId }) => ({ path: `/v1/chat/completions/${chatId}`, status: 200 }),
  },
  'GET /v1/chat/completions/:id/messages': {
    path: '/v1/chat/completions/chatcmpl-none/messages',
    status: 404,
    owned: ({ chatId }) => ({ path: `/v1/chat/completions/${chatId}/messages`, status: 200 }),
  },
  'POST /v1/messages': { body: chat, status: 200, owned: 'nothing' },
  'POST /v1/messages/count_tokens': { body: { model: 'toy', messages }, status: 200, owned: 'nothing' },
  'POST /api/chat': { body: { model: 'toy', messages, options: { num_predict: 2 } }, status: 200, owned: 'nothing' },
  'POST /api/generate': {
    body: { model: 'toy', prompt: 'hi', options: { num_predict: 2 } },
    status: 200,
    owned: 'nothing',
  },
  'POST /api/embed': { body: { model: 'toy', input: 'hi' }, status: 200, owned: 'nothing' },
  'POST /api/embeddings': { body: { model: 'toy', prompt: 'hi' }, status: 200, owned: 'nothing' },
  'GET /api/version': { status: 200, owned: 'nothing' },
  'GET /api/tags': { status: 200, owned: 'nothing' },
  'GET /api/ps': { status: 200, owned: 'nothing' },
  'POST /api/show': { body: { model: 'toy' }, status: 200, owned: 'nothing' },
  'POST /api/pull': { body: { model: 'tinyllama' }, status: 501, owned: 'any tenant' },
  'POST /api/create': { body: { model: 'mine', from: 'toy' }, status: 501, owned: 'any tenant' },
  'POST /api/copy': { body: { source: 'toy', destination: 'b' }, status: 501, owned: 'any tenant' },
  'DELETE /api/delete': { body: { model: 'toy' }, status: 501, owned: 'any tenant' },
  'POST /api/push': { body: { model: 'toy' }, status: 501, owned: 'any tenant' },
  'POST /v1/files': { body: {}, status: 415, owned: 'nothing' }, // reads forms only
  'GET /v1/files': { status: 200, owned: 'nothing' },
  'GET /v1/files/:id': {
    path: '/v1/files/file-none',
    status: 404,
    owned: ({ fileId }) => ({ path: `/v1/files/${fileId}`, status: 200 }),
  },
  'GET /v1/files/:id/content': {
    path: '/v1/files/file-none/content',
    status: 404,
    owned: ({ fileId }) => ({ path: `/v1/files/${fileId}/content`, status: 200 }),
  },
  'DELETE /v1/files/:id': {
    path: '/v1/files/file-none',
    status: 404,
    owned: ({ fileId }) => ({ path: `/v1/files/${fileId}`, status: 200 }),
  },
  'POST /v1/batches': {
    body: { input_file_id: 'file-none', endpoint: '/v1/completions', completion_window: '24h' },
    status: 404,
    owned: ({ fileId }) => ({
      body: { input_file_id: fileId, endpoint: '/v1/completions', completion_window: '24h' },
      status: 200,
    }),
  },
  'GET /v1/batches': { status: 200, owned: 'nothing' },
  'GET /v1/batches/:id': {
    path: '/v1/batches/batch_none',
    status: 404,
    owned: ({ batchId }) => ({ path: `/v1/batches/${batchId}`, status: 200 }),
  },
  'POST /v1/batches/:id/cancel': {
    path: '/v1/batches/batch_none/cancel',
    status: 404,
    owned: ({ batchId }) => ({ path: `/v1/batches/${batchId}/cancel`, status: 409 }),
  },
  'POST /v1/embeddings': { body: { model: 'toy', input: 'hi' }, status: 200, owned: 'nothing' },
  'POST /v1/rerank': { body: rerank, status: 200, owned: 'nothing' },
  'POST /v1/reranking': { body: rerank, status: 200, owned: 'nothing' },
  'POST /rerank': { body: rerank, status: 200, owned: 'nothing' },
  'POST /reranking': { body: rerank, status: 200, owned: 'nothing' },
  'POST /v1/feedback': {
    body: { request_id: 'unknown', thumbs: 'up' },
    status: 404,
    owned: ({ requestId }) => ({ body: { request_id: requestId, thumbs: 'up' }, status: 200 }),
  },
  'GET /v1/feedback/:id': {
    path: `/v1/feedback/${UNKNOWN_ID}`,
    status: 404,
    owned: ({ requestId }) => ({ path: `/v1/feedback/${requestId}`, status: 200 }),
  },
  'POST /v1/route': { body: { prompt: 'hi' }, status: 501, owned: 'nothing' },
  'GET /v1/models': { status: 200, owned: 'nothing' },
  'GET /v1/models/:id{.+}': { path: '/v1/models/toy', status: 200, owned: 'nothing' },
  'POST /tokenize': { body: { content: 'hi' }, status: 200, owned: 'nothing' },
  'POST /detokenize': { body: { tokens: [4] }, status: 200, owned: 'nothing' },
  'POST /apply-template': { body: { messages }, status: 200, owned: 'nothing' },
  'POST /completion': { body: { prompt: 'hi', n_predict: 2 }, status: 200, owned: 'nothing' },
  'POST /infill': { body: { input_prefix: 'a', input_suffix: 'b' }, status: 400, owned: 'nothing' },
  'GET /lora-adapters': { status: 200, owned: 'nothing' },
  'POST /lora-adapters': { body: [], status: 200, owned: 'any tenant' },
  'POST /chat/completions': { body: chat, status: 200, owned: 'nothing' },
  'POST /completions': { body: { model: 'toy', prompt: 'hi', max_tokens: 2 }, status: 200, owned: 'nothing' },
  'POST /embeddings': { body: { model: 'toy', input: 'hi' }, status: 200, owned: 'nothing' },
  'GET /models': { status: 200, owned: 'nothing' },
  'GET /health': { status: 200, owned: 'nothing' },
  'GET /metrics': { status: 200, owned: 'nothing' },
  'GET /props': { status: 200, owned: 'nothing' },
  'GET /slots': { status: 200, owned: 'nothing' },
  'POST /slots/:id': { path: '/slots/0?action=save', status: 501, owned: 'nothing' },
  'GET /v1/whoami': { status: 200, owned: 'nothing' },
  'GET /admin/live': { status: 200, owned: 'nothing' },
  'GET /admin/live/history': { status: 200, owned: 'nothing' },
  'GET /admin/live/events': { status: 200, owned: 'nothing' },
  'GET /admin/prefix-tree': { status: 200, owned: 'nothing' },
  'GET /admin/models': { status: 200, owned: 'nothing' },
  'GET /admin/models/suggestions': { status: 501, owned: 'nothing' },
  'POST /admin/models/load': { body: { model: 'toy', wait_ms: 5000 }, status: 200, owned: 'any tenant' },
  'POST /admin/models/unload': { body: { model: 'none' }, status: 404, owned: 'any tenant' },
  'POST /admin/models/benchmark': { body: { model: 'none' }, status: 404, owned: 'any tenant' },
  'DELETE /admin/models/:id{.+}': { path: '/admin/models/none', status: 404, owned: 'any tenant' },
  'POST /admin/models/pull': { body: { model: 'a/b' }, status: 501, owned: 'any tenant' },
  'GET /admin/models/pulls': { status: 501, owned: 'nothing' },
  'GET /admin/models/pulls/:id/events': { path: '/admin/models/pulls/none/events', status: 501, owned: 'nothing' },
  'DELETE /admin/models/pulls/:id': { path: '/admin/models/pulls/none', status: 501, owned: 'any tenant' },
  'GET /admin/keys': { status: 200, owned: 'any tenant' },
  'POST /admin/keys': { body: { name: 'new' }, status: 201, owned: 'any tenant' },
  'DELETE /admin/keys/:id': { path: '/admin/keys/000000000000000000', status: 404, owned: 'any tenant' },
  'GET /admin/sessions/:tenant': { path: '/admin/sessions/alice', status: 200, owned: 'any tenant' },
  'DELETE /admin/sessions/:tenant/:id': { path: '/admin/sessions/alice/none', status: 404, owned: 'any tenant' },
  'GET /admin/adapters': { status: 200, owned: 'any tenant' },
  'POST /admin/adapters': { body: { name: 'a', path: 'none.gguf' }, status: 501, owned: 'any tenant' },
  'DELETE /admin/adapters/:id{.+}': { path: '/admin/adapters/none', status: 404, owned: 'any tenant' },
  'POST /admin/memory/add': { body: { text: 'about cards' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/get': {
    body: { id: UNKNOWN_ID },
    status: 404,
    owned: ({ recordId }) => ({ body: { id: recordId }, status: 200 }),
  },
  'POST /admin/memory/search': { body: { text: 'cards' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/remove': { body: { ids: [UNKNOWN_ID] }, status: 200, owned: 'nothing' },
  'POST /admin/memory/stats': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/health': { body: {}, status: 200, owned: 'any tenant' },
  'POST /admin/memory/neighbours': {
    body: { id: UNKNOWN_ID },
    status: 404,
    owned: ({ recordId }) => ({ body: { id: recordId }, status: 200 }),
  },
  'POST /admin/memory/link': {
    body: { from: UNKNOWN_ID, to: '0199a0b4-7c00-7000-8000-00000000fffe', relation: 'cites' },
    status: 404,
    owned: ({ recordId }) => ({ body: { from: recordId, to: recordId, relation: 'cites' }, status: 400 }),
  },
  'POST /admin/memory/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/graph': {
    body: { id: UNKNOWN_ID },
    status: 404,
    owned: ({ recordId }) => ({ body: { id: recordId }, status: 200 }),
  },
  'POST /admin/memory/documents': { body: { name: 'a.md', text: 'about cards' }, status: 200, owned: 'nothing' },
  'GET /admin/memory/documents': { status: 200, owned: 'nothing' },
  'GET /admin/memory/documents/:id': {
    path: `/admin/memory/documents/${UNKNOWN_ID}`,
    status: 404,
    owned: ({ documentId }) => ({ path: `/admin/memory/documents/${documentId}`, status: 200 }),
  },
  'DELETE /admin/memory/documents/:id': {
    path: `/admin/memory/documents/${UNKNOWN_ID}`,
    status: 404,
    owned: ({ documentId }) => ({ path: `/admin/memory/documents/${documentId}`, status: 200 }),
  },
  'POST /admin/memory/documents/add': { body: { name: 'a.md', text: 'about cards' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/documents/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/agents/recall': { body: { text: 'hi' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/facts/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/facts/why': { body: { id: UNKNOWN_ID }, status: 404, owned: 'nothing' },
  'POST /admin/memory/facts/pin': { body: { id: UNKNOWN_ID }, status: 404, owned: 'nothing' },
  'POST /admin/memory/facts/forget': { body: { ids: [UNKNOWN_ID] }, status: 200, owned: 'nothing' },
  'POST /admin/memory/episodes/add': {
    body: { sessionId: 's', messages: [{ speaker: 'user', text: 'hi' }] },
    status: 200,
    owned: 'nothing',
  },
  'POST /admin/memory/notes/list': { body: { sessionId: 's' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/notes/add': { body: { sessionId: 's', text: 'hi' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/notes/clear': { body: { sessionId: 's' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/tool-cache/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/tool-cache/stats': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/tool-cache/clear': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/documents/get': {
    body: { id: UNKNOWN_ID },
    status: 404,
    owned: ({ documentId }) => ({ body: { id: documentId }, status: 200 }),
  },
  'POST /admin/memory/documents/remove': {
    body: { id: UNKNOWN_ID },
    status: 404,
    owned: ({ documentId }) => ({ body: { id: documentId }, status: 200 }),
  },
  'POST /admin/memory/documents/remove-missing': {
    body: { folder: '/none', names: [] },
    status: 200,
    owned: 'nothing',
  },
  'POST /admin/memory/export': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/import': { body: { records: [{ id: UNKNOWN_ID }] }, status: 200, owned: 'any tenant' },
  'POST /admin/memory/backup': { body: {}, status: 400, owned: 'any tenant' },
  'POST /admin/memory/check': { body: {}, status: 200, owned: 'any tenant' },
  'POST /admin/memory/rotate-key': { body: { passphrase: 'correct horse battery' }, status: 200, owned: 'any tenant' },
  'POST /admin/memory/audit/search': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/stats': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/verify': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/export': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/audit/show': {
    body: { requestId: UNKNOWN_ID },
    status: 404,
    owned: ({ requestId }) => ({ body: { requestId }, status: 200 }),
  },
  'POST /admin/memory/audit/similar': {
    body: { requestId: UNKNOWN_ID },
    status: 404,
    owned: ({ requestId }) => ({ body: { requestId }, status: 200 }),
  },
  'POST /admin/memory/audit/decisions': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/sessions/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/sessions/show': {
    body: { sessionId: UNKNOWN_ID },
    status: 404,
    owned: ({ sessionId }) => ({ body: { sessionId }, status: 200 }),
  },
  'POST /admin/memory/sessions/rm': {
    body: { sessionId: UNKNOWN_ID },
    status: 404,
    owned: ({ sessionId }) => ({ body: { sessionId }, status: 200 }),
  },
  'POST /admin/memory/policies/list': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/memory/policies/get': { body: { policyType: 'ewc' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/policies/history': { body: { policyType: 'ewc' }, status: 200, owned: 'nothing' },
  'POST /admin/memory/policies/rollback': {
    body: { policyType: 'ewc', toVersion: 1 },
    status: 404,
    owned: 'any tenant',
  },
  'POST /admin/memory/tenants/erase': {
    path: '/admin/memory/tenants/erase?tenant=dora',
    body: { confirm: 'dora' },
    status: 200,
    owned: 'any tenant',
  },
  'POST /admin/learning/feedback': {
    body: { requestId: UNKNOWN_ID, thumbs: 'up' },
    status: 404,
    owned: ({ requestId }) => ({ body: { requestId, thumbs: 'up' }, status: 200 }),
  },
  'POST /admin/learning/receipt': {
    body: { requestId: UNKNOWN_ID },
    status: 404,
    owned: ({ requestId }) => ({ body: { requestId }, status: 200 }),
  },
  'POST /admin/learning/status': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/health': { body: {}, status: 200, owned: 'any tenant' },
  'POST /admin/learning/patterns': { body: { text: 'cards' }, status: 200, owned: 'nothing' },
  'POST /admin/learning/lessons': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/data': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/series': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/run': { body: { waitMs: 50_000 }, status: 200, owned: 'any tenant' },
  'POST /admin/learning/cancel': { body: {}, status: 404, owned: 'any tenant' },
  'POST /admin/learning/history': { body: {}, status: 200, owned: 'nothing' },
  'POST /admin/learning/diff': { body: { from: 1, to: 2 }, status: 404, owned: 'nothing' },
  'POST /admin/learning/rollback': { body: { toVersion: 1 }, status: 404, owned: 'any tenant' },
  'POST /admin/learning/reset': { body: {}, status: 200, owned: 'any tenant' },
  'POST /admin/learning/forget': { body: { requestId: UNKNOWN_ID }, status: 200, owned: 'nothing' },
  'POST /admin/learning/export': { body: {}, status: 404, owned: 'nothing' },
  // This node has no key of its own.
  'POST /admin/federation/status': { body: {}, status: 400, owned: 'any tenant' },
  'POST /admin/federation/add-peer': { body: { key: 'AAAA', name: 'berlin' }, status: 400, owned: 'any tenant' },
  'POST /admin/federation/remove-peer': { body: { peer: 'berlin' }, status: 400, owned: 'any tenant' },
  'POST /admin/federation/set-privacy': { body: { budget: null }, status: 400, owned: 'any tenant' },
  'POST /admin/federation/push': { body: {}, status: 400, owned: 'any tenant' },
  'POST /admin/federation/pull': { body: { bundle: {} }, status: 400, owned: 'any tenant' },
  'GET /openapi.json': { status: 200, owned: 'nothing' },
};
