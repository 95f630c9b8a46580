import { type GenerateOptions, resolveGenerateOptions } from '../runtime/generate-options.ts';
import { collectOptions, defineFlags, type Flag, type FlagValues, withFlagNames, withVariables } from './flags.ts';

/** Sampling and length options, with the names of llama-server and ollama where they have them. */
export const GENERATE_FLAGS: readonly Flag[] = withVariables(
  defineFlags({
    '--max-tokens <n> maxTokens': 'generate at most n tokens',
    '--temperature <x> temperature': 'sampling temperature; 0 is greedy',
    '--top-k <n> topK': 'sample from the n likeliest tokens; 0 is off',
    '--top-p <x> topP': 'nucleus sampling; 1 is off',
    '--min-p <x> minP': 'minimum probability relative to the likeliest token; 0 is off',
    '--typical-p <x> typicalP': 'locally typical sampling; 1 is off',
    '--repetition-penalty <x> repetitionPenalty': 'divide the logits of tokens already in the text; 1 is off',
    '--presence-penalty <x> presencePenalty': 'subtract from the logits of tokens already in the text; 0 is off',
    '--frequency-penalty <x> frequencyPenalty': 'subtract from the logit of a token per occurrence; 0 is off',
    '--logit-bias <id=value>... logitBias': 'add to the logit of a token (repeatable)',
    '--seed <n> seed': 'the same seed gives the same text',
    '--stop <text>... stop': 'end the answer before this text (repeatable)',
    '--timeout <seconds> timeoutMs': 'abort an answer that takes longer',
    '--ignore-eos ignoreEos': 'continue after an end-of-text token',
    '--reflection reflection': 'retry an answer that cannot be used, with its error in the prompt',
  }),
);

/** Only for `run --json`: plain text has no place for probabilities. */
export const [LOGPROBS_FLAG] = defineFlags({
  '--logprobs <n> topLogprobs': 'report log-probabilities and n alternatives per token (requires --json)',
}) as readonly [Flag];

/** Generation options from flags and variables, validated before anything is loaded. */
export function readGenerateOptions(
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>> = {},
): GenerateOptions {
  const flags = [...GENERATE_FLAGS, LOGPROBS_FLAG];
  const collected = collectOptions(flags, values, environment);
  const biases = collected['logitBias'] as [number, number][] | undefined;
  const options = (biases === undefined ? collected : { ...collected, logitBias: new Map(biases) }) as GenerateOptions;
  withFlagNames(flags, values, () => resolveGenerateOptions(options));
  return options;
}
