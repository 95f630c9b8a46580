import { describe, expect, test } from 'vitest';
import { covers, createErasureRegistry, type ErasurePart, type ErasureSubject } from './erasure.ts';

const subjectOf = (changes: Partial<ErasureSubject> = {}): ErasureSubject => ({
  tenant: 'acme',
  userId: null,
  requestId: null,
  requestIds: new Set(),
  sessionIds: new Set(),
  quotingIds: new Set(),
  ...changes,
});

const partOf = (name: string, calls: string[], items = { left: 1 }, isLast = false): ErasurePart => ({
  name,
  isLast,
  async erase() {
    calls.push(name);
    items.left = 0;
  },
  count: async () => items.left,
});

describe('erasure', () => {
  test('runs the newest part first and last parts at the end, and reports counts', async () => {
    const registry = createErasureRegistry();
    const calls: string[] = [];
    registry.register(partOf('store', calls, { left: 3 }));
    registry.register(partOf('cache', calls, { left: 2 }, true));
    const stop = registry.register(partOf('closed', calls));
    registry.register(partOf('writer', calls, { left: 0 }));
    stop();
    expect([registry.has('closed'), registry.has('store')]).toEqual([false, true]);
    expect(await registry.run(subjectOf())).toEqual({
      tenant: 'acme',
      userId: null,
      requestId: null,
      parts: [
        { name: 'writer', numFound: 0, numLeft: 0 },
        { name: 'store', numFound: 3, numLeft: 0 },
        { name: 'cache', numFound: 2, numLeft: 0 },
      ],
    });
    expect(calls).toEqual(['writer', 'store', 'cache']);
  });

  test('a part that fails or still holds data is named, and the others are erased', async () => {
    const registry = createErasureRegistry();
    const calls: string[] = [];
    registry.register(partOf('good', calls));
    registry.register({ name: 'stuck', erase: async () => {}, count: async () => 2 });
    registry.register({ name: 'broken', erase: () => Promise.reject(new Error('disk full')), count: async () => 0 });
    registry.register({ name: 'blind', erase: async () => {}, count: () => Promise.reject(new Error('unreadable')) });
    await expect(registry.run(subjectOf())).rejects.toMatchObject({
      code: 'io',
      isRetryable: true,
      message: 'the erasure is incomplete; repeat it. blind: unreadable; broken: disk full; stuck: 2 items left',
      data: { failedParts: ['blind', 'broken', 'stuck'] },
    });
    expect(calls).toEqual(['good']);
  });

  test('requests of the subject are refused while it is erased, others not', async () => {
    const registry = createErasureRegistry();
    const seen: boolean[] = [];
    registry.register({
      name: 'part',
      async erase() {
        seen.push(registry.isErasing({ tenant: 'acme', userId: 'ann' }), registry.isErasing({ tenant: 'acme', userId: 'ben' })); // prettier-ignore
      },
      count: async () => 0,
    });
    await registry.run(subjectOf({ userId: 'ann' }));
    expect(seen).toEqual([true, false]);
    expect(registry.isErasing({ tenant: 'acme', userId: 'ann' })).toBe(false);
  });

  test.each([
    [subjectOf(), { tenant: 'acme' }, true],
    [subjectOf(), { tenant: 'other' }, false],
    [subjectOf({ userId: 'ann' }), { tenant: 'acme', userId: 'ann' }, true],
    [subjectOf({ userId: 'ann' }), { tenant: 'other', userId: 'ann' }, false],
    [subjectOf({ userId: 'ann' }), { tenant: 'acme', userId: null }, false],
    [subjectOf({ requestId: 'r', requestIds: new Set(['r']) }), { tenant: 'acme', requestId: 'r' }, true],
    [subjectOf({ requestId: 'r', requestIds: new Set(['r']) }), { tenant: 'acme', requestId: 's' }, false],
  ])('%# whose data a subject covers', (subject, owner, expected) => expect(covers(subject, owner)).toBe(expected));
});
