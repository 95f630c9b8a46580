import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { openTableThread } from './table-thread.ts';

/** A thread that does this with each task, and how many were started. */
function open(program: string, greeting = 'ready', deadlineMs = 60_000) {
  const started: Worker[] = [];
  const thread = openTableThread('no such file.gguf', {
    spawn() {
      const worker = new Worker(
        `const { parentPort } = require('node:worker_threads');
         parentPort.on('message', (task) => { ${program} });
         parentPort.postMessage('${greeting}');`,
        { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } },
      );
      started.push(worker);
      return worker;
    },
    deadlineMs,
  });
  return { thread, started };
}

const refusal = `{ code: 'unsupported', message: 'token 7 has 5000 bytes, the limit is 4096', data: {}, isRetryable: false }`;

test.each([
  ['ends', 'process.exit(3)'],
  ['throws', `throw new Error('no')`],
  ['grows', 'const all = []; for (;;) all.push(new Array(1000).fill({}));'],
  ['hangs', 'for (;;);'],
])('[TT1] a thread that %s leaves the vocabulary to others', async (name, program) => {
  const { thread, started } = open(program, 'ready', name === 'hangs' ? 200 : 60_000);
  expect(await thread.build([1])).toBe(null);
  expect(await thread.build([1])).toBe(null);
  expect(started).toHaveLength(2); // it may go better the next time
  await thread.dispose();
});

test('[TT1] files that are gone are asked for once', async () => {
  const { thread, started } = open('', 'unable');
  expect(await thread.build([1])).toBe(null);
  expect(await thread.build([1])).toBe(null);
  expect(started).toHaveLength(1);
});

test('[TT2] what is wrong with the vocabulary is an error, and so is a model that has ended', async () => {
  const { thread } = open(`parentPort.postMessage({ error: ${refusal} })`);
  await expect(thread.build([1])).rejects.toMatchObject({
    code: 'unsupported',
    message: 'token 7 has 5000 bytes, the limit is 4096',
  });
  const hanging = open('for (;;);');
  const refused = expect(hanging.thread.build([1])).rejects.toMatchObject({ code: 'not_loaded' });
  await hanging.thread.dispose();
  await refused;
});

test('[TT3] the thread ends when it has answered', async () => {
  const { thread, started } = open('parentPort.postMessage({ result: task })');
  const ended = new Promise<void>((resolve) => {
    void thread.build([4, 5]).then((result) => {
      expect(result).toEqual({ endIds: [4, 5] });
      started[0]!.ref();
      started[0]!.on('exit', () => resolve());
    });
  });
  await ended;
  await thread.dispose();
});
