// Adapters published to real nodes over a real NATS server: on all of them or on none, whatever is killed, cut off or forged.
import { createHash, generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../src/core/clock.ts';
import { publishRelease } from '../src/gateway/releases/publish-release.ts';
import {
  compareReleases,
  type PublishedAdapter,
  readRecord,
  signedBytes,
  writeRecord,
} from '../src/gateway/releases/release-record.ts';
import { openNatsBus } from '../src/platform/node/gateway/nats-bus.ts';
import { createNatsReleaseStore } from '../src/platform/node/gateway/nats-release-store.ts';
import { publicKeyText, signBytes } from '../src/platform/node/signing/ed25519.ts';
import { deriveFleetKeys, fleetIdOf } from '../src/server/fleet/fleet-keys.ts';
import { isServerBuilt } from './support/dist-server.ts';
import {
  type CommandResult,
  createNatsProxy,
  parseOutput,
  type RunningCommand,
  startFleetCommand,
  writeAdapter,
} from './support/fleet-commands.ts';
import { createNatsServer, hasNats, type NatsServer } from './support/nats-server.ts';
import { buildRandomModel } from './support/random-model.ts';
import { runCommand } from './support/run-command.ts';
import {
  createServeFolder,
  type Served,
  type ServedHere,
  type ServeFolder,
  type ServeProcess,
} from './support/serve-process.ts';

let nats: NatsServer;
let folder: ServeFolder;
let [first, second] = ['', ''];
/** Answers of a server that belongs to no fleet: without an adapter, and with each. */
let [base, one, two]: (string | number)[] = [];
/** Of each test: a machine keeps the last record of each fleet. */
let secret = '';
const key = generateKeyPairSync('ed25519').privateKey;
const ended: (() => unknown)[] = [];

beforeAll(async () => {
  nats = await createNatsServer();
  folder = createServeFolder({ contextLength: 256, environment: { RUVLLM_NATS_URL: nats.url } });
  [first, second] = await Promise.all([writeAdapter(folder, 'first.gguf', 1), writeAdapter(folder, 'second.gguf', 2)]);
  const { stdout } = await folder.here.run('fleet', 'key');
  const plain = createServeFolder({ contextLength: 256 });
  const node = await plain.here.start(`tiny=${folder.model}`, '--adapter', `one=${first}`, '--adapter', `two=${second}`, '--no-memory', '--no-dashboard', '--threads', '1'); // prettier-ignore
  [base, one, two] = [await ask(node, 'tiny'), await ask(node, 'tiny:one'), await ask(node, 'tiny:two')];
  await node.stop();
  plain.dispose();
  for (const text of [(JSON.parse(stdout) as { key: string }).key, publicKeyText(key)])
    await folder.here.run('fleet', 'trust', text);
});
beforeEach(async () => {
  secret = `the secret of one test, ${crypto.randomUUID()}`;
  nats.start({ isEmpty: true });
  await nats.untilUp();
});
afterEach(async () => {
  folder.killAll();
  await folder.here.stopAll();
  for (const end of ended.splice(0)) await end();
  await nats.kill();
});
afterAll(async () => {
  folder.dispose();
  await nats.dispose();
});

const nodeArgs = (args: readonly string[]): string[] => [...(args[0]?.includes('=') ? [] : [`tiny=${folder.model}`]), '--no-memory', '--no-dashboard', '--threads', '1', '--fleet-secret', secret, ...args]; // prettier-ignore
const startNode = (...args: string[]): Promise<ServedHere> => folder.here.start(...nodeArgs(args));
/** With a connection to NATS that a test can hold or cut. */
async function startBehindProxy() {
  const proxy = await createNatsProxy(nats.url);
  ended.push(proxy.close);
  return { ...(await startNode('--nats', proxy.url)), proxy };
}
/** As a process that a test kills. */
const launchNode = (): Promise<ServeProcess> => folder.launch({ onErrorOutput() {} }, ...nodeArgs([]));
const start = async (...args: string[]): Promise<CommandResult> => {
  const line = ['fleet', ...args, '--fleet-secret', secret];
  const { status, stdout, stderr } = await runCommand(line, { environment: folder.environment });
  return { status, json: parseOutput(stdout), output: stdout + stderr };
};
const publishArgs = (file: string, args: readonly string[]): string[] => ['publish', file, '--name', 'style', '--model', 'tiny', ...args]; // prettier-ignore
const publish = (file: string, ...args: string[]): Promise<CommandResult> => start(...publishArgs(file, args));
/** As a process: one of two at once, or one that a test kills. */
const launchPublish = (file: string, ...args: string[]): RunningCommand => startFleetCommand(folder, ...publishArgs(file, args), '--fleet-secret', secret); // prettier-ignore
const status = async () => (await start('status', '--json')).json as { release: number; adapters: { name: string; sha256: string }[]; nodes: string[]; inProgress: object | null }; // prettier-ignore

/** The answer, or the status that refused it. */
async function ask({ url }: Pick<Served, 'url'>, model = 'tiny:style'): Promise<string | number> {
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, prompt: 'dog cat', max_tokens: 12, ignore_eos: true, temperature: 0 }),
  });
  const body = (await response.json()) as { choices: { text: string }[] };
  return response.status === 200 ? body.choices[0]!.text : response.status;
}
const askAll = (nodes: readonly Served[], model?: string) => Promise.all(nodes.map((node) => ask(node, model)));

/** The store of this test's fleet, without the command. */
async function openStore() {
  const keys = deriveFleetKeys(secret);
  let connected = (): void => {};
  const beat = new Promise<void>((resolve) => (connected = resolve));
  const fleet = fleetIdOf(keys);
  const store = createNatsReleaseStore({ fleet, onBeat: async () => connected() });
  const bus = await openNatsBus({ url: nats.url, fleet, attachment: store.attachment, onState() {} });
  ended.push(() => bus.close());
  await beat;
  return { store, keys };
}

describe.skipIf(!isServerBuilt || !hasNats)('adapters of a fleet', () => {
  test('[RL1] [RL6] are active on all nodes at once, replaced, rolled back and removed', async () => {
    const nodes = await Promise.all([startNode(), startNode(), startNode()]);
    const gateway = await folder.here.gateway('--fleet-secret', secret, '--health-interval', '60');
    await expect.poll(async () => ((await (await fetch(`${gateway.url}/health`)).json()) as { nodes_up: number }).nodes_up, { timeout: 30_000 }).toBe(3); // prettier-ignore
    expect(await askAll([...nodes, gateway])).toEqual([404, 404, 404, 404]);
    expect(new Set([base, one, two]).size).toBe(3);

    const published = await publish(first, '--json');
    expect(published, published.output).toMatchObject({ status: 0, json: { nodes: [{ isActive: true }, { isActive: true }, { isActive: true }] } }); // prettier-ignore
    expect(published.json['activeMs']).toBeLessThan(2000);
    // Health is asked once a minute here: the gateway knows it from the commit.
    expect(await askAll([...nodes, gateway])).toEqual([one, one, one, one]);
    expect(await askAll(nodes, 'tiny')).toEqual([base, base, base]);
    const admin = await fetch(`${nodes[0]!.url}/admin/adapters/tiny:style`, { method: 'DELETE' });
    expect([admin.status, await admin.text()]).toEqual([409, expect.stringContaining('ruvllm fleet')]);

    const unload = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'tiny', force: true }) }; // prettier-ignore
    expect((await fetch(`${nodes[1]!.url}/admin/models/unload`, unload)).status).toBe(200);
    expect(await ask(nodes[1]!)).toBe(one);

    expect((await publish(second)).status).toBe(0);
    expect(await askAll([...nodes, gateway])).toEqual([two, two, two, two]);
    expect((await start('rollback')).status).toBe(0);
    expect(await askAll([...nodes, gateway])).toEqual([one, one, one, one]);
    expect((await status()).adapters).toMatchObject([{ name: 'style' }]);
    expect((await start('remove', 'tiny:style')).status).toBe(0);
    expect(await askAll(nodes)).toEqual([404, 404, 404]);
    expect(await status()).toMatchObject({ adapters: [], inProgress: null });
  });

  test('[RL1] are active on no node if one has another base model', async () => {
    const other = join(folder.path, 'other.gguf');
    writeFileSync(
      other,
      buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 8, shape: { contextLength: 256 } }),
    );
    const nodes = [...(await Promise.all([startNode(), startNode()])), await startNode(`tiny=${other}`)];
    const { status: code, output } = await publish(first);
    expect([code, output]).toEqual([1, expect.stringContaining(`${nodes[2]!.url}: its model tiny is another file`)]);
    expect(await askAll(nodes)).toEqual([404, 404, 404]);
    expect(await status()).toMatchObject({ release: 0, inProgress: null });
  });

  test('[RL2] do not replace an adapter of the node', async () => {
    const nodes = await Promise.all([startNode(), startNode('--adapter', `style=${second}`)]);
    const { status: code, output } = await publish(first);
    expect([code, output]).toEqual([1, expect.stringContaining(`${nodes[1]!.url}: this node has an adapter tiny:style of its own`)]); // prettier-ignore
    expect(await askAll(nodes)).toEqual([404, two]);
  });

  test('[RL2] are refused with forged signatures, other bytes, too many bytes, and of unknown publishers', async () => {
    const [node] = await Promise.all([startNode(), startNode()]);
    const { store, keys } = await openStore();
    const bytes = readFileSync(first);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const contents = { model: 'tiny', name: 'style', sha256, sizeBytes: bytes.length };
    const signed = (values: typeof contents): PublishedAdapter => ({ ...values, modelHash: '', key: publicKeyText(key), signature: signBytes(key, signedBytes(values)) }); // prettier-ignore
    const attempt = (adapter: PublishedAdapter): Promise<unknown> =>
      publishRelease({ store, keys, clock: systemClock, limitMs: 30_000, signal: AbortSignal.timeout(60_000), change: () => [adapter] }); // prettier-ignore
    await store.putFile(sha256, bytes);
    await expect(attempt({ ...signed(contents), name: 'other' })).rejects.toThrow('does not have the signature');
    await expect(attempt(signed({ ...contents, sizeBytes: 1000 }))).rejects.toThrow('more than the 1000 signed bytes');
    await expect(attempt(signed({ ...contents, sizeBytes: 2 ** 40 }))).rejects.toThrow(`the limit is ${512 * 2 ** 20}`);
    const damaged = Buffer.from(bytes).fill(7, 2000, 2001);
    await store.putFile(sha256, damaged);
    await expect(attempt(signed(contents))).rejects.toThrow('were signed');
    const gone = 'ab'.repeat(32);
    await expect(attempt(signed({ ...contents, sha256: gone }))).rejects.toThrow('is not in the object store');
    const pem = join(folder.path, 'unknown.pem');
    writeFileSync(pem, generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    expect((await publish(second, '--key', pem)).output).toContain('which is not trusted here');
    expect(await ask(node)).toBe(404);
    expect(await status()).toMatchObject({ release: 0, inProgress: null });

    await store.putFile(sha256, bytes);
    await attempt(signed(contents));
    expect(await ask(node)).toBe(one);
    // A record without the signature of the fleet changes nothing, except that nodes stop: they cannot know the release.
    const { text, revision } = (await store.read())!;
    await store.write(text.replace('"signature":"', '"signature":"0'), revision);
    expect((await publish(second)).output).toContain('does not have the signature of this fleet');
    await expect.poll(() => ask(node), { timeout: 30_000 }).toBe(503);
    expect((await start('status')).status).toBe(1);
  });

  test('[RL3] are published by one of two commands at once', async () => {
    const [quick, slow, other] = await Promise.all([startNode(), startBehindProxy(), startNode()]);
    const nodes = [quick, slow, other];
    // A node that does not answer yet: otherwise one may have ended before the other begins.
    slow.proxy.hold();
    const commands = [first, second].map((file) => launchPublish(file).end);
    await Promise.race(commands);
    slow.proxy.release();
    const results = await Promise.all(commands);
    const [won, lost] = [...results].sort((a, b) => a.status! - b.status!) as [
      (typeof results)[0],
      (typeof results)[0],
    ];
    expect([won.status, lost.status, lost.output]).toEqual([0, 1, expect.stringContaining('another publication')]);
    expect(new Set(await askAll(nodes))).toEqual(new Set([results[0] === won ? one : two]));
  });

  test('[RL1] [RL7] are active on no node if one is killed before it has them, and on all the next time', async () => {
    const nodes = await Promise.all([startNode(), startNode()]);
    const killed = await launchNode();
    killed.process.kill('SIGKILL');
    const { status: code, output } = await publish(first, '--timeout', '2');
    expect([code, output]).toEqual([1, expect.stringContaining(`no report within 2 s of ${killed.url}`)]);
    expect(await askAll(nodes)).toEqual([404, 404]);
    // It counts until its announcement expires.
    await expect.poll(async () => (await status()).nodes.length, { timeout: 30_000 }).toBe(2);
    expect((await publish(first)).status).toBe(0);
    expect(await askAll(nodes)).toEqual([one, one]);
  });

  test('[RL4] are active on a node that was killed between the phases, and on one that joins, before they are ready', async () => {
    const [node, slow, killed] = await Promise.all([startNode(), startBehindProxy(), launchNode()]);
    expect((await publish(first)).status).toBe(0);
    expect(await ask(node)).toBe(one);
    slow.proxy.hold();
    const publishing = launchPublish(second);
    await publishing.printed(`${killed.url}: prepared`);
    killed.process.kill('SIGKILL');
    await killed.exit;
    slow.proxy.release();
    const { status: code, output } = await publishing.end;
    expect([code, output]).toEqual([0, expect.stringContaining('2 of 3 nodes')]);
    expect(await askAll([node, slow])).toEqual([two, two]);
    const [again, joined] = await Promise.all([startNode('--port', new URL(killed.url).port), startNode()]);
    expect(await askAll([again, joined])).toEqual([two, two]);
  });

  test('[RL4] are loaded before a node says that it is ready', async () => {
    const [spare] = await Promise.all([startNode(), startNode()]);
    expect((await publish(first)).status).toBe(0);
    await spare.stop();
    const proxy = await createNatsProxy(nats.url);
    ended.push(proxy.close);
    proxy.hold();
    let isReady = false;
    const starting = startNode('--nats', proxy.url, '--port', new URL(spare.url).port).finally(() => (isReady = true));
    const health = async (): Promise<string> => (await fetch(`${spare.url}/health`)).text().catch(() => '');
    await expect.poll(() => health().catch(() => ''), { timeout: 30_000 }).toContain('loading adapters of the fleet');
    // Its model answers, but not with adapters that it does not know yet.
    expect(await ask(spare, 'tiny')).toBe(base);
    expect([await ask(spare), isReady, await health()]).toEqual([404, false, expect.stringContaining('loading')]);
    proxy.release();
    expect(await ask(await starting)).toBe(one);
  });

  test('[RL5] [RL6] are not served in an old version by a node that is cut off, and it catches up', async () => {
    const [node, slow, away] = await Promise.all([startNode(), startBehindProxy(), startBehindProxy()]);
    const nodes = [node, slow, away];
    const gateway = await folder.here.gateway('--fleet-secret', secret, '--health-interval', '0.2');
    expect((await publish(first)).status).toBe(0);
    await expect.poll(async () => ((await (await fetch(`${gateway.url}/health`)).json()) as { nodes_up: number }).nodes_up, { timeout: 30_000 }).toBe(3); // prettier-ignore
    slow.proxy.hold();
    const publishing = launchPublish(second);
    await publishing.printed(`${away.url}: prepared`);
    away.proxy.cut();
    slow.proxy.release();
    expect((await publishing.end).status).toBe(0);
    // The command has waited for 2 s for the node.
    expect(await askAll(nodes)).toEqual([two, two, 503]);
    expect(await ask(away, 'tiny')).toBe(base);
    for (let i = 0; i < 12; i++) expect(await ask(gateway)).toBe(two);
    away.proxy.heal();
    const answers: (string | number)[] = [];
    await expect.poll(async () => answers[answers.push(await ask(away)) - 1], { timeout: 30_000 }).toBe(two);
    expect(answers).not.toContain(one);
  });

  test('[RL5] are not served by a node that has lost NATS for longer than publishers wait for it', async () => {
    const node = await startNode();
    expect((await publish(first)).status).toBe(0);
    await nats.kill();
    await expect.poll(() => ask(node), { timeout: 30_000 }).toBe(503);
    expect(await ask(node, 'tiny')).toBe(base);
    nats.start();
    await expect.poll(() => ask(node), { timeout: 30_000 }).toBe(one);
  });

  test('[RL7] can be published again after a publisher was killed', async () => {
    const [slow, other] = await Promise.all([startBehindProxy(), startNode()]);
    const nodes = [slow, other];
    slow.proxy.hold();
    const publishing = launchPublish(first, '--timeout', '1');
    await publishing.printed(`${other.url}: prepared`);
    process.kill(publishing.pid, 'SIGKILL');
    slow.proxy.release();
    expect((await status()).inProgress).not.toBe(null);
    expect((await publish(second)).output).toContain('another publication is in progress');
    await expect.poll(async () => (await status()).inProgress, { timeout: 30_000 }).toBe(null);
    expect(await askAll(nodes)).toEqual([404, 404]);
    expect((await publish(second)).status).toBe(0);
  });

  test('[RL8] survive a store that lost its disk, and are given to new nodes', async () => {
    await startNode();
    expect((await publish(first)).status).toBe(0);
    const { release } = await status();
    await nats.kill();
    nats.start({ isEmpty: true });
    await expect.poll(async () => (await status().catch(() => null))?.release, { timeout: 30_000 }).toBe(release);
    // On another machine: without the files of the first.
    const elsewhere = createServeFolder({ contextLength: 256, environment: { RUVLLM_NATS_URL: nats.url } });
    ended.push(elsewhere.here.stopAll, elsewhere.dispose);
    const { stdout } = await folder.here.run('fleet', 'key');
    await elsewhere.here.run('fleet', 'trust', (JSON.parse(stdout) as { key: string }).key);
    await folder.here.stopAll();
    const joined = await elsewhere.here.start(...nodeArgs([]));
    expect(await ask(joined)).toBe(one);
  });

  test('[RL8] [RL9] do not go back when signed records are written again, and publishers may have other clocks', async () => {
    const killed = await launchNode();
    const nodes: Served[] = [await startNode(), killed];
    const { store, keys } = await openStore();
    expect((await publish(first)).status).toBe(0);
    const old = (await store.read())!;
    // A publisher whose clock is half a minute behind.
    const change = async (skewMs: number, adapters: readonly PublishedAdapter[]): Promise<number> => {
      const clock = { ...systemClock, wallClock: () => systemClock.wallClock() + skewMs };
      const signal = AbortSignal.timeout(60_000);
      return (await publishRelease({ store, keys, clock, limitMs: 30_000, signal, change: () => adapters })).release.number; // prettier-ignore
    };
    const { committed } = readRecord(keys, old.text)!;
    expect(await change(-30_000, [])).toBe(committed.number + 1);
    await expect(change(-90_000, committed.adapters)).rejects.toThrow('no node has announced itself');
    expect((await publish(second)).status).toBe(0);
    const { release } = await status();

    // Replayed while all nodes are there, and while one is away.
    const replay = async (text: string): Promise<void> =>
      void (await store.write(text, (await store.read())!.revision));
    const restored = () => expect.poll(async () => (await status()).release, { timeout: 30_000 }).toBe(release);
    const answers: (string | number)[] = [];
    const watching = new AbortController();
    const watched = (async () => {
      while (!watching.signal.aborted) answers.push(...(await askAll([nodes[0]!])));
    })();
    await replay(old.text);
    await restored();
    killed.process.kill('SIGKILL');
    await replay(old.text);
    nodes[1] = await startNode();
    await restored();
    watching.abort();
    await watched;
    expect(await askAll(nodes)).toEqual([two, two]);
    expect(answers.filter((answer) => answer !== two && answer !== 503)).toEqual([]);

    // Another content with the number of the active release: signed, as by a publisher that was told a lie by its store.
    const latest = readRecord(keys, (await store.read())!.text)!;
    const twin = { ...latest.committed, adapters: committed.adapters };
    await replay(writeRecord(keys, { ...latest, committed: twin }));
    const [kept, winner] = compareReleases(twin, latest.committed) > 0 ? [twin, one] : [latest.committed, two];
    const read = async () => readRecord(keys, (await store.read())!.text)!.committed;
    await expect.poll(read, { timeout: 30_000 }).toEqual(kept);
    await expect.poll(() => askAll(nodes), { timeout: 30_000 }).toEqual([winner, winner]);
    // The announcement of the killed node lasts 10 s, and publishers wait for it.
    await expect.poll(async () => (await status()).nodes, { timeout: 30_000 }).toHaveLength(2);
    const last = await publish(first);
    expect(last.status, last.output).toBe(0);
    expect(await askAll(nodes)).toEqual([one, one]);
  });

  test('say which option is missing or wrong', async () => {
    await expect.poll(async () => (await start('status')).status, { timeout: 30_000 }).toBe(0);
    const text = join(folder.path, 'text.pem');
    writeFileSync(text, 'no key');
    for (const [args, message] of [
      [['publish', first, '--model', 'tiny'], 'requires --name'],
      [['publish', first, '--name', 'a:b', '--model', 'tiny'], '--name must be'],
      [['publish', first, '--name', 'style'], 'requires --model'],
      [['publish', folder.model, '--name', 'style', '--model', 'tiny'], 'is not an adapter'],
      [['publish', first, '--name', 'style', '--model', 'tiny', '--key', text], '--key is not an Ed25519 private key'],
      [['publish', first, '--name', 'style', '--model', 'tiny', '--timeout', '0'], '--timeout must be'],
      [['publish', first, '--name', 'style', '--model', 'tiny'], 'no node has announced itself'],
      [['remove', 'tiny'], 'expected MODEL:NAME'],
      [['rollback', '--name', 'x'], '--name is not an option of fleet rollback'],
    ] as const) {
      const { status: code, output } = await start(...args);
      expect([code === 0, output]).toEqual([false, expect.stringContaining(message)]);
    }
    await nats.kill();
    const { status: code, output } = await start('status');
    expect([code, output]).toEqual([1, expect.stringContaining('NATS at 127.0.0.1')]);
  });
});
