import { type AuditDetails, auditOf } from '../../api/audit.ts';
import { hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { Loading } from '../../components/loading.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount, formatNumber } from '../../format/numbers.ts';
import { formatDuration, formatTime } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { errorOf, verdictOf } from './columns.tsx';
import { RequestError } from './request-error.tsx';
import { diffWords } from './text-diff.ts';

const text = messages.audit;
const audit = auditOf(client);

/** Two requests side by side: settings, timing, tokens, and their answers with the differences marked. */
export function ComparePage({ ids }: { ids: readonly [string, string] }) {
  const pair = useResource(
    (signal) => Promise.all([audit.show(ids[0], signal), audit.show(ids[1], signal)]),
    [ids[0], ids[1]],
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1>{text.compare.title}</h1>
        <a href={hrefOf('audit')}>{text.allRequests}</a>
      </div>
      {pair.error.value !== null && <RequestError error={pair.error.value} onRetry={pair.reload} />}
      {pair.data.value === null && pair.error.value === null && <Loading label={text.loadingRequest} />}
      {pair.data.value !== null && <Comparison pair={pair.data.value} />}
    </div>
  );
}

/** A row of the table: its name and how to write the value of a request. */
const ROWS: readonly (readonly [name: string, write: (details: AuditDetails) => string])[] = [
  [text.finished, ({ entry: { entry } }) => formatTime(entry.timestampMs)],
  [text.columns.model, ({ entry: { entry } }) => visibleText(entry.model)],
  [text.compare.temperature, ({ judged }) => numberOf(judged?.temperature)],
  [text.compare.topP, ({ judged }) => numberOf(judged?.topP)],
  [text.compare.context, ({ entry: { entry } }) => countOf(entry.routing?.contextSize)],
  [text.compare.sources, ({ sources }) => formatCount(sources.length)],
  [text.compare.promptTokens, ({ entry: { entry } }) => formatCount(entry.numPromptTokens)],
  [text.compare.outputTokens, ({ entry: { entry } }) => formatCount(entry.numOutputTokens)],
  [text.compare.queue, ({ entry: { entry } }) => durationOf(entry.latency.queueMs)],
  [text.compare.promptTime, ({ entry: { entry } }) => durationOf(entry.latency.promptMs)],
  [text.compare.firstToken, ({ entry: { entry } }) => durationOf(entry.latency.ttftMs)],
  [text.compare.total, ({ entry: { entry } }) => formatDuration(entry.latency.totalMs)],
  [text.compare.rate, rateOf],
  [text.rating, ({ judged }) => verdictOf(judged?.verdict ?? null)],
  [text.columns.quality, ({ entry, judged }) => numberOf(judged?.quality ?? entry.rating?.quality)],
  [text.compare.error, ({ entry: { entry } }) => (entry.error === null ? text.none : errorOf(entry.error.code))],
];

const numberOf = (value: number | null | undefined): string => formatNumber(value ?? NaN);
const countOf = (value: number | null | undefined): string => formatCount(value ?? NaN);
const durationOf = (value: number | null | undefined): string => formatDuration(value ?? NaN);

/** Tokens/s after the first one. */
function rateOf({ entry: { entry } }: AuditDetails): string {
  const { totalMs, ttftMs } = entry.latency;
  const hasRate = ttftMs !== null && entry.numOutputTokens > 1 && totalMs > ttftMs;
  return formatNumber(hasRate ? ((entry.numOutputTokens - 1) * 1000) / (totalMs - ttftMs) : NaN);
}

function Comparison({ pair }: { pair: readonly [AuditDetails, AuditDetails] }) {
  const [first, second] = [pair[0].entry.entry, pair[1].entry.entry];
  return (
    <>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={text.compare.title}>
        <table class="table audit-compare">
          <thead>
            <tr>
              <td />
              {pair.map(({ entry: { entry } }, index) => (
                <th key={entry.requestId} scope="col">
                  <a href={hrefOf('audit', entry.requestId)}>{text.compare.names[index]}</a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ROWS.map(([name, write]) => {
              const [a, b] = [write(pair[0]), write(pair[1])];
              return (
                <tr key={name} data-differs={a === b ? undefined : ''}>
                  <th scope="row">{name}</th>
                  <td>{a}</td>
                  <td>{b}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <TextPair name={text.prompt} first={first.query} second={second.query} />
      <TextPair name={text.answer} first={first.response} second={second.response} />
    </>
  );
}

/** Two texts side by side; equal ones once. */
function TextPair({ name, first, second }: { name: string; first: string; second: string }) {
  const parts = diffWords(first, second);
  const sides = [
    { side: 'first', Mark: 'del' },
    { side: 'second', Mark: 'ins' },
  ] as const;
  return (
    <section class="stack" aria-label={name}>
      <h2>{name}</h2>
      {first === second && <p class="soft">{text.compare.equal}</p>}
      <div class="audit-halves">
        {(first === second ? sides.slice(0, 1) : sides).map(({ side, Mark }, index) => (
          <pre
            key={side}
            class="card audit-diff"
            dir="auto"
            tabIndex={0}
            role="region"
            aria-label={`${name} ${text.compare.names[index]}`}
          >
            {parts.map((part, i) =>
              part.side === 'both' ? (
                visibleText(part.text)
              ) : part.side === side ? (
                <Mark key={i}>{visibleText(part.text)}</Mark>
              ) : null,
            )}
          </pre>
        ))}
      </div>
    </section>
  );
}
