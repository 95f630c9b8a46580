import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { resolveSonaOptions } from '../../learning/sona/options.ts';
import { runCli } from '../run-cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-config-'));
const file = join(folder, 'ruvllm.config.json');
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => rmSync(file, { force: true }));

async function run(args: readonly string[], environment: Record<string, string> = {}) {
  const io = createFakeIo({ folder, environment });
  const code = await runCli(args, '9.9.9', io);
  return { code, ...io.written };
}

async function settings(environment: Record<string, string> = {}, extraArgs: string[] = []) {
  const { stdout } = await run(['config', 'show', '--json', ...extraArgs], environment);
  const document = JSON.parse(stdout) as {
    file: object | null;
    settings: { path: string; value: unknown; source: string; origin: string; problem: string | null }[];
  };
  const of = (path: string) => {
    const { value, source, origin, problem } = document.settings.find((setting) => setting.path === path)!;
    return { value, source, origin, problem };
  };
  return { ...document, of };
}

test('variables take precedence over the file, the file over defaults', async () => {
  writeFileSync(file, '{\n  "load": {\n    "context": 512,\n    "threads": 2\n  }\n}');
  const { of, file: usedFile } = await settings({ RUVLLM_THREADS: '3', RUVLLM_CONTEXT: '' });
  expect(usedFile).toEqual({ path: file, reason: 'this folder' });
  expect(of('load.context')).toEqual({ value: '512', source: 'file', origin: `${file}:3`, problem: null });
  expect(of('load.threads')).toEqual({ value: '3', source: 'environment', origin: 'RUVLLM_THREADS', problem: null });
  expect(of('load.prefixCache')).toEqual({ value: true, source: 'default', origin: 'default', problem: null });
  expect(of('generate.temperature')).toMatchObject({ source: 'default', value: expect.any(Number) });
  expect(of('serve.port')).toMatchObject({ source: 'default', value: 8080 });
});

test('the learning rate that is shown is the one that feedback is learned with', async () => {
  const { of } = await settings();
  const { instantLearningRate } = resolveSonaOptions();
  expect(of('serve.learningRate')).toMatchObject({ source: 'default', value: instantLearningRate });
});

test('flags take precedence, and errors name the origin of the value', async () => {
  writeFileSync(file, '{"load": {\n"context": -1}}');
  const errorOf = async (args: string[], environment = {}) =>
    (await run(['run', './m.gguf', 'hi', ...args], environment)).stderr.split('\n')[0];
  const range = 'must be an integer from 1 to 16777216, got';
  expect(await errorOf([])).toBe(`error: "load.context" (${file}:2) ${range} -1`);
  expect(await errorOf([], { RUVLLM_CONTEXT: '-2' })).toBe(`error: RUVLLM_CONTEXT ${range} -2`);
  expect(await errorOf(['--context', '-3'], { RUVLLM_CONTEXT: '-2' })).toBe(`error: --context ${range} -3`);
  expect(await errorOf(['--context', '64'])).toBe('error: model file ./m.gguf does not exist');
});

test.each([
  ['{\n"lod": {}}', ':2: unknown setting "lod" (did you mean load?)'],
  ['{"load": {\n\n"contxt": 1}}', ':3: unknown setting "contxt" in "load" (did you mean context?)'],
  ['{"temperature": 1}', ':1: unknown setting "temperature" (did you mean generate.temperature?)'],
  ['{"__proto__": {"x": 1}}', ':1: unknown setting "__proto__"'],
  ['{"load": {"context": "512"}}', ':1: "load.context" must be an integer'],
  [
    '{"load": {"kernels": "gpu"}}',
    ':1: "load.kernels" must be one of auto, native, webgpu, wasm, reference, or pack:NAME',
  ],
  ['{"load": 5}', ':1: "load" must be an object'],
  ['{"model": ""}', ':1: "model" must be a non-empty string'],
  ['[]', ' must contain an object'],
  ['{"apiKey": "sk-1"', ':1 is not valid JSON: expected "," or "}"'],
  ['{"model": {\n"a": {}}}', ':1: "model" must be a non-empty string'],
  ['{"models": []}', ':1: "models" must be an object'],
  ['{"models": {\n"a": {}}}', ':2: "models.a" requires "model"'],
  ['{"models": {"a b": {"model": "m"}}}', ':1: "a b" is not a name of letters, digits, . _ - and :'],
  [
    '{"models": {"a": {"model": "m",\n"alias": ["b"]}}}',
    ':2: unknown setting "alias" in "models.a" (did you mean aliases?)',
  ],
  [
    '{"models": {"a": {"model": "m", "context": "4096"}}}',
    ':1: "models.a.context" must be an integer from 1 to 16777216',
  ],
  [
    '{"models": {"a": {"model": "m", "sampling": {"top_p": 1}}}}',
    ':1: unknown setting "top_p" in "models.a.sampling" (did you mean topP?)',
  ],
  [
    '{"models": {"a": {"model": "m", "sampling": {"topP": 2}}}}',
    ':1: "models.a.sampling.topP" must be a number from 0 to 1',
  ],
  [
    '{"models": {"a": {"model": "m", "group": "big"}}, "modelGroups": {"bigs": {"maxLoaded": 1}}}',
    ':1: unknown group "big" (did you mean bigs?)',
  ],
  ['{"modelGroups": {"g": {"maxLoaded": 0}}}', ':1: "modelGroups.g.maxLoaded" must be an integer from 1 to 1000'],
  ['{"modelGroup": {}}', ':1: unknown setting "modelGroup" (did you mean modelGroups?)'],
  ['{"serve": {"cors": "x"}}', ':1: "serve.cors" must be a non-empty list; each item must be a non-empty string'],
])('rejects %j with its line', async (text, message) => {
  writeFileSync(file, text);
  const { code, stderr, stdout } = await run(['list']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr.split('\n')[0]).toBe(`error: ${file}${message}`);
  // Commands that help to find the mistake still run.
  expect((await run(['config', 'path'])).stdout).toContain('used');
  expect((await run(['config', 'schema'])).code).toBe(0);
});

test('never shows secrets', async () => {
  writeFileSync(file, '{"apiKey": "sk-secret-1", "memory": "postgres://me:secret-2@db/x?sslmode=require"}');
  const { stdout, stderr } = await run(['config', 'show']);
  const json = await run(['config', 'show', '--json'], { RUVLLM_API_KEY: 'sk-secret-3' });
  expect(stdout + stderr + json.stdout + json.stderr).not.toContain('secret');
  expect(stdout).toMatch(/^apiKey +\*{8} /m);
  expect(stdout).toContain('postgres://********@db/x');
});

test('resolves paths relative to the file, but not model references', async () => {
  const inner = join(folder, 'inner');
  mkdirSync(inner, { recursive: true });
  writeFileSync(
    join(inner, 'mine.json'),
    '{"model": "./m.gguf", "memory": "records", "load": {"kvSpill": "../pages"}, "serve": {"routeConfig": "/abs/r.json"}}',
  );
  const { of } = await settings({}, ['--config', 'inner/mine.json']);
  expect(of('model').value).toBe(join(inner, 'm.gguf'));
  expect(of('memory').value).toBe(join(inner, 'records'));
  expect(of('load.kvSpill').value).toBe(join(folder, 'pages'));
  expect(of('serve.routeConfig').value).toBe('/abs/r.json');
  writeFileSync(join(inner, 'mine.json'), '{"model": "owner/repo:Q4"}');
  expect((await settings({ RUVLLM_CONFIG: 'inner/mine.json' })).of('model').value).toBe('owner/repo:Q4');
});

test('searches --config, RUVLLM_CONFIG, this folder and this user, but no parent folder', async () => {
  const home = join(folder, 'home');
  const below = join(folder, 'below');
  mkdirSync(join(home, '.config/ruvllm'), { recursive: true });
  mkdirSync(below, { recursive: true });
  const user = join(home, '.config/ruvllm/config.json');
  writeFileSync(user, '{"load": {"context": 1}}');
  writeFileSync(file, '{"load": {"context": 2}}');
  const findFile = async (environment: Record<string, string>, at = folder) => {
    const io = createFakeIo({ folder: at, environment });
    await runCli(['config', 'path', '--json'], '9.9.9', io);
    return (JSON.parse(io.written.stdout) as { found: { path: string; reason: string } | null }).found;
  };
  expect(await findFile({ HOME: home })).toEqual({ path: file, reason: 'this folder' });
  expect(await findFile({ RUVLLM_CONFIG: user })).toEqual({ path: user, reason: 'RUVLLM_CONFIG' });
  expect(await findFile({}, below)).toBeNull();
  if (process.platform === 'linux')
    expect(await findFile({ HOME: home }, below)).toEqual({ path: user, reason: 'this user' });
  const missing = await run(['list', '--config', 'none.json']);
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('--config: file') });
});

test.skipIf(process.getuid === undefined)('rejects a world-writable file unless it is named', async () => {
  writeFileSync(file, '{"load": {"context": 2}}');
  chmodSync(file, 0o666);
  const { code, stderr } = await run(['list']);
  expect(code).toBe(2);
  expect(stderr).toContain('is writable by every user');
  expect((await settings({}, ['--config', file])).of('load.context').value).toBe('2');
});

test('reads lists and switches', async () => {
  writeFileSync(file, '{"generate": {"stop": ["a", "b"]}, "load": {"prefixCache": false}, "serve": {"log": true}}');
  const { of } = await settings();
  expect(of('generate.stop')).toMatchObject({ value: '["a","b"]', problem: null });
  expect(of('load.prefixCache')).toMatchObject({ value: 'off', problem: null });
  expect(of('serve.log')).toMatchObject({ value: 'on', problem: null });
  const wrong = await settings({ RUVLLM_LOG: 'maybe', RUVLLM_STOP: '[1]' });
  expect(wrong.of('serve.log').problem).toBe('RUVLLM_LOG must be on or off, got "maybe"');
  expect(wrong.of('generate.stop').problem).toContain('must be a string or a JSON array of strings');
});

test('shows the models of the file, with paths relative to it', async () => {
  const models = {
    coder: { model: 'qwen2.5:0.5b', aliases: ['gpt-4o'], context: 512, sampling: { temperature: 0.2 }, pinned: true },
    'my:model': { model: './m.gguf', adapters: { legal: 'legal.gguf' }, idleUnload: 1.5, group: 'large' },
  };
  writeFileSync(file, JSON.stringify({ models, modelGroups: { large: { maxLoaded: 2 } } }));
  const document = JSON.parse((await run(['config', 'show', '--json'])).stdout) as {
    models: object[];
    groups: object[];
  };
  expect(document.models).toEqual([
    {
      name: 'coder',
      model: 'qwen2.5:0.5b',
      aliases: ['gpt-4o'],
      maxContext: 512,
      adapters: [],
      sampling: { temperature: 0.2 },
      idleUnloadMs: null,
      isPinned: true,
      group: null,
      origin: file,
    },
    expect.objectContaining({
      model: join(folder, 'm.gguf'),
      adapters: [{ name: 'legal', path: join(folder, 'legal.gguf') }],
      idleUnloadMs: 1500,
      group: 'large',
    }),
  ]);
  expect(document.groups).toEqual([{ name: 'large', maxLoaded: 2, origin: file }]);
  const { stdout } = await run(['config', 'show']);
  expect(stdout).toMatch(/^models\.coder +qwen2\.5:0\.5b /m);
  expect(stdout).toMatch(/^modelGroups\.large +maxLoaded 2 /m);
});
