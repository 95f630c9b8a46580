// Batches over the death of a process, beside another process, and their erasure.
import { describe, expect, test } from 'vitest';
import { lineOf, linesOf, openBatchServer } from '../../../test/support/batch-server.ts';
import { campaign } from '../../../test/support/campaign.ts';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { createHostedEcho } from '../../../test/support/scripted-model.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createInMemoryStore } from '../../memory/store/in-memory/in-memory-store.ts';
import type { MemoryStore } from '../../memory/types.ts';

const NUM_LINES = 6;

/** A store whose process dies before or after its n-th write: nothing of it reaches the disk from then on. */
function mortal(store: MemoryStore, diesAt: number, isWritten: boolean) {
  let numWrites = 0;
  let isDead = false;
  const dead = (): never => {
    throw new RuvLLMError('io', 'the process was killed', { isRetryable: true });
  };
  const guarded = new Proxy(store, {
    get(target, name: keyof MemoryStore) {
      const method = target[name] as ((...args: unknown[]) => Promise<unknown>) | undefined;
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]): Promise<unknown> => {
        if (isDead) dead();
        if (name !== 'put' || ++numWrites < diesAt) return method.apply(target, args);
        isDead = true;
        if (isWritten) await method.apply(target, args);
        return dead();
      };
    },
  });
  return { store: guarded, isDead: () => isDead };
}

async function expectWhole(server: Awaited<ReturnType<typeof openBatchServer>>, id: string): Promise<void> {
  const batch = await server.until(id);
  const all = [...(await server.results(batch.output_file_id)), ...(await server.results(batch.error_file_id))];
  expect(all.map(({ custom_id: customId }) => customId as string).sort()).toEqual(
    linesOf(NUM_LINES).map((line) => (line as { custom_id: string }).custom_id),
  );
  expect(batch).toMatchObject({ status: 'completed', request_counts: { total: NUM_LINES, completed: NUM_LINES, failed: 0 } }); // prettier-ignore
}

test('[B6] results that come during a write share the next one', async () => {
  const disk = createInMemoryStore({ now: Date.now });
  let numWrites = 0;
  const slow = new Proxy(disk, {
    get(target, name: keyof MemoryStore) {
      if (name !== 'put') return target[name];
      return async (...args: Parameters<MemoryStore['put']>) => {
        for (let i = 0; i < 100; i++) await settle();
        const isResult = args[0].some(({ fields }) => fields?.['name'] === 'batch-result');
        if (isResult) numWrites++;
        return target.put(...args);
      };
    },
  });
  const server = await openBatchServer({ store: slow, limits: { batchConcurrency: NUM_LINES } });
  const { body } = await server.create(linesOf(NUM_LINES));
  await expectWhole(server, (body as { id: string }).id);
  expect(numWrites).toBeLessThan(NUM_LINES);
});

describe('[B6] a process that dies while a batch runs', () => {
  const points = Array.from({ length: campaign({ short: 14, long: 30 }) }, (_, index) => index + 1);
  test.each(points.flatMap((point) => [[point, false] as const, [point, true] as const]))(
    'at write %i (written: %s) leaves one result per line to the next process',
    async (point, isWritten) => {
      const disk = createInMemoryStore({ now: Date.now });
      const first = mortal(disk, point, isWritten);
      const dying = await openBatchServer({ store: first.store, limits: { batchConcurrency: 2 } }).catch(() => null);
      const created = dying === null ? null : await dying.create(linesOf(NUM_LINES)).catch(() => null);
      const id = (created?.body as { id?: string } | undefined)?.id;
      const isRunning = async (): Promise<boolean> => {
        if (id === undefined || first.isDead()) return false;
        const batch = await dying!.show(id).catch(() => null);
        return batch !== null && batch.status !== 'completed';
      };
      while (await isRunning()) await settle();
      const second = await openBatchServer({ store: disk });
      const { data } = (await second.call('GET', '/v1/batches')).body as { data: { id: string }[] };
      // An acknowledged batch is never lost; one whose answer was lost may exist.
      if (id !== undefined) expect(data.map((batch) => batch.id)).toContain(id);
      for (const batch of data) await expectWhole(second, batch.id);
      await second.server.shutDown(1000);
    },
  );

  test('is shut down: its lines are aborted at once, and the batch goes on in the next process', async () => {
    const store = createInMemoryStore({ now: Date.now });
    const keep: MemoryStore = { ...store, close: async () => {} };
    const model = createHostedEcho(1000);
    const generate = model.generateStream.bind(model);
    model.generateStream = async function* (prompt, options) {
      if (model.calls.length === 2) model.isStuck = true;
      yield* generate(prompt, options);
    };
    const first = await openBatchServer({ store: keep, model, limits: { batchConcurrency: 1 } });
    const { body } = await first.create(linesOf(NUM_LINES));
    await first.until(body.id, ({ request_counts: { completed } }) => completed === 2);
    await first.server.shutDown(60_000);
    const second = await openBatchServer({ store: keep });
    await expectWhole(second, body.id);
    expect(second.model.calls.length).toBe(NUM_LINES - 2);
  });
});

describe('[B7] two processes with one memory', () => {
  test('run a batch once; the other one continues it when the first stops extending its lease', async () => {
    const clock = createManualClock();
    const store = createInMemoryStore({ now: clock.wallClock });
    const model = createHostedEcho(1000);
    model.isStuck = true;
    const first = await openBatchServer({ store, clock, model, isShared: true });
    const { body } = await first.create(linesOf(NUM_LINES));
    await first.until(body.id, ({ status }) => status === 'in_progress');
    const second = await openBatchServer({ store, clock, isShared: true });
    await settle();
    expect(second.model.calls).toEqual([]);
    clock.advance(45_000); // the first extends its lease, the second looks again
    await settle();
    await settle();
    expect(second.model.calls).toEqual([]);
    expect(first.model.calls.length).toBeGreaterThan(0);
    kill(first);
    for (let i = 0; i < 8; i++) {
      clock.advance(30_000);
      await settle();
    }
    await expectWhole(second, body.id);
  });

  test('a line that both run has one result, and counts once', async () => {
    const store = createInMemoryStore({ now: Date.now });
    // Not shared: leases are ignored, as if one had expired while its process was suspended.
    const first = await openBatchServer({ store });
    const { body } = await first.create(linesOf(NUM_LINES));
    const second = await openBatchServer({ store });
    await Promise.all([first.until(body.id), second.until(body.id)]);
    await expectWhole(second, body.id);
    expect(first.model.calls.length + second.model.calls.length).toBeGreaterThan(NUM_LINES);
  });
});

/** Ends the renewal of leases as a kill does, without telling the store. */
function kill({ memory }: Awaited<ReturnType<typeof openBatchServer>>): void {
  const refuse = async (): Promise<never> => {
    throw new RuvLLMError('io', 'the process was killed', { isRetryable: true });
  };
  Object.assign(memory.batches, { update: refuse });
}

describe('[B8] erasure', () => {
  const forever = createHostedEcho(1000);
  const erase = (server: Awaited<ReturnType<typeof openBatchServer>>, tenant: string, more: object = {}) =>
    server.memory.erase({ tenant, ...more });

  test('an erased tenant has no files and no batches, and a running one ends; other tenants keep theirs', async () => {
    const model = createHostedEcho(1000);
    const server = await openBatchServer({ model, tenants: ['alice', 'bob'] });
    const [alice, bob] = [server.as('alice'), server.as('bob')];
    const done = await alice.create(linesOf(2));
    await alice.until(done.body.id);
    const kept = await bob.create(linesOf(2));
    await bob.until(kept.body.id);
    model.isStuck = true;
    const running = await alice.create(linesOf(3));
    await alice.until(running.body.id, ({ status }) => status === 'in_progress');
    const report = await erase(server, 'alice');
    expect(report.parts.every(({ numLeft }) => numLeft === 0)).toBe(true);
    expect(report.parts.find(({ name }) => name === 'batches')!.numFound).toBeGreaterThan(0);
    for (const path of ['/v1/files', '/v1/batches']) expect((await alice.call('GET', path)).body.data).toEqual([]);
    const numCalls = model.calls.length;
    await settle();
    expect([model.calls.length, server.server.services.batches!.runner.numOpen]).toEqual([numCalls, 0]);
    expect((await bob.call('GET', '/v1/batches')).body.data.length).toBe(1);
    expect((await bob.results((await bob.show(kept.body.id)).output_file_id)).length).toBe(2);
    model.isStuck = false;
    const again = await alice.create(linesOf(1));
    expect((await alice.until(again.body.id)).status).toBe('completed');
  });

  test('an erased user is in no file and no result, and the other lines of a running batch go on', async () => {
    const model = createHostedEcho(1000);
    const server = await openBatchServer({ model, tenants: ['alice'], limits: { batchConcurrency: 1 } });
    const generate = model.generateStream.bind(model);
    model.generateStream = async function* (prompt, options) {
      if (model.calls.length === 2) model.isStuck = true;
      yield* generate(prompt, options);
    };
    const users = ['ann', 'ben', 'ann', 'ben'];
    const lines = users.map((user, index) => lineOf(`${user}-${index}`, `secret of ${user} ${index}`, { user }));
    const { body } = await server.create(lines);
    await server.until(body.id, ({ request_counts: { completed } }) => completed === 2);
    model.generateStream = generate;
    model.isStuck = false;
    await erase(server, 'alice', { userId: 'ann' });
    const batch = await server.until(body.id);
    const results = [...(await server.results(batch.output_file_id)), ...(await server.results(batch.error_file_id))];
    expect(results.map(({ custom_id: id }) => id as string)).toEqual(['ben-1', 'ben-3']);
    const input = await server.content(batch.input_file_id);
    expect([input.includes('secret of ann'), input.match(/secret of ben/g)!.length]).toEqual([false, 2]);
    expect(input.split('\n').length).toBe(5);
  });

  test('an erased request is in no file and no result', async () => {
    const server = await openBatchServer({ tenants: ['alice'], model: forever });
    const { body } = await server.create(linesOf(3));
    const batch = await server.until(body.id);
    const [, second] = await server.results(batch.output_file_id);
    await erase(server, 'alice', { requestId: second.response.request_id });
    expect((await server.results(batch.output_file_id)).map(({ custom_id: id }) => id as string)).toEqual(['line-0', 'line-2']); // prettier-ignore
    expect(await server.content(batch.input_file_id)).not.toContain('line-1');
  });
});

describe('[B9] objects of a tenant', () => {
  test('are not found by others', async () => {
    const { as } = await openBatchServer({ tenants: ['alice', 'bob'] });
    const { body } = await as('alice').create(linesOf(1));
    const batch = await as('alice').until(body.id);
    const bob = as('bob');
    const paths = [
      ['GET', `/v1/batches/${batch.id}`],
      ['POST', `/v1/batches/${batch.id}/cancel`],
      ...[batch.input_file_id, batch.output_file_id].flatMap((id) => [
        ['GET', `/v1/files/${id}`],
        ['GET', `/v1/files/${id}/content`],
        ['DELETE', `/v1/files/${id}`],
      ]),
    ] as [string, string][];
    for (const [method, path] of paths) expect((await bob.call(method, path)).status, path).toBe(404);
    expect((await bob.call('GET', '/v1/batches')).body.data).toEqual([]);
  });
});
