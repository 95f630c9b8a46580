import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface CollectOptions {
  /** Milliseconds between two looks. Default 15 000. */
  readonly everyMs?: number;
  /** Bytes by which the heap has to grow before it is collected again. Default 4 MiB: a collection takes 50 ms or more. */
  readonly minGrowthBytes?: number;
  /** Default: a full collection. */
  readonly collect?: () => void;
  /** Called after a collection. Default: nothing. */
  readonly afterwards?: () => void;
}

/** Share of the time between two looks in which the thread did something: a scrape of metrics is less, a request more. */
const MAX_UTILIZATION = 0.02;

/**
 * Gives the garbage of this thread back when it has had nothing to do for a while. V8 collects only when a thread allocates: after a burst
 * of requests an idle server would keep its largest heap for ever. Returns a function that stops it.
 */
export function collectWhenIdle(options: CollectOptions = {}): () => void {
  const { everyMs = 15_000, minGrowthBytes = 4 << 20, collect = collectAll, afterwards = () => {} } = options;
  let before = performance.eventLoopUtilization();
  let keptBytes = 0;
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > MAX_UTILIZATION || heapBytes() - keptBytes < minGrowthBytes) return;
    collect();
    afterwards();
    keptBytes = heapBytes();
    before = performance.eventLoopUtilization(); // a collection is no work
  }, everyMs).unref();
  return () => clearInterval(timer);
}

const heapBytes = (): number => getHeapStatistics().total_heap_size;

/** Node has no call for it without the flag `--expose-gc`, which is about contexts that are made after it. */
function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  gc();
}
