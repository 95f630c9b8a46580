/** A request that the server rejected, or that never reached it (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;

  constructor(
    message: string,
    { status, code, requestId = null }: { status: number; code: string; requestId?: string | null },
  ) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

/** Converts an error response; its body may be the HTML page of a proxy instead of JSON. */
export async function readFailure(response: Response): Promise<ApiError> {
  const { status, statusText, headers } = response;
  const requestId = headers.get('x-request-id');
  try {
    const { error } = (await response.json()) as { error: { message: string; code: string | null } };
    return new ApiError(error.message, { status, code: error.code ?? 'unknown', requestId });
  } catch {
    return new ApiError(`${status} ${statusText}`.trim(), { status, code: 'unknown', requestId });
  }
}

/** Whether the page itself aborted the request. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
