import { z } from 'zod';
import { type MemoryNode, nodeToRecord } from '../../memory/schemas/node.ts';
import { parseStored } from '../../memory/schemas/primitives.ts';
import { VERDICTS } from '../../memory/schemas/trajectory.ts';
import { BANK_SOURCE, type JsonValue, type PutRecord } from '../../memory/types.ts';
import type { Sample } from './welch.ts';

export { BANK_SOURCE };

const sample = z.strictObject({ count: z.int().min(0), mean: z.number(), variance: z.number().min(0) });

const contents = z.strictObject({
  verdict: z.enum(VERDICTS),
  /** Number of its trajectories. */
  support: z.int().min(1),
  confidence: z.number().min(0).max(1),
  numUses: z.int().min(0),
  lastUsedMs: z.int().min(0),
  quality: sample,
  /** Quality of each model's answers. */
  models: z.record(z.string().max(256), sample),
  /** Model that is significantly better than the others; null: none. */
  recommendedModel: z.string().max(256).nullable(),
});

/** Common contents of similar requests. */
export type PatternContents = z.infer<typeof contents>;

export interface PatternWords extends PatternContents {
  readonly id: string;
  readonly text: string;
}

export interface Pattern extends PatternWords {
  readonly embedding: Float32Array;
  readonly space: string;
}

function toNode(pattern: Pattern): MemoryNode {
  const { id, text, embedding, space, ...metadata } = pattern;
  return {
    id,
    kind: 'pattern',
    text,
    source: BANK_SOURCE,
    topic: null,
    quality: Math.min(1, Math.max(0, pattern.quality.mean)),
    metadata: metadata as unknown as Readonly<Record<string, JsonValue>>,
    expiresMs: null,
    embedding,
    space,
  };
}

/** The time of last use is a field, so that idle patterns are found without opening them. */
export function patternToRecord(pattern: Pattern, tenant: string): PutRecord {
  const record = nodeToRecord(toNode(pattern), tenant);
  return { ...record, fields: { ...record.fields, lastUsedMs: pattern.lastUsedMs } };
}

export const contentsOf = (metadata: unknown, id: string): PatternContents =>
  parseStored<PatternContents>(contents, metadata, `pattern ${id}`);

export function patternFromNode(node: MemoryNode): Pattern {
  const { id, text, embedding, space } = node;
  return { ...contentsOf(node.metadata, id), id, text, embedding: embedding!, space: space! };
}

/** Joins two samples. */
export function poolSamples(a: Sample, b: Sample): Sample {
  const count = a.count + b.count;
  if (count === 0) return a;
  const mean = (a.mean * a.count + b.mean * b.count) / count;
  const squares = (one: Sample): number =>
    one.variance * Math.max(0, one.count - 1) + one.count * (one.mean - mean) ** 2;
  return { count, mean, variance: count < 2 ? 0 : (squares(a) + squares(b)) / (count - 1) };
}

/** Grows with support and agreement: three that agree give 0.5. */
export function confidenceOf({ count, variance }: Sample): number {
  return (count / (count + 3)) * Math.max(0, 1 - 2 * Math.sqrt(variance));
}
