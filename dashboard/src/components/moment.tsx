import { formatAgo, formatTime } from '../format/time.ts';

/** A relative time; hovering shows the exact date and time. */
export function Moment({ ms }: { ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatTime(ms)}>
      {formatAgo(ms)}
    </time>
  );
}
