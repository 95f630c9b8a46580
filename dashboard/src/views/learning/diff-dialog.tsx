import { learningOf } from '../../api/learning.ts';
import { client } from '../../app/session.ts';
import { Dialog } from '../../components/dialog.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount, formatNumber } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

/** What two versions differ in. */
export function DiffDialog(props: { model: string; from: number; to: number; onClose: () => void }) {
  const { model, from, to, onClose } = props;
  const diff = useResource((signal) => learningOf(client).diff(model, from, to, signal), [model, from, to]);
  const known = diff.data.value;
  const cell = (value: number | null): string => (value === null ? '–' : formatNumber(value));
  return (
    <Dialog title={`Version ${from} and version ${to}`} isWide onClose={onClose}>
      {diff.error.value !== null && <ErrorNotice error={diff.error.value} onRetry={diff.reload} />}
      {known === null && diff.error.value === null && <Loading what="Comparing" />}
      {known !== null && (
        <div class="stack">
          <p>
            Learned from {formatCount(known.requests.numAdded)} requests more and{' '}
            {formatCount(known.requests.numRemoved)} that are gone.{' '}
            {known.weights === null
              ? 'The weights cannot be compared.'
              : `The weights moved by ${formatNumber(known.weights.normOfChange)}, to a length of ${formatNumber(known.weights.normTo)}.`}
          </p>
          <table class="table">
            <thead>
              <tr>
                <th>Figure</th>
                <th class="end">{from}</th>
                <th class="end">{to}</th>
              </tr>
            </thead>
            <tbody>
              {Object.entries(known.metrics).map(([name, { from: before, to: after }]) => (
                <tr key={name}>
                  <th scope="row">{visibleText(name)}</th>
                  <td class="end">{cell(before)}</td>
                  <td class="end">{cell(after)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Dialog>
  );
}
