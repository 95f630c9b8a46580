import { RuvLLMError } from '../../core/errors.ts';
import { sha256, toHex } from '../../core/sha256.ts';
import type { Evaluation, RunProgress } from './training-run.ts';

/** Everything that the weights of a run depend on, by name. */
export type RunIdentity = Readonly<Record<string, string | number>>;

interface Header {
  readonly run: RunIdentity;
  readonly evaluations: readonly Evaluation[];
  readonly numbers: { readonly numSteps: number; readonly seed: number; readonly batchSize: number; readonly numExamples: number; readonly numParameters: number }; // prettier-ignore
  readonly hasBest: boolean;
  /** SHA-256 of the vectors, in hex. */
  readonly sha256: string;
}

const MAGIC = 'ruvllm-training-checkpoint-1\n';
/** Bytes of the header's length, after the magic. */
const LENGTH_BYTES = 4;

const damaged = (name: string, problem: string): RuvLLMError =>
  new RuvLLMError('invalid_model_file', `${name} is no complete checkpoint: ${problem}`);

/** Magic, length of the header (u32), header as JSON, then parameters, both moments and the best parameters as f32. */
export function encodeCheckpoint(run: RunIdentity, { state, evaluations, best }: RunProgress): Uint8Array {
  const { parameters, first, second, ...numbers } = state;
  const vectors = [parameters, first, second, ...(best === null ? [] : [best])];
  const body = new Uint8Array(vectors.reduce((sum, vector) => sum + vector.byteLength, 0));
  let at = 0;
  for (const vector of vectors) {
    body.set(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength), at);
    at += vector.byteLength;
  }
  const header: Header = { run, evaluations, numbers, hasBest: best !== null, sha256: toHex(sha256(body)) };
  const encoder = new TextEncoder();
  const [magic, json] = [encoder.encode(MAGIC), encoder.encode(JSON.stringify(header))];
  const bytes = new Uint8Array(magic.length + LENGTH_BYTES + json.length + body.length);
  bytes.set(magic);
  new DataView(bytes.buffer).setUint32(magic.length, json.length, true);
  bytes.set(json, magic.length + LENGTH_BYTES);
  bytes.set(body, magic.length + LENGTH_BYTES + json.length);
  return bytes;
}

/** Reads a checkpoint; one of another run is refused with the first difference. */
export function decodeCheckpoint(bytes: Uint8Array, run: RunIdentity, name: string): RunProgress {
  const decoder = new TextDecoder();
  if (decoder.decode(bytes.subarray(0, MAGIC.length)) !== MAGIC) throw damaged(name, 'it does not begin like one');
  const start = MAGIC.length + LENGTH_BYTES;
  if (bytes.length < start) throw damaged(name, `it has ${bytes.length} bytes`);
  const headerBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(MAGIC.length, true);
  const header = parseHeader(decoder.decode(bytes.subarray(start, start + headerBytes)), name);
  checkIdentity(header.run, run, name);
  // A copy with a buffer of its own: `slice` of a Node buffer shares that of other files.
  const body = new Uint8Array(bytes.subarray(start + headerBytes));
  const numVectors = header.hasBest ? 4 : 3;
  const { numParameters } = header.numbers;
  if (body.length !== numVectors * numParameters * 4) {
    throw damaged(name, `${body.length} bytes of weights, ${numVectors * numParameters * 4} belong to it`);
  }
  if (toHex(sha256(body)) !== header.sha256) throw damaged(name, 'its weights do not match their hash');
  const vectorAt = (index: number): Float32Array =>
    new Float32Array(body.buffer, index * numParameters * 4, numParameters).slice();
  return {
    state: { ...header.numbers, parameters: vectorAt(0), first: vectorAt(1), second: vectorAt(2) },
    evaluations: header.evaluations,
    best: header.hasBest ? vectorAt(3) : null,
  };
}

function parseHeader(text: string, name: string): Header {
  try {
    const header = JSON.parse(text) as Partial<Header>;
    if (header.run && header.numbers && Array.isArray(header.evaluations)) return header as Header;
  } catch {
    // Reported below.
  }
  throw damaged(name, 'its header is unreadable');
}

function checkIdentity(stored: RunIdentity, run: RunIdentity, name: string): void {
  for (const key of new Set([...Object.keys(run), ...Object.keys(stored)])) {
    if (stored[key] === run[key]) continue;
    const [was, is] = [String(stored[key] ?? 'none'), String(run[key] ?? 'none')];
    throw new RuvLLMError(
      'conflict',
      `${name} belongs to another run: ${key} ${was.slice(0, 64)}, here ${is.slice(0, 64)}`,
      { data: { key, stored: was, expected: is } },
    );
  }
}
