// What an answer costs when it waits for its audit entry: the same short requests, in turns, to a server of each kind.
import { ask } from '../../campaign/support/client.ts';
import { createSite, kill } from '../../campaign/support/site.ts';
import type { ServeProcess } from '../../test/support/serve-process.ts';
import { median } from './report.ts';

const ROUNDS = 60;
const NUM_AT_ONCE = 8;
const MODES = ['batch', 'request'] as const;
type Mode = (typeof MODES)[number];

/** Median milliseconds of a request alone, and of eight at once, for each durability. */
export async function measureAuditPrice(): Promise<Record<Mode, { alone: number; together: number }>> {
  const sites = await Promise.all(MODES.map((mode) => createSite({ model: '260K', args: () => ['--audit-durability', mode, '--threads', '1'] }))); // prettier-ignore
  try {
    const servers: ServeProcess[] = [];
    for (const site of sites) servers.push(await site.start());
    let number = 0;
    const send = async (at: number): Promise<void> => {
      const body = { model: 'm', prompt: `Once ${number++}`, max_tokens: 4, ignore_eos: true };
      const { status } = await ask(servers[at]!.url, '/v1/completions', { token: sites[at]!.tokens.alice, body });
      if (status !== 200) throw new Error(`a request was answered with ${status}`);
    };
    const time = async (work: () => Promise<unknown>): Promise<number> => {
      const start = performance.now();
      await work();
      return performance.now() - start;
    };
    const alone: number[][] = [[], []];
    const together: number[][] = [[], []];
    for (let round = -5; round < ROUNDS; round++) {
      for (const at of [0, 1]) {
        const one = await time(() => send(at));
        const many = await time(() => Promise.all(Array.from({ length: NUM_AT_ONCE }, () => send(at))));
        if (round < 0) continue; // the first requests load code
        alone[at]!.push(one);
        together[at]!.push(many);
      }
    }
    for (const server of servers) await kill(server);
    const of = (at: number) => ({ alone: round(median(alone[at]!)), together: round(median(together[at]!)) });
    return { batch: of(0), request: of(1) };
  } finally {
    for (const site of sites) site.dispose();
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10;
