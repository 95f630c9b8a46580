import type { Adapter } from '../../adapters/types.ts';
import { deserializeError } from '../../core/errors.ts';
import type { ExaminedTokens } from '../../engine/examiner.ts';
import { MIN_PRIORITY } from '../../engine/types.ts';
import { NUM_TOP, type TokenSample } from '../../learning/micro-lora/types.ts';
import type { LearningModel } from '../../learning/sona/types.ts';
import type { AdapterNames } from '../adapters.ts';
import { INSTANT_ADAPTER, TRAINED_ADAPTER } from '../adapters.ts';
import type { EngineClient } from '../engine-client.ts';
import type { TextContext } from '../text/text-thread.ts';
import { createExampleEncoder, type ExamplePrompt, MAX_EXAMPLE_TOKENS } from './encode-example.ts';

export interface LearningModelContext extends TextContext {
  readonly client: EngineClient;
  readonly adapters: AdapterNames;
  readonly maxContext: number;
  /** Ids that end an answer. */
  readonly endIds: readonly number[];
}

export interface LearningModelShape {
  readonly id: string;
  readonly path: string;
  readonly architecture: string;
  readonly hiddenDim: number;
  readonly vocabSize: number;
  readonly numParameters: number;
}

/** Tokens of an answer in one instant step: more would take longer than a millisecond. */
const MAX_EXAMINED = 32;
const EXAMINE_MS = 60_000;

/** The learning interface of a loaded model. */
export function createLearningModel(context: LearningModelContext, shape: LearningModelShape): LearningModel {
  const { client, adapters } = context;
  const maxTokens = Math.min(MAX_EXAMPLE_TOKENS, context.maxContext);
  const encode = createExampleEncoder(context, maxTokens);

  async function replace(tenant: string, name: string, adapter: Adapter | null): Promise<void> {
    if (adapter === null) adapters.unload(name, tenant);
    else await adapters.loadLearned(adapter, name, tenant);
  }

  return {
    ...shape,
    maxTokens,
    encodeExample: async ({ prompt }, answer, options) =>
      prompt === null ? null : encode(prompt as ExamplePrompt, answer, options),
    examine: (
      tenant,
      { tokenIds, numPromptTokens },
      { isPlain = false, isServed = false, timeoutMs = EXAMINE_MS } = {},
    ) =>
      new Promise((resolve, reject) => {
        const ids = Array.from(tokenIds);
        client.examine(
          {
            promptIds: ids.slice(0, numPromptTokens),
            labels: ids.slice(numPromptTokens, numPromptTokens + MAX_EXAMINED),
            numTop: NUM_TOP,
            tenant,
            adapters: isPlain ? [] : adapters.learned(tenant, isServed ? [TRAINED_ADAPTER, INSTANT_ADAPTER] : [TRAINED_ADAPTER]), // prettier-ignore
            // User requests go first.
            priority: MIN_PRIORITY,
            timeoutMs,
            cachePrefix: true,
          },
          (event) => {
            if (event.type === 'examined') resolve(samplesOf(event.tokens));
            else if (event.type === 'failed') reject(deserializeError(event.error));
          },
        );
      }),
    async serve(tenant, { trained, instant }) {
      await replace(tenant, TRAINED_ADAPTER, trained);
      await replace(tenant, INSTANT_ADAPTER, instant);
    },
  };
}

function samplesOf(tokens: ExaminedTokens): TokenSample[] {
  const { numTokens, hiddenDim, hidden, labels, labelLogits, logSumExp, numKnown, maxKnown, knownIds, knownLogits } =
    tokens;
  return Array.from({ length: numTokens }, (_, i) => {
    const [start, end] = [i * maxKnown, i * maxKnown + numKnown[i]!];
    return {
      hidden: hidden.slice(i * hiddenDim, (i + 1) * hiddenDim),
      label: labels[i]!,
      labelLogit: labelLogits[i]!,
      logSumExp: logSumExp[i]!,
      ids: knownIds.slice(start, end),
      logits: knownLogits.slice(start, end),
    };
  });
}
