// `audit verify` of a server in use: while every request writes an entry and users are erased, any alarm is false.
import { createClock, type Part, percentileOf, shorten } from '../part.ts';
import { ask } from '../support/client.ts';
import { createSite, kill, type Site, type Tenant, TENANTS } from '../support/site.ts';

const NUM_WRITERS = 3;
/** Rounds after which a user of a tenant is erased. */
const ERASE_EVERY = 15;

/** Writes entries until the signal; returns the number of requests that were answered. */
async function write(
  url: string,
  site: Site,
  tenant: Tenant,
  userOf: () => string,
  over: AbortSignal,
): Promise<number> {
  let numAnswered = 0;
  while (!over.aborted) {
    const body = { model: 'm', prompt: `Once ${numAnswered}`, max_tokens: 1, seed: 1, user: userOf() };
    const { status } = await ask(url, '/v1/completions', { token: site.tokens[tenant], body });
    if (status === 200) numAnswered++;
  }
  return numAnswered;
}

export const audit: Part = {
  name: 'audit',
  summary: 'verification of the audit log while entries are written and erased',
  async run(options) {
    const clock = createClock(options, 1200);
    const problems: string[] = [];
    const verifyMs: number[] = [];
    let [numFalseAlarms, numErased, numAnswered] = [0, 0, 0];
    // Each answer waits for its entry: there is a write at nearly every moment.
    const site = await createSite({ args: () => ['--audit-durability', 'request', '--no-learning'] });
    try {
      const server = await site.start();
      const over = new AbortController();
      const userOf = (): string => `user-${numErased}`;
      const writing = Array.from({ length: NUM_WRITERS }, (_, i) =>
        write(server.url, site, TENANTS[i % TENANTS.length]!, userOf, over.signal),
      );
      while (clock.next()) {
        const tenant = TENANTS[clock.rounds % TENANTS.length]!;
        const began = performance.now();
        const token = site.tokens[tenant];
        const { status, body, text } = await ask(server.url, '/admin/memory/audit/verify', { token, body: {} });
        verifyMs.push(performance.now() - began);
        if (status !== 200 || body['isIntact'] !== true) {
          numFalseAlarms++;
          problems.push(`the log of ${tenant} was called damaged: ${status} ${text.slice(0, 300)}`);
        }
        if (clock.rounds % ERASE_EVERY !== 0) continue;
        const userId = `user-${numErased++}`;
        const path = `/admin/memory/tenants/erase?tenant=${tenant}`;
        const erased = await ask(server.url, path, { token: site.tokens.admin, body: { confirm: tenant, userId } });
        if (erased.status !== 200) problems.push(`erasing ${userId}: ${erased.status} ${erased.text.slice(0, 300)}`);
        options.log(`${clock.rounds} verifications, ${numFalseAlarms} false alarms`);
      }
      over.abort();
      numAnswered = (await Promise.all(writing)).reduce((sum, count) => sum + count, 0);
      await kill(server);
    } finally {
      site.dispose();
    }
    if (numAnswered === 0) problems.push('nothing was written meanwhile');
    return {
      figures: {
        verifies: clock.rounds,
        false_alarms: numFalseAlarms,
        entries: numAnswered,
        erased_users: numErased,
        verify_ms: percentileOf(verifyMs, 0.5),
      },
      problems: shorten(problems),
    };
  },
};
