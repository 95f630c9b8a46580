// `ruvllm memory`, `audit` and `sessions` as users run them: folders, a served memory, one command as a process.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { type CommandOutcome, runCommand } from './support/run-command.ts';
import { createServeFolder, type ServeFolder } from './support/serve-process.ts';

const bin = fileURLToPath(new URL('../bin/ruvllm.mjs', import.meta.url));
const models = fileURLToPath(new URL('../../shared/models', import.meta.url));
/** Recognizes similar texts. */
const wise = join(models, 'stories15M-q8_0.gguf');
/** Sufficient without similarity. */
const model = join(models, 'stories260K-f32.gguf');
const canRun = isServerBuilt && existsSync(wise) && existsSync(model);
if (!canRun) console.log(`memory commands skipped: they need dist/, ${wise} and ${model}`);

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-memory-commands-'));
const at = (name: string): string => join(folder, name);
let serving: ServeFolder;

beforeAll(() => {
  serving = createServeFolder({ contextLength: 128 });
});
afterEach(() => serving.here.stopAll());
afterAll(() => {
  serving.dispose();
  rmSync(folder, { recursive: true, force: true });
});

type More = { input?: string; env?: Record<string, string> };
const environment = (more: More): NodeJS.ProcessEnv => ({ ...serving.environment, HF_HUB_OFFLINE: '1', ...more.env });
const run = (args: readonly string[], more: More = {}): Promise<CommandOutcome> =>
  runCommand(args, { environment: environment(more), input: more.input ?? '' });
/** As a separate process. */
const spawned = (args: readonly string[], more: More = {}) =>
  spawnSync(process.execPath, [bin, ...args], { env: environment(more), encoding: 'utf8', input: more.input ?? '' });
const json = (outcome: Pick<CommandOutcome, 'stdout'>): Record<string, unknown> =>
  JSON.parse(outcome.stdout) as Record<string, unknown>;

const TEXTS = ['The dog ran in the park with a red ball', 'Mom made a big cake for the birthday party'];

describe.skipIf(!canRun)('a memory in a folder', () => {
  test('a search without any model finds words, and says so', async () => {
    const place = ['--memory', at('words')];
    const env = { RUVLLM_MEMORY_EMBEDDER: '', HF_HOME: at('no-models') };
    expect((await run(['memory', 'add', ...TEXTS, ...place, '--model', wise])).status).toBe(0);
    const { status, stdout, stderr } = await run(['memory', 'search', 'birthday cake', ...place], { env });
    expect([status, stderr]).toEqual([0, expect.stringContaining('searching by words only')]);
    expect(stdout).toContain(TEXTS[1]);
    expect((await run(['memory', 'search', 'cake', ...place, '--model', at('none.gguf')])).status).not.toBe(0);
  });

  test('--token-budget counts with the tokenizer of --model, and says when it estimates', async () => {
    const place = ['--memory', at('budget')];
    await run(['memory', 'add', ...TEXTS, ...place, '--model', wise]);
    const search = ['memory', 'search', 'the red ball', ...place, '--token-budget', '200'];
    const counted = json(await run([...search, '--model', wise, '--json']))['context'] as { text: string; numTokens: number; isEstimated: boolean }; // prettier-ignore
    const { numTokens } = json(await run(['tokenize', wise, counted.text, '--json']));
    expect([counted.isEstimated, counted.numTokens]).toEqual([false, numTokens]);
    const env = { RUVLLM_MEMORY_EMBEDDER: '', HF_HOME: at('no-models') };
    expect((await run(search, { env })).stderr).toContain('estimated at four characters each');
  });

  test('run and chat recall texts with --recall, and name them', async () => {
    const place = ['--memory', at('recall')];
    const id = (await run(['memory', 'add', TEXTS[0]!, ...place, '--model', wise])).stdout.trim();
    const more = ['--recall', '2', ...place, '--max-tokens', '4'];
    const env = { RUVLLM_MEMORY_EMBEDDER: 'static' };
    const ask = 'Who ran in the park with a red ball?';
    const ran = await run(['run', wise, ask, ...more], { env });
    expect([ran.status, ran.stderr]).toEqual([0, expect.stringContaining(`source [1]: document ${id}`)]);
    expect(json(await run(['run', wise, ask, ...more, '--json'], { env }))).toMatchObject({ memory: { outcome: 'used', sources: [{ id }] } }); // prettier-ignore
    const chat = await run(['chat', wise, ...more], { input: `${ask}\n`, env });
    expect([chat.status, chat.stderr]).toEqual([0, expect.stringContaining(`source [1]: document ${id}`)]);
    const unknown = await run(['run', wise, 'Zanzibar 1984', ...more], { env });
    expect(unknown.stderr).toContain('no text of the memory matches');
    expect((await run(['run', wise, ask, '--recall', '51'])).stderr).toContain('--recall must be from 1 to 50');
    expect((await run(['run', wise, ask, ...place])).stderr).toContain('--memory requires --recall');
  });

  test('run and chat with --remember store their messages, and later sessions recall them', async () => {
    const place = ['--memory', at('remember')];
    const more = ['--remember', ...place, '--max-tokens', '4'];
    const env = { RUVLLM_MEMORY_EMBEDDER: 'static' };
    const first = await run(['run', wise, 'Tim has a red ball and a dog called Biscuit.', ...more], { env });
    expect(first.status).toBe(0);
    const recalled = async () => (await run(['memory', 'recall', 'a dog called Biscuit', ...place, '--model', wise], { env })).stdout; // prettier-ignore
    expect(await recalled()).toContain('dog called Biscuit');
    const chat = await run(['chat', wise, ...more], { input: 'a dog called Biscuit\n', env });
    expect([chat.status, chat.stderr]).toEqual([0, expect.stringContaining('source [1]')]);
    // Without the flag nothing is stored.
    await run(['run', wise, 'Lily has a green kite.', '--recall', '2', ...place, '--max-tokens', '4'], { env });
    const lily = await run(['memory', 'recall', 'Lily green kite', ...place, '--model', wise], { env });
    expect(lily.stdout).not.toContain('green kite');
    const session = ['--session', 's', '--kv-spill', at('spill')];
    expect((await run(['run', wise, 'x', ...more, ...session])).stderr).toContain('--remember cannot be combined with --session'); // prettier-ignore
  });

  test('[OP3] [OP12] finds added texts by meaning, and in another folder after export and import', async () => {
    const place = ['--memory', at('one')];
    const added = spawned([
      'memory',
      'add',
      ...TEXTS,
      '\u001b[31mred\u0007',
      ...place,
      '--model',
      wise,
      '--topic',
      'kids',
    ]);
    expect([added.status, added.stderr]).toEqual([0, '']);
    const ids = added.stdout.trim().split('\n');
    expect(ids).toHaveLength(3);

    const question = ['memory', 'search', 'a puppy played outside with its ball', '--model', wise, '--k', '1'];
    const results = json(await run([...question, ...place, '--json']));
    expect(results).toMatchObject({ results: [{ id: ids[0], text: TEXTS[0], kind: 'document' }] });
    // Untrusted text reaches the terminal escaped.
    const output = await run(['memory', 'search', 'red', '--model', wise, ...place]);
    expect(output.stdout).toContain('\\x1b[31mred\\x07');
    expect(output.stdout).not.toContain('\u001b');

    const exported = await run(['memory', 'export', ...place]);
    expect(exported.stderr).toBe('3 records\n');
    expect(exported.stdout).not.toContain('"vector"');
    const into = ['--memory', at('two')];
    const imported = await run(['memory', 'import', ...into, '--model', wise, '--json'], { input: exported.stdout });
    expect([imported.status, json(imported)]).toEqual([
      0,
      { numAdded: 3, numReplaced: 0, numRefused: 0, numEmbedded: 3 },
    ]);
    expect(json(await run([...question, ...into, '--json']))).toEqual(results);
    const whole = (text: string) => text.replaceAll(/"(updatedMs|version)":\d+/g, '');
    expect(whole((await run(['memory', 'export', ...into])).stdout)).toBe(whole(exported.stdout));

    const withVectors = at('vectors.jsonl');
    expect((await run(['memory', 'export', ...place, '--vectors', '--output', withVectors])).stdout).toBe('');
    const last = json(await run(['memory', 'import', withVectors, ...into, '--model', wise, '--json']));
    expect(last).toEqual({ numAdded: 0, numReplaced: 3, numRefused: 0, numEmbedded: 0 });
    expect(json(await run(['memory', 'rm', ids[2]!, ...into, '--json']))).toEqual({ numRemoved: 1 });
    expect(json(await run(['memory', 'stats', ...into, '--json']))).toMatchObject({
      numRecords: { document: 2 },
      isDegraded: false,
    });
    expect(await run(['audit', 'verify', ...into])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^intact: 0 entries/) as string,
    });
  });

  test('[OP5] names the fault and does nothing', async () => {
    const place = ['--memory', at('wrong'), '--model', model];
    // A mistyped name is not an empty memory or an intact log.
    for (const args of [
      ['memory', 'stats'],
      ['memory', 'search', 'x'],
      ['audit', 'verify'],
      ['sessions', 'list'],
    ]) {
      const typed = await run([...args, '--memory', at('wrong')]);
      expect([args, typed.status, typed.stderr]).toEqual([args, 1, `error: memory ${at('wrong')} not found\n`]);
    }
    expect(existsSync(at('wrong'))).toBe(false);
    expect((await run(['memory', 'add', 'x', ...place])).status).toBe(0);
    const unknown = await run(['memory', 'search', 'x', '--where', 'colour=red', ...place]);
    expect([unknown.status, unknown.stdout]).toEqual([2, '']);
    expect(unknown.stderr).toMatch(/^error: unknown field "colour".*known: .*topic.*\nnext: ruvllm memory --help\n$/);
    const bad = `${JSON.stringify({ id: 'none', kind: 'fact' })}\n`;
    const refused = await run(['memory', 'import', ...place, '--json'], { input: `\n${bad}` });
    expect([refused.status, json(refused)]).toMatchObject([
      2,
      { error: { message: expect.stringMatching(/0 added, 0 replaced, 1 refused: line 2: .*id/) as string, data: { numRefused: 1 } } }, // prettier-ignore
    ]);
    expect(await run(['memory', 'import', ...place], { input: 'no\n' })).toMatchObject({ status: 2, stderr: expect.stringContaining('line 1 is not JSON') as string }); // prettier-ignore
    for (const args of [
      ['memory', 'forget'],
      ['memory', 'add', 'x', '--k', '3'],
      ['memory', 'rm'],
      ['sessions', 'show'],
      ['audit', 'search', '--from', 'soon'],
      ['memory', 'stats', '--api-key', 'x'],
    ]) {
      expect([args, (await run([...args, '--memory', at('wrong')])).status]).toEqual([args, 2]);
    }
    expect(await run(['sessions', 'show', 'nobody', '--memory', at('wrong')])).toMatchObject({ status: 1, stderr: 'error: there is no session "nobody"\n' }); // prettier-ignore
  });

  test('[OP10] [GR1] shows policies and links', async () => {
    const place = ['--memory', at('look')];
    const id = (n: number) => `0199a0b4-7c00-7000-8000-00000000000${n}`;
    const edges = [{ from: id(1), to: id(2), relation: 'cites', weight: 1, confidence: 1 }];
    const line = (n: number) =>
      JSON.stringify({ id: id(n), kind: 'fact', createdMs: n, body: { text: `fact ${n}`, metadata: {} }, edges });
    const imported = await run(['memory', 'import', ...place, '--model', model], { input: `${line(1)}\n${line(2)}\n` });
    expect(imported).toMatchObject({ status: 0, stdout: '2 added, 0 replaced, 0 refused\n' });
    const linked = await run(['memory', 'neighbours', id(2), ...place]);
    expect(linked.stdout).toMatch(new RegExp(`^1\\.000  <- cites  ${id(1)}  .*  fact\n    fact 1\n$`));
    expect(json(await run(['memory', 'neighbours', id(1), ...place, '--relation', 'follows', '--json']))).toEqual({ neighbours: [] }); // prettier-ignore
    expect(await run(['memory', 'neighbours', id(3), ...place])).toMatchObject({ status: 1, stderr: `error: there is no record ${id(3)}\n` }); // prettier-ignore
    expect((await run(['memory', 'policies', ...place])).stdout).toMatch(
      /^TYPE .*\n(?:\w+ +main +0 .* default .*\n)+$/,
    );
    expect(json(await run(['memory', 'policies', 'ewc', ...place, '--json']))).toMatchObject({ policies: [], defaults: [{ policyType: 'ewc' }] }); // prettier-ignore
    expect((await run(['memory', 'policies', 'taste', ...place])).status).toBe(2);
    expect(await run(['memory', 'policy-history', 'ewc', ...place])).toMatchObject({ status: 0, stderr: 'no learned versions; the default is active\n' }); // prettier-ignore
    expect((await run(['memory', 'policy-rollback', 'ewc', '1', ...place])).status).toBe(1);
    expect((await run(['memory', 'policy-rollback', 'ewc', 'one', ...place])).status).toBe(2);
  });

  test('[MS23] rejects another key before any change; rotation replaces it; erasing requires the name twice', async () => {
    const place = ['--memory', at('keys')];
    expect((await run(['memory', 'add', 'one', ...place, '--model', model])).status).toBe(0);
    const stats = ['memory', 'stats', ...place, '--json'];
    const other = { RUVLLM_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
    expect(await run(stats, { env: other })).toMatchObject({ status: 2, stdout: expect.stringContaining('another master key') as string }); // prettier-ignore
    writeFileSync(at('new.key'), Buffer.alloc(32, 7));
    expect((await run(['memory', 'rotate-key', ...place])).status).toBe(2);
    expect((await run(['memory', 'rotate-key', ...place, '--new-key-file', at('new.key')])).status).toBe(0);
    expect((await run(stats)).status).toBe(2);
    expect(json(await run(stats, { env: other }))).toMatchObject({ numRecords: { document: 1 } });
    const erase = ['memory', 'erase-tenant', 'local', ...place];
    expect(await run(erase, { env: other })).toMatchObject({ status: 2, stderr: expect.stringContaining('--confirm local') as string }); // prettier-ignore
    expect((await run([...erase, '--confirm', 'local'], { env: other })).status).toBe(0);
    expect(json(await run(stats, { env: other }))).toMatchObject({ numRecords: {} });
  });
});

describe.skipIf(!canRun)('a memory behind a server', () => {
  test('[MR1] runs the same commands over HTTP, explains a folder in use, and gives other tenants and wrong keys nothing', async () => {
    const alice = (await serving.here.keys('create', 'alice', '--tenant', 'alice')).token;
    const root = (await serving.here.keys('create', 'root', '--scope', 'admin')).token;
    const place = at('served');
    const server = await serving.here.start(model, '--memory', place);
    expect(server).toMatchObject({ memory: place });
    const remote = (key: string): string[] => ['--url', `${server.url}/v1`, '--api-key', key];
    const text = TEXTS[0]!;
    const [id] = json(await run(['memory', 'add', text, '--source', 'test', ...remote(alice), '--json']))[
      'ids'
    ] as string[];
    const search = ['memory', 'search', 'a puppy with a ball', '--where', 'source=test', '--json'];
    expect(json(await run([...search, ...remote(alice)]))).toMatchObject({ results: [{ id, text }] });
    expect(json(await run([...search, ...remote(root)]))).toMatchObject({ results: [] });
    expect(json(await run([...search, ...remote(root), '--tenant', 'alice']))).toMatchObject({ results: [{ id }] });
    expect(await run([...search, ...remote(alice), '--tenant', 'root'])).toMatchObject({ status: 2, stdout: expect.stringContaining('only an admin key') as string }); // prettier-ignore
    // Figures of all tenants are omitted unless the key allows them.
    expect(json(await run(['memory', 'stats', ...remote(alice), '--json']))).toMatchObject({
      tenant: 'alice',
      health: null,
    });
    expect(json(await run(['audit', 'stats', ...remote(root), '--json']))).toMatchObject({ log: { numDropped: 0 } });
    expect(json(await run(['audit', 'verify', ...remote(alice), '--json']))).toMatchObject({ isIntact: true });
    const exported = await run(['memory', 'export', '--url', server.url], { env: { RUVLLM_API_KEY: alice } });
    expect(exported.stdout).toContain(text);
    expect(await run(['memory', 'stats', ...remote('rk-wrong')])).toMatchObject({ status: 2, stderr: expect.stringContaining('the API key is not valid') as string }); // prettier-ignore
    expect(await run(['memory', 'search', 'x', '--where', 'colour=1', ...remote(alice)])).toMatchObject({ status: 2, stderr: expect.stringContaining('unknown field "colour"') as string }); // prettier-ignore
    expect(await run(['memory', 'stats', '--url', 'http://127.0.0.1:9'])).toMatchObject({ status: 1, stderr: expect.stringContaining('cannot reach') as string }); // prettier-ignore

    expect(await run(['memory', 'search', 'x', '--hops', '99', ...remote(alice)])).toMatchObject({ status: 2, stderr: expect.stringContaining('error: --hops: Too big') as string }); // prettier-ignore
    expect(await run(['memory', 'search', '', ...remote(alice)])).toMatchObject({ status: 2, stderr: expect.stringContaining('error: <query>: Too small') as string }); // prettier-ignore

    const locked = await run(['memory', 'stats', '--memory', place]);
    expect(locked.status).toBe(1);
    expect(locked.stderr).toMatch(
      /^error: cannot open the memory: .* is in use by process \d+ .*\nnext: repeat with --url http:\/\/127\.0\.0\.1:\d+\n/,
    );
    expect(locked.stderr).toContain(server.url); // prettier-ignore
    const second = await serving.here.start(model, '--no-memory');
    expect(second).toMatchObject({ memory: null });
    const none = await run(['memory', 'stats', '--url', second.url, '--api-key', alice]);
    expect(none).toMatchObject({ status: 1, stderr: expect.stringContaining('runs without a memory') as string });
    expect(await server.stop()).toBe(0);
    // After a clean shutdown the folder is free at once and has the added text.
    const after = await run([
      'memory',
      'export',
      '--memory',
      place,
      '--tenant',
      'alice',
      '--output',
      at('after.jsonl'),
    ]);
    expect([after.status, readFileSync(at('after.jsonl'), 'utf8')]).toEqual([0, exported.stdout]);
  });

  test('two servers on the user’s folder: the second runs without memory, or does not start if memory is required', async () => {
    const first = await serving.here.start(model);
    const second = await serving.here.start(model);
    expect([first, second]).toMatchObject([{ memory: join(serving.data, 'memory') }, { memory: null }]);
    const typed = await run(['serve', model, '--port', '0', '--memory', join(serving.data, 'memory')]);
    expect([typed.status, typed.stderr]).toEqual([1, expect.stringContaining('is in use by process')]);
  });
});
