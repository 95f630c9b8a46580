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
/** One of five prompts is held out for evaluation. */
const HELD_OUT_DIVISOR = 5;

const pair = z.strictObject({
  prompt: z.union([
    text(MAX_TEXT, 1),
    z.array(z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: text(MAX_TEXT) })).min(1).max(256), // prettier-ignore
  ]),
  answer: text(MAX_TEXT, 1),
  /** Negative weights make an answer less likely. */
  weight: z.number().min(-1).max(1).default(1),
});
export type Pair = z.infer<typeof pair>;

/** Reads pairs from JSON lines; errors name the line. */
export async function readPairs(path: string, context: CommandContext): Promise<readonly Pair[]> {
  const pairs: Pair[] = [];
  for await (const { lines, records } of readBatches(path, context)) {
    for (const [i, record] of records.entries())
      pairs.push(parseWith<Pair>(pair as never, record, `line ${lines[i]!}`));
    if (pairs.length > MAX_PAIRS) throw new RuvLLMError('invalid_option', `${path} has more than ${MAX_PAIRS} pairs`);
  }
  return pairs;
}

/** FNV-1a: splits prompts the same way on every machine. */
function hashOf(prompt: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < prompt.length; i++) hash = Math.imul(hash ^ prompt.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Holds out a fifth of the prompts, independent of their order. Pairs of one prompt stay together to avoid leakage. */
export function splitPairs(pairs: readonly Pair[]): {
  readonly train: readonly Pair[];
  readonly heldOut: readonly Pair[];
} {
  const keyOf = ({ prompt }: Pair): string => JSON.stringify(prompt);
  const prompts = [...new Set(pairs.map(keyOf))];
  if (prompts.length < 2) {
    throw new RuvLLMError(
      'invalid_option',
      `${prompts.length} distinct prompts; at least 2 are required, one of them held out`,
      {
        data: { option: '--data' },
      },
    );
  }
  const order = prompts.toSorted((a, b) => hashOf(a) - hashOf(b) || (a < b ? -1 : 1));
  const heldOutKeys = new Set(order.slice(0, Math.ceil(prompts.length / HELD_OUT_DIVISOR)));
  const isHeldOut = (candidate: Pair): boolean => heldOutKeys.has(keyOf(candidate));
  return { train: pairs.filter((candidate) => !isHeldOut(candidate)), heldOut: pairs.filter(isHeldOut) };
}

export interface EncodedPairs {
  readonly examples: readonly TrainingExample[];
  readonly numTooLong: number;
}

/** Tokenizes pairs with the tokenizer and chat template of a model file. */
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
