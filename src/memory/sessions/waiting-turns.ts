import { covers, type ErasurePart } from '../../core/erasure.ts';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { Schedule } from '../common/services.ts';
import type { NewTurn, SessionChange, SessionIndex } from './sessions.ts';

const RETRY_MS = 1000;
/** A full disk must not become a full process. */
const MAX_WAITING = 1000;

interface WaitingTurn {
  readonly tenant: string;
  readonly sessionId: string;
  readonly turn: NewTurn & { readonly id: string };
  readonly change: SessionChange;
}

export interface WaitingTurns {
  /** Stores a turn. If the disk fails, the turn waits here until it works again; the answer has been given. */
  add(tenant: string, sessionId: string, turn: NewTurn, change?: SessionChange): Promise<void>;
  /** The turns that are not on disk, in words; null: none. */
  problem(): string | null;
  readonly erasurePart: ErasurePart;
  /** Tries once more. */
  close(): Promise<void>;
}

interface WaitingTurnsContext {
  /** At each call the current one: an erasure replaces it. */
  readonly sessions: () => Pick<SessionIndex, 'addTurn' | 'hasTurn'>;
  readonly newId: () => string;
  readonly schedule: Schedule;
  readonly report: (message: string) => void;
}

const isOfDisk = (error: unknown): boolean =>
  error instanceof RuvLLMError && error.isRetryable && (error.code === 'io' || error.code === 'disk_full');

/** Without it, the turns of a conversation that goes on while the disk is full would be missing for ever, without a sign. */
export function createWaitingTurns({ sessions, newId, schedule, report }: WaitingTurnsContext): WaitingTurns {
  let waiting: WaitingTurn[] = [];
  let numDropped = 0;
  let cancel: (() => void) | null = null;
  let retrying: Promise<void> = Promise.resolve();
  let isClosed = false;

  const store = ({ tenant, sessionId, turn, change }: WaitingTurn): Promise<unknown> =>
    sessions().addTurn(tenant, sessionId, turn, change);

  function plan(): void {
    if (isClosed || cancel !== null || waiting.length === 0) return;
    cancel = schedule(() => {
      cancel = null;
      retrying = retry().finally(plan);
    }, RETRY_MS);
  }

  /** In the order of the answers, up to the first that fails. */
  async function retry(): Promise<void> {
    const before = waiting.length;
    while (waiting.length > 0) {
      const next = waiting[0]!;
      try {
        // After a failed flush it is unknown whether a turn reached the disk.
        if (!(await sessions().hasTurn(next.tenant, next.turn.id))) await store(next);
      } catch (error) {
        if (isOfDisk(error)) return;
        report(`storing a session turn failed: ${messageOf(error)}`);
      }
      // An erasure may have removed it meanwhile.
      if (waiting[0] === next) waiting.shift();
    }
    if (before > 0) report(`${before} session turns that waited for the disk are stored`);
  }

  return {
    async add(tenant, sessionId, turn, change = {}) {
      const one = { tenant, sessionId, turn: { ...turn, id: newId() }, change };
      const isBehind = waiting.some((other) => other.tenant === tenant && other.sessionId === sessionId);
      if (!isBehind) {
        try {
          await store(one);
          return;
        } catch (error) {
          if (!isOfDisk(error) || isClosed) throw error;
        }
      }
      if (waiting.length === 0) report('session turns wait for the disk, which cannot be written');
      waiting.push(one);
      if (waiting.length > MAX_WAITING) {
        waiting.shift();
        if (numDropped++ === 0) report(`more than ${MAX_WAITING} session turns wait for the disk: the oldest are lost`);
      }
      plan();
    },
    problem() {
      const lost =
        numDropped === 0 ? null : `${numDropped} session turns were lost while the disk could not be written`;
      const late = waiting.length === 0 ? null : `${waiting.length} session turns wait for the disk`;
      return [late, lost].filter((text) => text !== null).join('; ') || null;
    },
    erasurePart: {
      name: 'turns that wait for the disk',
      async erase(subject) {
        waiting = waiting.filter((one) => !covers(subject, ownerOf(one)));
      },
      count: async (subject) => waiting.filter((one) => covers(subject, ownerOf(one))).length,
    },
    async close() {
      isClosed = true;
      cancel?.();
      await retrying;
      await retry();
      if (waiting.length > 0) report(`${waiting.length} session turns are lost: the disk could not be written`);
    },
  };
}

const ownerOf = ({ tenant, turn, change }: WaitingTurn) => ({
  tenant,
  userId: change.userId ?? null,
  requestId: turn.requestId ?? null,
});
