import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { MEMORY_DESCRIPTION } from '../config/common-flags.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { usageError } from '../usage-error.ts';

/** `small=0.5`. */
function readCost(text: string, flag: string): readonly [string, number] {
  const equals = text.lastIndexOf('=');
  const [name, price] = [text.slice(0, Math.max(equals, 0)), text.slice(equals + 1)];
  if (name === '' || !/^(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)$/i.test(price)) throw usageError(`${flag} must be NAME=COST, such as small=1, got ${JSON.stringify(text)}`, flag); // prettier-ignore
  return [name, Number(price)];
}

const MODEL_FLAG = defineFlags({
  '--model <model>':
    'model to measure; default: the default model of chat, or the sentence encoder for embeddings and memory',
});

const DATA_FLAGS = defineFlags({
  '--data <file>': 'routing, embeddings, learning, memory: your JSON lines, - for stdin; default: the bundled set',
  '--seed <n>': 'routing, embeddings, learning, memory: seed of splits, shuffles and random baselines; default 1',
});

const ROUTING_FLAGS = defineFlags({
  '--cost <name=cost>...': ['routing: cost of a request to a candidate (repeatable)', readCost],
  '--from-memory': 'routing: use the rated requests of your memory instead of --data',
  '--memory <place>': `routing with --from-memory: ${MEMORY_DESCRIPTION}`,
  '--tenant <name>': `routing with --from-memory: tenant of the requests; default ${DEFAULT_TENANT}`,
});

const PROJECTION_FLAG = defineFlags({
  '--projection <file>': 'embeddings, memory: also measure this projection of ruvllm train embeddings',
});

const SPEED_FLAGS = defineFlags({
  '--prompt-tokens <n>': 'speed: length of the prompt; default 128',
  '--tokens <n>': 'speed: tokens to generate; default 32',
  '--runs <n>': 'speed: runs to measure after a cold one; default 3',
});

/** The flags of each topic; all others are refused. */
export const TOPIC_FLAGS: Readonly<Record<string, readonly Flag[]>> = {
  speed: [...MODEL_FLAG, ...SPEED_FLAGS, ...LOAD_FLAGS],
  routing: [...DATA_FLAGS, ...ROUTING_FLAGS],
  embeddings: [...MODEL_FLAG, ...DATA_FLAGS, ...PROJECTION_FLAG],
  learning: [...MODEL_FLAG, ...DATA_FLAGS],
  memory: [...MODEL_FLAG, ...DATA_FLAGS, ...PROJECTION_FLAG],
};

/** Help of each topic. */
export const TOPIC_DESCRIPTIONS: Readonly<Record<string, string>> = {
  speed: 'prompt and generation speed of a model (default)',
  routing: 'a trained router against fixed and random choices at equal cost',
  embeddings: "recall@k and MRR of a model's embeddings against BM25 and random order",
  learning: 'loss and accuracy on held-out questions before and after the learning loops, with a shuffled control',
  memory: 'recall of evidence by memory search against BM25 and plain vectors',
};
