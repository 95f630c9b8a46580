// Requests of Ollama's clients as they reach a scripted model, and its answers in their format.
import { expect, test } from 'vitest';
import { createSpokenModel, THINKING_TEMPLATE } from '../../../../test/support/spoken-model.ts';
import { createTestServer, entryOf } from '../../../../test/support/test-server.ts';
import type { Model } from '../../../runtime/model.ts';
import type { ModelLibrary, SavedModel } from '../../model-library.ts';

const CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": [1, 2]}}\n</tool_call>';
const messages = [{ role: 'user', content: 'hi' }];
const tools = [
  {
    type: 'function',
    function: {
      name: 'weather',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' }, days: { type: 'array', items: { type: 'integer' } } },
        required: ['city'],
      },
    },
  },
];

interface Setup {
  readonly answers: readonly string[];
  readonly template?: string;
  readonly saved?: SavedModel;
  readonly change?: (model: Model) => Model;
}

function setUp({ answers, template, saved, change = (model) => model }: Setup) {
  const { model, requests } = createSpokenModel(answers, template === undefined ? {} : { template });
  const library: Partial<ModelLibrary> = {
    saved: {
      find: async (name) => (name === 'mine' ? (saved ?? null) : null),
      list: async () => [],
      save: async () => {},
    },
  };
  const { fetch } = createTestServer([entryOf('m', async () => change(model))], { library: library as ModelLibrary });
  const ask = async (path: string, body: object): Promise<{ status: number; lines: any[] }> => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const response = await fetch(
      new Request(`http://localhost${path}`, { ...init, body: JSON.stringify({ model: 'm', ...body }) }),
    );
    const text = (await response.text()).trim();
    return { status: response.status, lines: text.split('\n').map((line) => JSON.parse(line) as unknown) };
  };
  return { ask, requests };
}

test.each([true, false])('a tool call has its whole arguments as an object, streamed: %s', async (stream) => {
  const { ask, requests } = setUp({ answers: [`I will look. ${CALL}`] });
  const { lines } = await ask('/api/chat', { messages, tools, stream });
  const calls = lines.flatMap(({ message }) => message.tool_calls ?? []);
  expect(calls).toMatchObject([{ function: { name: 'weather', arguments: { city: 'Rome', days: [1, 2] } } }]);
  expect(lines.map(({ message }) => message.content).join('')).toBe('I will look.');
  expect(lines.at(-1)).toMatchObject({ done: true, done_reason: 'stop' });
  expect(requests[0]!.prompt).toContain('"name": "weather"');
});

test('a tool call that the token limit cut off is not sent', async () => {
  const { ask } = setUp({ answers: [CALL] });
  const { lines } = await ask('/api/chat', { messages, tools, options: { num_predict: 40 } });
  expect(lines.flatMap(({ message }) => message.tool_calls ?? [])).toEqual([]);
  expect(lines.at(-1)).toMatchObject({ done: true, done_reason: 'length' });
});

test('results of tools go back into the prompt', async () => {
  const { ask, requests } = setUp({ answers: ['Sunny.'] });
  const call = { function: { name: 'weather', arguments: { city: 'Rome' } } };
  const turns = [...messages, { role: 'assistant', content: '', tool_calls: [call] }, { role: 'tool', content: 'sun', tool_name: 'weather' }]; // prettier-ignore
  expect((await ask('/api/chat', { messages: turns, tools, stream: false })).lines[0].message.content).toBe('Sunny.');
  expect(requests[0]!.prompt).toContain('{"name": "weather", "arguments": {"city": "Rome"}}');
  expect(requests[0]!.prompt).toContain('tool\nsun');
});

test.each(['/api/chat', '/api/generate'])('%s: format is JSON, a schema, or nothing', async (path) => {
  const { ask, requests } = setUp({ answers: ['{"a":1}'] });
  const schema = { type: 'object', properties: { a: { type: 'integer' } } };
  const body = { ...(path === '/api/chat' ? { messages } : { prompt: 'hi' }), stream: false };
  for (const format of ['json', schema, '']) expect((await ask(path, { ...body, format })).status).toBe(200);
  expect(requests.map(({ grammar }) => grammar)).toMatchObject([
    { type: 'json_object' },
    { type: 'json_schema', schema },
    null,
  ]);
});

test('thinking is a part of its own; think false switches it off and hides it', async () => {
  const { ask, requests } = setUp({ answers: ['<think>Hm.</think>Yes.', 'No.'], template: THINKING_TEMPLATE });
  const [thought] = (await ask('/api/chat', { messages, think: true, stream: false })).lines;
  expect(thought.message).toEqual({ role: 'assistant', content: 'Yes.', thinking: 'Hm.' });
  const [plain] = (await ask('/api/chat', { messages, think: false, stream: false })).lines;
  expect(plain.message).toEqual({ role: 'assistant', content: 'No.' });
  expect(requests[1]!.prompt).toContain('<think>\n\n</think>');
});

test('suffix of a model that cannot fill gaps is a 400 that names it', async () => {
  const { ask, requests } = setUp({ answers: ['x'] });
  const { status, lines } = await ask('/api/generate', { prompt: 'a', suffix: 'c' });
  expect([status, lines[0].param, requests.length]).toEqual([400, 'suffix', 0]);
});

test('the adapter of a saved model is loaded once and used by its requests only', async () => {
  const loaded: { name: string; path: string; tenant: string | null }[] = [];
  const used: unknown[] = [];
  const saved: SavedModel = {
    from: 'm',
    system: null,
    parameters: { temperature: 0 },
    adapter: '/models/tuned.gguf',
    messages: [],
    createdMs: 0,
  };
  const change = (model: Model): Model => ({
    ...model,
    adapters: () => loaded as unknown as ReturnType<Model['adapters']>,
    async loadAdapter(path, { name }) {
      loaded.push({ name, path: path as string, tenant: null });
      return loaded.at(-1) as unknown as Awaited<ReturnType<Model['loadAdapter']>>;
    },
    generateStream(prompt, { adapter, ...options } = {}) {
      used.push(adapter ?? null);
      return model.generateStream(prompt, options);
    },
  });
  const { ask } = setUp({ answers: ['x'], saved, change });
  for (const model of ['mine', 'mine', 'm'])
    expect((await ask('/api/chat', { model, messages, stream: false })).status).toBe(200);
  expect(loaded.map(({ path }) => path)).toEqual(['/models/tuned.gguf']);
  expect(used).toEqual([loaded[0]!.name, loaded[0]!.name, null]);
});
