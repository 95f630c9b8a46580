import { expect, test } from 'vitest';
import { pieceOf } from '../../../test/support/echo-model.ts';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import type { RequestMemory } from '../memory/request-memory.ts';
import type { CallOutcome, RememberedCall } from '../memory/types.ts';
import type { Model } from '../model.ts';
import { type GenerationRequest, PLAIN_REQUEST } from './generation-request.ts';
import { rememberRequest, type RequestIdentity } from './remember-request.ts';

const IDENTITY = { tenant: 't', requestId: 'r', modelId: 'm' };
const PATTERNS = { name: 'patterns' };
const requestOf = (options: object = {}, more: Partial<GenerationRequest> = {}): GenerationRequest => ({ ...PLAIN_REQUEST, model: 'm', prompts: ['a', 'b'], options, ...more }); // prettier-ignore

async function remember(request: GenerationRequest, identity: Partial<RequestIdentity> = {}) {
  const calls: RememberedCall[] = [];
  const outcomes: CallOutcome[] = [];
  const memory = {
    async begin(call: RememberedCall) {
      calls.push(call);
      const finish = (outcome: CallOutcome): void => void outcomes.push(outcome);
      return { prompt: 'recalled', sources: [], recall: null, embedded: null, similarities: [], near: null, finish };
    },
    errorPatterns: PATTERNS,
  } as unknown as RequestMemory;
  const remembered = await rememberRequest(memory, request, { ...IDENTITY, ...identity }, () => 0);
  return { call: calls[0]!, outcomes, ...remembered };
}

test('without a memory a request goes on without its wishes, and a wish for recall is refused', async () => {
  const request = requestOf({ user: 'ada', corrections: false, temperature: 1 });
  const remembered = await rememberRequest(null, request, IDENTITY, () => 0);
  expect(remembered).toMatchObject({ request: { options: { temperature: 1 }, prompts: ['a', 'b'] }, observer: null });
  expect(Object.keys(remembered.request.options)).toEqual(['temperature']);
  await expect(rememberRequest(null, requestOf({ memory: {} }), IDENTITY, () => 0)).rejects.toMatchObject({ data: { option: 'memory' } }); // prettier-ignore
});

test('a request without wishes is remembered as it is, and only its first prompt has what was recalled', async () => {
  const { call, request } = await remember(requestOf());
  expect(call).toMatchObject({
    tenant: 't',
    requestId: 'r',
    model: 'm',
    session: null,
    user: null,
    adapter: null,
    prompt: 'a',
    sampling: { temperature: 0.7, topP: 1 },
    wish: null,
    corrections: true,
    isRouted: false,
    near: null,
    opinion: null,
    reader: null,
    generateJson: null,
  });
  expect(request.prompts).toEqual(['recalled', 'b']);
});

test('session, user and corrections are those of the request', async () => {
  const { call } = await remember(requestOf({ session: 's', user: 'ada', corrections: false }), { isRouted: true });
  expect(call).toMatchObject({ session: 's', user: 'ada', corrections: false, isRouted: true });
});

test.each<[object, string | null]>([
  [{}, 'named'],
  [{ adapter: null }, null],
  [{ adapter: 'own' }, 'own'],
  [{ adapter: [{ name: 'first', scale: 0.5 }, 'second'] }, 'first'],
  [{ adapter: [] }, null],
])('with the options %j the adapter of the request is %s', async (options, adapter) => {
  expect((await remember(requestOf(options), { adapter: 'named' })).call.adapter).toBe(adapter);
});

test('a known model reads the prompt, and extracts facts where they are wished', async () => {
  const { model } = createSpokenModel(['{}']);
  const generated: unknown[] = [];
  const spy = { ...model, generate: async (...given: unknown[]) => (generated.push(given), { text: '{"a":1}' }) } as unknown as Model; // prettier-ignore
  const reads = await remember(requestOf({ memory: {} }), { model: spy });
  expect([reads.call.reader!.countTokens('abc'), reads.call.generateJson]).toEqual([3, null]);
  expect((await remember(requestOf({ session: 's' }), { model: spy })).call.generateJson).toBeNull();
  const unknown = await remember(requestOf({ session: 's', memory: { remember: true } }));
  expect([unknown.call.reader, unknown.call.generateJson]).toEqual([null, null]);
  const remembers = await remember(requestOf({ session: 's', memory: { remember: true } }), { model: spy });
  const { signal } = new AbortController();
  expect(await remembers.call.generateJson!('facts?', { type: 'object' }, { maxTokens: 9, signal })).toBe('{"a":1}');
  expect(generated).toMatchObject([
    ['facts?', { tenant: 't', maxTokens: 9, signal, grammar: { type: 'json_schema', schema: { type: 'object' } } }],
  ]);
});

test('an answer without a limit needs a part of the context', async () => {
  const { model } = createSpokenModel([''], { maxContext: 100 });
  const excess = async (options: object): Promise<number> =>
    (await remember(requestOf(options), { model })).call.reader!.excessTokens('x'.repeat(90));
  expect([await excess({}), await excess({ maxTokens: 30 })]).toEqual([15, 20]);
});

test.each<[GenerationRequest['constraint'], boolean]>([
  [null, false],
  [{ kind: 'json_object' }, true],
  [{ kind: 'json_schema', name: 'x', schema: {}, isStrict: true }, true],
  [{ kind: 'grammar', grammar: 'root ::= "a"' }, false],
])('whether an answer under %j is JSON is recorded, with the text of the first answer', async (constraint, isJson) => {
  const { outcomes, observer } = await remember(requestOf({}, { constraint }));
  observer!.onEvent({ ...pieceOf('first', 1), choice: 0 });
  observer!.onEvent({ ...pieceOf('second', 1), choice: 1 });
  void observer!.onEnd(null);
  expect(outcomes).toMatchObject([{ text: 'first', isJson, error: null }]);
});

test.each<[unknown, unknown]>([
  [undefined, undefined],
  [false, false],
  [true, { patterns: PATTERNS }],
  [{ maxAttempts: 2 }, { patterns: PATTERNS, maxAttempts: 2 }],
])('the reflection %j of a request is %j', async (reflection, expected) => {
  const { request } = await remember(requestOf(reflection === undefined ? {} : { reflection }));
  expect(request.options.reflection).toEqual(expected);
});
