// A coding agent's session against a real server on loopback, with a random model: almost all of its prompts are cached.
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentRequests, cachedShare, replaySession } from '../support/agent-session.ts';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

let server: DistServer;
beforeAll(async () => {
  if (isServerBuilt)
    server = await startDistServer({ contextLength: 16_384 }, { maxContext: 8192, kvCacheTokens: 32_768 });
});
afterAll(() => server?.[Symbol.asyncDispose]());

test.skipIf(!isServerBuilt)(
  '[A2] a session and its replay read 95 % of their prompt tokens from the cache',
  async () => {
    const client = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const [first, ...later] = await replaySession(client, agentRequests(1, 'random'));
    expect(first!.numCached).toBe(0);
    expect(cachedShare(later)).toBeGreaterThan(0.95);
    const replay = await replaySession(client, agentRequests(2, 'random'));
    expect(cachedShare(replay)).toBeGreaterThan(0.99);
  },
);
