// Two `ruvllm serve`, as processes, that exchange bundles through the command line.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from './support/serve-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-federation-'));
const nodes: { readonly serving: ServeFolder; server: ServeProcess; key: string }[] = [];
let config = '';

const start = (serving: ServeFolder): Promise<ServeProcess> =>
  serving.start(`small=${serving.model}`, `large=${serving.model}`, '--context', '128', '--route-config', config);

/** `ruvllm federate … --url` of a node, as JSON. */
async function federate(node: number, ...args: string[]) {
  const { serving, server } = nodes[node]!;
  const { status, stdout, stderr } = await serving.here.run('federate', ...args, '--url', server.url);
  return { status, stderr, json: JSON.parse(stdout || '{}') as Record<string, never>, stdout: stdout + stderr };
}

const post = async (node: number, path: string, body: object): Promise<Response> =>
  fetch(nodes[node]!.server.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }); // prettier-ignore

/** Requests to a candidate by name, each rated. */
async function rate(node: number, count: number, offset: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const isSum = i % 4 < 2;
    const model = i % 2 === 0 ? 'small' : 'large';
    const prompt = isSum ? `add ${offset + i} and ${i * 7} minus ${i}` : `dear friend letter spring ${i}`;
    const answer = (await (await post(node, '/v1/completions', { model, prompt, max_tokens: 1, ignore_eos: true })).json()) as { id: string }; // prettier-ignore
    const rated = await post(node, '/v1/feedback', { request_id: answer.id, score: (model === 'large') === isSum ? 1 : 0 }); // prettier-ignore
    expect(rated.status, await rated.text()).toBe(200);
  }
}

beforeAll(async () => {
  if (!isServerBuilt) return;
  config = join(folder, 'routes.json');
  const candidates = ['small', 'large'].map((model) => ({ kind: 'local', id: model, model }));
  writeFileSync(config, JSON.stringify({ candidates, default: 'small' }));
  for (let i = 0; i < 2; i++) {
    const serving = createServeFolder({ contextLength: 128 });
    const server = await start(serving);
    nodes.push({ serving, server, key: '' });
    nodes[i]!.key = (await federate(i, 'status')).json['key']!;
  }
}, 120_000);
afterAll(() => {
  for (const { serving } of nodes) serving.dispose();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!isServerBuilt)('ruvllm federate between two servers', () => {
  test('[FD1] [FD3] [FD7] pulls, pushes and refuses bundles, and trains on them', async () => {
    expect(nodes[0]!.key).not.toBe(nodes[1]!.key);
    await rate(0, 24, 0);
    await rate(1, 24, 500);
    const stranger = await federate(0, 'pull', nodes[1]!.server.url);
    expect([stranger.status === 0, stranger.stdout]).toEqual([false, expect.stringContaining('is not a peer')]);
    for (const [i, name] of ['berlin', 'paris'].entries()) {
      const added = await federate(i, 'peers', 'add', nodes[1 - i]!.key, '--name', name);
      expect(added.status, added.stdout).toBe(0);
    }
    const pulled = await federate(0, 'pull', nodes[1]!.server.url);
    expect(pulled.status, pulled.stdout + pulled.stderr).toBe(0);
    expect(pulled.json).toMatchObject({
      accepted: [{ peer: 'berlin', numExamples: 24 }],
      training: { state: 'done', parts: [{ part: 'routing', reason: expect.stringContaining('24 ratings of berlin used') as string }] }, // prettier-ignore
    });
    const pushed = await federate(0, 'push', nodes[1]!.server.url);
    expect(pushed.json).toMatchObject({ numExamples: 24, received: { peer: 'paris', numExamples: 24 } });
    // A file, a copy of it, and one with a changed rating.
    const bundles = join(folder, 'bundles');
    mkdirSync(bundles);
    expect((await federate(1, 'push', join(bundles, 'a.json'))).status).toBe(0);
    const text = readFileSync(join(bundles, 'a.json'), 'utf8');
    expect(text).not.toContain('spring');
    writeFileSync(join(bundles, 'b.json'), text);
    const forged = JSON.parse(text) as { contents: string };
    writeFileSync(join(folder, 'forged.json'), JSON.stringify({ ...forged, contents: forged.contents.replaceAll('"quality":1', '"quality":0') })); // prettier-ignore
    const wrong = await federate(0, 'pull', join(folder, 'forged.json'));
    expect([wrong.status === 0, wrong.stdout]).toEqual([false, expect.stringContaining('the signature of bundle')]);
    const twice = await federate(0, 'pull', bundles, '--no-train');
    expect([twice.status === 0, twice.stdout]).toEqual([false, expect.stringContaining('cannot be used again')]);
    expect((await federate(0, 'status')).json).toMatchObject({
      peers: [{ name: 'berlin', numExamples: 24, numToday: 2, numRefused: 1 }],
      sent: { numBundles: 1 },
    });
    const removed = await federate(0, 'peers', 'remove', 'berlin');
    expect(removed.json).toMatchObject({ name: 'berlin' });
    expect((await federate(0, 'peers')).json).toEqual({ peers: [] });
  }, 240_000);

  test('[FD19] [FD20] noises bundles under a budget, which survives the end of the server', async () => {
    const file = join(folder, 'noised.json');
    const set = await federate(0, 'privacy', '--epsilon', '1.2', '--per-push', '1', '--delta', '1e-5');
    expect(set.json, set.stdout).toMatchObject({ privacy: { epsilon: 1.2, epsilonPerPush: 1, spent: 0 } });
    const before = ((await federate(0, 'status')).json['sent'] as { numBundles: number }).numBundles;
    const asked = await federate(0, 'push', file, '--texts');
    expect([asked.status === 0, asked.stdout]).toEqual([false, expect.stringContaining('texts: not with a privacy budget')]); // prettier-ignore
    const pushed = await federate(0, 'push', file);
    expect(pushed.json, pushed.stdout).toMatchObject({ numPatterns: 0, adapters: [], privacy: { numPushes: 1, numPlain: before } }); // prettier-ignore
    const { contents } = JSON.parse(readFileSync(file, 'utf8')) as { contents: string };
    expect(Object.keys(JSON.parse(contents) as object)).toEqual(['routes']);
    const node = nodes[0]!;
    node.serving.killAll();
    node.server = await start(node.serving);
    const { privacy } = (await federate(0, 'status')).json as unknown as { privacy: { spent: number; left: number } };
    expect(privacy.spent).toBeGreaterThan(0.99);
    expect(privacy.left).toBeLessThan(0.21);
    const refused = await federate(0, 'push', join(folder, 'refused.json'));
    expect([refused.status === 0, refused.stdout]).toEqual([false, expect.stringMatching(/1 bundles spent .*and one more makes 1\.\d+/)]); // prettier-ignore
    expect(existsSync(join(folder, 'refused.json'))).toBe(false);
    expect((await federate(0, 'privacy', '--off')).json).toEqual({ privacy: null });
  }, 240_000);

  test('reports bad command lines with a usage error', async () => {
    const bad: [string[], string][] = [
      [['peers', 'add', 'x'], '--name'],
      [['peers', 'add', 'x', '--name', 'x'], '32 bytes in base64'],
      [['peers', 'fly'], 'has list, add, remove'],
      [['pull', join(folder, 'missing.json')], 'missing.json'],
      [['push'], 'requires <file|url>'],
      [['privacy'], 'requires --epsilon or --off'],
      [['privacy', '--off', '--epsilon', '1'], '--off has no budget'],
      [['privacy', '--epsilon', '1000'], 'epsilon must be from 0.01 to 100'],
    ];
    for (const [args, says] of bad) {
      const { status, stdout } = await federate(0, ...args);
      expect([status === 0, stdout], args.join(' ')).toEqual([false, expect.stringContaining(says)]);
    }
  });

  test('needs the scope admin over HTTP', async () => {
    const { serving, server } = nodes[0]!;
    const { token } = await serving.here.keys('create', 'user', '--scope', 'inference');
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    for (const path of ['status', 'set-privacy', 'push', 'pull', 'add-peer', 'remove-peer']) {
      const response = await fetch(`${server.url}/admin/federation/${path}`, { method: 'POST', headers, body: '{}' });
      expect(response.status, path).toBe(403);
    }
  });
});
