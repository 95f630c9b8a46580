// `ruvllm gateway` in front of real `ruvllm serve` processes, which are killed and restarted.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from './support/serve-process.ts';

const SECRET = 'the secret of the fleet in these tests';
const stories = fileURLToPath(new URL('../../shared/models/stories260K-f32.gguf', import.meta.url));
if (!existsSync(stories)) console.log('gateway: a random model replaces stories260K-f32.gguf, which is not in ../shared/models'); // prettier-ignore

let folder: ServeFolder;
let otherFleet: ServeFolder;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 512, environment: { RUVLLM_FLEET_SECRET: SECRET } });
  otherFleet = createServeFolder({ contextLength: 512, environment: { RUVLLM_FLEET_SECRET: `another: ${SECRET}` } });
});
afterEach(() => {
  folder.killAll();
  otherFleet.killAll();
});
afterAll(() => {
  folder.dispose();
  otherFleet.dispose();
});

const model = (): string => `tiny=${existsSync(stories) ? stories : folder.model}`;
const startNode = (...args: string[]): Promise<ServeProcess> =>
  folder.start(model(), '--no-memory', '--no-dashboard', '--threads', '1', ...args);
const startGateway = (...nodes: readonly ServeProcess[]): Promise<ServeProcess> =>
  folder.launch({ command: 'gateway', onErrorOutput() {} }, ...nodes.flatMap(({ url }) => ['--node', url]), '--health-interval', '0.2'); // prettier-ignore

const complete = (url: string, body: object, headers = {}): Promise<Response> =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'tiny', max_tokens: 16, ignore_eos: true, seed: 1, ...body }),
  });

interface Completion {
  readonly usage: {
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

const storyOf = (n: number): string =>
  `Story ${n}. ${`Once upon a time, girl number ${n} and her dog went to the park to play with a red ball. `.repeat(4)}`;

/** The last event of a stream, or its error. */
async function endOf(response: Response): Promise<'done' | string> {
  const text = await response.text();
  const events = text.split('\n\n').filter((part) => part.startsWith('data: '));
  for (const event of events.slice(0, -1)) JSON.parse(event.slice(6)); // no event is cut
  const last = events.at(-1)!.slice(6);
  return last === '[DONE]' ? 'done' : (JSON.parse(last) as { error: { code: string } }).error.code;
}

describe.skipIf(!isServerBuilt)('a gateway', () => {
  test('answers every request without a sent byte when a node is killed, and streams that had begun end with an error', async () => {
    const [one, two] = await Promise.all([startNode(), startNode()]);
    const gateway = await startGateway(one!, two!);
    const answers = Array.from({ length: 24 }, (_, i) => complete(gateway.url, { prompt: storyOf(i), max_tokens: 64 }));
    const streams = await Promise.all(
      Array.from({ length: 6 }, () => complete(gateway.url, { prompt: 'Once', max_tokens: 400, stream: true })),
    );
    const nodeOf = ({ headers }: Response): string | null => headers.get('x-ruvllm-node');
    expect(new Set(streams.map(nodeOf))).toEqual(new Set(['1', '2']));
    one!.process.kill('SIGKILL');
    const ends = await Promise.all(streams.map(async (stream) => ({ node: nodeOf(stream), end: await endOf(stream) })));
    expect(ends.filter(({ node }) => node === '2').map(({ end }) => end)).toEqual(expect.arrayContaining(['done']));
    for (const { node, end } of ends) expect(node === '1' ? ['done', 'remote_failed'] : ['done']).toContain(end);
    expect(ends.filter(({ end }) => end === 'remote_failed').length).toBeGreaterThan(0);
    for (const answer of await Promise.all(answers)) {
      expect(answer.status).toBe(200);
      expect(((await answer.json()) as Completion).usage.completion_tokens).toBe(64);
    }
    // The next requests do not even try the killed node.
    expect(nodeOf(await complete(gateway.url, { prompt: 'Once' }))).toBe('2');
  });

  test('loses no request when the nodes are restarted one after the other', async () => {
    const nodes: ServeProcess[] = await Promise.all([startNode(), startNode()]);
    const gateway = await startGateway(...nodes);
    const statuses: number[] = [];
    const over = new AbortController();
    const clients = Array.from({ length: 4 }, async (_, client) => {
      for (let i = 0; !over.signal.aborted; i++) {
        const response = await complete(gateway.url, { prompt: `Client ${client} asks ${i}`, stream: i % 2 === 0 });
        const isWhole = i % 2 === 0 ? (await endOf(response)) === 'done' : (await response.text()).includes('"usage"');
        statuses.push(isWhole ? response.status : 0);
      }
    });
    const restart = async (index: number): Promise<void> => {
      const numBefore = statuses.length;
      const { process, exit, url } = nodes[index]!;
      process.kill('SIGTERM');
      await exit;
      nodes[index] = await startNode('--port', new URL(url).port);
      await expect.poll(() => statuses.length).toBeGreaterThan(numBefore + 8);
    };
    await restart(0);
    await restart(1);
    over.abort();
    await Promise.all(clients);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    expect((await fetch(`${gateway.url}/health`)).status).toBe(200);
  });

  test('sends a prompt where it is warm, and forgets a node whose cache is gone', async () => {
    const [one, two] = await Promise.all([startNode(), startNode()]);
    const gateway = await startGateway(one!, two!);
    const ask = async (n: number): Promise<{ node: string; cached: number }> => {
      const response = await complete(gateway.url, { prompt: storyOf(n) });
      const { usage } = (await response.json()) as Completion;
      return { node: response.headers.get('x-ruvllm-node')!, cached: usage.prompt_tokens_details.cached_tokens };
    };
    const first: string[] = [];
    for (let n = 0; n < 6; n++) first.push((await ask(n)).node);
    expect(new Set(first)).toEqual(new Set(['1', '2']));
    // Events arrive within a step of the engine; the gateway may read them a moment later.
    await expect.poll(async () => (await ask(0)).cached).toBeGreaterThan(64);
    for (let n = 0; n < 6; n++) {
      const again = await ask(n);
      expect(again.node, `story ${n}`).toBe(first[n]);
      expect(again.cached).toBeGreaterThan(64);
    }
    // A restarted node has an empty cache, and the end of its events says so.
    one!.process.kill('SIGTERM');
    await one!.exit;
    await startNode('--port', new URL(one!.url).port);
    await expect.poll(() => countUp(gateway)).toBe(2);
    const numWarm = await countWarm(gateway);
    expect(numWarm).toBeGreaterThan(0);
    await ask(first.indexOf('1'));
    expect(await countWarm(gateway)).toBe(numWarm);
  });

  test('refuses and reports a node of another fleet, and a node without one', async () => {
    const [one, other] = await Promise.all([startNode(), otherFleet.start(model(), '--no-memory', '--no-dashboard')]);
    const gateway = await startGateway(one!, other!);
    const { nodes } = (await (await fetch(`${gateway.url}/fleet`)).json()) as { nodes: { health: string; reason: string | null }[] }; // prettier-ignore
    expect(nodes).toMatchObject([
      { health: 'up', reason: null },
      { health: 'refused', reason: 'it has another fleet secret, or its clock is wrong' },
    ]);
    for (let i = 0; i < 3; i++) {
      expect((await complete(gateway.url, { prompt: 'Once' })).headers.get('x-ruvllm-node')).toBe('1');
    }
  });
});

/** Prompt tokens that the gateway expected to be warm. */
async function countWarm(gateway: ServeProcess): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(/prompt_tokens_total\{kind="warm"\} (\d+)/.exec(text)?.[1] ?? 0);
}

async function countUp(gateway: ServeProcess): Promise<number> {
  return ((await (await fetch(`${gateway.url}/health`)).json()) as { nodes_up: number }).nodes_up;
}
