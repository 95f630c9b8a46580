import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { KvPolicyQuality, KvQualityRecord } from '../../kv-cache/kv-policy.ts';
import { createFileSink } from './file-sink.ts';
import { cacheFolder } from './paths.ts';

/** Counts up when pages are packed another way: what was measured before says nothing then. */
const VERSION = 1;
/** A record has some hundred bytes; whatever is longer is none. */
const MAX_RECORD_BYTES = 1 << 16;

export const kvQualityFolder = (): string => join(cacheFolder(), 'kv-quality');

function recordPath(folder: string, modelHash: string): string {
  if (!/^[0-9a-f]{64}$/.test(modelHash)) {
    throw new RuvLLMError('internal', `"${modelHash.slice(0, 80)}" is no content hash`);
  }
  return join(folder, `${modelHash}.json`);
}

/** What was measured of a model; null when nothing was, or when it cannot be understood. */
export function readKvQuality(modelHash: string, folder = kvQualityFolder()): KvQualityRecord | null {
  const path = recordPath(folder, modelHash);
  try {
    const text = readFileSync(path, 'utf8');
    const value: unknown = text.length > MAX_RECORD_BYTES ? null : JSON.parse(text);
    return isRecord(value, modelHash) ? value : null;
  } catch {
    return null; // none, or half of one: it is as good as not measured
  }
}

/** Keeps a measurement, in place of an older one of the same model. */
export function writeKvQuality(record: KvQualityRecord, folder = kvQualityFolder()): void {
  const path = recordPath(folder, record.modelHash);
  mkdirSync(dirname(path), { recursive: true });
  const sink = createFileSink(path);
  try {
    sink.write(Buffer.from(JSON.stringify({ version: VERSION, ...record })));
    sink.commit();
  } finally {
    sink.abort();
  }
}

function isRecord(value: unknown, modelHash: string): value is KvQualityRecord {
  if (!isObject(value) || value['version'] !== VERSION || value['modelHash'] !== modelHash) return false;
  const { policies } = value;
  if (!isObject(policies) || !hasNumbers(value, ['tailTokens', 'numTokens', 'floorKl'])) return false;
  return Object.entries(policies).every(([name, quality]) => (name === 'q8' || name === 'q4') && isQuality(quality));
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const isQuality = (value: unknown): value is KvPolicyQuality =>
  isObject(value) && hasNumbers(value, ['meanKl', 'p99Kl', 'top1']);

/** JSON has no NaN, it becomes null: such a measurement is kept as one that is within no limit. */
function hasNumbers(value: Record<string, unknown>, keys: readonly string[]): boolean {
  for (const key of keys) value[key] ??= NaN;
  return keys.every((key) => typeof value[key] === 'number');
}
