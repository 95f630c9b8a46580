import { describe, expect, test } from 'vitest';
import { parseImport } from './import.ts';
import { createConversation, createUserMessage, type Conversation, type Message } from './types.ts';
import { showVersion, startVersion } from './versions.ts';

const answer = (text: string): Message => ({
  ...createUserMessage(text),
  role: 'assistant',
  reasoning: 'because',
  toolCalls: [{ id: 'c1', name: 'weather', arguments: '{}', result: 'rain' }],
  details: {
    requestId: 'r1',
    route: { candidate: 'small', reason: 'learned' },
    sources: [{ number: 1, kind: 'document', id: 'd1', part: { name: 'a.md', headings: ['A'], startLine: 1, endLine: 2, startPage: null, endPage: null } }],
    model: 'm',
    usage: { prompt_tokens: 3, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 2 } },
    finishReason: 'stop',
    firstTokenMs: 5,
    totalMs: 9,
    isRemote: true,
    isInTab: true,
  },
  verdict: {
    thumbs: 'down',
    correction: 'better',
    receipt: { state: 'learned', reason: 'r', loss_before: 2, loss_after: 1, supersedes: ['x'] },
  },
}); // prettier-ignore

function sample(): Conversation {
  const messages = [createUserMessage('Question'), answer('First')];
  const start: Conversation = { ...createConversation(), title: 'A title', isPinned: true, model: 'm', version: 7, messages, settings: { system: 'Be brief.', options: { temperature: 0.5, seed: 3 }, usesMemory: true, tools: '[]' } }; // prettier-ignore
  const second = startVersion(start, messages[1]!.id);
  return { ...second, messages: [...second.messages, answer('Second')] };
}

const withoutIds = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key === 'id' ? undefined : inner)));

describe('an export', () => {
  test('comes back complete, with versions, under new ids', () => {
    const original = sample();
    const [copy] = parseImport(JSON.stringify(original, null, 2)) as [Conversation];
    expect(copy.id).not.toBe(original.id);
    expect(copy.version).toBe(0);
    const { versions, version: _, ...others } = original;
    expect(withoutIds({ ...copy, versions: null })).toEqual(withoutIds({ ...others, version: 0, versions: null }));
    expect(withoutIds(Object.values(copy.versions))).toEqual(withoutIds(Object.values(versions)));
    const ids = copy.messages.map(({ id }) => id);
    expect(ids.some((id) => original.messages.some((one) => one.id === id))).toBe(false);
    expect(showVersion(copy, ids[1]!, -1).messages.map(({ text }) => text)).toEqual(['Question', 'First']);
  });

  test('may contain several conversations; those without messages are left out', () => {
    const list = [sample(), createConversation(), { ...sample(), title: 'Another' }];
    expect(parseImport(JSON.stringify(list)).map(({ title }) => title)).toEqual(['A title', 'Another']);
  });
});

test('messages of other programs are read: OpenAI messages, also inside "chat", with parts and a system prompt', () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Hello' }, { type: 'image_url', image_url: {} }] },
    { role: 'tool', content: 'left out' },
    { role: 'assistant', content: 'Hi', reasoning_content: 'greet' },
  ]; // prettier-ignore
  for (const file of [{ title: 'T', messages }, [{ title: 'T', chat: { messages } }], { chat: { title: 'T', messages } }]) {
    const [one] = parseImport(JSON.stringify(file)) as [Conversation];
    expect([one.title, one.settings.system]).toEqual(['T', 'Be brief.']);
    expect(one.messages.map(({ role, text, reasoning }) => [role, text, reasoning])).toEqual([['user', 'Hello', ''], ['assistant', 'Hi', 'greet']]); // prettier-ignore
  }
}); // prettier-ignore

describe('a hostile file', () => {
  test.each([
    ['no JSON', '{"messages": [', /not valid JSON/],
    ['a list of numbers', '[1, 2]', /no messages/],
    ['null', 'null', /no messages/],
    ['no messages', '{"messages": "none"}', /no messages/],
    ['empty', '[]', /no messages/],
    ['an unknown role', '{"messages": [{"role": "root", "text": "x"}]}', /role "root"/],
    ['null messages', '{"messages": [null]}', /role "undefined"/],
    ['too many', JSON.stringify(Array.from({ length: 501 }, () => ({ messages: [] }))), /501 conversations; at most 500/],
  ])('is refused with a reason: %s', (_, json, reason) => {
    expect(() => parseImport(json)).toThrow(reason);
  }); // prettier-ignore

  test('sets no field but the known ones, and of the right type', () => {
    const json = `{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "id": "../../admin/keys", "version": 1e999,
      "title": {"toString": 1}, "isPinned": "yes", "model": 4, "settings": {"options": {"temperature": "hot", "__proto__": {"polluted": 1}, "top_p": 0.5}},
      "createdMs": "now", "versions": {"__proto__": {"shown": 0, "tails": [[]]}, "x": {"shown": 9, "tails": [[]]}, "y": 3},
      "messages": [{"id": "<img>", "role": "user", "text": 5, "state": "streaming", "failure": 7, "toolCalls": "no", "verdict": {"thumbs": "sideways", "receipt": {"state": "owned"}},
        "details": {"requestId": ${JSON.stringify('r'.repeat(900))}, "sources": [null, {"id": 3}], "usage": {"prompt_tokens": "many"}, "totalMs": null}}]}`;
    const [one] = parseImport(json) as [Conversation];
    expect(({} as { polluted?: number }).polluted).toBe(undefined);
    expect(one).toMatchObject({ title: null, isPinned: false, model: null, version: 0, settings: { options: { top_p: 0.5 } } }); // prettier-ignore
    expect(Object.keys(one).sort()).toEqual(Object.keys(createConversation()).sort());
    expect(one.id).toMatch(/^[\w-]{1,64}$/);
    expect(one.versions['x']).toBe(undefined);
    const [message] = one.messages;
    expect(message).toMatchObject({ text: '', state: 'stopped', failure: null, verdict: { thumbs: null } });
    expect(message!.verdict.receipt).toBe(undefined);
    expect(message!.details!.requestId.length).toBe(200);
    expect(message!.details!.usage).toEqual({ prompt_tokens: 0, completion_tokens: 0 });
    expect(message!.details!.sources[0]).toEqual({ number: 0, kind: '', id: '' });
  });
});

test('keeps the images of messages, but none that another server would have to send', () => {
  const url = 'data:image/png;base64,aGk=';
  const part = (source: string) => ({ type: 'image_url', image_url: { url: source } });
  const content = [part(url), part('https://example.com/a.png'), part('data:image/svg+xml;base64,aGk='), { type: 'text', text: 'What?' }]; // prettier-ignore
  const [openai] = parseImport(JSON.stringify({ messages: [{ role: 'user', content }] }));
  expect(openai!.messages).toMatchObject([{ text: 'What?', images: [{ url }] }]);
  expect(openai!.messages[0]!.images).toHaveLength(1);
  const messages = [{ role: 'user', text: 'a', images: [{ name: 'x', url: 'https://example.com/a.png' }, { name: 'y', url }] }]; // prettier-ignore
  const [own] = parseImport(JSON.stringify({ messages }));
  expect(own!.messages[0]!.images).toEqual([{ name: 'y', url }]);
});
