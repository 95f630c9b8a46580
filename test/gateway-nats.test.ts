// Gateways and nodes that find each other over a real NATS server, which is killed and restarted.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { createNatsServer, hasNats, type NatsServer } from './support/nats-server.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from './support/serve-process.ts';

const SECRET = 'the secret of the fleet in these tests';
const stories = fileURLToPath(new URL('../../shared/models/stories260K-f32.gguf', import.meta.url));

let nats: NatsServer;
let folder: ServeFolder;
beforeAll(async () => {
  nats = await createNatsServer();
  folder = createServeFolder({
    contextLength: 512,
    environment: { RUVLLM_FLEET_SECRET: SECRET, RUVLLM_NATS_URL: nats.url },
  });
});
afterEach(async () => {
  folder.killAll();
  await nats.kill();
});
afterAll(async () => {
  folder.dispose();
  await nats.dispose();
});

const startNode = (): Promise<ServeProcess> => folder.start(`tiny=${existsSync(stories) ? stories : folder.model}`, '--no-memory', '--no-dashboard', '--threads', '1'); // prettier-ignore
const startGateway = (...args: string[]): Promise<ServeProcess> =>
  folder.launch({ command: 'gateway', onErrorOutput() {} }, '--health-interval', '0.2', ...args);

const complete = (url: string, body: object): Promise<Response> =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', max_tokens: 8, ignore_eos: true, seed: 1, ...body }),
  });
const read = async (url: string, path: string): Promise<Record<string, unknown>> =>
  (await (await fetch(url + path)).json()) as Record<string, unknown>;
const numUp = async ({ url }: ServeProcess): Promise<unknown> => (await read(url, '/health'))['nodes_up'];
const cachedTokens = async (response: Response): Promise<number> =>
  ((await response.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } }).usage
    .prompt_tokens_details.cached_tokens;

describe.skipIf(!isServerBuilt || !hasNats)('a fleet over NATS', () => {
  test('[SH2] [SH9] finds its nodes in any order, and two gateways know the same of their caches', async () => {
    const [one, two] = await Promise.all([startGateway(), startGateway()]);
    expect(await read(one.url, '/health')).toEqual({
      status: 'no node is up',
      nodes: 0,
      nodes_up: 0,
      degraded: ['nats'],
    });
    const nodes = await Promise.all([startNode(), startNode()]);
    nats.start();
    for (const gateway of [one, two]) await expect.poll(() => numUp(gateway), { timeout: 30_000 }).toBe(2);
    await expect.poll(async () => (await read(one.url, '/fleet'))['gateways'], { timeout: 30_000 }).toBe(2);

    const text = 'Once upon a time, a girl and her dog went to the park to play with a red ball. '.repeat(6);
    const numKnown = new Map<string, number>();
    for (let i = 0; i < 4; i++) {
      // Each text is new to the first gateway, and only its answers tell the second one where the text is warm.
      const prompt = `Tale ${i}. ${text}`;
      const first = await complete(one.url, { prompt });
      const node = (await read(one.url, '/fleet'))['nodes'] as { node: string; url: string }[];
      const url = node.find((each) => each.node === first.headers.get('x-ruvllm-node'))!.url;
      await first.text();
      // Its events and what the first gateway learned arrive a moment later.
      const knowledge = async (gateway: ServeProcess): Promise<unknown> => {
        const { nodes: all, texts } = (await read(gateway.url, '/fleet')) as { nodes: { url: string; blocks: number }[]; texts: number }; // prettier-ignore
        return { texts, blocks: Object.fromEntries(all.map((each) => [each.url, each.blocks])) };
      };
      const numBlocks = async (): Promise<number> =>
        ((await knowledge(one)) as { blocks: Record<string, number> }).blocks[url]!;
      const before = numKnown.get(url) ?? 0;
      await expect.poll(numBlocks).toBeGreaterThan(before + 8);
      await expect.poll(() => knowledge(two)).toEqual(await knowledge(one));
      // A node that still reports the first request counts as busy.
      const busy = async (): Promise<number[]> =>
        ((await read(two.url, '/fleet'))['nodes'] as { other_requests: number }[]).map((each) => each.other_requests);
      await expect.poll(busy).toEqual([0, 0]);
      const answer = await complete(two.url, { prompt: `${prompt} The end` });
      const known = (await read(two.url, '/fleet'))['nodes'] as { node: string; url: string }[];
      expect(known.find((each) => each.node === answer.headers.get('x-ruvllm-node'))!.url).toBe(url);
      expect(await cachedTokens(answer)).toBeGreaterThan(64);
      numKnown.set(url, await numBlocks());
    }

    nodes[0]!.process.kill('SIGTERM');
    await nodes[0]!.exit;
    for (const gateway of [one, two])
      await expect.poll(async () => (await read(gateway.url, '/health'))['nodes']).toBe(1);
    expect((await complete(two.url, { prompt: 'Once' })).status).toBe(200);
  });

  test('[SH5] counts the requests of a tenant at both gateways', async () => {
    nats.start();
    const limit = ['--max-requests-per-tenant', '1'];
    const [one, two] = await Promise.all([startGateway(...limit), startGateway(...limit), startNode()]);
    for (const gateway of [one, two]) await expect.poll(() => numUp(gateway), { timeout: 30_000 }).toBe(1);
    const left = new AbortController();
    const stream = await fetch(`${one.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', prompt: 'Once', max_tokens: 480, ignore_eos: true, stream: true }),
      signal: left.signal,
    });
    // Held by its first events; the node decodes on.
    const status = async (): Promise<number> => (await complete(two.url, { prompt: 'Once' })).status;
    const statuses = new Set<number>();
    for (let i = 0; i < 20 && !statuses.has(429); i++) statuses.add(await status());
    expect(statuses).toContain(429);
    left.abort();
    await stream.body?.cancel().catch(() => {});
    await expect.poll(status, { timeout: 30_000 }).toBe(200);
  });

  test.each([{ isEmpty: false }, { isEmpty: true }])(
    '[SH10] goes on while NATS is away, and uses it again: %j',
    async (disk) => {
      nats.start();
      const [gateway] = await Promise.all([startGateway(), startNode()]);
      await expect.poll(() => numUp(gateway), { timeout: 30_000 }).toBe(1);
      await nats.kill();
      const degraded = async (): Promise<unknown> => (await read(gateway.url, '/health'))['degraded'];
      await expect.poll(degraded, { timeout: 30_000 }).toEqual(['nats']);
      expect((await complete(gateway.url, { prompt: 'Once' })).status).toBe(200);
      nats.start(disk);
      await expect.poll(degraded, { timeout: 30_000 }).toEqual([]);
      await startNode();
      await expect.poll(() => numUp(gateway), { timeout: 30_000 }).toBe(2);
    },
  );
});

describe.skipIf(!isServerBuilt)('the options of a fleet over NATS', () => {
  const fail = (args: readonly string[]): string => {
    const { status, stdout } = folder.run(...args);
    expect(status).toBe(2);
    return stdout;
  };
  test.each([
    [['gateway', '--nats', 'http://x:4222'], 'must look like nats://'],
    [['gateway', '--nats', 'nats://user:secret-word@x:4222/path'], 'must look like nats://'],
    [['serve', '--no-model', '--advertise', 'ftp://x'], '--advertise must be a URL such as'],
  ])('%j', (args, message) => {
    const output = fail(args);
    expect(output).toContain(message);
    expect(output).not.toContain('secret-word');
  });
});
