import { formatAgo, formatTime } from '../format/time.ts';

/** A point in time: how long ago, and exactly when the pointer rests on it. */
export function Moment({ ms }: { ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatTime(ms)}>
      {formatAgo(ms)}
    </time>
  );
}
