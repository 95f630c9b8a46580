import { RuvLLMError } from '../core/errors.ts';
import { showValue } from '../core/show-value.ts';

/** The scaling of factors in adapter_config.json. */
export interface PeftConfig {
  /** alpha / rank (or its root) of the module with this name, without the layers above the model. */
  scaleOf(module: string, rank: number): number;
  /** The configured rank of a module. */
  rankOf(module: string): number;
}

type Json = Readonly<Record<string, unknown>>;

/** Settings that change the arithmetic or add weights of another kind; only these values are supported. */
const REQUIRED_VALUES: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ['fan_in_fan_out', isOff],
  ['use_dora', isOff],
  ['use_qalora', isOff],
  ['lora_bias', isOff],
  ['modules_to_save', isOff],
  ['layer_replication', isOff],
  ['trainable_token_indices', isOff],
  ['target_parameters', isOff],
  ['bias', (value) => isOff(value) || value === 'none'],
  // These change the model's weights when training begins, so the factors belong to another model than the file's.
  ['init_lora_weights', (value) => typeof value !== 'string' || !/^(pissa|olora|corda|loftq)/i.test(value)],
];

function isOff(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Entries of rank_pattern or alpha_pattern: at most as many as a model has modules. */
const MAX_PATTERNS = 65_536;

/** Validates a parsed adapter_config.json; settings beyond plain LoRA are `unsupported` and named. */
export function readPeftConfig(config: unknown): PeftConfig {
  if (!isObject(config)) throw invalid('is not an object');
  if (config['peft_type'] !== 'LORA') throw unsupported('peft_type', config['peft_type']);
  for (const [key, isSupported] of REQUIRED_VALUES) {
    if (!isSupported(config[key])) throw unsupported(key, config[key]);
  }
  const rank = positive(config['r'], 'r');
  const alpha = positive(config['lora_alpha'], 'lora_alpha');
  const ranks = readPattern(config['rank_pattern'], 'rank_pattern');
  const alphas = readPattern(config['alpha_pattern'], 'alpha_pattern');
  const usesRoot = config['use_rslora'] === true;
  return {
    rankOf: (module) => find(ranks, module) ?? rank,
    scaleOf: (module, rankOfModule) =>
      (find(alphas, module) ?? alpha) / (usesRoot ? Math.sqrt(rankOfModule) : rankOfModule),
  };
}

type Patterns = readonly (readonly [string, number])[];

/** Keys are regular expressions, in practice module names or their last parts. Others are rejected: they could run forever. */
function readPattern(value: unknown, key: string): Patterns {
  if (isOff(value)) return [];
  if (!isObject(value)) throw invalid(`${key} is not an object`);
  const entries = Object.entries(value);
  if (entries.length > MAX_PATTERNS)
    throw invalid(`${key} has ${entries.length} entries, the limit is ${MAX_PATTERNS}`);
  return entries.map(([pattern, number]) => {
    if (!/^\^?[\w.\\]+\$?$/.test(pattern)) throw unsupported(key, pattern);
    return [pattern.replaceAll('\\.', '.'), positive(number, `${key}["${pattern.slice(0, 80)}"]`)] as const;
  });
}

function find(patterns: Patterns, module: string): number | undefined {
  return patterns.find(([pattern]) => {
    const name = pattern.replace(/\$$/, '');
    if (name.startsWith('^')) return module === name.slice(1);
    return module === name || module.endsWith(`.${name}`);
  })?.[1];
}

function positive(value: unknown, key: string): number {
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
  throw invalid(`${key} must be a positive number, got ${showValue(value)}`);
}

const invalid = (what: string): RuvLLMError => new RuvLLMError('invalid_model_file', `adapter_config.json: ${what}`);

const unsupported = (key: string, value: unknown): RuvLLMError =>
  new RuvLLMError('unsupported', `adapter_config.json: ${key} ${showValue(value)} is not supported`, { data: { key } });
