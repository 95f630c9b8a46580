import type { CachedModel, Fit } from '../../api/models.ts';
import { modelEndpoints } from '../../api/models.ts';
import { client } from '../../app/session.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { formatBytes } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { useAction } from './use-action.ts';

const models = modelEndpoints(client);

const FITS: Readonly<Record<Fit, { readonly label: string; readonly tone: Tone }>> = {
  yes: { label: 'yes', tone: 'good' },
  after_unload: { label: 'after unloading idle models', tone: 'warn' },
  no: { label: 'no', tone: 'bad' },
  unknown: { label: 'unknown', tone: 'none' },
};

/** Model files on the server's machine, and whether they fit in memory. */
export function CachedModels({
  list,
  canChange,
  onChanged,
}: {
  list: readonly CachedModel[];
  canChange: boolean;
  onChanged: () => void;
}) {
  const { failure, busyWith, act } = useAction();
  return (
    <section class="stack" aria-label="Models on this machine">
      <h2>Models on this machine</h2>
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      {list.length === 0 ? (
        <EmptyState icon="models" title="No models pulled">
          <p>
            Pull a model here or with <code>ruvllm pull</code> to serve it without a restart.
          </p>
        </EmptyState>
      ) : (
        <ListTable label="Models on this machine" heads={['Reference', 'Size:', 'Modified', 'Fits in memory']}>
          {list.map(({ reference, size_bytes: size, modified, served_as: servedAs, fits }) => (
            <tr key={reference}>
              <td class="name">
                {visibleText(reference)}
                {servedAs !== null && <div class="small soft">served as {visibleText(servedAs)}</div>}
              </td>
              <td class="end num">{formatBytes(size)}</td>
              <td>
                <Moment ms={modified * 1000} />
              </td>
              <td>
                <Badge tone={FITS[fits].tone}>{FITS[fits].label}</Badge>
              </td>
              <td class="end">
                {canChange && servedAs === null && (
                  <Button
                    isSmall
                    label={`Load ${visibleText(reference)}`}
                    isDisabled={busyWith.value !== '' || fits === 'no'}
                    onClick={() => void act(reference, () => models.load(reference)).then(onChanged)}
                  >
                    {busyWith.value === reference ? 'Loading…' : 'Load'}
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </ListTable>
      )}
    </section>
  );
}
