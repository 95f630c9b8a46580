import { hasPart } from '../../app/session.ts';
import type { ViewProps } from '../../app/views.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import './audit.css';
import { RequestList } from './request-list.tsx';
import { RequestPage } from './request-page.tsx';

/** The audit log, or one request of it. */
export default function AuditView({ path }: ViewProps) {
  if (!hasPart('memory')) {
    return (
      <div class="page">
        <h1>Audit log</h1>
        <EmptyState icon="audit" title="The audit log is off">
          <p>It requires memory. This server was started with --no-memory.</p>
        </EmptyState>
      </div>
    );
  }
  const [requestId] = path;
  return requestId === undefined ? <RequestList /> : <RequestPage key={requestId} requestId={requestId} />;
}
