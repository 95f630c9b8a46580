import type { Client } from './client.ts';

export interface LearningStatus {
  readonly numRequests: Readonly<Record<string, number>>;
  /** Corrections that are recalled. */
  readonly numCorrections: number;
  readonly models: readonly {
    readonly model: string;
    readonly isLoaded: boolean;
    readonly serves: Version | null;
    readonly newestVersion: number;
    readonly isBackgroundDue: boolean;
    readonly isDeepDue: boolean;
  }[];
  readonly runs: readonly { readonly model: string; readonly loop: string; readonly state: string }[];
}

export interface Version {
  readonly version: number;
  readonly parent: number | null;
  readonly createdMs: number;
  readonly loop: string;
  readonly isAccepted: boolean;
  readonly reason: string;
  readonly metrics: Readonly<Record<string, number>>;
  readonly numLearnedFrom: number;
}

/** A rated answer and what was learned from it. */
export interface Lesson {
  readonly requestId: string;
  readonly createdMs: number;
  readonly model: string;
  readonly query: string;
  readonly answer: string;
  readonly correction: string | null;
  readonly verdict: string;
  readonly quality: number | null;
  readonly outcome: {
    readonly state: string;
    readonly reason: string;
    /** Mean −log p of a token. */
    readonly lossBefore: number | null;
    readonly lossAfter: number | null;
  };
  /** The active version, if it was trained on this answer. */
  readonly version: number | null;
}

export interface Lessons {
  readonly lessons: readonly Lesson[];
  readonly isComplete: boolean;
}

/** The gate's measurements of one version; null: not measured. */
export interface VersionPoint {
  readonly version: number;
  readonly createdMs: number;
  readonly isAccepted: boolean;
  readonly lossBefore: number | null;
  readonly lossAfter: number | null;
  readonly gain: number | null;
  readonly gainLow: number | null;
  readonly gainHigh: number | null;
  readonly forgetting: number | null;
}

export interface LearningSeries {
  readonly adapters: readonly {
    readonly model: string;
    readonly serves: number;
    readonly points: readonly VersionPoint[];
  }[];
  readonly router: { readonly serves: number; readonly points: readonly VersionPoint[] };
  readonly feedback: readonly {
    readonly startMs: number;
    readonly numRequests: number;
    readonly numUp: number;
    readonly numDown: number;
    readonly numCorrected: number;
    readonly meanScore: number | null;
  }[];
}

export interface VersionDiff {
  readonly from: Version;
  readonly to: Version;
  readonly metrics: Readonly<Record<string, { readonly from: number | null; readonly to: number | null }>>;
  readonly requests: { readonly numAdded: number; readonly numRemoved: number };
  readonly weights: { readonly numParameters: number; readonly normTo: number; readonly normOfChange: number } | null;
}

export interface RouteDecision {
  readonly requestId: string;
  readonly timestampMs: number;
  readonly query: string;
  readonly model: string;
  readonly routing: {
    readonly model: string;
    readonly contextSize: number;
    readonly temperature: number;
    readonly topP: number;
    readonly confidence: number;
    readonly modelProbs: readonly number[];
  };
  readonly latencyMs: number;
  readonly quality: number | null;
  readonly hasError: boolean;
}

export type Loop = 'background' | 'deep';

/** Endpoints of learning and routing. */
export const learningOf = (client: Client) => ({
  status: (signal?: AbortSignal) => client.post<LearningStatus>('/admin/learning/status', {}, { signal }),
  lessons: (query: { limit: number; model?: string; version?: number }, signal?: AbortSignal) =>
    client.post<Lessons>('/admin/learning/lessons', query, { signal }),
  series: (signal?: AbortSignal) => client.post<LearningSeries>('/admin/learning/series', {}, { signal }),
  history: (model: string, signal?: AbortSignal) =>
    client.post<{ serves: number; versions: readonly Version[] }>('/admin/learning/history', { model }, { signal }),
  diff: (model: string, from: number, to: number, signal?: AbortSignal) =>
    client.post<VersionDiff>('/admin/learning/diff', { model, from, to }, { signal }),
  rollback: (model: string, toVersion: number) =>
    client.post<unknown>('/admin/learning/rollback', { model, toVersion }),
  run: (model: string, loop: Loop) => client.post<{ state: string }>('/admin/learning/run', { model, loop, waitMs: 0 }),
  /** Deletes a request and everything learned from it. */
  forget: (requestId: string) => client.post<unknown>('/admin/learning/forget', { requestId }),
  cancel: (model: string) => client.post<unknown>('/admin/learning/cancel', { model }),
  decisions: async (signal?: AbortSignal) =>
    (
      await client.post<{ decisions: readonly RouteDecision[] }>(
        '/admin/memory/audit/decisions',
        { limit: 50 },
        { signal },
      )
    ).decisions,
  explain: (prompt: string) =>
    client.post<{ readonly candidate: string; readonly confidence: number }>('/v1/route', { prompt }),
});
