import type { Clock } from '../../core/clock.ts';
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
  /** Somebody answers from now on. */
  serve(model: string): void;
  /** May be called twice. */
  end(): void;
}

/** The requests in progress. As many as the gate lets in. */
export interface LiveRequests {
  open(request: Pick<LiveRequest, 'id' | 'tenant' | 'asked'>, meter: RequestMeter): LiveEntry;
  /** The oldest first. */
  list(): readonly LiveRequest[];
}

export function createLiveRequests({ now }: Pick<Clock, 'now'>): LiveRequests {
  const open = new Map<object, () => LiveRequest>();
  return {
    open(request, meter) {
      const startMs = now();
      let model: string | null = null;
      const entry: LiveEntry = {
        serve: (answering) => void (model = answering),
        end: () => void open.delete(entry),
      };
      open.set(entry, () => ({
        ...request,
        model,
        state: model === null ? 'loading' : meter.firstTokenMs === null ? 'prompt' : 'generating',
        promptTokens: meter.promptTokens,
        cachedTokens: meter.cachedTokens,
        numTokens: meter.numTokens,
        elapsedMs: now() - startMs,
        firstTokenMs: meter.firstTokenMs,
      }));
      return entry;
    },
    list: () => [...open.values()].map((read) => read()),
  };
}
