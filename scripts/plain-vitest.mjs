// The parts of vitest that the kernel contract uses, for an emulated Node, which cannot run vitest (its bundler is native code).
// `expect` is vitest's; tests run one after the other once the event loop starts.
import { JestAsymmetricMatchers, JestChaiExpect, JestExtend } from '@vitest/expect';
import * as chai from 'chai';
import { format } from 'node:util';

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);
export const { expect } = chai;

// Runs only tests whose full name starts with this.
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

/** After all tests, whatever group it is in. */
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
