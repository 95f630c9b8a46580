import { type AuditDetails, auditOf } from '../../api/audit.ts';
import { goTo, hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Badge } from '../../components/badge.tsx';
import { kindLabel } from '../../components/kind-label.ts';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { TextBlock } from '../../components/text-block.tsx';
import { useResource } from '../../components/use-resource.ts';
import { VirtualTable } from '../../components/virtual-table.tsx';
import { formatCount, formatNumber, formatShare } from '../../format/numbers.ts';
import { formatTime } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { COLUMNS, SIMILARITY, verdictOf } from './columns.tsx';
import { RequestError } from './request-error.tsx';
import { Waterfall } from './waterfall.tsx';

const text = messages.audit;
const audit = auditOf(client);

/** A link for others. It has no key: each reader signs in with their own. */
const linkTo = (requestId: string): string => new URL(hrefOf('audit', requestId), location.href).href;

/** One request: prompt, answer, latency breakdown, feedback and similar requests. */
export function RequestPage({ requestId }: { requestId: string }) {
  const details = useResource((signal) => audit.show(requestId, signal), [requestId]);
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{text.request}</h1>
          <p class="mono">{visibleText(requestId)}</p>
        </div>
        <div class="row">
          <CopyButton text={linkTo(requestId)} label={text.copyLink} />
          <a href={hrefOf('audit')}>{text.allRequests}</a>
        </div>
      </div>
      {details.error.value !== null && <RequestError error={details.error.value} onRetry={details.reload} />}
      {details.data.value === null && details.error.value === null && <Loading label={text.loadingRequest} />}
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
        <section class="card" aria-label={text.latency}>
          <h2>{text.latencyBreakdown}</h2>
          <Waterfall spans={spans} totalMs={entry.latency.totalMs} />
        </section>
        <section class="card" aria-label={text.details}>
          <h2>{text.details}</h2>
          <dl class="pairs">
            <dt>{text.finished}</dt>
            <dd>{formatTime(entry.timestampMs)}</dd>
            <dt>{text.columns.model}</dt>
            <dd>{visibleText(entry.model)}</dd>
            {entry.routing !== null && (
              <>
                <dt>{text.router}</dt>
                <dd>{text.confidence(formatShare(entry.routing.confidence))}</dd>
              </>
            )}
            <dt>{text.columns.tokens}</dt>
            <dd>{text.tokenCounts(formatCount(entry.numPromptTokens), formatCount(entry.numOutputTokens))}</dd>
            <dt>{text.session}</dt>
            <dd>{entry.sessionId === null ? text.none : visibleText(entry.sessionId)}</dd>
            <dt>{text.entry}</dt>
            <dd>
              {text.entryHash(formatCount(link.sequence))}
              <span class="mono">{visibleText(link.hash.slice(0, 16))}…</span>
            </dd>
            {rating !== null && (
              <>
                <dt>{text.rating}</dt>
                <dd>
                  {verdictOf(rating.verdict)}
                  {rating.quality !== null && `, ${text.quality(formatNumber(rating.quality))}`}
                </dd>
              </>
            )}
          </dl>
        </section>
      </div>
      <section class="card stack" aria-label={text.promptAndAnswer}>
        <h2>{text.prompt}</h2>
        <TextBlock label={text.prompt} text={entry.query} />
        <h2>{text.answer}</h2>
        <TextBlock label={text.answer} text={entry.response} />
        {entry.numCut > 0 && <p class="small soft">{text.truncated(entry.numCut)}</p>}
        {rating?.correction != null && (
          <>
            <h2>{text.correction}</h2>
            <TextBlock label={text.correction} text={rating.correction} />
          </>
        )}
      </section>
      {rating !== null && rating.feedback.length > 0 && (
        <section class="card" aria-label={text.feedback}>
          <h2>{text.feedback}</h2>
          <ul class="audit-list">
            {rating.feedback.map(({ atMs, source, score, comment, hasCorrection }, index) => (
              <li key={index}>
                <Moment ms={atMs} /> <Badge>{visibleText(source)}</Badge>{' '}
                {score !== null && text.score(formatNumber(score))} {hasCorrection && text.withCorrection}{' '}
                {comment !== null && <q dir="auto">{visibleText(comment)}</q>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {sources.length > 0 && (
        <section class="card stack" aria-label={text.sources}>
          <h2>{text.sources}</h2>
          {sources.map(({ id, kind, text: passage }) => (
            <div key={id}>
              <Badge>{kindLabel(kind)}</Badge> <a href={hrefOf('memory', id)}>{visibleText(id)}</a>
              <TextBlock label={text.source(visibleText(id))} text={passage} />
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
    <section class="stack" aria-label={text.similar}>
      <h2>{text.similar}</h2>
      {similar.error.value !== null && <ErrorNotice error={similar.error.value} onRetry={similar.reload} />}
      {rows?.length === 0 && <p class="soft">{text.noSimilar}</p>}
      {rows !== null && rows.length > 0 && (
        <VirtualTable
          label={text.similar}
          rows={rows}
          columns={[SIMILARITY, ...COLUMNS]}
          keyOf={({ id }) => id}
          onOpen={({ entry }) => goTo('audit', entry.requestId)}
          minWidth={990}
        />
      )}
    </section>
  );
}
