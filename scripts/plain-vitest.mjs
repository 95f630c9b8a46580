// What the kernel contract uses of vitest, for a Node that cannot run vitest itself (an emulated one: vitest's bundler is native
// code). `expect` is vitest's own; tests run one after the other when the event loop first gets its turn.
import { JestAsymmetricMatchers, JestChaiExpect, JestExtend } from '@vitest/expect';
import * as chai from 'chai';
import { format } from 'node:util';

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);
export const { expect } = chai;

// Only tests whose full name starts with this run.
const prefix = process.env.PLAIN_VITEST_PREFIX ?? '';
const tests = [];
const cleanups = [];
let path = [];

function each(declare) {
  return (rows) => (title, body) => {
    for (const row of rows) {
      const values = Array.isArray(row) ? row : [row];
      declare(format(title, ...values), () => body(...values));
    }
  };
}

export function describe(title, body) {
  const outer = path;
  path = [...path, title];
  body();
  path = outer;
}
describe.each = each(describe);

export function test(title, body) {
  const name = [...path, title].join(' > ');
  if (name.startsWith(prefix)) tests.push({ name, body });
}
test.each = each(test);
test.skipIf = (isSkipped) => (isSkipped ? () => {} : test);

/** When all tests are done, whatever group it stands in. */
export function afterAll(body) {
  cleanups.push(body);
}

setImmediate(async () => {
  let numFailed = 0;
  for (const { name, body } of tests) {
    try {
      await body();
    } catch (error) {
      numFailed++;
      console.log(`FAIL ${name}\n     ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  for (const cleanUp of cleanups) await cleanUp();
  console.log(`${tests.length - numFailed} passed, ${numFailed} failed`);
  process.exitCode = numFailed === 0 && tests.length > 0 ? 0 : 1;
});
