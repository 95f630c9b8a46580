export interface StopResult {
  /** Text that is certainly not part of a stop string. */
  readonly emit: string;
  readonly stopped: boolean;
  readonly stopString?: string;
}

/** Finds stop strings in streamed text, however it is cut into chunks. */
export interface StopMatcher {
  push(text: string): StopResult;
  /** What was held back, at the end of the text. */
  flush(): StopResult;
}

/**
 * The match is the one that starts earliest; of several at one place, the longest. Text is held back while it could
 * still belong to such a match, so nothing of a matched stop string is ever emitted.
 */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  const wanted = stops.filter((stop) => stop !== '');
  let held = '';
  let isStopped = false;

  /** The longest stop string complete at `start`, or '' ; and whether a longer one may still become complete. */
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
