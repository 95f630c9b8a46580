// The part of vitest that the contract suite of kernel packs uses, for workers of a page: bundled in place of the module "vitest".
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  chai,
  GLOBAL_EXPECT,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect';

type Body = (...values: unknown[]) => unknown;
interface Case {
  readonly name: string;
  run(): Promise<void>;
}

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

export const expect = Object.assign(
  (value: unknown, message?: string) => chai.expect(value, message),
  chai.expect,
  (globalThis as unknown as Record<symbol, object>)[ASYMMETRIC_MATCHERS_OBJECT],
);
Object.defineProperty(globalThis, GLOBAL_EXPECT, { value: expect, configurable: true });
setState({ assertionCalls: 0 }, expect as never);

const cases: Case[] = [];
const endings: Body[] = [];
let path: readonly string[] = [];

export function describe(name: string, body: () => void): void {
  const outer = path;
  path = [...outer, name];
  body();
  path = outer;
}
export function test(name: string, body: Body): void {
  cases.push({ name: [...path, name].join(' > '), run: async () => void (await body()) });
}
const each =
  (register: (name: string, body: Body) => void) =>
  (rows: readonly unknown[]) =>
  (name: string, body: Body): void =>
    rows.forEach((row, i) => {
      const values = Array.isArray(row) ? row : [row];
      register(`${name} (${i})`, () => body(...values));
    });
test.each = each(test);
describe.each = each(describe as (name: string, body: Body) => void);
export const afterAll = (body: Body): number => endings.push(body);

/** Runs each n-th of the registered tests, in order; returns what failed. */
export async function runTests(n: number): Promise<{ numTests: number; failures: string[] }> {
  const chosen = cases.filter((_, index) => index % n === 0);
  const failures: string[] = [];
  for (const { name, run } of [
    ...chosen,
    ...endings.map((body) => ({ name: 'afterAll', run: async () => void (await body()) })),
  ]) {
    await run().catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
  }
  return { numTests: chosen.length, failures };
}
