import { beforeEach, describe, expect, test } from 'vitest';
import { createTestServer, entryOf, type TestServer } from '../../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../../test/support/toy-runtime.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import type { ModelCatalog, PullStep } from '../../model-catalog.ts';
import type { ModelLibrary, SavedModel } from '../../model-library.ts';

let server: TestServer;
let saved: Map<string, SavedModel>;
let pullStep: (step: PullStep) => void;
let endPull: (error?: Error) => void;
let numOpened: number;
let openedContext: number | null;
let withPreset: () => TestServer;

const FILES: Readonly<Record<string, string>> = {
  small: '/models/small.gguf',
  'owner/repo:Q4_0': '/models/small.gguf',
};

beforeEach(() => {
  saved = new Map();
  numOpened = 0;
  openedContext = null;
  const library: ModelLibrary = {
    list: async () => [
      { name: 'small', path: FILES['small']!, sizeBytes: 10, modifiedMs: 5000, sha256: 'ab'.repeat(32) },
    ],
    async locate(name) {
      const path = FILES[saved.get(name)?.from ?? name];
      if (path === undefined) throw new RuvLLMError('not_found', 'no', { data: { suggestions: ['small'] } });
      return { name, path, sizeBytes: 10, modifiedMs: 5000, sha256: null };
    },
    describe: (path) =>
      path === FILES['small']
        ? {
            displayName: 'Small 1B Q4_0',
            architecture: 'llama',
            numParameters: 1.1e9,
            quantization: 'Q4_0',
            canGenerate: async () => true,
            contextLength: 128,
            template: '{{ messages }}',
            license: 'mit',
            metadata: { 'general.architecture': 'llama', 'llama.context_length': 128 },
          }
        : null,
    async remove(name) {
      if (!saved.delete(name)) throw new RuvLLMError('not_found', 'no');
    },
    requireReference(name) {
      if (name.startsWith('/')) throw new RuvLLMError('invalid_option', 'a path', { data: { option: 'model' } });
    },
    saved: {
      find: async (name) => saved.get(name) ?? null,
      list: async () => [...saved].map(([name, model]) => ({ name, ...model })),
      save: async (name, model) => void saved.set(name, model),
    },
  };
  const catalog: ModelCatalog = {
    list: async () => [],
    async open(reference, id, maxContext = null) {
      numOpened++;
      openedContext = maxContext;
      const { model } = await createToyRuntime();
      const path = FILES[saved.get(reference)?.from ?? reference]!;
      return entryOf(id ?? reference, async () => model, { path, maxContext });
    },
    pull: (_reference, { onProgress }) =>
      new Promise((resolve, reject) => {
        pullStep = onProgress;
        endPull = (error) => (error === undefined ? resolve({ sizeBytes: 10, isDownloaded: true }) : reject(error));
      }),
    suggest: async () => ({ isHubReachable: true, models: [] }),
    freeBytes: () => 2 ** 40,
  };
  const loadToy = async () => (await createToyRuntime()).model;
  const settings = { maxContext: 32, sampling: { temperature: 0.25 }, path: FILES['small']! };
  withPreset = () => createTestServer([entryOf('preset', loadToy, settings)], { library, catalog });
  server = createTestServer([entryOf('toy', loadToy, { aliases: ['default'] })], { library, catalog });
});

const call = (method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Response> =>
  server.fetch(
    new Request(`http://localhost${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
const post = (path: string, body: object): Promise<Response> => call('POST', path, body);
const linesOf = async (response: Response): Promise<any[]> =>
  (await response.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
const bodyOf = async (response: Response): Promise<any> => (await response.json()) as unknown;

const messages = [{ role: 'user', content: 'hi' }];
const options = { num_predict: 6, seed: 3, temperature: 1 };

describe('answers', () => {
  test('streams a chat as one JSON object per line, with the durations in the last', async () => {
    const response = await post('/api/chat', { model: 'toy', messages, options });
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = await linesOf(response);
    const last = lines.pop();
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      expect(line).toMatchObject({
        model: 'toy',
        message: { role: 'assistant', content: expect.any(String) },
        done: false,
      });
    }
    expect(last).toMatchObject({ message: { content: '' }, done: true, done_reason: 'length', eval_count: 6 });
    expect(last.prompt_eval_count).toBeGreaterThan(0);
    for (const name of ['total_duration', 'load_duration', 'prompt_eval_duration', 'eval_duration']) {
      expect(Number.isSafeInteger(last[name]), name).toBe(true);
    }
    expect(last.total_duration).toBeGreaterThanOrEqual(last.eval_duration);
    const whole = await bodyOf(await post('/api/chat', { model: 'toy:latest', messages, options, stream: false }));
    expect(whole.message.content).toBe(lines.map((line) => line.message.content).join(''));
    expect(whole).toMatchObject({ model: 'toy:latest', done: true, done_reason: 'length', eval_count: 6 });
  });

  test('generates from a prompt, in the template or raw', async () => {
    const lines = await linesOf(await post('/api/generate', { model: 'toy', prompt: 'hi', options }));
    expect(lines.at(-1)).toMatchObject({ response: '', done: true, done_reason: 'length' });
    const chat = await bodyOf(await post('/api/chat', { model: 'toy', messages, options, stream: false }));
    expect(lines.map(({ response }) => response).join('')).toBe(chat.message.content);
    const raw = await bodyOf(
      await post('/api/generate', { model: 'toy', prompt: 'hi', raw: true, options, stream: false }),
    );
    expect(raw.prompt_eval_count).toBeLessThan(chat.prompt_eval_count);
    const withSystem = await bodyOf(
      await post('/api/generate', { model: 'toy', prompt: 'hi', system: 'be brief', options, stream: false }),
    );
    expect(withSystem.prompt_eval_count).toBeGreaterThan(chat.prompt_eval_count);
  });

  test('ignores unknown fields, names them in a header, and clamps num_predict', async () => {
    const response = await post('/api/chat', {
      model: 'toy',
      messages: [{ role: 'user', content: 'hi', extra: 1 }],
      stream: false,
      think: true,
      shift: true,
      options: { num_predict: 100_000, num_ctx: 4096, mirostat: 1, seed: -4, top_k: -1 },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-ignored-fields')).toBe(
      'shift, messages[0].extra, options.mirostat, options.num_ctx',
    );
  });

  test('refuses an unknown format', async () => {
    expect((await post('/api/chat', { model: 'toy', messages, format: 'yaml' })).status).toBe(400);
  });

  test('reads bodies of curl -d, but not from pages', async () => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = { model: 'toy', prompt: 'hi', options, stream: false };
    expect((await call('POST', '/api/generate', body, type)).status).toBe(200);
    const fromPage = { ...type, origin: 'http://localhost', host: 'localhost' };
    expect((await call('POST', '/api/generate', body, fromPage)).status).toBe(415);
  });

  test.each([
    [{ messages: [{ role: 'user', content: 'x', images: ['aGk='] }] }, 400, 'messages[0].images'],
    [{ messages: 'hi' }, 400, 'messages'],
    [{ messages, options: { temperature: 'hot' } }, 400, 'options.temperature'],
    [{ messages, keep_alive: 'soon' }, 400, 'keep_alive'],
  ])('refuses %j with an error text', async (more, status, words) => {
    const response = await post('/api/chat', { model: 'toy', ...more });
    expect(response.status).toBe(status);
    expect((await bodyOf(response)).error).toContain(words);
  });

  test('an unknown model is a 404 that suggests near names', async () => {
    const response = await post('/api/chat', { model: 'smal', messages });
    expect(response.status).toBe(404);
    expect(await bodyOf(response)).toMatchObject({ error: 'model "smal" not found, did you mean small?' });
  });
});

describe('models', () => {
  test('loads a downloaded model once, under any of its names', async () => {
    for (const model of ['small', 'owner/repo:Q4_0', 'small:latest']) {
      expect((await post('/api/chat', { model, messages, options, stream: false })).status).toBe(200);
    }
    expect(numOpened).toBe(1);
    const { models } = await bodyOf(await call('GET', '/api/ps'));
    expect(models).toMatchObject([
      { name: 'small:latest', model: 'small:latest', expires_at: expect.stringMatching(/^9999/) },
    ]);
    expect(models[0].context_length).toBeGreaterThan(0);
  });

  test('keep_alive unloads at once, later or never; an empty request loads', async () => {
    const load = await bodyOf(await post('/api/generate', { model: 'toy', keep_alive: '10m' }));
    expect(load).toMatchObject({ response: '', done: true, done_reason: 'load' });
    const [loaded] = (await bodyOf(await call('GET', '/api/ps'))).models;
    expect(Date.parse(loaded.expires_at) - Date.now()).toBeGreaterThan(590_000);
    await linesOf(await post('/api/chat', { model: 'toy', messages, options, keep_alive: 0 }));
    expect((await bodyOf(await call('GET', '/api/ps'))).models).toEqual([]);
    await post('/api/generate', { model: 'toy', keep_alive: -1 });
    expect((await bodyOf(await call('GET', '/api/ps'))).models).toMatchObject([{ name: 'toy:latest' }]);
    expect(await bodyOf(await post('/api/chat', { model: 'toy', messages: [], keep_alive: 0 }))).toMatchObject({
      done_reason: 'unload',
    });
    expect((await bodyOf(await call('GET', '/api/ps'))).models).toEqual([]);
  });

  test('lists served, saved and downloaded models', async () => {
    await post('/api/create', {
      model: 'mine',
      from: 'small',
      system: 'Be brief.',
      parameters: { temperature: 0, top_k: 3 },
    });
    const { models } = await bodyOf(await call('GET', '/api/tags'));
    expect(models.map(({ name }: { name: string }) => name)).toEqual(['toy:latest', 'mine:latest', 'small:latest']);
    expect(models[2]).toMatchObject({
      size: 10,
      digest: 'ab'.repeat(32),
      details: { family: 'llama', parameter_size: '1.1B', quantization_level: 'Q4_0', format: 'gguf' },
    });
    for (const { digest } of models) expect(digest).toMatch(/^[0-9a-f]{64}$/);
  });

  test('shows facts, defaults and the Modelfile', async () => {
    await post('/api/create', { model: 'mine', from: 'small', system: 'Be brief.', parameters: { stop: ['a', 'b'] } });
    const shown = await bodyOf(await post('/api/show', { model: 'mine' }));
    expect(shown).toMatchObject({
      system: 'Be brief.',
      template: '{{ messages }}',
      model_info: { 'general.architecture': 'llama', 'llama.context_length': 128, 'general.parameter_count': 1.1e9 },
      capabilities: ['completion', 'tools'],
      details: { parent_model: 'small' },
    });
    expect(shown.modelfile).toBe('FROM small\nPARAMETER stop "a"\nPARAMETER stop "b"\nSYSTEM Be brief.\n');
    expect((await post('/api/show', { name: 'nope' })).status).toBe(404);
  });

  test('a saved model answers with its system prompt and parameters', async () => {
    const system = 'Answer in one word, and always the same one.';
    const create = await post('/api/create', {
      model: 'mine',
      from: 'toy',
      system,
      parameters: { num_predict: 2, seed: 1 },
    });
    expect((await linesOf(create)).at(-1)).toEqual({ status: 'success' });
    const ask = (model: string): Promise<any> => post('/api/chat', { model, messages, stream: false }).then(bodyOf);
    const [plain, mine] = [await ask('toy'), await ask('mine')];
    expect(mine).toMatchObject({ model: 'mine', eval_count: 2 });
    expect(mine.prompt_eval_count).toBeGreaterThan(plain.prompt_eval_count);
    expect((await post('/api/copy', { source: 'mine', destination: 'other' })).status).toBe(200);
    expect(await ask('other')).toMatchObject({ eval_count: 2, message: mine.message });
    expect((await call('DELETE', '/api/delete', { model: 'mine' })).status).toBe(200);
    expect((await call('DELETE', '/api/delete', { model: 'mine' })).status).toBe(404);
    expect((await call('DELETE', '/api/delete', { model: 'toy' })).status).toBe(409);
  });

  test('a saved model answers on the endpoints of other formats, where requests override its defaults', async () => {
    const system = 'Answer in one word, and always the same one.';
    const turns = [
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: 'yes' },
    ];
    const parameters = { num_predict: 2, seed: 1 };
    const create = { model: 'mine', from: 'toy', system, parameters, messages: turns };
    await linesOf(await post('/api/create', create));
    const ask = async (body: object): Promise<any> => bodyOf(await post('/v1/chat/completions', { messages, ...body }));
    const mine = await ask({ model: 'mine' });
    expect(mine).toMatchObject({ model: 'toy', usage: { completion_tokens: 2 } });
    const written = await ask({ model: 'toy', max_tokens: 2, seed: 1, messages: [{ role: 'system', content: system }, ...turns, ...messages] }); // prettier-ignore
    expect(mine).toMatchObject({ choices: [{ message: written.choices[0].message }], usage: { prompt_tokens: written.usage.prompt_tokens } }); // prettier-ignore
    // A system message of the request replaces that of the model and stays in front of its first turns.
    const ownSystem = { role: 'system', content: 'Be loud.' };
    const overridden = await ask({ model: 'mine', max_tokens: 4, messages: [ownSystem, ...messages] });
    const expected = await ask({ model: 'toy', max_tokens: 4, seed: 1, messages: [ownSystem, ...turns, ...messages] }); // prettier-ignore
    expect(overridden.usage).toMatchObject({ ...expected.usage, prompt_tokens_details: expect.anything() });
    expect(overridden.choices[0].message).toEqual(expected.choices[0].message);
    for (const [path, body] of [
      ['/v1/completions', { prompt: 'hi' }],
      ['/v1/responses', { input: 'hi' }],
      ['/v1/messages', { messages, max_tokens: 2 }],
      ['/v1/messages/count_tokens', { messages }],
      ['/completion', { prompt: 'hi' }],
    ] as const) {
      expect((await post(path, { model: 'mine', ...body })).status, path).toBe(200);
    }
    const { data } = await bodyOf(await call('GET', '/v1/models'));
    expect(data.map(({ id }: { id: string }) => id)).toEqual(['toy', 'mine']);
    expect(await bodyOf(await call('GET', '/v1/models/mine'))).toMatchObject({ id: 'mine', display_name: 'mine' });
    expect((await post('/v1/chat/completions', { model: 'small', messages })).status).toBe(404);
  });

  test('num_ctx is the context of a model that is added; otherwise it is named as ignored', async () => {
    const create = { model: 'mine', from: 'small', parameters: { num_ctx: 64, num_predict: 2 } };
    await linesOf(await post('/api/create', create));
    const first = await post('/v1/chat/completions', { model: 'mine', messages });
    expect([first.status, openedContext]).toEqual([200, 64]);
    await linesOf(await post('/api/create', { model: 'other', from: 'toy', parameters: { num_ctx: 64 } }));
    const ignored = await post('/v1/chat/completions', { model: 'other', messages, max_tokens: 2 });
    expect(ignored.headers.get('x-ignored-fields')).toBe('parameters.num_ctx');
    const asked = await post('/api/chat', { model: 'toy', messages, options: { ...options, num_ctx: 77 } });
    expect(asked.headers.get('x-ignored-fields')).toBe('options.num_ctx');
  });

  test('a request adds a downloaded model with its num_ctx, at most the context of the training', async () => {
    const response = await post('/api/chat', { model: 'small', messages, options: { ...options, num_ctx: 4096 } });
    expect([response.status, openedContext]).toEqual([200, 128]);
    expect(response.headers.get('x-ignored-fields')).toBe('options.num_ctx');
  });

  test('shows the settings of a served model', async () => {
    server = withPreset();
    const shown = await bodyOf(await post('/api/show', { model: 'preset' }));
    expect(shown.parameters.split('\n').map((line: string) => line.split(/ +/))).toEqual([
      ['num_ctx', '32'],
      ['temperature', '0.25'],
    ]);
    expect(shown.modelfile).toBe('FROM preset\nPARAMETER num_ctx 32\nPARAMETER temperature 0.25\n');
    // The display name comes from the file, which need not be loaded.
    const { data } = await bodyOf(await call('GET', '/v1/models'));
    expect(data).toMatchObject([{ id: 'preset', state: 'unloaded', display_name: 'Small 1B Q4_0' }]);
  });

  test.each([
    [{ model: 'x', from: 'toy', template: '{{ .Prompt }}' }, 400, 'template'],
    [{ model: 'x', modelfile: 'FROM toy\nTEMPLATE """{{ .Prompt }}"""' }, 400, 'TEMPLATE is not supported'],
    [{ model: 'x', modelfile: 'FROM toy\nADAPTER ./a.gguf' }, 400, 'ADAPTER'],
    [{ model: 'x', from: '/etc/passwd' }, 400, 'a path'],
    [{ model: 'x', from: 'nope' }, 404, 'not found'],
    [{ model: 'x', files: { 'a.gguf': 'sha256:1' }, from: 'toy' }, 400, 'files'],
    [{ model: 'x' }, 400, "'from' is required"],
    [{ model: 'x', from: 'toy', parameters: { temperature: 'hot' } }, 400, 'temperature'],
  ])('refuses to create %j', async (body, status, words) => {
    const response = await post('/api/create', body);
    expect([response.status, (await bodyOf(response)).error]).toEqual([status, expect.stringContaining(words)]);
    expect(saved.size).toBe(0);
  });

  test('reports the progress of a pull, and its failure', async () => {
    const pulling = post('/api/pull', { model: 'small' }).then(linesOf);
    await new Promise((resolve) => setTimeout(resolve));
    pullStep({ phase: 'download', item: 'small.gguf', doneBytes: 5, totalBytes: 10 });
    await new Promise((resolve) => setTimeout(resolve, 400));
    endPull();
    const lines = await pulling;
    expect(lines[0]).toEqual({ status: 'pulling manifest' });
    expect(lines).toContainEqual({ status: 'pulling small.gguf', digest: 'small.gguf', total: 10, completed: 5 });
    expect(lines.at(-1)).toEqual({ status: 'success' });
    const failing = post('/api/pull', { name: 'small', stream: false });
    await new Promise((resolve) => setTimeout(resolve));
    endPull(new RuvLLMError('download_failed', 'the hub is away'));
    const response = await failing;
    expect([response.status, await bodyOf(response)]).toEqual([502, { error: 'the hub is away' }]);
  });

  test('embeds texts, and cuts those that are too long unless told not to', async () => {
    const { embeddings, prompt_eval_count: count } = await bodyOf(
      await post('/api/embed', { model: 'toy', input: ['hi', 'x '.repeat(3000)] }),
    );
    expect(embeddings).toHaveLength(2);
    expect(count).toBeGreaterThan(2);
    for (const vector of embeddings) expect(Math.hypot(...vector)).toBeCloseTo(1, 4);
    const { embedding } = await bodyOf(await post('/api/embeddings', { model: 'toy', prompt: 'hi' }));
    expect(embedding).toEqual(embeddings[0]);
    expect((await post('/api/embed', { model: 'toy', input: 'x '.repeat(3000), truncate: false })).status).toBe(400);
    expect(await bodyOf(await post('/api/embed', { model: 'toy', input: [] }))).toMatchObject({ embeddings: [] });
  });

  test('says that it is running, and which version of the API it follows', async () => {
    expect(await (await call('GET', '/')).text()).toBe('RuvLLM is running');
    expect((await call('HEAD', '/')).status).toBe(200);
    const { version, ruvllm } = await bodyOf(await call('GET', '/api/version'));
    expect([version, ruvllm]).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+$/), '0.0.0']);
    const push = await post('/api/push', { model: 'toy' });
    expect([push.status, await bodyOf(push)]).toEqual([501, { error: expect.stringContaining('cannot be pushed') }]);
  });
});
