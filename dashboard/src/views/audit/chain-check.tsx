import { useSignal } from '@preact/signals';
import { auditOf, type ChainReport } from '../../api/audit.ts';
import { client } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { formatCount, formatCountOf } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

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
        {isRunning.value ? 'Verifying…' : 'Verify hash chain'}
      </Button>
    </div>
  );
}

function Verdict({ report: { isIntact, numChecked, numDropped, brokenAt } }: { report: ChainReport }) {
  if (brokenAt !== null || !isIntact) {
    const where =
      brokenAt === null ? '' : ` at entry ${formatCount(brokenAt.sequence)}: ${visibleText(brokenAt.reason)}`;
    return <Badge tone="bad">Broken{where}</Badge>;
  }
  const droppedNote = numDropped === 0 ? '' : `, ${formatCount(numDropped)} dropped before writing`;
  return (
    <Badge tone="good">
      Intact: {formatCountOf(numChecked, 'entry', 'entries')}
      {droppedNote}
    </Badge>
  );
}
