import { addTo, createBins, type LogBins, percentilesOf, type WindowPercentiles } from './log-histogram.ts';

/** Seconds that percentiles look back. */
export const WINDOW_SECONDS = 60;
/** Whole seconds that rates are averaged over: the one that is not over yet would make every rate too low. */
export const RATE_SECONDS = 5;

export type CountedKind = 'prompt' | 'generated';
export type TimedKind = 'firstToken' | 'interToken';

/** What one model did in the last minute. */
export interface RecentReading {
  readonly tokensPerSecond: Readonly<Record<CountedKind, number>>;
  readonly firstTokenMs: WindowPercentiles | null;
  readonly interTokenMs: WindowPercentiles | null;
}

/** The last minute of one model, second by second. */
export interface RecentWindow {
  count(kind: CountedKind, tokens: number): void;
  time(kind: TimedKind, ms: number): void;
  read(): RecentReading;
}

interface Second {
  /** Which one it is; another one overwrites it a minute later. */
  at: number;
  readonly counts: Record<CountedKind, number>;
  readonly times: Record<TimedKind, LogBins | null>;
}

export function createRecentWindow(now: () => number): RecentWindow {
  const seconds: Second[] = [];
  const currentSecond = (): number => Math.floor(now() / 1000);

  function current(): Second {
    const at = currentSecond();
    const known = seconds[at % WINDOW_SECONDS];
    if (known?.at === at) return known;
    return (seconds[at % WINDOW_SECONDS] = {
      at,
      counts: { prompt: 0, generated: 0 },
      times: { firstToken: null, interToken: null },
    });
  }

  function rate(kind: CountedKind, at: number): number {
    let sum = 0;
    for (const second of seconds) {
      if (second !== undefined && second.at < at && second.at >= at - RATE_SECONDS) sum += second.counts[kind];
    }
    return sum / RATE_SECONDS;
  }

  const binsOf = (kind: TimedKind, at: number): LogBins[] =>
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
