import { type ErrorCode, messageOf, RuvLLMError } from '../../../core/errors.ts';

/** errno → cause; everything else is `io`. EDQUOT is a full quota: the same remedy as a full disk. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
};

/** The errno name of a Node error, or null. */
export function errnoOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
}

/** Turns a file-system error into the library's own, naming the file and what was being done to it. */
export function toFileError(error: unknown, doing: string, path: string): RuvLLMError {
  if (error instanceof RuvLLMError) return error;
  const errno = errnoOf(error);
  const reason = errno ?? messageOf(error);
  return new RuvLLMError(CODES[errno ?? ''] ?? 'io', `${doing} ${path}: ${reason}`, {
    cause: error,
    data: { path, errno },
  });
}
