import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { quantFormats } from '../../src/quant/index.ts';
import { BENCH_SIZES, whyNoModel } from './bench-model.ts';
import type { RaceSettings } from './tasks.ts';

export interface EngineBenchOptions extends RaceSettings {
  /** Only one shape; null: the promised rows. */
  readonly shape: { readonly size: string; readonly type: TensorTypeName } | null;
  readonly hasNative: boolean;
  readonly hasWasm: boolean;
  /** All sizes and types after the rows. */
  readonly isFull: boolean;
}

const KERNELS = ['both', 'native', 'wasm'];

/** Throws on unknown arguments. */
export function readEngineOptions(args: readonly string[]): EngineBenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      size: { type: 'string' },
      type: { type: 'string' },
      threads: { type: 'string', default: String(availableParallelism()) },
      rounds: { type: 'string', default: '3' },
      prompt: { type: 'string', default: '512' },
      decode: { type: 'string', default: '64' },
      depth: { type: 'string', default: '0' },
      kernels: { type: 'string', default: 'both' },
      full: { type: 'boolean', default: false },
    },
  });
  const number = (name: 'threads' | 'rounds' | 'prompt' | 'decode' | 'depth', min: number, max: number): number => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new Error(`--${name} is "${values[name]}", must be a whole number from ${min} to ${max}`);
  };
  const choice = (name: string, value: string, choices: readonly string[]): string => {
    if (choices.includes(value)) return value;
    throw new Error(`--${name} is "${value}", must be one of: ${choices.join(', ')}`);
  };
  const readShape = (): EngineBenchOptions['shape'] => {
    if (values.size === undefined && values.type === undefined) return null;
    if (values.full) throw new Error('--full measures all sizes and types: omit --size and --type');
    const size = choice('size', values.size ?? '1b', BENCH_SIZES);
    const type = choice('type', values.type ?? 'Q4_0', Object.keys(quantFormats)) as TensorTypeName;
    const reason = whyNoModel(size, type);
    if (reason !== null) throw new Error(`there is no ${size} model of ${type}: ${reason}`);
    return { size, type };
  };
  const kernels = choice('kernels', values.kernels, KERNELS);
  return {
    shape: readShape(),
    numThreads: number('threads', 1, 256),
    numRounds: number('rounds', 1, 100),
    numPrompt: number('prompt', 1, 8000),
    numDecode: number('decode', 1, 4000),
    depth: number('depth', 0, 4096),
    hasNative: kernels !== 'wasm',
    hasWasm: kernels !== 'native',
    isFull: values.full,
  };
}
