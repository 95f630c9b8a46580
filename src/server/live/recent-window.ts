import { addTo, createBins, type LogBins, percentilesOf, type WindowPercentiles } from './log-histogram.ts';

/** Seconds covered by percentiles. */
export const WINDOW_SECONDS = 60;
/** Whole seconds over which rates are averaged: the current, incomplete second would lower every rate. */
export const RATE_SECONDS = 5;

export type TokenKind = 'prompt' | 'generated';
export type LatencyKind = 'firstToken' | 'interToken';

/** Rates and latencies of a model in the last minute. */
export interface RecentReading {
  readonly tokensPerSecond: Readonly<Record<TokenKind, number>>;
  readonly firstTokenMs: WindowPercentiles | null;
  readonly interTokenMs: WindowPercentiles | null;
}

/** The last minute of a model in slots of one second. */
export interface RecentWindow {
  count(kind: TokenKind, tokens: number): void;
  time(kind: LatencyKind, ms: number): void;
  read(): RecentReading;
}

interface Second {
  /** Number of the second; a later one overwrites the slot after a minute. */
  at: number;
  readonly counts: Record<TokenKind, number>;
  readonly times: Record<LatencyKind, LogBins | null>;
}

export function createRecentWindow(now: () => number): RecentWindow {
  const seconds: Second[] = [];
  const currentSecond = (): number => Math.floor(now() / 1000);

  function current(): Second {
    const at = currentSecond();
    const slot = seconds[at % WINDOW_SECONDS];
    if (slot?.at === at) return slot;
    return (seconds[at % WINDOW_SECONDS] = {
      at,
      counts: { prompt: 0, generated: 0 },
      times: { firstToken: null, interToken: null },
    });
  }

  function rate(kind: TokenKind, at: number): number {
    let sum = 0;
    for (const second of seconds) {
      if (second !== undefined && second.at < at && second.at >= at - RATE_SECONDS) sum += second.counts[kind];
    }
    return sum / RATE_SECONDS;
  }

  const binsOf = (kind: LatencyKind, at: number): LogBins[] =>
    seconds.flatMap((second) => {
      const bins = second.at > at - WINDOW_SECONDS ? second.times[kind] : null;
      return bins === null ? [] : [bins];
    });

  return {
    count(kind, tokens) {
      current().counts[kind] += tokens;
    },
    time(kind, ms) {
      addTo((current().times[kind] ??= createBins()), ms);
    },
    read() {
      const at = currentSecond();
      return {
        tokensPerSecond: { prompt: rate('prompt', at), generated: rate('generated', at) },
        firstTokenMs: percentilesOf(binsOf('firstToken', at)),
        interTokenMs: percentilesOf(binsOf('interToken', at)),
      };
    },
  };
}
