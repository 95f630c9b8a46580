import { hasPart } from '../../app/session.ts';
import type { ViewProps } from '../../app/views.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { messages } from '../../messages/index.ts';
import './audit.css';
import { ComparePage } from './compare-page.tsx';
import { RequestList } from './request-list.tsx';
import { RequestPage } from './request-page.tsx';

const text = messages.audit;

/** The audit log, or one request of it. */
export default function AuditView({ path }: ViewProps) {
  if (!hasPart('memory')) {
    return (
      <div class="page">
        <h1>{text.title}</h1>
        <EmptyState icon="audit" title={text.off}>
          <p>{text.offHint}</p>
        </EmptyState>
      </div>
    );
  }
  const [requestId, first, second] = path;
  if (requestId === 'compare' && first !== undefined && second !== undefined) {
    return <ComparePage key={path.join(' ')} ids={[first, second]} />;
  }
  return requestId === undefined ? <RequestList /> : <RequestPage key={requestId} requestId={requestId} />;
}
