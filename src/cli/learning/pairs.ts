import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import type { Metadata } from '../../gguf/types.ts';
import type { TrainingExample } from '../../learning/lora-training/types.ts';
import { parseWith, text } from '../../memory/schemas/primitives.ts';
import { createExampleEncoder } from '../../runtime/learning/encode-example.ts';
import { endIdsOf, readTextSide } from '../../runtime/text/text-side.ts';
import type { CommandContext } from '../command.ts';
import { readBatches } from '../memory/transfer.ts';

const MAX_TEXT = 1 << 16;
const MAX_PAIRS = 1 << 17;
/** One of so many prompts is only for judging. */
const HELD_OUT_SHARE = 5;

const pair = z.strictObject({
  prompt: z.union([
    text(MAX_TEXT, 1),
    z.array(z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: text(MAX_TEXT) })).min(1).max(256), // prettier-ignore
  ]),
  answer: text(MAX_TEXT, 1),
  /** Below 0: an answer that should get less likely. */
  weight: z.number().min(-1).max(1).default(1),
});
export type Pair = z.infer<typeof pair>;

/** The pairs of a file of JSON lines; what does not fit is told by its line. */
export async function readPairs(path: string, context: CommandContext): Promise<readonly Pair[]> {
  const pairs: Pair[] = [];
  for await (const { lines, records } of readBatches(path, context)) {
    for (const [i, record] of records.entries())
      pairs.push(parseWith<Pair>(pair as never, record, `line ${lines[i]!}`));
    if (pairs.length > MAX_PAIRS) throw new RuvLLMError('invalid_option', `${path} has more than ${MAX_PAIRS} pairs`);
  }
  return pairs;
}

/** Fowler, Noll and Vo: spreads the prompts the same way on every machine. */
function hashOf(words: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < words.length; i++) hash = Math.imul(hash ^ words.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** A fifth of the prompts, whatever their order in the file; pairs of one prompt stay together, else the answer would be known. */
export function splitPairs(pairs: readonly Pair[]): {
  readonly train: readonly Pair[];
  readonly heldOut: readonly Pair[];
} {
  const keyOf = ({ prompt }: Pair): string => JSON.stringify(prompt);
  const prompts = [...new Set(pairs.map(keyOf))];
  if (prompts.length < 2) {
    throw new RuvLLMError('invalid_option', `${prompts.length} different prompts: two are needed, one to judge by`, {
      data: { option: '--data' },
    });
  }
  const order = prompts.toSorted((a, b) => hashOf(a) - hashOf(b) || (a < b ? -1 : 1));
  const held = new Set(order.slice(0, Math.ceil(prompts.length / HELD_OUT_SHARE)));
  return { train: pairs.filter((one) => !held.has(keyOf(one))), heldOut: pairs.filter((one) => held.has(keyOf(one))) };
}

export interface EncodedPairs {
  readonly examples: readonly TrainingExample[];
  readonly numTooLong: number;
}

/** Makes tokens of pairs, as a model file says. */
export function encodePairs(metadata: Metadata, maxTokens: number): (pairs: readonly Pair[]) => Promise<EncodedPairs> {
  const side = readTextSide(metadata);
  const encode = createExampleEncoder({ ...side, endIds: endIdsOf(side.tokenizer), textThread: null }, maxTokens);
  return async (pairs) => {
    const examples: TrainingExample[] = [];
    for (const { prompt, answer, weight } of pairs) {
      const encoded = await encode(prompt, answer);
      if (encoded !== null) examples.push({ ...encoded, weight });
    }
    return { examples, numTooLong: pairs.length - examples.length };
  };
}
