import { importBuilt } from './dist.ts';
import { median } from './report.ts';

const { createSessionTable } = await importBuilt<typeof import('../../src/runtime/sessions/session-table.ts')>(
  'runtime/sessions/session-table',
);
const { createRandom } = await importBuilt<typeof import('../../src/core/random.ts')>('core/random');

const NUM_SESSIONS = 10_000;
const NUM_LOOKUPS = 20_000;
const VOCAB_SIZE = 32_000;

export interface SessionLookup {
  readonly numSessions: number;
  readonly medianUs: number;
  readonly p99Us: number;
}

/** Time to find the state of one conversation among 10,000 of up to 4,096 tokens. */
export function measureSessionLookup(): SessionLookup {
  const random = createRandom(5);
  const table = createSessionTable({
    maxSessions: NUM_SESSIONS,
    vocabSize: VOCAB_SIZE,
    records: null,
    wallClock: () => Date.now(),
  });
  const nameOf = (index: number) => ({ tenant: `tenant ${index % 100}`, id: `conversation ${index}` });
  for (let index = 0; index < NUM_SESSIONS; index++) {
    const length = 16 + Math.floor(random.next() * 4080);
    table.keepTurn(nameOf(index), new Int32Array(length).fill(index % VOCAB_SIZE), 1);
  }
  const times: number[] = [];
  for (let i = 0; i < NUM_LOOKUPS; i++) {
    const index = Math.floor(random.next() * NUM_SESSIONS);
    const name = nameOf(index);
    const start = performance.now();
    const state = table.find(name);
    times.push((performance.now() - start) * 1000);
    if (state?.tokenIds?.[0] !== index % VOCAB_SIZE) throw new Error(`session ${index} has the tokens of another`);
  }
  const sorted = times.toSorted((a, b) => a - b);
  return { numSessions: NUM_SESSIONS, medianUs: median(times), p99Us: sorted[Math.floor(sorted.length * 0.99)]! };
}
