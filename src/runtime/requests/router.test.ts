import { describe, expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { PromptInput } from '../read-prompt.ts';
import { readRouteConfig } from '../routing/route-config.ts';
import { serveConstant } from '../routing/routing.contract.ts';
import { createRouter } from './router.ts';
import { AUDIT_KIND } from '../../memory/types.ts';

const ROUTES = {
  candidates: [
    { kind: 'local', id: 'fast', model: 'small' },
    { kind: 'local', id: 'good', model: 'large' },
  ],
  default: 'good',
};
const QUESTION = [{ role: 'user' as const, content: 'where is the blue whale?' }];

function createModels() {
  const small = createSpokenModel(['Somewhere.']);
  const large = createSpokenModel(['In the Atlantic.']);
  return { small: small.model, large: large.model };
}

test('a request without a model is answered by the default candidate until the router is trained', async () => {
  await using router = createRouter({ models: createModels(), routes: ROUTES });
  const answer = await router.generate(QUESTION);
  expect(answer).toMatchObject({ text: 'In the Atlantic.', model: 'large', finishReason: 'stop' });
  expect(answer.route).toEqual({
    candidate: 'good',
    reason: 'safe-default',
    confidence: 0,
    contextSize: 512,
    sampling: { temperature: 0.7, topP: 1, source: 'default', numSamples: 0 },
  });
});

test('a request that names a model gets that model and no decision', async () => {
  await using router = createRouter({ models: createModels(), routes: ROUTES });
  expect(await router.generate(QUESTION, { model: 'small' })).toMatchObject({ text: 'Somewhere.', route: null });
  await expect(router.generate(QUESTION, { model: 'huge' })).rejects.toMatchObject({ code: 'model_not_found' });
});

test('routed requests are in the audit log with their decision', async () => {
  const memory = await openTestMemory();
  const router = createRouter({ models: createModels(), routes: ROUTES, memory });
  const { requestId } = await router.generate(QUESTION);
  await router.dispose();
  await memory.audit.flush();
  const { records } = await memory.store.find('local', { kinds: [AUDIT_KIND], order: 'oldest', limit: 10 });
  const entries = records.map(({ body }) => (body as { entry: Record<string, unknown> }).entry);
  expect(entries).toMatchObject([
    { requestId, model: 'large', routing: { model: 'good' }, response: 'In the Atlantic.' },
  ]);
  await memory.close();
});

test('[RO15] a request with recalled texts stays on this machine if configured', async () => {
  const far = { kind: 'remote', id: 'far', url: 'http://127.0.0.1:9/v1', model: 'far', pricePerMTokens: { input: 1, output: 1 } }; // prettier-ignore
  const routes = { candidates: [far, ROUTES.candidates[1]!], default: 'good', memoryStaysLocal: true };
  const reasonFor = async (options: object, changes: object = {}): Promise<string> => {
    const memory = await openTestMemory();
    const config = readRouteConfig({ ...routes, ...changes }, {});
    await serveConstant(memory, 'local', config, { candidate: 0, confidence: 0.95 });
    await memory.add('local', { text: 'the blue whale is in the Atlantic' });
    await using router = createRouter({ models: createModels(), routes: { ...routes, ...changes }, memory });
    return (await router.generate(QUESTION, options)).route!.reason;
  };
  // Nothing listens there, so that a request sent to it falls back.
  expect(await reasonFor({})).toBe('fallback');
  expect(await reasonFor({ memory: { k: 1 } })).toBe('safe-default');
  expect(await reasonFor({ memory: { k: 1 } }, { memoryStaysLocal: false })).toBe('fallback');
});

describe('a learned temperature and top-p', () => {
  const sampling = [
    { candidate: 'good', temperature: 0.2, topP: 0.5, quality: 0.9, otherQuality: 0.5, numSamples: 30 },
  ];
  const parameters = { version: 0, winner: '', candidates: ['fast', 'good'], metrics: {}, sampling };

  test('sample answers whose request leaves both open, until the policy is rolled back', async () => {
    const memory = await openTestMemory();
    const large = createSpokenModel(['In the Atlantic.']);
    const router = createRouter({ models: { ...createModels(), large: large.model }, routes: ROUTES, memory });
    const put = { policyType: 'router', confidence: 1, source: 'operator' } as const;
    await memory.policies.put('local', { ...put, parameters: { ...parameters, sampling: [] } });
    await memory.policies.put('local', { ...put, parameters });
    const { route } = await router.generate(QUESTION);
    expect(route!.sampling).toEqual({ temperature: 0.2, topP: 0.5, source: 'learned', numSamples: 30 });
    expect((await router.generate(QUESTION, { temperature: 1 })).route!.sampling).toMatchObject({
      temperature: 1,
      topP: 1,
      source: 'request',
    });
    await memory.policies.rollback('local', 'router', 1);
    expect((await router.generate(QUESTION)).route!.sampling).toMatchObject({ temperature: 0.7, source: 'default' });
    expect(large.requests.map(({ sampling: { temperature, topP } }) => [temperature, topP])).toEqual([
      [0.2, 0.5],
      [1, 1],
      [0.7, 1],
    ]);
    await router.dispose();
    await memory.audit.flush();
    const { records } = await memory.store.find('local', { kinds: ['witness'], order: 'oldest', limit: 10 });
    const entries = records.map(({ body }) => (body as { entry: { routing: object } }).entry.routing);
    expect(entries).toMatchObject([
      { contextSize: 512, temperature: 0.2, topP: 0.5, samplingSource: 'learned' },
      { samplingSource: 'request' },
      { samplingSource: 'default' },
    ]);
    await memory.close();
  });
});

test('a request goes to the candidate whose context holds it', async () => {
  const small = createSpokenModel(['Somewhere.'], { maxContext: 128 });
  const large = createSpokenModel(['In the Atlantic.'], { maxContext: 4096 });
  const routes = { ...ROUTES, default: 'fast' };
  await using router = createRouter({ models: { small: small.model, large: large.model }, routes });
  const ask = async (content: string, maxTokens: number) => {
    const { route } = await router.generate([{ role: 'user', content }], { maxTokens });
    return [route!.candidate, route!.contextSize];
  };
  await router.generate(QUESTION, { model: 'small', maxTokens: 4 }); // contexts are known of loaded models
  expect(await ask('where is the blue whale?', 16)).toEqual(['fast', 256]);
  expect(await ask('where is the blue whale?', 600)).toEqual(['good', 1024]);
  expect(await ask('where is the blue whale? '.repeat(50), 16)).toEqual(['good', 512]);
});

test('where time counts, a candidate with the prompt in its prefix cache is preferred', async () => {
  const routes = { ...ROUTES, weights: { perSecond: 2, perCost: 0 } };
  const prompt = 'a long question that fills several pages of the cache, '.repeat(2);
  const routeOf = async (isWarm: boolean) => {
    const memory = await openTestMemory();
    await serveConstant(memory, 'local', readRouteConfig(routes, {}), { candidate: 1, confidence: 0.95 });
    const models = { small: (await createToyRuntime()).model, large: (await createToyRuntime()).model };
    await using router = createRouter({ models, routes, memory });
    if (isWarm) await router.generate(prompt, { model: 'small', maxTokens: 1 });
    return (await router.generate(prompt, { maxTokens: 1 })).route!.candidate;
  };
  expect([await routeOf(false), await routeOf(true)]).toEqual(['good', 'fast']);
});

test('a candidate without its model is refused at the start', () => {
  const { small } = createModels();
  expect(() => createRouter({ models: { small }, routes: ROUTES })).toThrow(
    'candidate "good" needs the model "large"; models are: small',
  );
});

test('an abort ends a routed request', async () => {
  await using router = createRouter({ models: createModels(), routes: ROUTES });
  await expect(router.generate(QUESTION, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' });
});

test('a request has its own id, and tools as they were given', async () => {
  const { model } = createSpokenModel(['Somewhere.']);
  const seen: GenerateOptions[] = [];
  const small = { ...model, generateStream: (prompt: PromptInput, options: GenerateOptions) => (seen.push(options), model.generateStream(prompt, options)) }; // prettier-ignore
  await using router = createRouter({ models: { ...createModels(), small }, routes: ROUTES });
  const plain = { type: 'function', function: { name: 'f' } } as const;
  const strict = {
    type: 'function',
    function: { name: 'g', description: 'Does.', parameters: {}, strict: true },
  } as const;
  const requestId = crypto.randomUUID();
  expect((await router.generate(QUESTION, { model: 'small', tools: [plain, strict], requestId })).requestId).toBe(requestId); // prettier-ignore
  const other = await router.generate(QUESTION, { model: 'small', tools: [plain], parallelToolCalls: false });
  expect(other.requestId).toMatch(/^[\da-f-]{36}$/);
  expect(seen).toMatchObject([
    { tools: [{ function: { name: 'f', strict: false } }, strict], parallelToolCalls: true },
    { parallelToolCalls: false },
  ]);
});
