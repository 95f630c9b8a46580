import { expect, test } from 'vitest';
import type { ErasureSubject } from '../../core/erasure.ts';
import { createLiveRequests } from './live-requests.ts';
import type { RequestMeter } from './request-meter.ts';

const meter = { promptTokens: null, cachedTokens: null, numTokens: 0, firstTokenMs: null } as unknown as RequestMeter;
const WHOLE_TENANT: ErasureSubject = { tenant: 'acme', userId: null, requestId: null, requestIds: new Set(), sessionIds: new Set(), quotingIds: new Set() }; // prettier-ignore

test.each([
  ['a tenant', WHOLE_TENANT, ['ana', 'ben']],
  ['a user', { ...WHOLE_TENANT, userId: 'ana' }, ['ana']],
  ['a request', { ...WHOLE_TENANT, requestId: 'ben', requestIds: new Set(['ben']) }, ['ben']],
])('[ER4] erasing %s cancels its requests in progress, and no others', async (_name, subject, cancelled) => {
  const live = createLiveRequests({ now: () => 0 });
  const aborted: string[] = [];
  const open = (id: string, tenant: string) =>
    live.open({ id, tenant, asked: 'm', userId: id, abort: () => void aborted.push(id) }, meter);
  const entries = [open('ana', 'acme'), open('ben', 'acme'), open('eve', 'other')];
  expect(await live.erasure.count(subject)).toBe(cancelled.length);
  await live.erasure.erase(subject);
  expect(aborted).toEqual(cancelled);
  expect(await live.erasure.count(subject)).toBe(0);
  expect(entries.map(({ isErased }) => isErased)).toEqual(['ana', 'ben', 'eve'].map((id) => cancelled.includes(id)));
});

test('the list says how far each request is, the oldest first, until it ends', () => {
  let nowMs = 5;
  const live = createLiveRequests({ now: () => nowMs });
  const open = (id: string, state: Partial<RequestMeter> = {}) =>
    live.open({ id, tenant: 'acme', asked: 'auto', userId: null, abort() {} }, { ...meter, ...state });
  const [waiting, reading, writing] = [
    open('waiting', { firstTokenMs: 0 }),
    open('reading', { promptTokens: 7 }),
    open('writing', { promptTokens: 7, cachedTokens: 2, numTokens: 3, firstTokenMs: 0 }),
  ];
  reading.serve('large');
  writing.serve('large');
  nowMs = 9;
  const common = { tenant: 'acme', asked: 'auto', elapsedMs: 4 };
  expect(live.list()).toEqual([
    { ...common, id: 'waiting', model: null, state: 'loading', promptTokens: null, cachedTokens: null, numTokens: 0, firstTokenMs: 0 }, // prettier-ignore
    { ...common, id: 'reading', model: 'large', state: 'prompt', promptTokens: 7, cachedTokens: null, numTokens: 0, firstTokenMs: null }, // prettier-ignore
    { ...common, id: 'writing', model: 'large', state: 'generating', promptTokens: 7, cachedTokens: 2, numTokens: 3, firstTokenMs: 0 }, // prettier-ignore
  ]);
  waiting.end();
  waiting.end();
  expect(live.list().map(({ id }) => id)).toEqual(['reading', 'writing']);
});
