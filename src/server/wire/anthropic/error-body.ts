import type { Failure } from '../../errors.ts';
import type { ErrorFormat } from '../../route.ts';

/** Anthropic's type and status; others are `api_error` from 500 on, else `invalid_request_error`. */
const TYPES: Readonly<Record<number, { readonly type: string; readonly status?: number }>> = {
  401: { type: 'authentication_error' },
  403: { type: 'permission_error' },
  404: { type: 'not_found_error' },
  413: { type: 'request_too_large' },
  // This API has one status for all invalid bodies.
  415: { type: 'invalid_request_error', status: 400 },
  422: { type: 'invalid_request_error', status: 400 },
  429: { type: 'rate_limit_error' },
  503: { type: 'overloaded_error', status: 529 },
  504: { type: 'timeout_error' },
};

/** Anthropic's error body, for its routes and the `error` event of its streams. */
export const anthropicErrors: ErrorFormat = {
  status: ({ status }) => TYPES[status]?.status ?? status,
  body: (failure, requestId) => ({
    type: 'error',
    error: { type: typeOf(failure), message: failure.message },
    request_id: requestId,
  }),
};

function typeOf({ status }: Failure): string {
  return TYPES[status]?.type ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}
