import type { Span } from '../../api/audit.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.audit;
const NAMES: Readonly<Record<string, string>> = text.spans;

/** The latency breakdown of a request: one bar per span, at its position in time. */
export function Waterfall({ spans, totalMs }: { spans: readonly Span[]; totalMs: number }) {
  const end = Math.max(totalMs, ...spans.map(({ startMs, durationMs }) => startMs + durationMs), Number.MIN_VALUE);
  return (
    <table class="waterfall">
      <caption class="small soft">{text.total(formatDuration(totalMs))}</caption>
      <tbody>
        {spans.map(({ name, startMs, durationMs }, index) => (
          <tr key={name}>
            <th scope="row">{NAMES[name] ?? visibleText(name)}</th>
            <td class="end">{formatDuration(durationMs)}</td>
            <td class="lane" aria-label={text.startsAt(formatDuration(startMs))}>
              <i
                data-series={(index % 6) + 1}
                style={{ left: `${(100 * startMs) / end}%`, width: `max(2px, ${(100 * durationMs) / end}%)` }}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
