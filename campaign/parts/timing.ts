// Does the time of a request tell whether the same text was sent before, because its prefix is cached? For a tenant's own
// texts it must (that is the cache), for those of another tenant it must not: pages in memory, on disk, and after a restart.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom, type Random } from '../../src/core/random.ts';
import type { ServeProcess } from '../../test/support/serve-process.ts';
import { createClock, type Part } from '../part.ts';
import { aucBelow } from '../support/auc.ts';
import { ask } from '../support/client.ts';
import { createSite, kill, type Site, type Tenant } from '../support/site.ts';

const WORDS = ['cat', 'dog', 'tree', 'house', 'river', 'happy', 'little', 'big', 'ran', 'saw', 'found', 'said', 'red', 'blue', 'mother', 'friend']; // prettier-ignore
/** Nearly the context of the 15M model. */
const NUM_WORDS = 225;
const textOf = (random: Random): string =>
  Array.from({ length: NUM_WORDS }, () => WORDS[Math.floor(random.next() * WORDS.length)]!).join(' ');

interface Probe {
  readonly ms: number;
  readonly isCached: boolean;
}

async function probe(url: string, site: Site, tenant: Tenant, prompt: string): Promise<Probe> {
  const began = performance.now();
  const { status, body, text } = await ask(url, '/v1/completions', { token: site.tokens[tenant], body: { model: 'm', prompt, max_tokens: 1, temperature: 0 } }); // prettier-ignore
  const ms = performance.now() - began;
  if (status !== 200) throw new Error(`probe: ${status} ${text.slice(0, 200)}`);
  const usage = body['usage'] as { prompt_tokens: number; prompt_tokens_details?: { cached_tokens?: number } };
  // The first words of two texts may be the same.
  return { ms, isCached: (usage.prompt_tokens_details?.cached_tokens ?? 0) > usage.prompt_tokens / 2 };
}

/** Times of texts that alice has sent (`hit`) and of new texts (`miss`), for one asking tenant. */
interface Samples {
  readonly hit: number[];
  readonly miss: number[];
  numCached: number;
}
type Tier = 'memory' | 'disk' | 'restart';
const TIERS: readonly Tier[] = ['memory', 'disk', 'restart'];
/** Texts in a tier before they are asked for; fewer in a run of few rounds, which only sees whether tenants share pages. */
const BATCH = { many: 20, few: 6 };
const FEW_ROUNDS = 6;
/** About thirty texts of the 15M model. */
const BUDGET = '48MiB';
const NUM_FLOOD = 40;

async function measure(
  url: string,
  site: Site,
  asking: Tenant,
  random: Random,
  secrets: readonly string[],
  samples: Samples,
): Promise<void> {
  for (const secret of secrets) {
    const order = random.next() < 0.5 ? ['hit', 'miss'] : ['miss', 'hit'];
    for (const which of order as ('hit' | 'miss')[]) {
      const { ms, isCached } = await probe(url, site, asking, which === 'hit' ? secret : textOf(random));
      samples[which].push(ms);
      if (which === 'hit' && isCached) samples.numCached++;
    }
  }
}

/** Writes texts of alice into the tier and returns them with the server to ask. */
async function prepare(
  site: Site,
  running: ServeProcess,
  tier: Tier,
  numTexts: number,
  random: Random,
): Promise<{ server: ServeProcess; secrets: string[] }> {
  const secrets = Array.from({ length: numTexts }, () => textOf(random));
  for (const secret of secrets) await probe(running.url, site, 'alice', secret);
  if (tier === 'memory') return { server: running, secrets };
  await untilSpilled(running.url, site);
  if (tier === 'disk') {
    // More texts than the memory holds: those before are on disk only.
    for (let i = 0; i < NUM_FLOOD; i++) await probe(running.url, site, 'alice', textOf(random));
    return { server: running, secrets };
  }
  await kill(running);
  const server = await site.start();
  for (const tenant of ['alice', 'bob'] as const) {
    for (let i = 0; i < 3; i++) await probe(server.url, site, tenant, textOf(random)); // the first requests of a process are slower
  }
  return { server, secrets };
}

/** Until no more pages are written: the size on disk stays the same for a while. */
async function untilSpilled(url: string, site: Site): Promise<void> {
  let last = '';
  for (let numSame = 0; numSame < 3;) {
    const { text } = await ask(url, '/metrics', { token: site.tokens.admin });
    const now = /^ruvllm_spill_bytes.*$/m.exec(text)?.[0] ?? '';
    numSame = now === last ? numSame + 1 : 0;
    last = now;
    await sleep(50);
  }
}

export const timing: Part = {
  name: 'timing',
  summary: 'whether the prefix cache tells one tenant what another has sent',
  async run(options) {
    const random = createRandom(options.seed);
    const clock = createClock(options, 24);
    const numTexts = (options.maxRounds ?? Infinity) < FEW_ROUNDS ? BATCH.few : BATCH.many;
    const site = await createSite({
      model: '15M',
      contextLength: 4096, // of the random model, whose tokens are shorter
      environment: { RUVLLM_KERNELS: '' },
      // One thread and small steps: a prompt that is computed takes much longer than a cached one, also on a busy machine.
      args: ({ path }) => [
        '--no-memory',
        '--threads',
        '1',
        '--batch-tokens',
        '16',
        '--memory-budget',
        BUDGET,
        '--kv-spill',
        join(path, 'spill'),
      ],
    });
    const create = (): Samples => ({ hit: [], miss: [], numCached: 0 });
    const samples = { alice: new Map(TIERS.map((tier) => [tier, create()])), bob: new Map(TIERS.map((tier) => [tier, create()])) }; // prettier-ignore
    try {
      let server = await site.start();
      for (let i = 0; i < 5; i++) await probe(server.url, site, 'bob', textOf(random));
      while (clock.next()) {
        const tier = TIERS[clock.rounds % TIERS.length]!;
        const prepared = await prepare(site, server, tier, numTexts, random);
        server = prepared.server;
        // The other tenant first: asking puts the text into the cache of who asks.
        await measure(server.url, site, 'bob', random, prepared.secrets, samples.bob.get(tier)!);
        await measure(
          server.url,
          site,
          'alice',
          random,
          prepared.secrets.slice(0, numTexts / 2),
          samples.alice.get(tier)!,
        );
      }
      await kill(server);
    } finally {
      site.dispose();
    }
    const rounded = (value: number): number => Number(value.toFixed(3));
    /** The mean over the tiers: times of different tiers must not be compared. */
    const aucOf = (which: readonly Samples[]): number => {
      const measured = which.filter(({ hit }) => hit.length > 0);
      return rounded(measured.reduce((sum, { hit, miss }) => sum + aucBelow(hit, miss), 0) / measured.length);
    };
    const [other, own] = [[...samples.bob.values()], [...samples.alice.values()]];
    const figures: Record<string, number> = {
      prefix_auc_other: aucOf(other),
      prefix_auc_same: aucOf(own),
      probes_other: other.reduce((sum, { hit }) => sum + hit.length, 0),
      cached_for_other: other.reduce((sum, { numCached }) => sum + numCached, 0),
    };
    for (const tier of TIERS) {
      const [others, owned] = [samples.bob.get(tier)!, samples.alice.get(tier)!];
      if (owned.hit.length === 0) continue; // the time was up
      figures[`${tier}_auc_other`] = aucOf([others]);
      figures[`${tier}_auc_same`] = aucOf([owned]);
      figures[`${tier}_cached_same`] = rounded(owned.numCached / owned.hit.length);
    }
    const [problems, slowness]: [string[], string[]] = [[], []];
    if (figures['cached_for_other']! > 0)
      problems.push(`${figures['cached_for_other']} texts of alice were cached for bob`);
    const auc = figures['prefix_auc_other']!;
    if (auc < 0.45 || auc > 0.55) slowness.push(`bob can tell texts of alice: AUC ${auc}`);
    if (figures['prefix_auc_same']! < 0.9) slowness.push(`the cache does not help its own tenant: AUC ${figures['prefix_auc_same']}`); // prettier-ignore
    for (const tier of TIERS) {
      const share = figures[`${tier}_cached_same`];
      if (share !== undefined && share < 0.9) problems.push(`only ${share} of alice's own texts were found in ${tier}`);
    }
    return { figures, problems, slowness };
  },
};
