import { useSignal } from '@preact/signals';
import { auditOf, type ChainReport } from '../../api/audit.ts';
import { client } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.audit;

/** Asks the server to recompute every hash of the audit log. */
export function ChainCheck() {
  const report = useSignal<ChainReport | null>(null);
  const error = useSignal<unknown>(null);
  const isRunning = useSignal(false);

  async function verify(): Promise<void> {
    [isRunning.value, report.value, error.value] = [true, null, null];
    try {
      report.value = await auditOf(client).verify();
    } catch (failure) {
      error.value = failure;
    } finally {
      isRunning.value = false;
    }
  }

  return (
    <div class="row" aria-live="polite">
      {report.value !== null && <Verdict report={report.value} />}
      {error.value !== null && <ErrorNotice error={error.value} />}
      <Button icon="shield" isDisabled={isRunning.value} onClick={() => void verify()}>
        {isRunning.value ? text.verifying : text.verify}
      </Button>
    </div>
  );
}

function Verdict({ report: { isIntact, numChecked, numDropped, brokenAt } }: { report: ChainReport }) {
  if (brokenAt !== null || !isIntact) {
    const reason =
      brokenAt === null ? text.broken : text.brokenAt(formatCount(brokenAt.sequence), visibleText(brokenAt.reason));
    return <Badge tone="bad">{reason}</Badge>;
  }
  return (
    <Badge tone="good">
      {text.intact(numChecked)}
      {numDropped > 0 && text.dropped(numDropped)}
    </Badge>
  );
}
