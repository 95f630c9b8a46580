import { invalidFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import { type Json, size } from './hf-config.ts';
import { u32 } from './hf-family.ts';
import type { HfTensor, LayerTensors } from './hf-tensor.ts';
import { joinTensors, pickRows, type ValueReader } from './value-reader.ts';

/** The names of expert dimensions in config.json. */
export interface ExpertKeys {
  readonly count: string;
  readonly used: string;
  readonly ffnLength: string;
}

/** A mixture of experts in config.json. */
export interface HfExperts {
  readonly count: number;
  readonly used: number;
  /** Values between the two products of one expert. */
  readonly ffnLength: number;
}

/** Reads and checks the dimensions of experts. */
export function readExperts(config: Json, keys: ExpertKeys): HfExperts {
  const [count, used] = [size(config, keys.count), size(config, keys.used)];
  if (used > count) {
    invalidFile(`config.json: ${keys.used} is ${used}, but ${keys.count} only ${count}`, { used, count });
  }
  return { count, used, ffnLength: size(config, keys.ffnLength) };
}

/** The keys that every file with experts has. */
export const expertEntries = ({ count, used, ffnLength }: HfExperts): MetadataEntry[] => [
  u32('expert_count', count),
  u32('expert_used_count', used),
  u32('expert_feed_forward_length', ffnLength),
];

/** Where a layer has its experts; defaults are the names of most families. */
export interface ExpertNames {
  /** Default `mlp.experts`. */
  readonly at?: string;
  /** Default `gate_proj`, and so on. */
  readonly gate?: string;
  readonly up?: string;
  readonly down?: string;
}

/**
 * The three stacks of a layer's experts. The checkpoint has a tensor for each expert, or stacks: `gate_up_proj` with the rows of gates before
 * those of up in each expert, and `down_proj`.
 */
export function expertStacks(
  { count, ffnLength }: HfExperts,
  width: number,
  { at = 'mlp.experts', gate = 'gate_proj', up = 'up_proj', down = 'down_proj' }: ExpertNames = {},
): HfTensor[] {
  const dims = (numCols: number, numRows: number): readonly number[] => [numCols, numRows, count];
  const inner = { count, numRows: ffnLength, numCols: width };
  return [
    {
      to: 'ffn_gate_exps.weight',
      dims: dims(width, ffnLength),
      read: (source) => readHalf(source, at, gate, inner, 0),
    },
    { to: 'ffn_up_exps.weight', dims: dims(width, ffnLength), read: (source) => readHalf(source, at, up, inner, 1) },
    {
      to: 'ffn_down_exps.weight',
      dims: dims(ffnLength, width),
      read: (source) =>
        source.has(`${at}.down_proj`)
          ? source.values(`${at}.down_proj`, [count, width, ffnLength])
          : joinExperts(source, at, down, { count, numRows: width, numCols: ffnLength }),
    },
  ];
}

interface StackShape {
  readonly count: number;
  readonly numRows: number;
  readonly numCols: number;
}

/** Gates (half 0) or up (half 1). */
function readHalf(source: LayerTensors, at: string, name: string, shape: StackShape, half: 0 | 1): ValueReader {
  const stacked = `${at}.gate_up_proj`;
  return source.has(stacked) ? pickHalf(source, stacked, shape, half) : joinExperts(source, at, name, shape);
}

/** One half of the rows of each expert in a stack that has both. */
export function pickHalf(
  source: LayerTensors,
  stacked: string,
  { count, numRows, numCols }: StackShape,
  half: 0 | 1,
): ValueReader {
  const read = source.values(stacked, [count, 2 * numRows, numCols]);
  return pickRows(read, numCols, (row) => {
    const expert = Math.floor(row / numRows);
    return expert * 2 * numRows + half * numRows + (row - expert * numRows);
  });
}

/** The same matrix of all experts; their number must be the configured one. */
function joinExperts(
  source: LayerTensors,
  at: string,
  name: string,
  { count, numRows, numCols }: StackShape,
): ValueReader {
  const nameOf = (expert: number): string => `${at}.${expert}.${name}.weight`;
  let numFound = 0;
  while (source.has(nameOf(numFound))) numFound++;
  if (numFound !== count) {
    const name = source.fullName(nameOf(Math.min(numFound, count)));
    const relation = numFound < count ? 'is the first that is missing' : 'is one more';
    invalidFile(`config.json says ${count} experts, the checkpoint has ${numFound}: ${name} ${relation}`, {
      tensor: name,
      count,
      numFound,
    });
  }
  const readers = Array.from({ length: count }, (_, expert) => source.values(nameOf(expert), [numRows, numCols]));
  return joinTensors(readers, numRows * numCols);
}
