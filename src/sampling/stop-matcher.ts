export interface StopResult {
  /** Text that is certainly not part of a stop string. */
  readonly emit: string;
  readonly stopped: boolean;
  readonly stopString?: string;
}

/** Finds stop strings in streamed text, however it is split. */
export interface StopMatcher {
  push(text: string): StopResult;
  /** Returns held-back text at the end. */
  flush(): StopResult;
}

/**
 * Matches the earliest start, the longest at one place. Text is held back while it could belong to a match, so no part
 * of a matched stop string is ever emitted.
 */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  const wanted = stops.filter((stop) => stop !== '');
  let held = '';
  let isStopped = false;

  /** The longest stop string complete at `start`, or ''; and whether a longer one may still complete. */
  const matchAt = (start: number): { longest: string; isOpen: boolean } => {
    let longest = '';
    let isOpen = false;
    for (const stop of wanted) {
      if (held.startsWith(stop, start)) {
        if (stop.length > longest.length) longest = stop;
      } else if (stop.startsWith(held.slice(start))) isOpen = true;
    }
    return { longest, isOpen };
  };

  const scan = (isEnd: boolean): StopResult => {
    if (isStopped) return { emit: '', stopped: true };
    for (let start = 0; start < held.length; start++) {
      const { longest, isOpen } = matchAt(start);
      if (isOpen && !isEnd) return release(start);
      if (longest === '') continue;
      isStopped = true;
      const emit = held.slice(0, start);
      held = '';
      return { emit, stopped: true, stopString: longest };
    }
    return release(held.length);
  };

  const release = (length: number): StopResult => {
    const emit = held.slice(0, length);
    held = held.slice(length);
    return { emit, stopped: false };
  };

  return {
    push(text) {
      if (!isStopped) held += text;
      return scan(false);
    },
    flush: () => scan(true),
  };
}
