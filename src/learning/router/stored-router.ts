import { RuvLLMError } from '../../core/errors.ts';
import { canonicalJson } from '../../memory/common/canonical-json.ts';
import type { JsonValue } from '../../memory/types.ts';
import { upgradeRidge } from './baselines/ridge.ts';
import type { Platt } from './calibration.ts';
import { resolveCandidates, type UtilityWeights } from './candidates.ts';
import { createPolicy, type DecisionRule, type Shrinkage } from './decision-rule.ts';
import type { Estimator } from './estimator.ts';
import type { Familiarity } from './familiarity.ts';
import { loadRouteEncoder, type RouteEncoder, vectorWidth } from './features/route-encoder.ts';
import { loadEstimator } from './policy-kinds.ts';
import type { Candidate, PolicyState, RoutePolicy } from './types.ts';

/** Increase if an older reader would misread the format; older versions stay readable. */
const VERSION = 2;
/** Larger than any router of the largest configuration. */
const MAX_CHARACTERS = 256 << 20;

/** An encoder, an estimator and the decision rule. */
export interface Router {
  readonly encoder: RouteEncoder;
  readonly estimator: Estimator;
  readonly rule: DecisionRule;
  readonly policy: RoutePolicy;
}

interface StoredArray {
  readonly type: 'f32' | 'i32';
  readonly base64: string;
}

interface StoredState extends Omit<PolicyState, 'arrays'> {
  readonly arrays: Readonly<Record<string, StoredArray>>;
}

interface StoredRule {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly shrinkage: { readonly means: readonly number[]; readonly slopes: readonly number[] } | null;
  readonly platt: Platt | null;
  readonly safeDefault: number;
  readonly minConfidence: number;
  /** Absent in routers of older releases. */
  readonly familiarity?: { readonly rows: StoredArray; readonly width: number; readonly minSimilarity: number } | null;
}

/** As JSON: numbers as they are, arrays in base64 of little-endian bytes. */
export interface StoredRouter {
  readonly version: number;
  readonly encoder: StoredState;
  readonly estimator: StoredState;
  readonly rule: StoredRule;
  /** Of everything else, in canonical order. */
  readonly checksum: string;
}

/** Passed in, because this layer has no hash function. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

function refuse(message: string): never {
  throw new RuvLLMError('invalid_option', `stored router: ${message}`);
}

function toBase64(bytes: Uint8Array): string {
  const CHUNK = 0x6000; // a multiple of three, so that chunks join without padding between them
  let text = '';
  for (let at = 0; at < bytes.length; at += CHUNK) text += btoa(String.fromCharCode(...bytes.subarray(at, at + CHUNK)));
  return text;
}

function packArray(array: Float32Array | Int32Array): StoredArray {
  const view = new DataView(new ArrayBuffer(array.length * 4));
  const isFloat = array instanceof Float32Array;
  const set = (isFloat ? view.setFloat32 : view.setInt32).bind(view);
  for (let i = 0; i < array.length; i++) set(i * 4, array[i]!, true);
  return { type: isFloat ? 'f32' : 'i32', base64: toBase64(new Uint8Array(view.buffer)) };
}

function unpackArray(name: string, stored: StoredArray): Float32Array | Int32Array {
  let text: string;
  try {
    text = atob(stored.base64);
  } catch (cause) {
    throw new RuvLLMError('invalid_option', `stored router: "${name}" is not base64`, { cause });
  }
  if (text.length % 4 !== 0) refuse(`"${name}" has ${text.length} bytes, not a multiple of 4`);
  const view = new DataView(Uint8Array.from(text, (char) => char.charCodeAt(0)).buffer);
  const length = text.length / 4;
  if (stored.type === 'f32') return Float32Array.from({ length }, (_, i) => view.getFloat32(i * 4, true));
  if (stored.type === 'i32') return Int32Array.from({ length }, (_, i) => view.getInt32(i * 4, true));
  return refuse(`"${name}" is of an unknown type`);
}

const packState = (state: PolicyState): StoredState => ({
  ...state,
  arrays: Object.fromEntries(Object.entries(state.arrays).map(([name, array]) => [name, packArray(array)])),
});
const unpackState = (state: StoredState): PolicyState => ({
  ...state,
  arrays: Object.fromEntries(Object.entries(state.arrays).map(([name, array]) => [name, unpackArray(name, array)])),
});

function checksumOf(content: Omit<StoredRouter, 'checksum'>, sha256: Sha256): string {
  const digest = sha256(new TextEncoder().encode(canonicalJson(content as unknown as JsonValue)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export const createRouter = (encoder: RouteEncoder, estimator: Estimator, rule: DecisionRule): Router => ({
  encoder,
  estimator,
  rule,
  policy: createPolicy(estimator, rule),
});

/** A router as a text to be stored as a policy. */
export function saveRouter({ encoder, estimator, rule }: Router, sha256: Sha256): string {
  const shrinkage = rule.shrinkage && { means: [...rule.shrinkage.means], slopes: [...rule.shrinkage.slopes] };
  const familiarity = rule.familiarity == null ? null : { ...rule.familiarity, rows: packArray(rule.familiarity.rows) };
  // Through JSON, so that the checksum covers the values a reader parses.
  const content = JSON.parse(
    JSON.stringify({
      version: VERSION,
      encoder: packState(encoder.save()),
      estimator: packState(estimator.save()),
      rule: { ...rule, shrinkage, familiarity },
    }),
  ) as Omit<StoredRouter, 'checksum'>;
  return JSON.stringify({ ...content, checksum: checksumOf(content, sha256) });
}

function readRule(stored: StoredRule): DecisionRule {
  const candidates = resolveCandidates(stored.candidates);
  const { weights, platt, safeDefault, minConfidence } = stored;
  let shrinkage: Shrinkage | null = null;
  if (stored.shrinkage !== null) {
    const { means, slopes } = stored.shrinkage;
    if (means.length !== candidates.length || slopes.length !== candidates.length)
      refuse(`shrinkage of ${means.length} and ${slopes.length} values for ${candidates.length} candidates`);
    shrinkage = { means: Float32Array.from(means), slopes: Float32Array.from(slopes) };
  }
  const numbers = [weights.perSecond, weights.perCost, minConfidence, ...(platt ? [platt.slope, platt.intercept] : [])];
  if (!numbers.every(Number.isFinite)) refuse('a number of its rule is not finite');
  if (!(Number.isSafeInteger(safeDefault) && safeDefault >= -1 && safeDefault < candidates.length))
    refuse(`safe default ${safeDefault} of ${candidates.length} candidates`);
  return { candidates, weights, shrinkage, platt, safeDefault, minConfidence, familiarity: readFamiliarity(stored) };
}

function readFamiliarity({ familiarity = null }: StoredRule): Familiarity | null {
  if (familiarity === null) return null;
  const { width, minSimilarity } = familiarity;
  const rows = unpackArray('familiarity', familiarity.rows);
  if (!(rows instanceof Float32Array) || !Number.isSafeInteger(rows.length / width) || !rows.every(Number.isFinite))
    return refuse(`familiarity has ${rows.length} values for rows of ${width}`);
  if (!Number.isFinite(minSimilarity)) refuse('its least similarity is not finite');
  return { rows, width, minSimilarity };
}

function readEstimator({ version, estimator }: Omit<StoredRouter, 'checksum'>, { numbers }: PolicyState): PolicyState {
  const state = unpackState(estimator);
  if (version !== 1 || state.kind !== 'ridge' || !(state.arrays['weights'] instanceof Float32Array)) return state;
  return upgradeRidge(state, {
    embedding: numbers['embedding']!,
    retrieval: numbers['retrieval']!,
    system: numbers['system']!,
  });
}

/** Loads a router; rejects a wrong checksum, an unknown version and mismatched shapes. */
export function loadRouter(text: string, sha256: Sha256): Router {
  if (text.length > MAX_CHARACTERS) refuse(`${text.length} characters, at most ${MAX_CHARACTERS}`);
  let stored: StoredRouter;
  try {
    stored = JSON.parse(text) as StoredRouter;
  } catch (cause) {
    throw new RuvLLMError('invalid_option', 'stored router: not JSON', { cause });
  }
  const { checksum, ...content } = stored ?? {};
  if (content.version !== VERSION && content.version !== 1)
    refuse(`version ${String(content.version).slice(0, 20)}, this reads 1 and ${VERSION}`);
  const actual = checksumOf(content, sha256);
  if (checksum !== actual) throw new RuvLLMError('hash_mismatch', `stored router: checksum ${actual}, expected ${String(checksum).slice(0, 80)}`); // prettier-ignore
  const rule = readRule(content.rule);
  const encoderState = unpackState(content.encoder);
  const encoder = loadRouteEncoder(encoderState);
  const estimator = loadEstimator(readEstimator(content, encoderState), {
    numCandidates: rule.candidates.length,
    numBuckets: encoderState.numbers['numBuckets']!,
    embedding: encoderState.numbers['embedding']!,
    vector: vectorWidth(encoderState),
  });
  return createRouter(encoder, estimator, rule);
}
