import type { Route } from '../route.ts';
import { adminRoutes } from './admin.ts';
import { anthropicRoutes } from './anthropic.ts';
import { batchRoutes } from './batches.ts';
import { chatRoutes } from './chats.ts';
import { chatCompletions } from './chat-completions.ts';
import { completions } from './completions.ts';
import { conversationRoutes } from './conversations.ts';
import { documentRoutes } from './documents.ts';
import { embeddings } from './embeddings.ts';
import { feedback, feedbackReceipt } from './feedback.ts';
import { fileRoutes } from './files.ts';
import { fleetRoutes } from './fleet.ts';
import { learningRoutes } from './learning.ts';
import { llamaServerRoutes } from './llama-server.ts';
import { liveRoutes } from './live.ts';
import { mcpRoute } from './mcp.ts';
import { memoryRoutes } from './memory.ts';
import { modelAdminRoutes } from './model-admin.ts';
import { pullRoutes } from './model-pulls.ts';
import { modelFile } from './model-file.ts';
import { modelDecision } from './model-decision.ts';
import { modelRoutes } from './models.ts';
import { ollamaRoutes } from './ollama/index.ts';
import { openapiRoute } from './openapi.ts';
import { prefixTree } from './prefix-tree.ts';
import { rerankRoutes } from './rerank.ts';
import { responseRoutes } from './responses.ts';
import { storedChatRoutes } from './stored-chats.ts';
import { systemRoutes } from './system.ts';
import { tokenizeRoutes } from './tokenize.ts';
import { whoami } from './whoami.ts';

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

/** All routes of the server. */
export const ROUTES: readonly Route[] = withBarePaths([
  chatCompletions,
  completions,
  ...responseRoutes,
  ...conversationRoutes,
  ...storedChatRoutes,
  ...anthropicRoutes,
  ...ollamaRoutes,
  ...fileRoutes,
  ...batchRoutes,
  embeddings,
  ...rerankRoutes,
  feedback,
  feedbackReceipt,
  modelDecision,
  ...modelRoutes,
  modelFile,
  ...tokenizeRoutes,
  ...llamaServerRoutes,
  whoami,
  ...chatRoutes,
  ...systemRoutes,
  ...liveRoutes,
  ...fleetRoutes,
  prefixTree,
  ...pullRoutes,
  ...modelAdminRoutes,
  ...adminRoutes,
  ...documentRoutes,
  ...memoryRoutes,
  mcpRoute,
  ...learningRoutes,
  openapiRoute(() => ROUTES),
]);
