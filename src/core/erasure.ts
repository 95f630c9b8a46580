import { messageOf, RuvLLMError } from './errors.ts';
import { createSerialQueues } from './serial-queues.ts';

/** Whose data is erased: all of a tenant, or one of its users or requests. */
export interface ErasureTarget {
  readonly tenant: string;
  /** Only this user. Default: all users. */
  readonly userId?: string | null;
  /** Only this request. Default: all requests. */
  readonly requestId?: string | null;
}

/** A target with the requests and sessions that belong to it; the sets are empty for a whole tenant. */
export interface ErasureSubject {
  readonly tenant: string;
  readonly userId: string | null;
  readonly requestId: string | null;
  readonly requestIds: ReadonlySet<string>;
  readonly sessionIds: ReadonlySet<string>;
  /** Other requests whose prompt repeats erased texts: their copies for learning are erased as well. */
  readonly quotingIds: ReadonlySet<string>;
}

/**
 * One holder of tenants' data. Everything that keeps data of a tenant, in memory or on disk, registers one with
 * `memory.erasure.register(part)` where it is created, and unregisters it when it is closed. Records in the memory's store need
 * no part of their own: the store erases all of a tenant, and those of a user or request by their fields `userId` and
 * `requestId`, which a new kind of record declares in `memory/fields.ts`. Caches, indexes and files beside the store need one.
 */
export interface ErasurePart {
  /** Shown in reports and errors. */
  readonly name: string;
  /** Erased after all others, because they may still fill it until they have stopped. Default false. */
  readonly isLast?: boolean;
  /** Deletes everything of the subject. Can be repeated: a crash may have interrupted an earlier call. */
  erase(subject: ErasureSubject): Promise<void>;
  /** The proof: counts what it still holds of the subject. */
  count(subject: ErasureSubject): Promise<number>;
}

/** The counts of one part. */
export interface ErasedPart {
  readonly name: string;
  /** Items before the erasure. */
  readonly numFound: number;
  /** Items after it: 0, or the erasure fails. */
  readonly numLeft: number;
}

/** All parts of an erasure that left nothing. */
export interface ErasureReport {
  readonly tenant: string;
  readonly userId: string | null;
  readonly requestId: string | null;
  readonly parts: readonly ErasedPart[];
}

export interface ErasureRegistry {
  /** Returns a function that unregisters the part. */
  register(part: ErasurePart): () => void;
  /** Whether a part of this name is registered. */
  has(name: string): boolean;
  /** Whether data of this request must not be written, because it is being erased. */
  isErasing(owner: DataOwner): boolean;
  /** Erases with all parts, the newest first, then asks each for its proof; throws `io` that names the parts that failed. */
  run(subject: ErasureSubject): Promise<ErasureReport>;
}

/** Who a piece of data belongs to. */
export interface DataOwner {
  readonly tenant: string;
  readonly userId?: string | null | undefined;
  readonly requestId?: string | null | undefined;
}

/** Whether the subject is all of its tenant. */
export const isWholeTenant = ({ userId, requestId }: ErasureSubject): boolean => userId === null && requestId === null;

/** Whether a subject includes data of this owner. */
export function covers(subject: ErasureSubject, { tenant, userId = null, requestId = null }: DataOwner): boolean {
  if (subject.tenant !== tenant) return false;
  if (isWholeTenant(subject)) return true;
  if (requestId !== null && subject.requestIds.has(requestId)) return true;
  return subject.userId !== null && subject.userId === userId;
}

export function createErasureRegistry(): ErasureRegistry {
  const parts: ErasurePart[] = [];
  const running = new Set<ErasureSubject>();
  const queues = createSerialQueues();

  async function run(subject: ErasureSubject): Promise<ErasureReport> {
    // The newest first: those that write stop before those that store.
    const newest = parts.toReversed();
    const ordered = [...newest.filter(({ isLast }) => !isLast), ...newest.filter(({ isLast }) => isLast)];
    const work = ordered.map((part) => ({ part, name: part.name, numFound: 0, numLeft: 0, error: null as unknown })); // prettier-ignore
    for (const one of work) one.numFound = await one.part.count(subject).catch(() => 0);
    for (const one of work) {
      // A part that fails must not keep the others from erasing.
      await one.part.erase(subject).catch((error: unknown) => (one.error = error ?? new Error('failed')));
    }
    for (const one of work) {
      one.numLeft = await one.part.count(subject).catch((error: unknown) => ((one.error ??= error), 0));
    }
    const failed = work.filter(({ numLeft, error }) => numLeft > 0 || error !== null);
    if (failed.length > 0) throw incomplete(failed);
    const { tenant, userId, requestId } = subject;
    return {
      tenant,
      userId,
      requestId,
      parts: work.map(({ name, numFound, numLeft }) => ({ name, numFound, numLeft })),
    };
  }

  return {
    register(part) {
      parts.push(part);
      return () => {
        const index = parts.indexOf(part);
        if (index >= 0) parts.splice(index, 1);
      };
    },
    has: (name) => parts.some((part) => part.name === name),
    isErasing: (owner) => [...running].some((subject) => covers(subject, owner)),
    run: (subject) =>
      queues.run(subject.tenant, async () => {
        running.add(subject);
        try {
          return await run(subject);
        } finally {
          running.delete(subject);
        }
      }),
  };
}

function incomplete(failed: readonly (ErasedPart & { readonly error: unknown })[]): RuvLLMError {
  const reasons = failed.map(({ name, numLeft, error }) =>
    error === null ? `${name}: ${numLeft} items left` : `${name}: ${messageOf(error)}`,
  );
  return new RuvLLMError('io', `the erasure is incomplete; repeat it. ${reasons.join('; ')}`, {
    data: { failedParts: failed.map(({ name }) => name) },
    cause: failed.find(({ error }) => error !== null)?.error,
    isRetryable: true,
  });
}
