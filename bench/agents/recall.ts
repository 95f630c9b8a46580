import type { Episode } from '../../src/memory/agents/types.ts';
import type { Embedder } from '../../src/memory/embedder-types.ts';
import type { Memory } from '../../src/memory/memory.ts';
import { importBuilt } from '../support/dist.ts';
import { compareRanks } from '../support/recall/bootstrap.ts';
import { createRandom } from '../support/recall/random.ts';
import { printTable } from '../support/report.ts';
import { type Dialogue, makeDialogue, type Question } from './support/dialogue.ts';
import { type BenchClock, openEmbedder, withMemory } from './support/memory.ts';
import { DEVELOPMENT, HELD_OUT } from './support/topics.ts';

const { toPassages } = await importBuilt<typeof import('../../src/memory/agents/passages.ts')>('memory/agents/passages'); // prettier-ignore

const TENANT = 'bench';
const SCOPE = { tenant: TENANT, userId: 'u' };
const NUM_DIALOGUES = 8;
const DEVELOPMENT_SEED = 1000;
const HELD_OUT_SEED = 2000;
/** Of the recalled text, in tokens of four characters. */
const BUDGET = 256;
/** A smaller one, where few sentences fit and their order decides. */
const SMALL_BUDGET = 96;
const K = 400;
/** Between two messages: about 40 a day. */
const MESSAGE_MS = 36 * 60_000;
const countTokens = (text: string): number => Math.ceil(text.length / 4);

/** The recalled texts of a question by each method, best or newest first. */
type Recalled = Readonly<Record<Method, readonly string[]>>;
const METHODS = ['agent', 'vector', 'bm25', 'vector, passages', 'bm25, passages'] as const;
type Method = (typeof METHODS)[number];

/** Fills the budget with numbered texts in their order, as agents do without a memory of their own. */
function packPlain(texts: readonly string[], tokenBudget: number): string[] {
  const taken: string[] = [];
  let numLeft = tokenBudget;
  // Repeated texts would waste the budget of every method.
  for (const text of new Set(texts)) {
    const cost = countTokens(`[${taken.length + 1}] ${text}\n`);
    if (cost > numLeft) continue;
    taken.push(text);
    numLeft -= cost;
  }
  return taken;
}

async function fill(memory: Memory, clock: BenchClock, { messages }: Dialogue): Promise<Episode[]> {
  const episodes: Episode[] = [];
  // Baselines find documents of two topics: whole messages, and the same passages as the agent memory.
  for (const { speaker, text } of messages) {
    clock.timeMs += MESSAGE_MS;
    episodes.push(...(await memory.agents.episodes.add(SCOPE, 'session', [{ speaker, text }])));
    await memory.add(TENANT, { text, topic: 'message' });
    for (const passage of toPassages(text)) await memory.add(TENANT, { text: passage, topic: 'passage' });
  }
  return episodes;
}

/** Stores the facts of the conversation as a faultless extraction would. */
async function extract(memory: Memory, episodes: readonly Episode[], { questions, changing }: Dialogue): Promise<void> {
  const said = [...questions, ...changing].flatMap(({ evidence }) => evidence).sort((a, b) => a.message - b.message);
  for (const { message, subject, attribute, value } of said) {
    await memory.agents.facts.assert(SCOPE, { subject, attribute, value, polarity: 'is' }, episodes[message]!);
  }
}

async function recall(memory: Memory, embedder: Embedder, text: string, tokenBudget = BUDGET): Promise<Recalled> {
  const vector = await embedder.embed(text);
  const found = async (topic: string, isLexical: boolean): Promise<string[]> => {
    const filter = { fields: [{ field: 'topic', is: '=', value: topic }] } as const;
    const common = { kinds: ['document'], k: K, filter, withVectors: false } as const;
    const hits = isLexical
      ? await memory.store.match(TENANT, { text, ...common })
      : await memory.store.nearest(TENANT, { vector, space: embedder.fingerprint, ...common });
    return packPlain(hits.map(({ record }) => (record.body as { readonly text: string }).text), tokenBudget); // prettier-ignore
  };
  const context = await memory.agents.recall(SCOPE, { text, tokenBudget });
  const numTokens = countTokens(context.text);
  if (numTokens > tokenBudget) throw new Error(`recall has ${numTokens} tokens of ${tokenBudget}`);
  return {
    agent: context.text.split('\n'),
    vector: await found('message', false),
    bm25: await found('message', true),
    'vector, passages': await found('passage', false),
    'bm25, passages': await found('passage', true),
  };
}

/** Position of the first text with a sentence; Infinity: none. */
function positionOf(texts: readonly string[], sentence: string): number {
  const at = texts.findIndex((text) => text.includes(sentence));
  return at < 0 ? Infinity : at;
}

/** 0: the evidence is recalled; Infinity: it is not. */
const isRecalled = (texts: readonly string[], { evidence }: Question): number =>
  positionOf(texts, evidence.at(-1)!.sentence) < Infinity ? 0 : Infinity;

/** 0: the newest value is recalled, as a fact or in a message, before every older one. */
function isNewestFirst(texts: readonly string[], { evidence }: Question): number {
  const [newest, ...older] = evidence
    .toReversed()
    .map(({ sentence, subject, attribute, value }) =>
      Math.min(positionOf(texts, sentence), positionOf(texts, `${subject}: ${attribute} is ${value}"`)),
    );
  return newest! < Infinity && older.every((position) => position > newest!) ? 0 : Infinity;
}

type Ranks = Record<Method, number[]>;
const noRanks = (): Ranks => Object.fromEntries(METHODS.map((method) => [method, []])) as never;
const shareOf = (ranks: readonly number[]): number => ranks.filter((rank) => rank === 0).length / ranks.length;

/** Answers to questions about long conversations: is the evidence in the text, and is the newest truth first? */
export async function measure({ isDevelopment = false } = {}): Promise<Record<string, number>> {
  const embedder = await openEmbedder();
  const recalled: Ranks[] = [];
  const small: Ranks[] = [];
  const shuffled: Ranks[] = [];
  const newest = noRanks();
  const newestFacts: number[] = [];
  for (let i = 0; i < NUM_DIALOGUES; i++) {
    const dialogue = isDevelopment
      ? makeDialogue(DEVELOPMENT, DEVELOPMENT_SEED + i)
      : makeDialogue(HELD_OUT, HELD_OUT_SEED + i);
    await withMemory(embedder, async (memory, clock) => {
      const episodes = await fill(memory, clock, dialogue);
      const [ranks, tight, control] = [noRanks(), noRanks(), noRanks()];
      const random = createRandom(i);
      for (const [j, question] of dialogue.questions.entries()) {
        const texts = await recall(memory, embedder, question.text);
        const few = await recall(memory, embedder, question.text, SMALL_BUDGET);
        // The control: evidence of another question.
        const other = dialogue.questions[(j + 1 + random(dialogue.questions.length - 1)) % dialogue.questions.length]!;
        for (const method of METHODS) {
          ranks[method].push(isRecalled(texts[method], question));
          tight[method].push(isRecalled(few[method], question));
          control[method].push(isRecalled(texts[method], other));
        }
      }
      for (const question of dialogue.changing) {
        const texts = await recall(memory, embedder, question.text);
        for (const method of METHODS) newest[method].push(isNewestFirst(texts[method], question));
      }
      await extract(memory, episodes, dialogue);
      for (const question of dialogue.changing) {
        const { text } = await memory.agents.recall(SCOPE, { text: question.text, tokenBudget: BUDGET });
        newestFacts.push(isNewestFirst(text.split('\n'), question));
      }
      recalled.push(ranks);
      small.push(tight);
      shuffled.push(control);
    });
    console.error(`conversation ${i + 1} of ${NUM_DIALOGUES}`);
  }
  await embedder.close?.();
  const joined = (lists: readonly Ranks[], method: Method): number[] => lists.flatMap((ranks) => ranks[method]);
  printTable([
    ['method', 'evidence recalled', `in ${SMALL_BUDGET} tokens`, 'with shuffled labels', 'newest first'],
    ...METHODS.map((method) => [method, ...[joined(recalled, method), joined(small, method), joined(shuffled, method), newest[method]].map((ranks) => shareOf(ranks).toFixed(3))]), // prettier-ignore
  ]);
  /** Against the better of two methods. */
  const against = (lists: readonly Ranks[], methods: readonly Method[]) => {
    const basis = lists === shuffled ? recalled : lists;
    const best = methods.toSorted((a, b) => shareOf(joined(basis, b)) - shareOf(joined(basis, a)))[0]!;
    return { best, ...compareRanks(lists.map((ranks) => [ranks.agent, ranks[best]] as const), 1) }; // prettier-ignore
  };
  const figures: Record<string, number> = {};
  const gain = against(recalled, ['vector', 'bm25']);
  const gainOverPassages = against(recalled, ['vector, passages', 'bm25, passages']);
  const control = against(shuffled, ['vector', 'bm25']);
  const smallGain = against(small, ['vector', 'bm25']);
  const smallOverPassages = against(small, ['vector, passages', 'bm25, passages']);
  for (const [name, { best, mean, low, high }] of [
    ['recall_gain', gain],
    ['recall_gain_over_passages', gainOverPassages],
    ['recall_gain_control', control],
    ['recall_gain_small_budget', smallGain],
    ['recall_gain_small_budget_over_passages', smallOverPassages],
  ] as const) {
    console.log(`${name}: ${mean.toFixed(4)} above ${best} (95 %: ${low.toFixed(4)} … ${high.toFixed(4)})`);
    figures[name] = Number(mean.toFixed(4));
    figures[`${name}_low`] = Number(low.toFixed(4));
    figures[`${name}_high`] = Number(high.toFixed(4));
  }
  figures['recall'] = Number(shareOf(joined(recalled, 'agent')).toFixed(4));
  // With facts as a faultless extraction writes them; of messages alone; and of the baseline.
  figures['newest_truth'] = Number(shareOf(newestFacts).toFixed(4));
  figures['newest_truth_messages'] = Number(shareOf(newest.agent).toFixed(4));
  figures['newest_truth_vector'] = Number(shareOf(newest.vector).toFixed(4));
  figures['newest_truth_questions'] = newest.agent.length;
  return figures;
}
