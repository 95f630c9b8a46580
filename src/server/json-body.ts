import { type Clock, systemClock } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import { findJsonExcess, type JsonShapeLimits, STRUCTURE_COST } from '../core/json-shape.ts';
import type { MediaType } from '../core/media-type.ts';
import { isJson, readBodyType } from './body-type.ts';
import { refusal } from './errors.ts';
import type { ServerLimits } from './limits.ts';

type BodyLimits = Pick<ServerLimits, 'maxBodyBytes' | 'maxJsonDepth' | 'maxJsonValues'>;

/** From this size on, streams get a turn between the parts of the work: a megabyte takes 10 ms to check and as long to parse. */
const LARGE_BODY_BYTES = 128 << 10;

/** Reads a JSON body within the limits; errors name the limit and where it was exceeded. */
export async function readJsonBody(
  request: Request,
  limits: BodyLimits,
  clock: Pick<Clock, 'setTimer'> = systemClock,
  bodyType: MediaType | null = readBodyType(request.headers),
): Promise<unknown> {
  // Pages of other sites can send text/plain without a CORS preflight, but not JSON.
  if (!isJson(bodyType)) throw unsupportedType('application/json', request.headers);
  const encoding = request.headers.get('content-encoding') ?? 'identity';
  if (encoding !== 'identity') {
    throw refusal(415, 'unsupported_encoding', `the content-encoding ${JSON.stringify(encoding)} is not supported`);
  }
  const bytes = await readBytes(request, limits.maxBodyBytes);
  const isLarge = bytes.length >= LARGE_BODY_BYTES;
  if (isLarge) await pause(clock);
  checkShape(bytes, limits);
  if (isLarge) await pause(clock);
  const value = parse(bytes);
  if (isLarge) await pause(clock);
  return value;
}

/** A 415 for a body of another type. */
export function unsupportedType(expected: string, headers: Headers): Error {
  const given = JSON.stringify((headers.get('content-type') ?? '').slice(0, 200));
  return refusal(415, 'unsupported_media_type', `the body must be ${expected}, got ${given}`);
}

const pause = (clock: Pick<Clock, 'setTimer'>): Promise<void> =>
  new Promise((resolve) => clock.setTimer(0, () => resolve()));

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) as unknown;
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not JSON' : 'is not UTF-8';
    throw refusal(400, 'invalid_json', `the body of ${bytes.length} bytes ${reason}`, { cause: error });
  }
}

/** A body cannot be read to its end only because its client left. */
function clientLeft(cause: unknown): never {
  throw new RuvLLMError('aborted', 'the client left before the end of its body', { cause });
}

/** The bytes of a body, within the limit. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const tooLarge = (size: string): Error =>
    refusal(413, 'body_too_large', `the body has ${size} bytes; the limit is ${maxBytes}`);
  const contentLength = Number(request.headers.get('content-length') ?? 0);
  if (contentLength > maxBytes) throw tooLarge(String(contentLength));
  // Reading at once is much cheaper than the stream.
  if (contentLength > 0) {
    const bytes = new Uint8Array(await request.arrayBuffer().catch(clientLeft));
    if (bytes.length > maxBytes) throw tooLarge(String(bytes.length));
    return bytes;
  }
  if (request.body === null) return new Uint8Array(0);
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { value, done } = await reader.read().catch(clientLeft);
    if (done) break;
    length += value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw tooLarge(`${length} or more`);
    }
    parts.push(value);
  }
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** Runs before parsing. */
export function checkShape(bytes: Uint8Array, limits: JsonShapeLimits): void {
  const excess = findJsonExcess(bytes, limits);
  if (excess === null) return;
  const { maxJsonDepth, maxJsonValues } = limits;
  const { of, index } = excess;
  if (of === 'depth') {
    throw refusal(422, 'json_too_deep', `the body nests deeper than ${maxJsonDepth} levels, at byte ${index}`);
  }
  const message = `the body has more than ${maxJsonValues} values, at byte ${index}; a list, an object and a key count ${STRUCTURE_COST}`;
  throw refusal(422, 'json_too_large', message);
}
