import type { Clock } from '../core/clock.ts';

/** Notices an engine that has work but finishes no step. */
export interface EngineWatchdog {
  /** Watches while there is work; a question that is still open is watched to its end. */
  setBusy(isBusy: boolean): void;
  /** A reply of the engine: the number of its turns so far, and whether it is idle. */
  onPulse(pulse: { readonly numTurns: number; readonly isIdle: boolean }): void;
  stop(): void;
}

export interface EngineWatchdogOptions {
  readonly stepTimeoutMs: number;
  readonly clock: Clock;
  /** Asks the engine for a pulse. */
  readonly ask: () => void;
  readonly onStall: () => void;
}

/** Several ticks, not one deadline: when this thread or the machine stood still, the engine must get time to reply. */
const NUM_TICKS = 4;

export function createEngineWatchdog({ stepTimeoutMs, clock, ask, onStall }: EngineWatchdogOptions): EngineWatchdog {
  let cancelTick: (() => void) | null = null;
  let isBusy = false;
  let isAsked = false;
  let numSilentTicks = 0;
  let lastTurns = -1;

  function schedule(): void {
    cancelTick = clock.setTimer(stepTimeoutMs / NUM_TICKS, tick);
  }

  function stop(): void {
    cancelTick?.();
    cancelTick = null;
    isAsked = false;
    numSilentTicks = 0;
  }

  function tick(): void {
    if (!isBusy && !isAsked) return stop();
    // The first tick asks; each later one without progress counts.
    if (isAsked && ++numSilentTicks >= NUM_TICKS) {
      stop();
      return onStall();
    }
    isAsked = true;
    ask();
    schedule();
  }

  return {
    setBusy(busy) {
      isBusy = busy;
      if (isBusy && cancelTick === null) schedule();
    },
    onPulse({ numTurns, isIdle }) {
      if (!isIdle && numTurns === lastTurns) return;
      lastTurns = numTurns;
      isAsked = false;
      numSilentTicks = 0;
    },
    stop,
  };
}
