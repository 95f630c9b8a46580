// Untrusted text (answers, metadata, memory, errors, servers) is shown as text on every path to the screen.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createChatHost } from '../src/cli/chat/chat-host.ts';
import { createChatSession } from '../src/cli/chat/session.ts';
import { createOutput } from '../src/cli/output.ts';
import { createProgress } from '../src/cli/progress.ts';
import { reportError } from '../src/cli/report-error.ts';
import { runCli } from '../src/cli/run-cli.ts';
import { RuvLLMError } from '../src/core/errors.ts';
import { createFakeIo } from './support/cli-io.ts';
import { createEchoModel } from './support/echo-model.ts';
import { findHostile, HOSTILE } from './support/hostile-text.ts';
import { buildRandomModel } from './support/random-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-hostile-'));
const model = join(folder, 'bad.gguf');
let server: Server;
let url = '';

/** Replies of a hostile server: every text in them is hostile, whatever the request. */
const entry = {
  requestId: HOSTILE,
  model: HOSTILE,
  quality: 1,
  latency: { totalMs: 1 },
  query: HOSTILE,
  response: HOSTILE,
  error: null,
};
const failed = { ...entry, error: { code: HOSTILE, message: HOSTILE } };
const session = { sessionId: HOSTILE, userId: HOSTILE, activeAdapter: HOSTILE, turnCount: 1, lastActiveMs: 0 };
const policy = {
  policyType: HOSTILE,
  name: HOSTILE,
  policyVersion: 1,
  confidence: 1,
  source: HOSTILE,
  reason: HOSTILE,
};
const times = { p50: 1, p95: 1, p99: 1, max: 1 };
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/admin/memory/search': { results: [{ id: HOSTILE, kind: HOSTILE, text: HOSTILE, score: 1, createdMs: 0 }], context: null },
  '/admin/memory/stats': { tenant: HOSTILE, numRecords: { [HOSTILE]: 1 }, numEdges: 0, numVectors: 0, space: HOSTILE, embedder: HOSTILE, isDegraded: true },
  '/admin/memory/health': { diskBytes: 1, degraded: HOSTILE, audit: { numDropped: 0, numRefused: 0, numQueued: 0, gaps: [] } },
  '/admin/memory/audit/search': { entries: [{ createdMs: 0, similarity: 1, entry }, { createdMs: 0, similarity: null, entry: failed }], next: HOSTILE, isComplete: false },
  '/admin/memory/audit/stats': { count: 1, numErrors: 1, errorRate: 1, meanQuality: 1, totalMs: times, ttftMs: times, trend: [], models: [{ model: HOSTILE, count: 1, share: 1, numErrors: 1 }], errors: [{ code: HOSTILE, count: 1 }], isComplete: true },
  '/admin/memory/sessions/list': { sessions: [session], next: HOSTILE },
  '/admin/memory/sessions/show': { session, turns: [{ turn: 0, createdMs: 0, query: HOSTILE, answer: HOSTILE }] },
  '/admin/memory/policies/list': { policies: [policy], defaults: [], next: null },
  '/admin/memory/neighbours': { neighbours: [{ id: HOSTILE, kind: HOSTILE, relation: HOSTILE, direction: 'out', weight: 1, updatedMs: 0, text: HOSTILE }] },
  '/admin/adapters': { data: [{ id: HOSTILE, tenant: HOSTILE, rank: 1, num_matrices: 1, size_bytes: 1, content_hash: HOSTILE }] },
  '/v1/route': { candidate: HOSTILE, reason: HOSTILE, confidence: 1, detail: HOSTILE, version: 1, policy: HOSTILE, routingMs: 1, minConfidence: 0.5, safeDefault: HOSTILE, candidates: [{ id: HOSTILE, quality: 1, score: 1, cost: 1, latencyMs: 1, cachedTokens: 1, isAble: true }], policyVersion: 1, contextSize: 256, sampling: { temperature: 1, topP: 1, source: HOSTILE, numSamples: 1 }, probs: [1], features: [{ name: HOSTILE, deviations: 1 }], neighbours: [], patterns: [{ text: HOSTILE, similarity: 1, recommends: HOSTILE }] },
  '/props': { version: HOSTILE, started: 1, is_open: true, models: [{ id: HOSTILE, state: HOSTILE, info: null }] },
  '/slots': { num_requests: 1, slots: [] },
}; // prettier-ignore

beforeAll(async () => {
  const metadata = [{ key: 'general.name', type: 'string', value: HOSTILE.replaceAll('\0', '') }] as const;
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 3, metadata }));
  const repo = join(folder, 'hub/models--own\u009ber--re\u202epo');
  const commit = 'b'.repeat(40);
  for (const name of ['blobs', 'refs', `snapshots/${commit}`]) mkdirSync(join(repo, name), { recursive: true });
  writeFileSync(join(repo, 'blobs', 'a'.repeat(64)), '');
  writeFileSync(join(repo, 'refs/main'), commit);
  symlinkSync(`../../blobs/${'a'.repeat(64)}`, join(repo, 'snapshots', commit, 'x\u009b-Q8_0.gguf'));
  vi.stubEnv('HF_HUB_CACHE', join(folder, 'hub'));
  vi.stubEnv('RUVLLM_STATE_DIR', join(folder, 'state'));
  vi.stubEnv('RUVLLM_DATA_DIR', join(folder, 'data'));
  server = createServer((request, response) => {
    const path = new URL(request.url!, 'http://x').pathname;
    const answer = Object.hasOwn(ANSWERS, path) ? ANSWERS[path] : null;
    response.writeHead(answer === null ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { error: { message: HOSTILE, code: HOSTILE } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function written(args: readonly string[]) {
  const io = createFakeIo({ isTerminal: true, folder });
  const code = await runCli(args, '9.9.9', io);
  return { code, shown: io.written.stdout + io.written.stderr };
}

const command =
  (...args: string[]): (() => string[]) =>
  () => [...args, '--url', url];
const COMMANDS: readonly (readonly [string, number, () => string[]])[] = [
  ['show', 0, () => ['show', model]],
  ['list', 0, () => ['list']],
  ['doctor', 0, () => ['doctor']],
  ['completion models', 0, () => ['completion', 'models']],
  ['tokenize', 0, () => ['tokenize', model, HOSTILE.replaceAll('\0', '')]],
  ['keys create', 0, () => ['keys', 'create', HOSTILE.replaceAll('\0', ''), '--tenant', 'x\u009by']],
  ['keys list', 0, () => ['keys', 'list']],
  ['memory search', 0, command('memory', 'search', 'x')],
  ['memory stats', 0, command('memory', 'stats')],
  ['memory policies', 0, command('memory', 'policies')],
  ['memory neighbours', 0, command('memory', 'neighbours', 'x')],
  ['audit search', 0, command('audit', 'search')],
  ['audit stats', 0, command('audit', 'stats')],
  ['sessions list', 0, command('sessions', 'list')],
  ['sessions show', 0, command('sessions', 'show', 'x')],
  ['adapters list', 0, command('adapters', 'list')],
  ['route', 0, command('route', 'x')],
  ['ps', 0, command('ps')],
  ['an error reply of a server', 1, command('memory', 'policy-history', 'x')],
  ['an unknown command', 2, () => [HOSTILE]],
  ['an unknown option', 2, () => ['list', `--${HOSTILE}`]],
  ['an invalid model', 2, () => ['show', `./${HOSTILE.replaceAll('\0', '')}.gguf`]],
];

describe('hostile text has no effect', () => {
  test.each(COMMANDS)('%s', async (_, code, args) => {
    const result = await written(args());
    expect(result.code, result.shown).toBe(code);
    expect(findHostile(result.shown)).toEqual([]);
    // The JSON document has the same meaning and is as harmless.
    const document = await written([...args(), '--json']);
    expect(findHostile(document.shown)).toEqual([]);
    expect(() => JSON.parse(document.shown) as unknown).not.toThrow();
  });

  test('in answers, streamed or cut anywhere', async () => {
    const io = createFakeIo({ isTerminal: true });
    const output = createOutput(io, false);
    const echo = createEchoModel(10_000);
    const host = createChatHost({ io, output }, echo, createChatSession(echo, {}, null));
    await host.handle(HOSTILE, new AbortController().signal);
    for (const unit of HOSTILE) output.text(unit);
    expect(findHostile(io.written.stdout + io.written.stderr)).toEqual([]);
    expect(io.written.stdout).toContain('\\x1b]52;c;aGk=\\x07');
  });

  test('in progress labels and error messages, even a megabyte of them', () => {
    const io = createFakeIo({ isTerminal: true });
    createProgress({ sink: io.stderr, now: io.now }).update({ label: HOSTILE, doneBytes: 1, totalBytes: 2 });
    reportError(new RuvLLMError('io', HOSTILE.repeat(20_000)), { io, isJson: false, commandName: 'run' });
    expect(findHostile(io.written.stderr)).toEqual([]);
    expect(io.written.stderr.length).toBeLessThan(20_000);
  });

  test('the detector finds hostile text', () => {
    expect(findHostile(HOSTILE)).toHaveLength(14);
    expect(findHostile('\x1b[1mGrüße\x1b[22m\n')).toEqual([]);
  });
});
