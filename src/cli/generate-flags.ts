import { type GenerateOptions, resolveGenerateOptions } from '../runtime/generate-options.ts';
import { collectOptions, type Flag, type FlagValues, withFlagNames, withVariables } from './flags.ts';
import { readBias, readInteger, readNumber, readSeconds, readText } from './values.ts';

/** How text is made; named as llama-server and ollama name them where they do. */
export const GENERATE_FLAGS: readonly Flag[] = withVariables([
  { name: '--max-tokens', value: 'n', option: 'maxTokens', read: readInteger, description: 'most tokens to generate' },
  { name: '--temperature', value: 'x', option: 'temperature', read: readNumber, description: '0 is greedy' },
  { name: '--top-k', value: 'n', option: 'topK', read: readInteger, description: 'the n likeliest tokens; 0 is off' },
  { name: '--top-p', value: 'x', option: 'topP', read: readNumber, description: 'nucleus; 1 is off' },
  { name: '--min-p', value: 'x', option: 'minP', read: readNumber, description: 'share of the best; 0 is off' },
  { name: '--typical-p', value: 'x', option: 'typicalP', read: readNumber, description: 'typical; 1 is off' },
  {
    name: '--repetition-penalty',
    value: 'x',
    option: 'repetitionPenalty',
    read: readNumber,
    description: 'divides the logits of tokens that came already; 1 is off',
  },
  {
    name: '--presence-penalty',
    value: 'x',
    option: 'presencePenalty',
    read: readNumber,
    description: 'taken once from tokens that came already; 0 is off',
  },
  {
    name: '--frequency-penalty',
    value: 'x',
    option: 'frequencyPenalty',
    read: readNumber,
    description: 'taken for every time a token came; 0 is off',
  },
  {
    name: '--logit-bias',
    value: 'id=value',
    option: 'logitBias',
    read: readBias,
    isList: true,
    description: 'added to the logit of a token (repeatable)',
  },
  { name: '--seed', value: 'n', option: 'seed', read: readInteger, description: 'same seed, same text' },
  {
    name: '--stop',
    value: 'text',
    option: 'stop',
    read: readText,
    isList: true,
    description: 'ends the answer where this text begins (repeatable)',
  },
  {
    name: '--timeout',
    value: 'seconds',
    option: 'timeoutMs',
    read: readSeconds,
    description: 'gives an answer up that takes longer',
  },
  { name: '--ignore-eos', value: null, option: 'ignoreEos', description: 'go on after an end-of-text token' },
]);

/** Of `run` alone, and only where it is typed: there is no place for them in a text. */
export const LOGPROBS_FLAG: Flag = {
  name: '--logprobs',
  value: 'n',
  option: 'topLogprobs',
  read: readInteger,
  description: 'report log-probabilities and n alternatives a token (with --json)',
};

/** The generation options that were typed or stand in the environment, checked before anything is loaded. */
export function readGenerateOptions(
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>> = {},
): GenerateOptions {
  const flags = [...GENERATE_FLAGS, LOGPROBS_FLAG];
  const options = collectOptions(flags, values, environment);
  const biases = options['logitBias'] as [number, number][] | undefined;
  const read = (biases === undefined ? options : { ...options, logitBias: new Map(biases) }) as GenerateOptions;
  withFlagNames(flags, values, () => resolveGenerateOptions(read));
  return read;
}
