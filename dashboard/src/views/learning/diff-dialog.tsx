import { learningOf } from '../../api/learning.ts';
import { client } from '../../app/session.ts';
import { Dialog } from '../../components/dialog.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount, formatNumber } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.learning.diff;

/** Compares two versions. */
export function DiffDialog(props: { model: string; from: number; to: number; onClose: () => void }) {
  const { model, from, to, onClose } = props;
  const diff = useResource((signal) => learningOf(client).diff(model, from, to, signal), [model, from, to]);
  const data = diff.data.value;
  const cell = (value: number | null): string => (value === null ? '–' : formatNumber(value));
  return (
    <Dialog title={text.title(formatCount(from), formatCount(to))} isWide onClose={onClose}>
      {diff.error.value !== null && <ErrorNotice error={diff.error.value} onRetry={diff.reload} />}
      {data === null && diff.error.value === null && <Loading label={text.loading} />}
      {data !== null && (
        <div class="stack">
          <p>
            {text.requests(data.requests.numAdded, formatCount(data.requests.numRemoved))}{' '}
            {data.weights === null
              ? text.noWeights
              : text.weights(formatNumber(data.weights.normOfChange), formatNumber(data.weights.normTo))}
          </p>
          <table class="table">
            <thead>
              <tr>
                <th>{text.metric}</th>
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
