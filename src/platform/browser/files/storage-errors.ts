import { type ErrorCode, messageOf, RuvLLMError } from '../../../core/errors.ts';

const CODES: Readonly<Record<string, ErrorCode>> = {
  NotFoundError: 'not_found',
  QuotaExceededError: 'disk_full',
  // Another tab has the file open for writing.
  NoModificationAllowedError: 'in_use',
  AbortError: 'aborted',
};

/** An error of the browser's storage as one of ours; `what` is the attempt: `storing model.gguf`. */
export function toStorageError(error: unknown, what: string): RuvLLMError {
  if (error instanceof RuvLLMError) return error;
  const name = error instanceof Error ? error.name : '';
  const code = CODES[name] ?? 'io';
  const reason = code === 'in_use' ? 'another tab has it open' : messageOf(error);
  return new RuvLLMError(code, `${what}: ${reason}`, { cause: error, data: { what, reason: name } });
}

/** The bytes this origin may still store; null: the browser does not tell. */
export async function freeBytes(): Promise<number | null> {
  const { quota, usage } = await navigator.storage.estimate();
  return quota === undefined || usage === undefined ? null : Math.max(0, quota - usage);
}

/** `disk_full` with both numbers. */
export function storageFull(what: string, neededBytes: number, availableBytes: number | null): RuvLLMError {
  const left =
    availableBytes === null
      ? 'the browser gives this page no more'
      : `the browser gives this page ${availableBytes} more`;
  return new RuvLLMError('disk_full', `${what} needs ${neededBytes} bytes of storage; ${left}`, {
    data: { neededBytes, availableBytes },
  });
}
