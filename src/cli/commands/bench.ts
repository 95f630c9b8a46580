import { foreignFlag } from '../actions.ts';
import { TOPIC_DESCRIPTIONS, TOPIC_FLAGS } from '../bench/flags.ts';
import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import { type Flag, JSON_FLAG } from '../flags.ts';
import { usageError } from '../usage-error.ts';

const DEFAULT_TOPIC = 'speed';

const TOPICS: Readonly<Record<string, () => Promise<(context: CommandContext) => Promise<void>>>> = {
  speed: async () => (await import('../bench/speed.ts')).benchSpeed,
  routing: async () => (await import('../bench/routing.ts')).benchRouting,
  embeddings: async () => (await import('../bench/embeddings.ts')).benchEmbeddings,
  learning: async () => (await import('../bench/learning.ts')).benchLearning,
  memory: async () => (await import('../bench/memory.ts')).benchMemory,
};

export const flags: readonly Flag[] = [
  ...new Map(Object.values(TOPIC_FLAGS).flat().map((flag) => [flag.name, flag])).values(), // prettier-ignore
];

export const help: HelpParts = {
  actions: Object.entries(TOPIC_DESCRIPTIONS).map(([name, description]) => ({ name, args: '', description })),
  notes:
    'Data is JSON lines. routing: {"prompt", "qualities": {NAME: 0 to 1}, "group"?} and {"costs": {NAME: COST}}; embeddings and memory: {"id", "text"} and {"query", "relevant": [ID]}, or {"anchor", "positive", "negative"?}; learning: {"question", "correction", "paraphrases"?}. Only routing --from-memory opens your memory, and it changes nothing there.',
};

/** Measures a model, or a part of the runtime on the user's data. */
export const run: CommandRunner = async (context) => {
  const topic = context.args[0] ?? DEFAULT_TOPIC;
  if (!Object.hasOwn(TOPICS, topic)) {
    const names = Object.keys(TOPICS).join(', ');
    throw usageError(`unknown topic "${topic}"; bench has ${names} (--model names a model)`, 'topic');
  }
  const names = [JSON_FLAG, ...TOPIC_FLAGS[topic]!].map(({ name }) => name);
  const foreign = Object.keys(context.values).find((flag) => !names.includes(flag));
  if (foreign !== undefined) throw foreignFlag(foreign, 'bench', topic);
  await (
    await TOPICS[topic]!()
  )(context);
};
