import { RuvLLMError } from '../../core/errors.ts';

/** The immutable state of a conversation. */
export interface SessionState {
  /** All tokens so far; null: the caller has the history, and only turns are counted. */
  readonly tokenIds: Int32Array | null;
  /** Length of the conversation at its last turn. */
  readonly numTokens: number;
  readonly numTurns: number;
  /** Milliseconds since 1970. */
  readonly lastUsedMs: number;
}

const VERSION = 1;
/** Version u32, turns u32, last use f64, then one u32 for each token. */
const HEAD_BYTES = 16;

/** Encodes a state with tokens; all numbers are little-endian. */
export function encodeSessionState(tokenIds: Int32Array, { numTurns, lastUsedMs }: SessionState): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + tokenIds.length * 4);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, VERSION, true);
  view.setUint32(4, numTurns, true);
  view.setFloat64(8, lastUsedMs, true);
  tokenIds.forEach((id, index) => view.setUint32(HEAD_BYTES + index * 4, id, true));
  return bytes;
}

/** Decodes a state and checks its token ids. */
export function decodeSessionState(bytes: Uint8Array, vocabSize: number): SessionState {
  const fail = (reason: string, data: Record<string, number>): never => {
    throw new RuvLLMError('io', `the stored session cannot be read: ${reason}`, { data });
  };
  const sizeBytes = bytes.length;
  if (sizeBytes < HEAD_BYTES || sizeBytes % 4 !== 0) fail(`it has ${sizeBytes} bytes`, { sizeBytes });
  const view = new DataView(bytes.buffer, bytes.byteOffset, sizeBytes);
  const version = view.getUint32(0, true);
  if (version !== VERSION) fail(`its version is ${version}, expected ${VERSION}`, { version });
  const lastUsedMs = view.getFloat64(8, true);
  if (!Number.isFinite(lastUsedMs)) fail(`its last use is ${lastUsedMs}`, { lastUsedMs });
  const tokenIds = new Int32Array((sizeBytes - HEAD_BYTES) / 4);
  for (let index = 0; index < tokenIds.length; index++) {
    const tokenId = view.getUint32(HEAD_BYTES + index * 4, true);
    if (tokenId >= vocabSize) fail(`token ${tokenId} is not in the vocabulary of ${vocabSize}`, { tokenId, vocabSize });
    tokenIds[index] = tokenId;
  }
  return { tokenIds, numTokens: tokenIds.length, numTurns: view.getUint32(4, true), lastUsedMs };
}
