import {
  LEARNING_SCOPES,
  learningPath,
  MEMORY_SCOPES,
  operationPath,
  type OperationScope,
} from '../../runtime/operation-names.ts';
import type { RouteScope } from '../guard.ts';
import type { Route, RouteName } from '../route.ts';
import { anthropicErrors } from '../wire/anthropic/error-body.ts';
import { mcpErrors } from '../wire/mcp-errors.ts';
import { ollamaErrors } from '../wire/ollama/error-body.ts';
import { routesOf } from './routes-of.ts';

/** Routes that llama-server also has without `/v1`. */
const BARE_PATHS: ReadonlySet<string> = new Set([
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/models',
]);

const withBarePaths = (routes: readonly Route[]): readonly Route[] =>
  routes.flatMap((route) =>
    BARE_PATHS.has(route.path) ? [route, { ...route, path: route.path.slice('/v1'.length) }] : [route],
  );

/** All keys may read the data of their tenant; `inference` keys may also change it. */
const SCOPES: Readonly<Record<OperationScope, RouteScope>> = { read: 'read', write: 'inference', admin: 'admin' };

const operationHeads = (
  scopes: Readonly<Record<string, OperationScope>>,
  pathOf: (operation: { readonly name: string }) => string,
): Readonly<Record<RouteName, RouteScope>> =>
  Object.fromEntries(Object.entries(scopes).map(([name, scope]) => [`POST ${pathOf({ name })}`, SCOPES[scope]]));

const ANSWER = { scope: 'inference', isAnswer: true } as const;

/** All routes of the server. */
export const ROUTES: readonly Route[] = withBarePaths([
  ...routesOf(() => import('./chat-completions.ts'), {
    'POST /v1/chat/completions': ANSWER,
  }),
  ...routesOf(() => import('./completions.ts'), {
    'POST /v1/completions': ANSWER,
  }),
  ...routesOf(() => import('./responses.ts'), {
    'POST /v1/responses': ANSWER,
    'GET /v1/responses/:id': 'read',
    'DELETE /v1/responses/:id': 'inference',
    'GET /v1/responses/:id/input_items': 'read',
    'POST /v1/responses/:id/cancel': 'inference',
    'POST /v1/responses/input_tokens': 'inference',
  }),
  ...routesOf(() => import('./conversations.ts'), {
    'POST /v1/conversations': 'inference',
    'GET /v1/conversations/:id': 'read',
    'POST /v1/conversations/:id': 'inference',
    'DELETE /v1/conversations/:id': 'inference',
    'POST /v1/conversations/:id/items': 'inference',
    'GET /v1/conversations/:id/items': 'read',
    'GET /v1/conversations/:id/items/:item': 'read',
    'DELETE /v1/conversations/:id/items/:item': 'inference',
  }),
  ...routesOf(() => import('./stored-chats.ts'), {
    'GET /v1/chat/completions': 'read',
    'GET /v1/chat/completions/:id': 'read',
    'POST /v1/chat/completions/:id': 'inference',
    'DELETE /v1/chat/completions/:id': 'inference',
    'GET /v1/chat/completions/:id/messages': 'read',
  }),
  ...routesOf(
    () => import('./anthropic.ts'),
    {
      'POST /v1/messages': ANSWER,
      'POST /v1/messages/count_tokens': 'inference',
    },
    anthropicErrors,
  ),
  ...routesOf(
    () => import('./ollama/answer.ts'),
    {
      'POST /api/chat': ANSWER,
      'POST /api/generate': ANSWER,
    },
    ollamaErrors,
  ),
  ...routesOf(
    () => import('./ollama/embed.ts'),
    {
      'POST /api/embed': ANSWER,
      'POST /api/embeddings': ANSWER,
    },
    ollamaErrors,
  ),
  ...routesOf(
    () => import('./ollama/models.ts'),
    {
      'GET /api/version': 'read',
      'GET /api/tags': 'read',
      'GET /api/ps': 'read',
      'POST /api/show': 'read',
    },
    ollamaErrors,
  ),
  ...routesOf(
    () => import('./ollama/changes.ts'),
    {
      'POST /api/pull': 'admin',
      'POST /api/create': 'admin',
      'POST /api/copy': 'admin',
      'DELETE /api/delete': 'admin',
      'POST /api/push': 'admin',
    },
    ollamaErrors,
  ),
  ...routesOf(() => import('./files.ts'), {
    'POST /v1/files': 'inference',
    'GET /v1/files': 'read',
    'GET /v1/files/:id': 'read',
    'GET /v1/files/:id/content': 'read',
    'DELETE /v1/files/:id': 'inference',
  }),
  ...routesOf(() => import('./batches.ts'), {
    'POST /v1/batches': 'inference',
    'GET /v1/batches': 'read',
    'GET /v1/batches/:id': 'read',
    'POST /v1/batches/:id/cancel': 'inference',
  }),
  ...routesOf(() => import('./embeddings.ts'), {
    'POST /v1/embeddings': ANSWER,
  }),
  ...routesOf(() => import('./rerank.ts'), {
    'POST /v1/rerank': ANSWER,
    'POST /v1/reranking': ANSWER,
    'POST /rerank': ANSWER,
    'POST /reranking': ANSWER,
  }),
  ...routesOf(() => import('./feedback.ts'), {
    'POST /v1/feedback': 'inference',
    'GET /v1/feedback/:id': 'inference',
  }),
  ...routesOf(() => import('./model-decision.ts'), {
    'POST /v1/route': 'inference',
  }),
  ...routesOf(() => import('./models.ts'), {
    'GET /v1/models': 'read',
    'GET /v1/models/:id{.+}': 'read',
  }),
  ...routesOf(() => import('./model-file.ts'), {
    'GET /v1/model-files/:id{.+}': 'download',
  }),
  ...routesOf(() => import('./tokenize.ts'), {
    'POST /tokenize': 'inference',
    'POST /detokenize': 'inference',
    'POST /apply-template': 'inference',
  }),
  ...routesOf(() => import('./llama-server.ts'), {
    'POST /completion': ANSWER,
    'POST /infill': ANSWER,
    'GET /lora-adapters': 'read',
    'POST /lora-adapters': 'admin',
  }),
  ...routesOf(() => import('./whoami.ts'), {
    'GET /v1/whoami': 'read',
  }),
  ...routesOf(() => import('./chats.ts'), {
    'GET /v1/chats': 'read',
    'GET /v1/chats/:id': 'read',
    'POST /v1/chats/:id': 'inference',
    'DELETE /v1/chats/:id': 'inference',
  }),
  ...routesOf(() => import('./system.ts'), {
    'GET /health': 'public',
    'GET /metrics': 'operate',
    'GET /props': 'read',
    'GET /slots': 'operate',
    'POST /slots/:id': 'inference',
  }),
  ...routesOf(() => import('./live.ts'), {
    'GET /admin/live': 'operate',
    'GET /admin/live/history': 'operate',
    'GET /admin/live/events': 'operate',
  }),
  ...routesOf(() => import('./fleet.ts'), {
    'GET /fleet/state': 'public',
    'GET /fleet/events': 'public',
  }),
  ...routesOf(() => import('./prefix-tree.ts'), {
    'GET /admin/prefix-tree': 'read',
  }),
  ...routesOf(() => import('./model-pulls.ts'), {
    'POST /admin/models/pull': 'admin',
    'GET /admin/models/pulls': 'operate',
    'GET /admin/models/pulls/:id/events': 'operate',
    'DELETE /admin/models/pulls/:id': 'admin',
  }),
  ...routesOf(() => import('./model-admin.ts'), {
    'GET /admin/models': 'operate',
    'GET /admin/models/suggestions': 'operate',
    'POST /admin/models/load': 'admin',
    'POST /admin/models/unload': 'admin',
    'POST /admin/models/benchmark': 'admin',
    'DELETE /admin/models/:id{.+}': 'admin',
  }),
  ...routesOf(() => import('./admin.ts'), {
    'GET /admin/keys': 'admin',
    'POST /admin/keys': 'admin',
    'DELETE /admin/keys/:id': 'admin',
    'GET /admin/sessions/:tenant': 'admin',
    'DELETE /admin/sessions/:tenant/:id': 'admin',
  }),
  ...routesOf(() => import('./adapters.ts'), {
    'GET /admin/adapters': 'admin',
    'POST /admin/adapters': 'admin',
    'DELETE /admin/adapters/:id{.+}': 'admin',
  }),
  ...routesOf(() => import('./documents.ts'), {
    'POST /admin/memory/documents': 'inference',
    'GET /admin/memory/documents': 'read',
    'GET /admin/memory/documents/:id': 'read',
    'DELETE /admin/memory/documents/:id': 'inference',
  }),
  ...routesOf(() => import('./memory.ts'), operationHeads(MEMORY_SCOPES, operationPath)),
  ...routesOf(
    () => import('./mcp.ts'),
    {
      'POST /mcp': 'read',
    },
    mcpErrors,
  ),
  ...routesOf(() => import('./learning.ts'), operationHeads(LEARNING_SCOPES, learningPath)),
  ...routesOf(async () => ({ routes: (await import('./openapi.ts')).describing(() => ROUTES) }), {
    'GET /openapi.json': 'read',
  }),
]);

/** Loads the code that answers a chat, which the first request would wait for. */
export async function loadChatRoute(): Promise<void> {
  await ROUTES.find(({ path }) => path === '/v1/chat/completions')?.load();
}
