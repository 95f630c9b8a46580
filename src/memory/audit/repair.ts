import { uuid } from '../schemas/primitives.ts';
import { MAX_AUDIT_TEXT } from '../schemas/text-lengths.ts';
import { clipText } from '../common/text-limits.ts';
import { MAX_CONTEXT_DOCS, parseAuditEntry, auditEntry, type AuditEntry, type AuditInput } from '../schemas/audit.ts';

const MAX_NAME = 256;
const MAX_MESSAGE = 4096;

function isUsable(vector: unknown): vector is Float32Array {
  return vector instanceof Float32Array && vector.every(Number.isFinite) && vector.some((value) => value !== 0);
}

/** Keeps an entry with invalid parts: they become null or 0, or are cut, and are named in `repairs`. */
function repair(input: AuditInput): AuditEntry {
  const repairs: string[] = [];
  let numCut = 0;
  const note = (what: string): void => void (repairs.length < 16 && repairs.push(what));
  const clip = (text: string, max: number, what: string): string => {
    const clipped = clipText(text, max);
    if (clipped.text !== text) note(what);
    numCut += clipped.numCut;
    return clipped.text;
  };
  const finite = (value: number, what: string): number => {
    if (value >= 0 && value < Infinity) return value;
    note(what);
    return 0;
  };
  const latency: Record<string, number | null> = {};
  for (const [key, value] of Object.entries(input.latency)) latency[key] = value == null ? null : finite(value, key);
  const { quality, error, contextDocIds } = input;
  const hasQuality = quality !== null && quality >= 0 && quality <= 1;
  if (!hasQuality && quality !== null) note('quality');
  const docs = contextDocIds.filter((id) => uuid.safeParse(id).success).slice(0, MAX_CONTEXT_DOCS);
  if (docs.length !== contextDocIds.length) note('contextDocIds');
  const hasVector = isUsable(input.queryEmbedding);
  if (!hasVector && input.queryEmbedding !== null) note('queryEmbedding');
  const hasResponseVector = isUsable(input.responseEmbedding);
  if (!hasResponseVector && input.responseEmbedding !== null) note('responseEmbedding');
  const routing = auditEntry.shape.routing.safeParse(input.routing);
  if (!routing.success) note('routing');
  const estimate = auditEntry.shape.estimate.safeParse(input.estimate);
  if (!estimate.success) note('estimate');
  const reflection = auditEntry.shape.reflection.safeParse(input.reflection);
  if (!reflection.success) note('reflection');
  const { estimate: _estimate, reflection: _reflection, ...rest } = input;
  return {
    ...rest,
    ...(estimate.data === undefined ? {} : { estimate: estimate.data }),
    ...(reflection.data === undefined ? {} : { reflection: reflection.data }),
    latency: latency as AuditEntry['latency'],
    quality: hasQuality ? quality : null,
    routing: routing.success ? routing.data : null,
    contextDocIds: docs,
    query: clip(input.query, MAX_AUDIT_TEXT, 'query'),
    response: clip(input.response, MAX_AUDIT_TEXT, 'response'),
    model: clip(input.model, MAX_NAME, 'model'),
    sessionId: input.sessionId === null ? null : clip(input.sessionId, MAX_NAME, 'sessionId'),
    queryEmbedding: hasVector ? input.queryEmbedding : null,
    space: hasVector ? input.space : null,
    responseEmbedding: hasResponseVector ? input.responseEmbedding : null,
    error:
      error === null
        ? null
        : {
            code: clip(error.code, MAX_NAME, 'error.code'),
            message: clip(error.message, MAX_MESSAGE, 'error.message'),
            isRetryable: error.isRetryable,
          },
    numCut,
    repairs,
  };
}

/** The entry as it is, or repaired; throws `invalid_option` (or an error from a getter) when it cannot be repaired. */
export function toAuditEntry(input: AuditInput): AuditEntry {
  const isZero = input.queryEmbedding !== null && !input.queryEmbedding.some((value) => value !== 0);
  const whole = auditEntry.safeParse({ ...input, numCut: 0, repairs: [] });
  return whole.success && !isZero ? whole.data : parseAuditEntry(repair(input));
}
