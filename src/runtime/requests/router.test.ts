import { expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
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
  expect(answer.route).toEqual({ candidate: 'good', reason: expect.any(String) });
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
