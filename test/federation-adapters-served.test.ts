// Two `ruvllm serve`, as processes, that exchange patterns and adapters through the command line.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isHeldOut } from '../src/learning/sona/examples.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from './support/serve-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-federation-adapters-'));
const nodes: { serving: ServeFolder; server: ServeProcess; key: string }[] = [];

type Json = Record<string, never>;

/** A command with `--url` of a node, as JSON. */
async function command(node: number, ...args: string[]): Promise<{ status: number; json: Json; output: string }> {
  const { serving, server } = nodes[node]!;
  const { status, stdout, stderr } = await serving.here.run(...args, '--url', server.url);
  return { status, json: JSON.parse(stdout || '{}') as Json, output: stdout + stderr };
}

const post = async (node: number, path: string, body: object): Promise<Json> =>
  (await fetch(nodes[node]!.server.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json() as Promise<Json>; // prettier-ignore

/** Requests that were all corrected to the same answer, until enough of them are held out. */
async function teach(node: number, minTrained: number): Promise<void> {
  let [numTrained, numHeldOut] = [0, 0];
  for (let i = 0; numTrained < minTrained || numHeldOut < 5; i++) {
    const { id } = await post(node, '/v1/completions', { model: 'small', prompt: `what colour is zog ${node}${i}?`, max_tokens: 4, ignore_eos: true }); // prettier-ignore
    await post(node, '/v1/feedback', { request_id: id, score: 0, correction: ' bluish' });
    // The split is by the id without the prefix of its wire format.
    if (isHeldOut(String(id).replace('cmpl-', ''))) numHeldOut++;
    else numTrained++;
  }
}

beforeAll(async () => {
  if (!isServerBuilt) return;
  for (let i = 0; i < 2; i++) {
    const serving = createServeFolder({ contextLength: 128 });
    const server = await serving.start(`small=${serving.model}`, '--context', '128', '--no-corrections');
    nodes.push({ serving, server, key: '' });
    nodes[i]!.key = (await command(i, 'federate', 'status')).json['key']!;
  }
}, 120_000);
afterAll(() => {
  for (const { serving } of nodes) serving.dispose();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!isServerBuilt)('patterns and adapters of two servers', () => {
  test('[FD2] [FD9] [FD11] [FD16] are pushed, pulled, merged, shown and withdrawn', async () => {
    await Promise.all([teach(0, 10), teach(1, 20)]);
    for (const [node, loop] of ['background', 'deep'].entries()) {
      const { json, output } = await command(node, 'learn', 'run', '--of', 'model', '--model', 'small', '--loop', loop);
      expect(json, output).toMatchObject({ report: { version: 1, isAccepted: true } });
    }
    for (const [i, name] of ['berlin', 'paris'].entries())
      await command(i, 'federate', 'peers', 'add', nodes[1 - i]!.key, '--name', name);
    const file = join(folder, 'bundle.json');
    const pushed = await command(1, 'federate', 'push', file);
    expect(pushed.json, pushed.output).toMatchObject({
      numExamples: 0,
      numPatterns: 1,
      adapters: ['small'],
      notShared: [],
    });
    expect(readFileSync(file, 'utf8')).not.toMatch(/bluish|colour/);
    const pulled = await command(0, 'federate', 'pull', file);
    expect(pulled.json, pulled.output).toMatchObject({
      accepted: [{ peer: 'berlin', numPatterns: 1, adapters: [{ model: 'small' }], mergeable: ['small'], refused: [] }],
      training: { parts: [{ part: 'federation', state: 'trained', version: 2, reason: expect.stringContaining('merged the own adapter and those of berlin') as string }] }, // prettier-ignore
    });
    expect((await command(0, 'federate', 'status')).json).toMatchObject({ peers: [{ name: 'berlin', numPatterns: 1, adapters: ['small'] }] }); // prettier-ignore
    const patterns = await command(0, 'learn', 'patterns', 'what colour is zog?');
    expect(patterns.json).toMatchObject({
      patterns: [{ id: null, text: null, support: 0, peers: [{ peer: 'berlin' }] }],
    });
    expect((await command(0, 'learn', 'history', '--model', 'small')).json).toMatchObject({ serves: 2 });
    const removed = await command(0, 'federate', 'peers', 'remove', 'berlin');
    expect(removed.json).toMatchObject({ withdrawn: [{ model: 'small', reason: 'version 1 serves, which learned from this node alone' }] }); // prettier-ignore
    expect((await command(0, 'learn', 'history', '--model', 'small')).json).toMatchObject({ serves: 1 });
    expect((await command(0, 'learn', 'patterns', 'what colour is zog?')).json).toEqual({ patterns: [] });
    // What the options leave out is not in the bundle.
    const nothing = await command(1, 'federate', 'push', file, '--no-patterns', '--no-adapters');
    expect([nothing.status === 0, nothing.output]).toEqual([
      false,
      expect.stringContaining('there is nothing to share'),
    ]);
  }, 240_000);
});
