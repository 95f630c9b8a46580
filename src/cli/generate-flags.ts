import { type GenerateOptions, resolveGenerateOptions } from '../runtime/generate-options.ts';
import { collectOptions, type Flag, type FlagValues, withFlagNames, withVariables } from './flags.ts';
import { readBias, readInteger, readNumber, readSeconds, readText } from './values.ts';

/** Sampling and length options, with the names of llama-server and ollama where they have them. */
export const GENERATE_FLAGS: readonly Flag[] = withVariables([
  {
    name: '--max-tokens',
    value: 'n',
    option: 'maxTokens',
    read: readInteger,
    description: 'generate at most n tokens',
  },
  {
    name: '--temperature',
    value: 'x',
    option: 'temperature',
    read: readNumber,
    description: 'sampling temperature; 0 is greedy',
  },
  {
    name: '--top-k',
    value: 'n',
    option: 'topK',
    read: readInteger,
    description: 'sample from the n likeliest tokens; 0 is off',
  },
  { name: '--top-p', value: 'x', option: 'topP', read: readNumber, description: 'nucleus sampling; 1 is off' },
  {
    name: '--min-p',
    value: 'x',
    option: 'minP',
    read: readNumber,
    description: 'minimum probability relative to the likeliest token; 0 is off',
  },
  {
    name: '--typical-p',
    value: 'x',
    option: 'typicalP',
    read: readNumber,
    description: 'locally typical sampling; 1 is off',
  },
  {
    name: '--repetition-penalty',
    value: 'x',
    option: 'repetitionPenalty',
    read: readNumber,
    description: 'divide the logits of tokens already in the text; 1 is off',
  },
  {
    name: '--presence-penalty',
    value: 'x',
    option: 'presencePenalty',
    read: readNumber,
    description: 'subtract from the logits of tokens already in the text; 0 is off',
  },
  {
    name: '--frequency-penalty',
    value: 'x',
    option: 'frequencyPenalty',
    read: readNumber,
    description: 'subtract from the logit of a token per occurrence; 0 is off',
  },
  {
    name: '--logit-bias',
    value: 'id=value',
    option: 'logitBias',
    read: readBias,
    isList: true,
    description: 'add to the logit of a token (repeatable)',
  },
  { name: '--seed', value: 'n', option: 'seed', read: readInteger, description: 'the same seed gives the same text' },
  {
    name: '--stop',
    value: 'text',
    option: 'stop',
    read: readText,
    isList: true,
    description: 'end the answer before this text (repeatable)',
  },
  {
    name: '--timeout',
    value: 'seconds',
    option: 'timeoutMs',
    read: readSeconds,
    description: 'abort an answer that takes longer',
  },
  { name: '--ignore-eos', value: null, option: 'ignoreEos', description: 'continue after an end-of-text token' },
]);

/** Only for `run --json`: plain text has no place for probabilities. */
export const LOGPROBS_FLAG: Flag = {
  name: '--logprobs',
  value: 'n',
  option: 'topLogprobs',
  read: readInteger,
  description: 'report log-probabilities and n alternatives per token (requires --json)',
};

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
