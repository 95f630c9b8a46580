import { hasPart } from '../../app/session.ts';
import type { ViewProps } from '../../app/views.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import './audit.css';
import { RequestList } from './request-list.tsx';
import { RequestPage } from './request-page.tsx';

/** What was asked and answered: all of it, or one request. */
export default function AuditView({ path }: ViewProps) {
  if (!hasPart('memory')) {
    return (
      <div class="page">
        <h1>Audit</h1>
        <EmptyState icon="audit" title="Nothing is written down">
          <p>This server runs without a memory (--no-memory).</p>
        </EmptyState>
      </div>
    );
  }
  const [requestId] = path;
  return requestId === undefined ? <RequestList /> : <RequestPage key={requestId} requestId={requestId} />;
}
