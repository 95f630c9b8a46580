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
import { formatCount, formatNumber, formatShare } from '../../format/numbers.ts';
import { formatTime } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { COLUMNS, NEARNESS } from './columns.tsx';
import { Waterfall } from './waterfall.tsx';

const audit = auditOf(client);
const ROW_HEIGHT = 40;

/** One request: what was asked and answered, where its time went, and who asked alike. */
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
      {details.data.value === null && details.error.value === null && <Loading what="Opening" />}
      {details.data.value !== null && <Opened details={details.data.value} />}
      {details.data.value !== null && <SimilarRequests requestId={requestId} />}
    </div>
  );
}

function Opened({ details: { entry: row, spans, sources, judged } }: { details: AuditDetails }) {
  const { entry, link } = row;
  return (
    <>
      {entry.error !== null && (
        <Notice tone="warn">
          {visibleText(entry.error.code)}: {visibleText(entry.error.message)}
        </Notice>
      )}
      <div class="audit-halves">
        <section class="card" aria-label="Time">
          <h2>Where the time went</h2>
          <Waterfall spans={spans} totalMs={entry.latency.totalMs} />
        </section>
        <section class="card" aria-label="Facts">
          <h2>Facts</h2>
          <dl class="pairs">
            <dt>Ended</dt>
            <dd>{formatTime(entry.timestampMs)}</dd>
            <dt>Model</dt>
            <dd>{visibleText(entry.model)}</dd>
            {entry.routing !== null && (
              <>
                <dt>Chosen</dt>
                <dd>with {formatShare(entry.routing.confidence)} confidence</dd>
              </>
            )}
            <dt>Tokens</dt>
            <dd>
              {formatCount(entry.numPromptTokens)} asked, {formatCount(entry.numOutputTokens)} answered
            </dd>
            <dt>Session</dt>
            <dd>{entry.sessionId === null ? 'none' : visibleText(entry.sessionId)}</dd>
            <dt>Entry</dt>
            <dd>
              {formatCount(link.sequence)} of the chain,{' '}
              <span class="mono">{visibleText(link.hash.slice(0, 16))}…</span>
            </dd>
            {judged !== null && (
              <>
                <dt>Judged</dt>
                <dd>
                  {judged.verdict === null || judged.verdict === 'unknown' ? 'not yet' : visibleText(judged.verdict)}
                  {judged.quality !== null && `, ${formatNumber(judged.quality)} of 1`}
                </dd>
              </>
            )}
          </dl>
        </section>
      </div>
      <section class="card stack" aria-label="Question">
        <h2>Question</h2>
        <TextBlock label="Question" text={entry.query} />
        <h2>Answer</h2>
        <TextBlock label="Answer" text={entry.response} />
        {entry.numCut > 0 && <p class="small soft">{formatCount(entry.numCut)} characters were cut off.</p>}
        {judged?.correction != null && (
          <>
            <h2>Should have been</h2>
            <TextBlock label="Correction" text={judged.correction} />
          </>
        )}
      </section>
      {judged !== null && judged.feedback.length > 0 && (
        <section class="card" aria-label="Feedback">
          <h2>Feedback</h2>
          <ul class="audit-list">
            {judged.feedback.map(({ atMs, source, score, comment, hasCorrection }, index) => (
              <li key={index}>
                <Moment ms={atMs} /> <Badge>{visibleText(source)}</Badge>{' '}
                {score !== null && `${formatNumber(score)} of 1`} {hasCorrection && 'with a correction'}{' '}
                {comment !== null && <q dir="auto">{visibleText(comment)}</q>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {sources.length > 0 && (
        <section class="card stack" aria-label="Sources">
          <h2>Recalled for it</h2>
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
      {rows?.length === 0 && <p class="soft">Nobody asked anything like it.</p>}
      {rows !== null && rows.length > 0 && (
        <VirtualTable
          label="Similar requests"
          rows={rows}
          columns={[NEARNESS, ...COLUMNS]}
          keyOf={({ id }) => id}
          onOpen={({ entry }) => goTo('audit', entry.requestId)}
          height={(rows.length + 1) * ROW_HEIGHT + 4}
          minWidth={960}
        />
      )}
    </section>
  );
}
