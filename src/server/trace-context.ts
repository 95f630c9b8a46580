import type { TraceContext } from '../runtime/requests/caller.ts';

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;
/** The standard requires passing on 512 characters of `tracestate` and allows dropping longer ones. */
const MAX_STATE = 512;

/** The trace of a request; null if missing or invalid. */
export function readTraceContext(headers: Headers): TraceContext | null {
  const traceparent = headers.get('traceparent');
  const match = TRACEPARENT.exec(traceparent ?? '');
  if (traceparent === null || match === null) return null;
  const [, version, traceId, parentId, suffix] = match as unknown as [
    string,
    string,
    string,
    string,
    string | undefined,
  ];
  // Version 00 ends after the flags, later versions may continue; ff and zero ids are always invalid.
  if (version === 'ff' || (version === '00' && suffix !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return null;
  const tracestate = headers.get('tracestate');
  const hasState = tracestate !== null && tracestate.length <= MAX_STATE;
  return { traceId, headers: { traceparent, ...(hasState ? { tracestate } : {}) } };
}
