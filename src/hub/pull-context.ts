import { RuvLLMError } from '../core/errors.ts';
import type { ResolvedHubOptions } from './hub-options.ts';
import type { HubPlatform } from './platform.ts';

/** A progress report of a pull. */
export interface PullProgress {
  /** `wait`: another process is pulling the same file. `check`: hashing bytes that are already on disk. */
  readonly phase: 'resolve' | 'wait' | 'check' | 'download' | 'extract';
  /** The current file or package. */
  readonly item: string;
  readonly doneBytes: number;
  /** Null if the size is unknown in advance (npm does not report it). */
  readonly totalBytes: number | null;
}

/** Shared state of one pull. */
export interface PullContext {
  readonly platform: HubPlatform;
  readonly options: ResolvedHubOptions;
  readonly token: string | null;
  /** Origins that the operator has named, which may be private. All others must be public. */
  readonly namedOrigins: readonly string[];
  readonly signal: AbortSignal | null;
  readonly onProgress: (progress: PullProgress) => void;
}

/** Throws `aborted` if the caller's signal has fired. */
export function checkAborted(context: Pick<PullContext, 'signal'>, doing: string): void {
  if (context.signal?.aborted === true) throw new RuvLLMError('aborted', `${doing} was cancelled`);
}
