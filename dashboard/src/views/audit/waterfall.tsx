import type { Span } from '../../api/audit.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';

const NAMES: Readonly<Record<string, string>> = {
  embedding: 'Vector of the question',
  wait: 'Waiting for the memory',
  policy: 'What was learned for you',
  retrieval: 'Search in the memory',
  routing: 'Choice of the model',
  queue: 'Waiting for a place',
  prompt: 'Reading the prompt',
  generation: 'Generation',
  firstToken: 'Until the first token',
  tokens: 'All further tokens',
  write: 'Until it was written down',
  other: 'Everything else',
};

/** Where the time of a request went: one bar for each part, at its place. */
export function Waterfall({ spans, totalMs }: { spans: readonly Span[]; totalMs: number }) {
  const end = Math.max(totalMs, ...spans.map(({ startMs, durationMs }) => startMs + durationMs), Number.MIN_VALUE);
  return (
    <table class="waterfall">
      <caption class="small soft">{formatDuration(totalMs)} in all</caption>
      <tbody>
        {spans.map(({ name, startMs, durationMs }, index) => (
          <tr key={name}>
            <th scope="row">{NAMES[name] ?? visibleText(name)}</th>
            <td class="end">{formatDuration(durationMs)}</td>
            <td class="lane" aria-label={`from ${formatDuration(startMs)} on`}>
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
