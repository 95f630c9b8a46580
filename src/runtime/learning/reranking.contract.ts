import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import { createRandom, type Random } from '../../core/random.ts';
import { ndcg } from '../../learning/graph-attention/ranking-metrics.ts';
import { createSonaHarness, openTinyModel } from '../../learning/sona/harness.contract.ts';
import { createLearningWork } from '../../learning/sona/work-methods.ts';
import { createRequestMemory } from '../memory/request-memory.ts';
import { createLearning, type Learning } from './learning.ts';

const DIM = 48;
export const TENANT = 'acme';
/** Texts of a topic: one that is nearest, one that hangs on it and is used, and others that are nearer than that. */
const NUM_OTHERS = 4;
export const NUM_ASKED = 105;
export const NUM_HELD_OUT = 20;

function gaussian(random: Random): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random.next();
  return sum;
}

/** Eight words unique to the seed. */
function wordsOf(seed: string): string {
  const letters = Array.from(seed, (letter) => 'abcdefghijklmnopqrstuvwxyz'[letter.charCodeAt(0) % 26]!).join('');
  return Array.from({ length: 8 }, (_, i) => `${letters}${'stuvwxyz'[i]!}`).join(' ');
}

/**
 * A memory of many topics and requests about them. `isShuffled`: what an answer uses has nothing to do with what hangs together.
 */
export async function createRerankWorld(isShuffled: boolean) {
  const random = createRandom(11);
  const vectors = new Map<string, Float32Array>();
  const unit = (values: Float32Array): Float32Array => {
    const norm = Math.hypot(...values);
    return values.map((value) => value / norm);
  };
  const any = (): Float32Array => unit(Float32Array.from({ length: DIM }, () => gaussian(random)));
  /** At a cosine of about `near` with `to`. */
  const around = (to: Float32Array, near: number): Float32Array => {
    const off = any();
    const along = off.reduce((sum, value, i) => sum + value * to[i]!, 0);
    const side = unit(off.map((value, i) => value - along * to[i]!));
    return to.map((value, i) => near * value + Math.sqrt(1 - near * near) * side[i]!);
  };
  const clock = { ms: Date.UTC(2026, 0, 1) };
  const now = (): number => clock.ms;
  const embedder = { fingerprint: 'planted-1', dim: DIM, embed: (text: string) => vectors.get(text)! };
  const memory: TestMemory = await openTestMemory({ now, embedder });

  const topics: { readonly query: string; readonly ids: readonly string[]; readonly linked: string }[] = [];
  const texts = new Map<string, string>();
  for (let t = 0; t < NUM_ASKED + NUM_HELD_OUT; t++) {
    const query = `what of ${wordsOf(`q${t}`)}`;
    const centre = any();
    vectors.set(query, centre);
    const nearness = [0.95, 0.7, ...Array.from({ length: NUM_OTHERS }, () => 0.75 + 0.1 * random.next())];
    const ids: string[] = [];
    for (const [i, near] of nearness.entries()) {
      const text = wordsOf(`${'abcdefghij'[i]!}${t.toString().padStart(3, '0')}`);
      vectors.set(text, around(centre, near));
      ids.push(await memory.add(TENANT, { text }));
      texts.set(ids.at(-1)!, text);
    }
    const rest = { weight: 1, confidence: 0.9 };
    await memory.graph.link(TENANT, [
      { from: ids[0]!, to: ids[1]!, relation: 'same-topic', ...rest },
      { from: ids[2]!, to: ids[3]!, relation: 'follows', ...rest },
    ]);
    topics.push({ query, ids, linked: ids[1]! });
  }
  clock.ms += 3_600_000;

  const reports: string[] = [];
  const open = (): Learning => {
    const learning = createLearning({
      memory,
      work: createLearningWork(openTinyModel, () => performance.now(), memory.services.sha256),
      endWork: async () => {},
      schedule: () => () => {},
      report: (message) => void reports.push(message),
    });
    learning.attach(createSonaHarness().model);
    return learning;
  };

  /** Asks about every topic but the last, each in a session of its own; the answer says what one of the texts says. */
  async function ask(learning: Learning): Promise<void> {
    const requests = createRequestMemory(memory, { now, wallClock: now, report: (message) => void reports.push(message), learning }); // prettier-ignore
    for (const [t, { query, linked }] of topics.slice(0, NUM_ASKED).entries()) {
      const wish = {
        k: 6,
        kinds: ['document'],
        filter: [],
        tokenBudget: 512,
        minSimilarity: 0.5,
        expandHops: 0,
        remember: false,
        onlyTrusted: false,
      } as const;
      const requestId = memory.services.newId();
      const call = await requests.begin({ tenant: TENANT, requestId, model: 'small', session: `s${t}`, user: null, prompt: query, wish }); // prettier-ignore
      const { sources } = call;
      const used = isShuffled ? sources[Math.floor(random.next() * sources.length)]!.id : linked;
      const text = `I found that ${texts.get(used)!} as it is said.`;
      call.finish({
        text,
        numPromptTokens: 1,
        numOutputTokens: 1,
        queueMs: 0,
        promptMs: 1,
        ttftMs: 1,
        generationMs: 1,
        error: null,
      });
      clock.ms += 1000;
      await requests.settle();
    }
    await learning.settle();
  }

  /** Recalled texts for held-out topics. */
  async function recallHeldOut(tenant = TENANT) {
    const orders: string[][] = [];
    for (const { query } of topics.slice(NUM_ASKED)) {
      const { results, context } = await memory.search(tenant, { text: query, k: 6, minSimilarity: 0.5, tokenBudget: 512 }); // prettier-ignore
      orders.push([...results.map(({ record: { id }, similarity }) => `${id} ${similarity}`), context!.text]);
    }
    const gains = topics.slice(NUM_ASKED).map(({ linked }, i) => {
      const used = orders[i]!.slice(0, -1).map((one) => one.startsWith(linked));
      return ndcg(used.map((_, place) => -place), used, 10); // prettier-ignore
    });
    return { orders, ndcg: gains.reduce((sum, gain) => sum + gain, 0) / gains.length };
  }

  return { memory, open, ask, recallHeldOut, reports, texts, topics };
}
