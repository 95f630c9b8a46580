import { learningOf } from '../../api/learning.ts';
import { client } from '../../app/session.ts';
import { Dialog } from '../../components/dialog.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount, formatCountOf, formatNumber } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

/** Compares two versions. */
export function DiffDialog(props: { model: string; from: number; to: number; onClose: () => void }) {
  const { model, from, to, onClose } = props;
  const diff = useResource((signal) => learningOf(client).diff(model, from, to, signal), [model, from, to]);
  const data = diff.data.value;
  const cell = (value: number | null): string => (value === null ? '–' : formatNumber(value));
  return (
    <Dialog title={`Versions ${from} and ${to}`} isWide onClose={onClose}>
      {diff.error.value !== null && <ErrorNotice error={diff.error.value} onRetry={diff.reload} />}
      {data === null && diff.error.value === null && <Loading label="Comparing" />}
      {data !== null && (
        <div class="stack">
          <p>
            Training data: {formatCountOf(data.requests.numAdded, 'request')} added,{' '}
            {formatCount(data.requests.numRemoved)} removed.{' '}
            {data.weights === null
              ? 'The weights cannot be compared.'
              : `Norm of the weight change: ${formatNumber(data.weights.normOfChange)}; norm of the new weights: ${formatNumber(data.weights.normTo)}.`}
          </p>
          <table class="table">
            <thead>
              <tr>
                <th>Metric</th>
                <th class="end">{from}</th>
                <th class="end">{to}</th>
              </tr>
            </thead>
            <tbody>
              {Object.entries(data.metrics).map(([name, { from: before, to: after }]) => (
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
