import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { createGrammarPreparer, type GrammarPreparerOptions } from './grammar-preparer.ts';

/** Of computing: only a task that hangs meets it, however busy the machine is. */
const DEADLINE_MS = 2000;

/** A thread that does what the schema says, and counts its starts and jobs. */
function createStub(options: GrammarPreparerOptions = {}) {
  const log: string[] = [];
  const program = `
    const { parentPort } = require('node:worker_threads');
    parentPort.on('message', (text) => {
      const { schema } = JSON.parse(text);
      if (schema.does === 'hang') for (;;);
      if (schema.does === 'grow') { const all = []; for (;;) all.push(new Array(1000).fill({})); }
      if (schema.does === 'exit') process.exit(3);
      if (schema.does === 'refuse') parentPort.postMessage({ error: { code: 'unsupported', message: 'no', data: {}, isRetryable: false } });
      else parentPort.postMessage({ automata: Int32Array.of(schema.size ?? 1), isSlow: schema.isSlow === true });
    });
    parentPort.postMessage('ready');`;
  const prepare = createGrammarPreparer({
    spawn: () => {
      log.push('start');
      const worker = new Worker(program, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } });
      const post = worker.postMessage.bind(worker);
      worker.postMessage = (text: string) => {
        log.push(text.replace(/.*"schema":|\}$/g, ''));
        post(text);
      };
      return worker;
    },
    deadlineMs: DEADLINE_MS,
    ...options,
  });
  return {
    log,
    run: (schema: unknown, signal = null, tenant = 'a') => prepare({ type: 'json_schema', schema }, { tenant, signal }),
  };
}

test('[PG1] a grammar that takes too long, too much memory or its thread down fails alone, with the numbers', async () => {
  const { log, run } = createStub();
  const results = await Promise.allSettled([
    run({ size: 1 }),
    run({ does: 'hang' }),
    run({ size: 2 }),
    run({ does: 'grow' }),
    run({ does: 'exit' }),
    run({ does: 'refuse' }),
    run({ size: 3 }),
  ]);
  expect(
    results.map((one) => (one.status === 'fulfilled' ? one.value.automata[0] : (one.reason as Error).message)),
  ).toEqual([
    1,
    `grammar: compiling it takes longer than ${DEADLINE_MS} ms`,
    2,
    'grammar: compiling it takes more than 256 MB',
    'the grammar thread exited with code 3',
    'no',
    3,
  ]);
  expect((results[1] as PromiseRejectedResult).reason).toMatchObject({
    code: 'unsupported',
    data: { reason: 'deadline', limit: DEADLINE_MS },
  });
  expect((results[3] as PromiseRejectedResult).reason).toMatchObject({
    code: 'unsupported',
    data: { reason: 'memory', limit: 256 },
  });
  expect(log.filter((line) => line === 'start')).toHaveLength(4);
});

test('[PG2] what is known is not compiled again, under a bound in bytes; a refused grammar is refused at once', async () => {
  const { log, run } = createStub({ cacheBytes: 2 * (512 + 4) });
  await Promise.all([run({ size: 1 }), run({ size: 1 })]);
  await run({ size: 2 });
  await run({ size: 1 });
  await run({ size: 3 }); // pushes 2 out
  await run({ size: 1 });
  await run({ size: 2 });
  await expect(run({ does: 'refuse' })).rejects.toThrow('no');
  await expect(run({ does: 'refuse' })).rejects.toMatchObject({ code: 'unsupported', message: 'no' });
  expect(log).toEqual(['start', ...[1, 2, 3, 2].map((size) => `{"size":${size}}`), '{"does":"refuse"}']);
});

test('[PG2] a grammar that failed with its thread is compiled again', async () => {
  const { log, run } = createStub();
  for (let i = 0; i < 2; i++) await expect(run({ does: 'exit' })).rejects.toThrow('exited with code 3');
  expect(log.filter((line) => line === '{"does":"exit"}')).toHaveLength(2);
});

test('[PG3] no more than so many wait; who leaves is not waited for', async () => {
  const { log, run } = createStub({ maxWaiting: 2 });
  const first = run({ size: 1 });
  const leaving = new AbortController();
  const second = run({ size: 2 }, leaving.signal as never);
  const third = run({ size: 3 });
  await expect(run({ size: 4 })).rejects.toMatchObject({ code: 'overloaded', data: { limit: 2 }, isRetryable: true });
  leaving.abort();
  await expect(second).rejects.toMatchObject({ code: 'aborted' });
  expect([(await first).automata[0], (await third).automata[0]]).toEqual([1, 3]);
  expect(log).toEqual(['start', '{"size":1}', '{"size":3}']);
});

test('[PG4] the thread goes when it has nothing to do, and comes back', async () => {
  const { log, run } = createStub({ idleMs: 1, cacheBytes: 0 });
  await run({ size: 1 });
  await new Promise((resolve) => setTimeout(resolve, 20));
  await run({ size: 1 });
  expect(log.filter((line) => line === 'start')).toHaveLength(2);
});

test('[PG5] rejects a source that is not JSON or nested too deeply', async () => {
  const { log, run } = createStub();
  const circle: unknown[] = [];
  circle.push(circle);
  await expect(run(circle)).rejects.toMatchObject({ code: 'invalid_option', message: 'grammar: not plain JSON' });
  let deep: unknown = 1;
  for (let i = 0; i < 60_000; i++) deep = [deep];
  await expect(run(deep)).rejects.toMatchObject({
    code: 'invalid_option',
    message: 'grammar: nested too deeply',
  });
  expect(log).toEqual([]);
});

test('[PG6] tenants take turns: who sends one waits for one of each other tenant, not for all of theirs', async () => {
  const { log, run } = createStub();
  const many = [1, 2, 3, 4].map((size) => run({ size }));
  const others = [run({ size: 5 }, null, 'b'), run({ size: 6 }, null, 'b'), run({ size: 7 }, null, 'c')];
  // Of both: it comes when the first of them has its turn.
  const shared = [run({ size: 8 }), run({ size: 8 }, null, 'd')];
  await Promise.all([...many, ...others, ...shared]);
  expect(log).toEqual(['start', ...[1, 5, 7, 8, 2, 6, 3, 4].map((size) => `{"size":${size}}`)]);
});
