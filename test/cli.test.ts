// The command as users run it. Exit codes, signals and streams are those of processes: bin/ruvllm.mjs on dist/.
import { spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildRandomModel } from './support/random-model.ts';
import { runCommand } from './support/run-command.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = join(root, 'bin/ruvllm.mjs');
const isBuilt = existsSync(join(root, 'dist/lib/cli.js'));
if (!isBuilt) console.log('cli tests skipped: dist/ is not built, run "npm run build"');

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-cli-'));
const plain = join(folder, 'plain.gguf');
const chatty = join(folder, 'chatty.gguf');
/** Large enough for an answer that no test waits for. */
const endless = join(folder, 'endless.gguf');
const ENDLESS = ['--context', '16384', '--max-tokens', '16000', '--ignore-eos', '--kernels', 'reference'];
const cacheRoot = join(folder, 'hub');
const TEMPLATE =
  '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}';

beforeAll(() => {
  const base = { architecture: 'llama', type: 'Q8_0', seed: 3, shape: { contextLength: 128 } } as const;
  writeFileSync(plain, buildRandomModel(base));
  writeFileSync(endless, buildRandomModel({ ...base, shape: { contextLength: 16384 } }));
  const metadata = [{ key: 'tokenizer.chat_template', type: 'string', value: TEMPLATE }] as const;
  writeFileSync(chatty, buildRandomModel({ ...base, metadata }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const environment = { PATH: process.env['PATH'] ?? '', HOME: folder, HF_HUB_CACHE: cacheRoot, HF_HUB_OFFLINE: '1' };

interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface Running {
  readonly done: Promise<Outcome>;
  readonly child: ReturnType<typeof spawn>;
  /** Resolves with the first bytes on stdout. */
  readonly firstOutput: Promise<void>;
}

function start(
  args: readonly string[],
  options: { input?: string | Uint8Array; env?: Record<string, string> } = {},
): Running {
  const child = spawn(process.execPath, [bin, ...args], { env: { ...environment, ...options.env } });
  const written = { stdout: '', stderr: '' };
  let onOutput = (): void => {};
  const firstOutput = new Promise<void>((resolve) => (onOutput = resolve));
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written.stdout += text;
    onOutput();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (written.stderr += text));
  child.stdin.on('error', () => {}); // A command without input may end before this is written.
  child.stdin.end(options.input ?? '');
  const done = new Promise<Outcome>((resolve) => child.on('close', (code) => resolve({ code, ...written })));
  return { done, child, firstOutput };
}

/** As a process of its own. */
const spawned = (args: readonly string[], options?: Parameters<typeof start>[1]): Promise<Outcome> =>
  start(args, options).done;

/** In this process, which has loaded everything: for tests about what a command does. */
async function ruvllm(
  args: readonly string[],
  { input, env }: NonNullable<Parameters<typeof start>[1]> = {},
): Promise<Outcome> {
  const { status, ...written } = await runCommand(args, { environment: { ...environment, ...env }, input });
  return { code: status, ...written };
}

async function json(args: readonly string[], options?: Parameters<typeof start>[1], run = ruvllm) {
  const { code, stdout, stderr } = await run([...args, '--json'], options);
  expect(stderr).toBe('');
  expect(stdout.endsWith('}\n') && !stdout.slice(0, -1).includes('\n')).toBe(true);
  return { code, document: JSON.parse(stdout) };
}

/** npm start builds outdated files, which a test must not do while others run. */
function isUpToDate(): boolean {
  const built = statSync(join(root, 'dist/lib/index.js')).mtimeMs;
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  return sources.every((file) => statSync(join(root, 'src', file)).mtimeMs < built);
}
const canStart = isBuilt && isUpToDate();
if (!canStart) console.log('npm start test skipped: dist/ is older than src/, run "npm run build"');

/** Small, one thread, and kernels that need no compiler: these tests are about the command. */
const QUICK = ['--max-tokens', '8', '--threads', '1', '--kernels', 'reference'];

describe.skipIf(!isBuilt)('ruvllm', () => {
  test('--version', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    expect(await spawned(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    expect(await json(['--version'], {}, spawned)).toEqual({ code: 0, document: { version } });
  });

  test('run --json prints one complete document', async () => {
    const args = ['run', plain, 'the rain', '--temperature', '0', '--logprobs', '1', ...QUICK];
    const { code, document } = await json(args, {}, spawned);
    expect(code).toBe(0);
    expect(Object.keys(document).sort()).toEqual([
      'finishReason',
      'logprobs',
      'meanLogprob',
      'model',
      'promptFormat',
      'promptTokenIds',
      'reasoning',
      'seed',
      'stopString',
      'text',
      'timings',
      'tokenIds',
      'toolCalls',
      'usage',
    ]);
    const { promptTokenIds, tokenIds } = document;
    expect(document).toMatchObject({
      promptFormat: 'raw',
      finishReason: 'length',
      stopString: null,
      seed: expect.any(Number),
      text: expect.any(String),
      usage: { promptTokens: promptTokenIds.length, completionTokens: 8, totalTokens: promptTokenIds.length + 8 },
      model: { reference: plain, path: plain, architecture: 'llama', kernels: 'reference', maxContext: 128 },
    });
    expect(promptTokenIds[0]).toBe(1); // BOS
    expect(tokenIds).toHaveLength(8);
    expect(document.logprobs.map(({ tokenId }: { tokenId: number }) => tokenId)).toEqual(tokenIds);
    // Greedy: the chosen token is the most likely one.
    for (const { tokenId, top } of document.logprobs) expect(top[0].tokenId).toBe(tokenId);
  });

  test('streams exactly the text of the document', async () => {
    const args = ['run', plain, 'the rain', '--seed', '5', ...QUICK];
    const [streamed, whole] = await Promise.all([spawned(args), json(args)]);
    expect(streamed).toEqual({ code: 0, stdout: whole.document.text, stderr: '' });
    expect(whole.document.seed).toBe(5);
  });

  test('the same seed gives the same text, another seed another; wasm kernels too', async () => {
    const args = ['run', plain, 'the rain', '--temperature', '1.5', '--max-tokens', '24', '--threads', '2'];
    const answers = await Promise.all(['7', '7', '8'].map((seed) => ruvllm([...args, '--seed', seed])));
    const [first, same, other] = answers.map(({ stdout }) => stdout);
    expect(first).not.toBe('');
    expect(same).toBe(first);
    expect(other).not.toBe(first);
  });

  test("applies the file's chat template unless --raw is set", async () => {
    const formatOf = async (...args: string[]) => {
      const { document } = await json(['run', ...args, ...QUICK]);
      return [document.promptFormat, document.usage.promptTokens] as const;
    };
    const [asChat, asRaw, plainRaw, plainChat, withSystem] = await Promise.all([
      formatOf(chatty, 'hi'),
      formatOf(chatty, 'hi', '--raw'),
      formatOf(plain, 'hi'),
      formatOf(plain, 'hi', '--chat'),
      formatOf(chatty, 'hi', '--system', 'be kind'),
    ]);
    expect([asChat[0], asRaw[0], plainRaw[0], plainChat[0], withSystem[0]]).toEqual([
      'chat',
      'raw',
      'raw',
      'chat',
      'chat',
    ]);
    expect(asRaw[1]).toBe(plainRaw[1]);
    expect(asChat[1]).toBeGreaterThan(asRaw[1]);
    expect(withSystem[1]).toBeGreaterThan(asChat[1]);
  });

  test('reads the prompt from stdin like from the argument', async () => {
    const args = ['--temperature', '0', ...QUICK];
    const [argument, absent, dash] = await Promise.all([
      json(['run', plain, 'the rain', ...args]),
      json(['run', plain, ...args], { input: 'the rain\n' }),
      json(['run', plain, '-', ...args], { input: 'the rain' }, spawned),
    ]);
    for (const { document } of [absent, dash]) {
      expect(document.promptTokenIds).toEqual(argument.document.promptTokenIds);
      expect(document.tokenIds).toEqual(argument.document.tokenIds);
    }
  });

  test('reads the environment, and flags take precedence', async () => {
    const env = { RUVLLM_CONTEXT: '64', RUVLLM_KERNELS: 'reference' };
    const args = ['run', plain, 'a', '--max-tokens', '1'];
    const [fromEnvironment, fromFlag] = await Promise.all([
      json(args, { env }),
      json([...args, '--context', '32'], { env }),
    ]);
    expect(fromEnvironment.document.model).toMatchObject({ maxContext: 64, kernels: 'reference' });
    expect(fromFlag.document.model.maxContext).toBe(32);
  });

  test.each([
    { what: 'unknown option', args: ['run', 'm', 'p', '--nope'], code: 2, error: 'invalid_option' },
    { what: 'bad number', args: ['run', 'm', 'p', '--top-k', 'x'], code: 2, error: 'invalid_option' },
    { what: 'missing model', args: ['run', './missing.gguf', 'p'], code: 1, error: 'not_found' },
    { what: 'offline hub', args: ['run', 'owner/repo', 'p'], code: 1, error: 'download_failed' },
    { what: 'empty prompt', args: ['run', 'm', ''], code: 1, error: 'empty_prompt' },
    { what: 'empty stdin', args: ['run', 'm'], code: 1, error: 'empty_prompt' },
    { what: 'invalid UTF-8', args: ['run', 'm'], code: 1, error: 'invalid_text', input: Uint8Array.of(0x61, 0xff) },
    { what: 'no model file', args: ['show', fileURLToPath(import.meta.url)], code: 1, error: 'invalid_model_file' },
    { what: 'nothing cached', args: ['show', 'owner/repo'], code: 1, error: 'not_found' },
    { what: 'not in the cache', args: ['rm', fileURLToPath(import.meta.url)], code: 2, error: 'invalid_option' },
  ])('$what: exit code $code and $error', async ({ args, code, error, input }) => {
    const { status, stdout, stderr } = await runCommand([...args, '--json'], { environment, input });
    expect([status, stderr]).toEqual([code, '']);
    expect(JSON.parse(stdout)).toEqual({
      error: { code: error, message: expect.any(String), data: expect.any(Object) },
    });
  });

  test('without --json prints an error and the next thing to try on stderr', async () => {
    expect(await spawned(['show', 'owner/repo'])).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: model owner/repo is not in the cache ${cacheRoot}; pull it first\nnext: ruvllm pull owner/repo\n`,
    });
  });

  test('rejects a prompt longer than the context with both numbers', async () => {
    const { code, document } = await json(['run', plain, 'word '.repeat(300), ...QUICK]);
    expect(code).toBe(1);
    const { promptTokens } = document.error.data;
    expect(document.error).toMatchObject({ code: 'context_overflow', data: { maxContext: 128 } });
    expect(promptTokens).toBeGreaterThan(128);
    expect(document.error.message).toContain(String(promptTokens));
    expect(document.error.message).toContain('128');
  });

  test('tokenize shows ids and pieces, and control tokens only on request', async () => {
    const [text, special] = await Promise.all([
      json(['tokenize', plain, 'a</s>']),
      json(['tokenize', plain, 'a</s>', '--special', '--bos']),
    ]);
    expect(text.document.ids).not.toContain(2);
    expect(special.document.ids[0]).toBe(1);
    expect(special.document.tokens.at(-1)).toEqual({ id: 2, piece: '</s>', isControl: true });
    expect(special.document.numTokens).toBe(special.document.ids.length);
  });

  test('list, show and rm work on the Hugging Face cache', async () => {
    const repo = join(cacheRoot, 'models--owner--repo');
    const [blob, commit] = ['a'.repeat(64), 'b'.repeat(40)];
    for (const name of ['blobs', 'refs', `snapshots/${commit}`]) mkdirSync(join(repo, name), { recursive: true });
    writeFileSync(join(repo, 'blobs', blob), readFileSync(plain));
    writeFileSync(join(repo, 'refs/main'), commit);
    symlinkSync(`../../blobs/${blob}`, join(repo, 'snapshots', commit, 'tiny-Q8_0.gguf'));

    const listed = (await json(['list'])).document;
    expect(listed).toMatchObject({ cacheRoot, models: [{ reference: 'owner/repo:Q8_0', sha256: blob, commit }] });
    expect((await ruvllm(['list'])).stdout.split('\n')[1]).toMatch(/^owner\/repo:Q8_0 {2}/);
    const details = (await json(['show', 'owner/repo'])).document;
    expect(details).toMatchObject({
      source: 'huggingface',
      sha256: blob,
      gguf: { architecture: 'llama', contextLength: 128 },
    });
    const answered = await json(['run', 'owner/repo:Q8_0', 'hi', ...QUICK]);
    expect(answered.document.model.reference).toBe('owner/repo:Q8_0');
    const removed = await json(['rm', 'owner/repo:Q8_0']);
    expect(removed).toMatchObject({ code: 0, document: { freedBytes: readFileSync(plain).length } });
    expect((await json(['list'])).document.models).toEqual([]);
  });

  test('chat answers the lines of stdin and ends with them', async () => {
    const args = ['chat', chatty, '--temperature', '0', ...QUICK];
    const input = 'hello\nagain\n';
    const [text, document, empty] = await Promise.all([spawned(args, { input }), json(args, { input }), ruvllm(args)]);
    expect([text.code, document.code, empty.code]).toEqual([0, 0, 0]);
    const { turns } = document.document;
    expect(turns.map(({ user }: { user: string }) => user)).toEqual(['hello', 'again']);
    expect(turns[1].usage.promptTokens).toBeGreaterThan(turns[0].usage.totalTokens);
    expect(text.stdout).toBe(turns.map(({ text }: { text: string }) => `${text}\n`).join(''));
    expect(text.stderr).toContain(`model ${chatty} (from the command line)`);
    expect(empty.stdout).toBe('');
  });

  test('chat without a model lists the sources it tried', async () => {
    const env = { RUVLLM_MODEL: chatty };
    const [configured, none] = await Promise.all([
      ruvllm(['chat', ...QUICK], { env }),
      json(['chat', ...QUICK], { env: { RUVLLM_MODEL: './missing.gguf' } }),
    ]);
    expect(configured).toMatchObject({ code: 0, stdout: '' });
    expect(configured.stderr).toContain(`model ${chatty} (from RUVLLM_MODEL)`);
    expect(none).toMatchObject({ code: 1, document: { error: { code: 'not_found' } } });
  });

  test.skipIf(!canStart)('npm start serves, and passes on its arguments, signals and exit code', async () => {
    const script = join(root, 'scripts/start.mjs');
    const options = ['--kernels', 'reference', '--context', '64', '--port', '0', '--json'];
    const started = spawn(process.execPath, [script, chatty, ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
    const exit = new Promise<number | null>((resolve) => started.once('exit', resolve));
    const text = await new Promise<string>((resolve, reject) => {
      started.stdout.setEncoding('utf8').once('data', resolve);
      void exit.then((code) => reject(new Error(`it ended with ${code}`)));
    });
    const { url } = JSON.parse(text) as { url: string };
    const { models } = (await (await fetch(`${url}/props`)).json()) as { models: { info: object }[] };
    expect(models[0]!.info).toMatchObject({ maxContext: 64, kernels: 'reference' });
    started.kill('SIGTERM');
    expect(await exit).toBe(0);
    expect(spawnSync(process.execPath, [script, '--nope']).status).toBe(2);
  });

  test('doctor reports the machine, the kernels and the cache', async () => {
    // Not by `json`: drivers of GPUs write to the error output by themselves.
    const [{ code, stdout }, text] = await Promise.all([spawned(['doctor', '--json']), ruvllm(['doctor'])]);
    const document = JSON.parse(stdout);
    expect({ code, text: text.code }).toEqual({ code: 0, text: 0 });
    expect(Object.keys(document)).toEqual([
      'version',
      'node',
      'system',
      'threads',
      'kernels',
      'native',
      'cache',
      'repacked',
      'defaultModel',
      'defaultModelBytes',
      'memoryEmbedder',
      'config',
      'servers',
      'findings',
    ]);
    const packs = document.kernels.map(({ name, build }: { name: string; build: string }) => [name, build]);
    expect(packs[0][0]).toBe('native'); // Whether it is built depends on the machine's compiler.
    // Whether there is a GPU, or a software driver, depends on the machine.
    expect(packs.some(([name]: [string]) => name === 'webgpu')).toBe(true);
    expect(packs.filter(([name]: [string]) => name !== 'native' && name !== 'webgpu')).toEqual([
      ['wasm', 'signed-dot'],
      ['wasm', 'relaxed-simd'],
      ['wasm', 'simd128'],
      ['reference', null],
    ]);
    expect(document.kernels.filter(({ isChosen }: { isChosen: boolean }) => isChosen)).toHaveLength(1);
    expect(document.cache.root).toBe(cacheRoot);
    expect(text.stdout).toContain('features');
  });

  test('bench measures', async () => {
    const args = [
      'bench',
      '--model',
      plain,
      '--runs',
      '2',
      '--tokens',
      '4',
      '--prompt-tokens',
      '9',
      '--kernels',
      'reference',
    ];
    const { code, document } = await json(args);
    expect(code).toBe(0);
    expect(document).toMatchObject({
      topic: 'speed',
      numPromptTokens: 9,
      numTokens: 4,
      compare: 'npm run bench -- engine',
    });
    expect(document.tokensPerSecond).toHaveLength(2);
    for (const rate of [...document.tokensPerSecond, ...document.promptTokensPerSecond])
      expect(rate).toBeGreaterThan(0);
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends an answer with exit code %i', async (signal, code) => {
    const running = start(['run', endless, 'a', ...ENDLESS]);
    await running.firstOutput;
    running.child.kill(signal);
    const outcome = await running.done;
    expect(outcome).toMatchObject({ code, stderr: `error: stopped by ${signal}\n` });
  });

  test.skipIf(!existsSync('/dev/full'))('fails if output cannot be written', () => {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [bin, 'show', plain], { stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    expect({ status, stderr: stderr.toString() }).toEqual({
      status: 1,
      stderr: 'error: cannot write output: ENOSPC\n',
    });
  });

  test('ends quietly if the reader leaves', async () => {
    const running = start(['run', endless, 'a', ...ENDLESS]);
    await running.firstOutput;
    running.child.stdout!.destroy();
    expect(await running.done).toMatchObject({ code: 0, stderr: '' });
  });

  test('run --session continues a conversation over several starts', async () => {
    const kept = [
      '--kv-spill',
      join(folder, 'kept'),
      '--session',
      'story',
      ...QUICK,
      '--temperature',
      '0',
      '--ignore-eos',
    ];
    const first = (await json(['run', chatty, 'hello hello hello hello', ...kept])).document;
    expect(first).toMatchObject({ promptFormat: 'raw', session: { id: 'story', numTurns: 1 } });
    const second = (await json(['run', chatty, ' and more', ...kept])).document;
    expect(second.session).toEqual({ id: 'story', numTurns: 2 });
    const sentIds = [...first.promptTokenIds, ...first.tokenIds];
    expect(second.promptTokenIds.slice(0, sentIds.length)).toEqual(sentIds);
    expect(second.usage.promptTokens).toBe(second.promptTokenIds.length);
    expect(existsSync(join(folder, '.local/state/ruvllm/master.key'))).toBe(true);
    const other = (await json(['run', plain, ' and more', ...kept])).document;
    expect(other.session.numTurns).toBe(1); // Another model has its own sessions.
  });

  test('a session with an unusable folder fails before any output', async () => {
    const { code, stderr } = await ruvllm(['run', plain, 'hi', ...QUICK, '--kv-spill', plain, '--session', 'story']);
    expect(code).toBe(1);
    expect(stderr).toContain('error: cannot store session "story" in the --kv-spill folder');
  });

  test('chat takes earlier messages from the prefix cache and says so', async () => {
    const script = 'tell me a tale\nand another one\n';
    const { document } = await json(['chat', chatty, ...QUICK, '--ignore-eos'], { input: script });
    const [first, second] = document.turns;
    expect(first.usage.cachedTokens).toBe(0);
    expect(second.usage.cachedTokens).toBeGreaterThan(10);
    const off = await json(['chat', chatty, ...QUICK, '--ignore-eos', '--no-prefix-cache'], { input: script });
    expect(off.document.turns[1].usage.cachedTokens).toBe(0);
    const env = { RUVLLM_PREFIX_CACHE: 'off' };
    const switched = await json(['chat', chatty, ...QUICK, '--ignore-eos'], { input: script, env });
    expect(switched.document.turns[1].usage.cachedTokens).toBe(0);
  });

  test('honours a memory budget or rejects it with both sizes', async () => {
    const { document } = await json(['run', plain, 'hi', ...QUICK, '--memory-budget', '64KiB', '--kv-packing', 'off']);
    expect(document.model.memory.kvBytes).toBeLessThanOrEqual(65536);
    const small = ['run', plain, 'hi', ...QUICK, '--memory-budget', '1k'];
    expect(await json(small)).toMatchObject({ code: 1, document: { error: { code: 'out_of_memory' } } });
  });

  test.each([
    [['--memory-budget', 'lots'], '--memory-budget must be a size such as 512MiB, 2G or 1.5GiB, got "lots"'],
    [['--kv-packing', 'q5'], '--kv-packing must be one of auto, off, q8, q4, got "q5"'],
    [['--kv-spill-limit', '1G'], '--kv-spill-limit requires --kv-spill'],
    [['--session', 'a'], '--session requires --kv-spill, the folder that stores the session'],
    [['--session', 'a', '--chat'], '--session cannot be combined with --chat or --system'],
    [['--session', '', '--kv-spill', 'f'], '--session must be a string of 1 to 256 bytes, got 0 bytes'],
    [['--timeout', '0'], '--timeout must be a number of seconds from 0.001 to 2147483, got 0'],
  ])('rejects run %j', async (flags, message) => {
    const { status, stdout } = await runCommand(['run', plain, 'hi', ...flags, '--json'], { environment });
    expect([status, (JSON.parse(stdout) as { error: { message: string } }).error.message]).toEqual([2, message]);
  });

  test('stops an answer that exceeds --timeout', async () => {
    const { code, document } = await json(['run', endless, 'hi', ...ENDLESS, '--timeout', '0.3']);
    expect({ code, error: document.error.code }).toEqual({ code: 1, error: 'deadline_exceeded' });
  });
});
