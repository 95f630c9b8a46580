import { RuvLLMError } from '../core/errors.ts';
import type { ResolvedHubOptions } from './hub-options.ts';
import type { HubPlatform } from './platform.ts';

/** One line of news during a pull. */
export interface PullProgress {
  /** `wait`: another process is pulling the same file. `check`: bytes already here are hashed. */
  readonly phase: 'resolve' | 'wait' | 'check' | 'download' | 'extract';
  /** The file or package being worked on. */
  readonly item: string;
  readonly doneBytes: number;
  /** Null where the size is not known beforehand (npm does not tell). */
  readonly totalBytes: number | null;
}

/** What every step of one pull needs. */
export interface PullContext {
  readonly platform: HubPlatform;
  readonly options: ResolvedHubOptions;
  readonly token: string | null;
  readonly signal: AbortSignal | null;
  readonly onProgress: (progress: PullProgress) => void;
}

/** Throws `aborted` when the caller's signal has fired. */
export function checkAborted(context: Pick<PullContext, 'signal'>, doing: string): void {
  if (context.signal?.aborted === true) throw new RuvLLMError('aborted', `${doing} was cancelled`);
}
