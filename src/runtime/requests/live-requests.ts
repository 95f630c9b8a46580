import type { Clock } from '../../core/clock.ts';
import { covers, type DataOwner, type ErasurePart } from '../../core/erasure.ts';
import type { RequestMeter } from './request-meter.ts';

/** `loading`: its model is being loaded; `prompt`: it is queued or its prompt is computed. */
export type LiveState = 'loading' | 'prompt' | 'generating';

/** A request in progress, as it is now. */
export interface LiveRequest {
  readonly id: string;
  readonly tenant: string;
  /** As the client named it. */
  readonly asked: string;
  /** Who answers; null: not known yet. */
  readonly model: string | null;
  readonly state: LiveState;
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly numTokens: number;
  readonly elapsedMs: number;
  readonly firstTokenMs: number | null;
}

export interface LiveEntry {
  /** Whether it was cancelled because its data is erased; nothing of it may be stored. */
  readonly isErased: boolean;
  /** Somebody answers from now on. */
  serve(model: string): void;
  /** May be called twice. */
  end(): void;
}

export interface OpenedRequest extends Pick<LiveRequest, 'id' | 'tenant' | 'asked'> {
  readonly userId: string | null;
  abort(): void;
}

/** The requests in progress. As many as the gate lets in. */
export interface LiveRequests {
  open(request: OpenedRequest, meter: RequestMeter): LiveEntry;
  /** Cancels requests in progress whose data is erased. */
  readonly erasure: ErasurePart;
  /** The oldest first. */
  list(): readonly LiveRequest[];
}

export function createLiveRequests({ now }: Pick<Clock, 'now'>): LiveRequests {
  const open = new Map<LiveEntry, { readonly read: () => LiveRequest; readonly owner: DataOwner; cancel(): void }>();
  return {
    erasure: {
      name: 'live requests',
      async erase(subject) {
        for (const { owner, cancel } of open.values()) if (covers(subject, owner)) cancel();
      },
      // A cancelled request ends when its client has read the error.
      count: async (subject) =>
        [...open].filter(([entry, { owner }]) => !entry.isErased && covers(subject, owner)).length,
    },
    open({ userId, abort, ...request }, meter) {
      const startMs = now();
      let model: string | null = null;
      let isErased = false;
      const entry: LiveEntry = {
        get isErased() {
          return isErased;
        },
        serve: (answering) => void (model = answering),
        end: () => void open.delete(entry),
      };
      const read = (): LiveRequest => ({
        ...request,
        model,
        state: model === null ? 'loading' : meter.firstTokenMs === null ? 'prompt' : 'generating',
        promptTokens: meter.promptTokens,
        cachedTokens: meter.cachedTokens,
        numTokens: meter.numTokens,
        elapsedMs: now() - startMs,
        firstTokenMs: meter.firstTokenMs,
      });
      const cancel = (): void => {
        isErased = true;
        abort();
      };
      open.set(entry, { read, owner: { tenant: request.tenant, userId, requestId: request.id }, cancel });
      return entry;
    },
    list: () => [...open.values()].map(({ read }) => read()),
  };
}
