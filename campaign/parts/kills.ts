// A server under mixed load, killed at random moments. After each start everything it had acknowledged must be there.
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../src/core/random.ts';
import { createClock, type Part, percentileOf, shorten } from '../part.ts';
import { ask } from '../support/client.ts';
import { runLoad } from '../support/mixed-load.ts';
import { createOracle } from '../support/oracle.ts';
import { createSite, kill, readHealth, type Site, TENANTS } from '../support/site.ts';
import { createFindings, type Findings, verify } from '../support/verify.ts';

/** Then another folder: the time to look at everything grows with each kill. */
const KILLS_PER_FOLDER = 25;
const MAX_DELAY_MS = 1200;
const NUM_CLIENTS = 6;
/** Two servers at once: a start leaves one of two cores idle. */
const NUM_LANES = 2;

interface Tally {
  readonly found: Findings;
  readonly problems: string[];
  readonly restartMs: number[];
  readonly refusals: Map<string, number>;
  numKills: number;
  numWhileStarting: number;
  numAcknowledged: number;
}

async function checkStart(url: string, site: Site, tally: Tally): Promise<void> {
  const health = await readHealth(url);
  if (health?.status !== 200 || health.degraded.length > 0) tally.problems.push(`health after a kill: ${JSON.stringify(health)}`); // prettier-ignore
  for (const tenant of TENANTS) {
    const { status, body, text } = await ask(url, '/admin/memory/audit/verify', { token: site.tokens[tenant], body: {} }); // prettier-ignore
    if (status !== 200 || body['brokenAt'] !== null) tally.problems.push(`audit/verify after a kill: ${status} ${text.slice(0, 200)}`); // prettier-ignore
  }
}

/** One folder, from its first start to its last look. */
async function runFolder(seed: number, tally: Tally, next: () => boolean): Promise<void> {
  const random = createRandom(seed);
  const site = await createSite({ model: '260K' });
  const oracle = createOracle();
  let number = 0;
  try {
    for (let round = 0; round < KILLS_PER_FOLDER && next(); round++) {
      const isWhileStarting = random.next() < 0.1;
      if (isWhileStarting) {
        const starting = site.start();
        starting.catch(() => {});
        await sleep(random.next() * 1500);
        site.folder.killAll();
        await starting.then(
          (server) => server.exit,
          () => {},
        );
        tally.numWhileStarting++;
        tally.numKills++;
        continue;
      }
      const began = performance.now();
      const server = await site.start();
      const warm = await ask(server.url, '/v1/completions', { token: site.tokens.alice, body: { model: 'm', prompt: 'Once', max_tokens: 1 } }); // prettier-ignore
      if (warm.status !== 200)
        tally.problems.push(`first answer after a kill: ${warm.status} ${warm.text.slice(0, 200)}`);
      else if (round > 0) tally.restartMs.push(performance.now() - began);
      if (round > 0) {
        await checkStart(server.url, site, tally);
        await verify(server.url, site, oracle, tally.found, { random, isWhole: false });
      }
      // Requests answered right before a kill may be missing in the audit log, and then cannot be rated.
      oracle.rateable.length = 0;
      const over = new AbortController();
      const load = runLoad({ url: server.url, site, oracle, random, nextNumber: () => ++number, refusals: tally.refusals }, NUM_CLIENTS, over.signal); // prettier-ignore
      await sleep(30 + random.next() * MAX_DELAY_MS);
      await kill(server);
      over.abort();
      await load;
      tally.numKills++;
    }
    const server = await site.start();
    await checkStart(server.url, site, tally);
    await verify(server.url, site, oracle, tally.found, { random, isWhole: true });
    await kill(server);
  } catch (error) {
    tally.problems.push(`folder with seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    tally.numAcknowledged += oracle.numAcknowledged;
    site.dispose();
  }
}

export const kills: Part = {
  name: 'kills',
  summary: 'kill -9 at random moments under mixed load',
  async run(options) {
    const clock = createClock(options, 200);
    const tally: Tally = {
      found: createFindings(),
      problems: [],
      restartMs: [],
      refusals: new Map(),
      numKills: 0,
      numWhileStarting: 0,
      numAcknowledged: 0,
    };
    let numFolders = 0;
    const lane = async (): Promise<void> => {
      // A failing folder counts, so that one that never starts does not repeat for ever.
      while (clock.next()) {
        let isFirst = true;
        await runFolder(options.seed * 1000 + numFolders++, tally, () => (isFirst ? !(isFirst = false) : clock.next()));
        options.log(`${tally.numKills} kills, ${tally.numAcknowledged} acknowledged, ${tally.found.lost.length} lost, ${tally.found.wrong.length} wrong`); // prettier-ignore
      }
    };
    await Promise.all(Array.from({ length: Math.min(NUM_LANES, options.maxRounds ?? NUM_LANES) }, lane));
    const { found } = tally;
    return {
      figures: {
        kills: tally.numKills,
        kills_while_starting: tally.numWhileStarting,
        acknowledged: tally.numAcknowledged,
        checked: found.numChecked,
        acked_lost: found.lost.length,
        wrong_data: found.wrong.length,
        restart_ms: percentileOf(tally.restartMs, 0.5),
        restart_p90_ms: percentileOf(tally.restartMs, 0.9),
        refusals: JSON.stringify(Object.fromEntries(tally.refusals)),
      },
      problems: shorten([
        ...tally.problems,
        ...found.lost.map(({ kind, message }) => `lost ${kind}: ${message}`),
        ...found.wrong.map((message) => `wrong: ${message}`),
      ]),
    };
  },
};
