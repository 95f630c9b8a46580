import type { Route } from '../server/route.ts';

/** Routes whose second run changes nothing, besides those that only answer. */
const REPEATABLE: ReadonlySet<string> = new Set([
  '/v1/messages/count_tokens',
  '/v1/responses/input_tokens',
  '/tokenize',
  '/detokenize',
  '/apply-template',
  '/api/chat',
  '/api/generate',
  '/api/embed',
  '/api/embeddings',
]);

/** Whether a request may be sent to a second node although the first one may have handled it. */
export const isRepeatable = ({ method, path, isAnswer }: Route): boolean =>
  method === 'GET' || isAnswer === true || REPEATABLE.has(path);

/** Routes of Ollama, whose answers are streams unless a request says otherwise. */
const STREAMS: ReadonlySet<string> = new Set(['/api/chat', '/api/generate']);

/** Whether a node can begin the answer at once: reads, and streams. `stream` is what the request says; null: nothing. */
export const beginsAtOnce = ({ method, path }: Route, stream: boolean | null): boolean =>
  method === 'GET' || (stream ?? STREAMS.has(path));

/** Sessions of MCP live in the node that opened them. */
const NODE_PATHS: ReadonlySet<string> = new Set(['/mcp']);

/** Whether a route concerns one node: its models, its keys, its state. A gateway does not choose the node for those. */
export const isNodeRoute = ({ scope, path }: Route): boolean =>
  (scope !== 'inference' && scope !== 'read') || NODE_PATHS.has(path);
