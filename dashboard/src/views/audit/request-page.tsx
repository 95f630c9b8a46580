import { type AuditDetails, auditOf } from '../../api/audit.ts';
import { goTo, hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { TextBlock } from '../../components/text-block.tsx';
import { useResource } from '../../components/use-resource.ts';
import { VirtualTable } from '../../components/virtual-table.tsx';
import { formatCount, formatCountOf, formatNumber, formatShare } from '../../format/numbers.ts';
import { formatTime } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { COLUMNS, SIMILARITY } from './columns.tsx';
import { Waterfall } from './waterfall.tsx';

const audit = auditOf(client);
const ROW_HEIGHT = 40;

/** One request: prompt, answer, latency breakdown, feedback and similar requests. */
export function RequestPage({ requestId }: { requestId: string }) {
  const details = useResource((signal) => audit.show(requestId, signal), [requestId]);
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Request</h1>
          <p class="mono">{visibleText(requestId)}</p>
        </div>
        <a href={hrefOf('audit')}>All requests</a>
      </div>
      {details.error.value !== null && <ErrorNotice error={details.error.value} onRetry={details.reload} />}
      {details.data.value === null && details.error.value === null && <Loading label="Loading request" />}
      {details.data.value !== null && <RequestDetails details={details.data.value} />}
      {details.data.value !== null && <SimilarRequests requestId={requestId} />}
    </div>
  );
}

function RequestDetails({ details: { entry: row, spans, sources, judged: rating } }: { details: AuditDetails }) {
  const { entry, link } = row;
  return (
    <>
      {entry.error !== null && (
        <Notice tone="warn">
          {visibleText(entry.error.code)}: {visibleText(entry.error.message)}
        </Notice>
      )}
      <div class="audit-halves">
        <section class="card" aria-label="Latency">
          <h2>Latency breakdown</h2>
          <Waterfall spans={spans} totalMs={entry.latency.totalMs} />
        </section>
        <section class="card" aria-label="Details">
          <h2>Details</h2>
          <dl class="pairs">
            <dt>Finished</dt>
            <dd>{formatTime(entry.timestampMs)}</dd>
            <dt>Model</dt>
            <dd>{visibleText(entry.model)}</dd>
            {entry.routing !== null && (
              <>
                <dt>Router</dt>
                <dd>{formatShare(entry.routing.confidence)} confidence</dd>
              </>
            )}
            <dt>Tokens</dt>
            <dd>
              {formatCount(entry.numPromptTokens)} prompt, {formatCount(entry.numOutputTokens)} generated
            </dd>
            <dt>Session</dt>
            <dd>{entry.sessionId === null ? 'none' : visibleText(entry.sessionId)}</dd>
            <dt>Entry</dt>
            <dd>
              {formatCount(link.sequence)}, hash <span class="mono">{visibleText(link.hash.slice(0, 16))}…</span>
            </dd>
            {rating !== null && (
              <>
                <dt>Rating</dt>
                <dd>
                  {rating.verdict === null || rating.verdict === 'unknown' ? 'none' : visibleText(rating.verdict)}
                  {rating.quality !== null && `, quality ${formatNumber(rating.quality)}`}
                </dd>
              </>
            )}
          </dl>
        </section>
      </div>
      <section class="card stack" aria-label="Prompt and answer">
        <h2>Prompt</h2>
        <TextBlock label="Prompt" text={entry.query} />
        <h2>Answer</h2>
        <TextBlock label="Answer" text={entry.response} />
        {entry.numCut > 0 && <p class="small soft">{formatCountOf(entry.numCut, 'character')} truncated.</p>}
        {rating?.correction != null && (
          <>
            <h2>Correction</h2>
            <TextBlock label="Correction" text={rating.correction} />
          </>
        )}
      </section>
      {rating !== null && rating.feedback.length > 0 && (
        <section class="card" aria-label="Feedback">
          <h2>Feedback</h2>
          <ul class="audit-list">
            {rating.feedback.map(({ atMs, source, score, comment, hasCorrection }, index) => (
              <li key={index}>
                <Moment ms={atMs} /> <Badge>{visibleText(source)}</Badge>{' '}
                {score !== null && `score ${formatNumber(score)}`} {hasCorrection && 'with correction'}{' '}
                {comment !== null && <q dir="auto">{visibleText(comment)}</q>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {sources.length > 0 && (
        <section class="card stack" aria-label="Sources">
          <h2>Sources from memory</h2>
          {sources.map(({ id, kind, text }) => (
            <div key={id}>
              <Badge>{visibleText(kind)}</Badge> <a href={hrefOf('memory', id)}>{visibleText(id)}</a>
              <TextBlock label={`Source ${id}`} text={text} />
            </div>
          ))}
        </section>
      )}
    </>
  );
}

function SimilarRequests({ requestId }: { requestId: string }) {
  const similar = useResource((signal) => audit.similar(requestId, signal), [requestId]);
  const rows = similar.data.value;
  return (
    <section class="stack" aria-label="Similar requests">
      <h2>Similar requests</h2>
      {similar.error.value !== null && <ErrorNotice error={similar.error.value} onRetry={similar.reload} />}
      {rows?.length === 0 && <p class="soft">No similar requests</p>}
      {rows !== null && rows.length > 0 && (
        <VirtualTable
          label="Similar requests"
          rows={rows}
          columns={[SIMILARITY, ...COLUMNS]}
          keyOf={({ id }) => id}
          onOpen={({ entry }) => goTo('audit', entry.requestId)}
          height={(rows.length + 1) * ROW_HEIGHT + 4}
          minWidth={960}
        />
      )}
    </section>
  );
}
