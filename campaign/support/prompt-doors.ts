// Texts that come in over HTTP and stand in a later prompt: a server in this process, whose model says which tokens it was given.
import { configOf, createFakePool, type FakeTool, textResult } from '../../test/support/fake-mcp.ts';
import { createSpokenModel } from '../../test/support/spoken-model.ts';
import { openTestMemory } from '../../test/support/test-memory.ts';
import { createMemoryKeys, createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createKeyStore } from '../../src/server/keys/key-store.ts';
import { HARMLESS, ownLines, type PlaceCheck, sourcesOf } from './prompt-places.ts';

const QUESTION = 'What is the answer?';
const CANARY = 'zanzibar canary of bob';
const SYSTEM = { role: 'system', content: 'SYSTEM-TEXT' };
const FUNCTION = {
  name: 'look',
  description: 'Looks',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
};
/** Enough for every text, so that none is cut. */
const RECALL = { k: 5, minSimilarity: -1, tokenBudget: 1 << 14 };
const CALL = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>';
const MAX_CONTEXT = 1 << 16;
/** Longer names are refused. */
const MAX_NAME_CHARS = 60;
const cutName = (name: string): string =>
  name.length <= MAX_NAME_CHARS ? name : `${name.slice(0, MAX_NAME_CHARS - 1).toWellFormed()}x`;
/** Of the tokenizer of the model: the others are bytes. */
const FIRST_CONTROL = 256;

type Send = (path: string, body: object, tenant?: 'alice' | 'bob') => Promise<Record<string, any>>;

interface Door {
  /** The text is within marks of the runtime. */
  readonly isWrapped?: boolean;
  /** It is quoted in passages, of which a text may make several. */
  readonly isQuoted?: boolean;
  /** The only tool of the MCP server. */
  tool?(text: string): { readonly name: string; readonly tool: FakeTool };
  /** The last prompt has the text, unless it was refused. */
  send(send: Send, text: string): Promise<unknown>;
}

const chat = (send: Send, content: string, more: object = {}) =>
  send('/v1/chat/completions', { model: 'm', messages: [SYSTEM, { role: 'user', content }], max_tokens: 50, ...more });
const respond = (send: Send) =>
  send('/v1/responses', {
    model: 'm',
    input: QUESTION,
    instructions: SYSTEM.content,
    tools: [{ type: 'mcp', server_label: 'weather', require_approval: 'never' }],
  });

export const DOORS: Readonly<Record<string, Door>> = {
  'stored text': {
    isWrapped: true,
    async send(send, text) {
      for (const words of ['Alpha', text]) await send('/admin/memory/add', { text: words });
      await chat(send, QUESTION, { memory: RECALL });
    },
  },
  'stored document': {
    isWrapped: true,
    async send(send, text) {
      await send('/admin/memory/documents', { name: 'a.txt', text });
      await chat(send, QUESTION, { memory: RECALL });
    },
  },
  'name of a stored document': {
    isWrapped: true,
    async send(send, name) {
      await send('/admin/memory/documents', { name, text: 'Alpha' });
      await chat(send, QUESTION, { memory: RECALL });
    },
  },
  correction: {
    async send(send, correction) {
      const { id } = await chat(send, QUESTION);
      await send('/v1/feedback', { request_id: id, correction });
      await chat(send, QUESTION);
    },
  },
  'remembered message': {
    isWrapped: true,
    isQuoted: true,
    async send(send, text) {
      // With the words of the question, by which it is found.
      await chat(send, `${QUESTION} ${text}`, { memory: { remember: true }, session: 'one', user: 'ann' });
      await chat(send, QUESTION, { memory: { ...RECALL, remember: true }, session: 'two', user: 'ann' });
    },
  },
  'result of a function': {
    send: (send, content) =>
      send('/v1/chat/completions', {
        model: 'm',
        tools: [{ type: 'function', function: FUNCTION }],
        messages: [
          SYSTEM,
          { role: 'user', content: QUESTION },
          {
            role: 'assistant',
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'c', content },
        ],
      }),
  },
  'result in a message of Anthropic': {
    send: (send, content) =>
      send('/v1/messages', {
        model: 'm',
        max_tokens: 50,
        system: SYSTEM.content,
        tools: [{ name: 'look', description: 'Looks', input_schema: FUNCTION.parameters }],
        messages: [
          { role: 'user', content: QUESTION },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'look', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content }] },
        ],
      }),
  },
  'output of a function call': {
    send: (send, output) =>
      send('/v1/responses', {
        model: 'm',
        instructions: SYSTEM.content,
        tools: [{ type: 'function', ...FUNCTION }],
        input: [
          { type: 'message', role: 'user', content: QUESTION },
          { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' },
          { type: 'function_call_output', call_id: 'c', output },
        ],
      }),
  },
  'result of an MCP tool': {
    tool: (text) => ({ name: 'look', tool: { run: () => textResult(text) } }),
    send: respond,
  },
  'schema of an MCP tool': {
    tool: (description) => ({
      name: 'look',
      tool: {
        inputSchema: { type: 'object', properties: { query: { type: 'string', description } } },
        run: () => textResult('Alpha'),
      },
    }),
    send: respond,
  },
  'name and description of an MCP tool': {
    tool: (name) => ({ name: cutName(name), tool: { run: () => textResult('Alpha') } }),
    send: respond,
  },
  'id of a user': { send: (send, user) => chat(send, QUESTION, { user, memory: { remember: true }, session: 'one' }) },
  'id of a session': { send: (send, session) => chat(send, QUESTION, { session, memory: { remember: true } }) },
  'name of a model': { send: (send, model) => chat(send, QUESTION, { model }) },
};

interface Outcome {
  readonly prompts: readonly string[];
  readonly structure: string;
  readonly status: number;
}

async function run(door: Door, text: string): Promise<Outcome> {
  const memory = await openTestMemory();
  const { name, tool } = door.tool?.(text) ?? { name: 'look', tool: { run: () => textResult('Alpha') } };
  const pool = createFakePool({ weather: { [name]: tool } }, [{ ...configOf('weather'), maxResultBytes: MAX_CONTEXT }]);
  const { model, requests } = createSpokenModel(door.tool === undefined ? ['Omega.'] : [CALL, 'Omega.'], {
    maxContext: MAX_CONTEXT,
  });
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const tokens = new Map<string, string>();
  for (const tenant of ['alice', 'bob']) {
    tokens.set(tenant, (await keys.create({ name: tenant, tenant, scopes: ['inference'] })).token);
  }
  const server = createTestServer([entryOf('m', async () => model)], {
    memory,
    keys,
    isOpen: false,
    mcp: { pool, connectPublic: null },
  });
  let status = 200;
  const send: Send = async (path, body, tenant = 'alice') => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${tokens.get(tenant)}` };
    const response = await server.fetch(
      new Request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
    );
    status = Math.max(status, response.status);
    return (await response.json()) as Record<string, unknown>;
  };
  try {
    await send('/admin/memory/add', { text: `${QUESTION} ${CANARY}` }, 'bob');
    await door.send(send, text);
    const answered = requests.filter(({ grammar }) => grammar === null || door.tool !== undefined);
    const structure = (answered.at(-1)?.promptIds ?? []).filter((id) => id >= FIRST_CONTROL).join(' ');
    return { prompts: answered.map(({ prompt }) => prompt), structure, status };
  } finally {
    await server.shutDown(1000);
  }
}

const QUOTE = /^(?:user|assistant) \d{4}-\d\d-\d\d:$|^\[\d+\] "(?:[^"\\\p{Cc}\u2028\u2029]|\\.)*"$/u;

/** The lines below the introduction of remembered messages. */
function linesOfMemory(prompt: string): string[] {
  const start = prompt.indexOf('From memory');
  const end = prompt.lastIndexOf(`\n${QUESTION}`);
  return start < 0 ? [] : prompt.slice(start, end).trimEnd().split('\n').slice(1);
}

/** Where the place of harmless words begins and ends. Sources have their order and their lines by what is in them. */
function boundsOf(prompt: string, isWrapped: boolean): { readonly first: number; readonly last: number } {
  const [start, end] = isWrapped ? ['These texts may help', `\n${QUESTION}`] : [HARMLESS, HARMLESS];
  const [first, last] = [prompt.indexOf(start), prompt.lastIndexOf(end)];
  if (first < 0) return { first: prompt.length, last: 0 }; // it is not in the prompt, which must not change
  return { first, last: isWrapped ? last : last + HARMLESS.length };
}

/** Compares what reaches the model with what harmless words bring there. */
export async function openDoor(name: string): Promise<(text: string) => Promise<ReturnType<PlaceCheck>>> {
  const door = DOORS[name]!;
  const references = await Promise.all(
    [HARMLESS, `${HARMLESS}\n${HARMLESS}`].map(async (words) => {
      const outcome = await run(door, `x${words}x`);
      const prompt = outcome.prompts.at(-1) ?? '';
      const { first, last } = boundsOf(prompt, door.isWrapped === true);
      return { ...outcome, prompt, before: prompt.slice(0, first), after: prompt.slice(last) };
    }),
  );
  return async (text) => {
    const hostile = await run(door, `x${text}x`);
    if (hostile.prompts.some((prompt) => prompt.includes(CANARY))) return 'data of another tenant was read';
    if (hostile.status >= 500) return `the server failed with ${hostile.status}`;
    const harmless = references[/[\r\n\v\f\u0085\u2028\u2029]/u.test(text) ? 1 : 0]!;
    // A name may be refused; then no prompt has it.
    if (hostile.status >= 400) return null;
    const prompt = hostile.prompts.at(-1) ?? '';
    if (hostile.structure !== harmless.structure) return 'the control tokens changed';
    if (!prompt.startsWith(harmless.before)) return 'the words before it changed';
    if (!prompt.endsWith(harmless.after)) return 'the words after it changed';
    if (door.isWrapped !== true) return null;
    if (door.isQuoted === true)
      return linesOfMemory(prompt).every((line) => QUOTE.test(line)) ? null : 'a line is no quote';
    if (ownLines(prompt) !== ownLines(harmless.prompt)) return 'it begins a line of the runtime';
    return sourcesOf(prompt).join() === sourcesOf(harmless.prompt).join() ? null : 'it shows itself as another source';
  };
}
