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
import { useAction } from '../../components/use-action.ts';
import { messages } from '../../messages/index.ts';

const text = messages.models;

const models = modelEndpoints(client);

const TONES: Readonly<Record<Fit, Tone>> = {
  yes: 'good',
  after_unload: 'warn',
  no: 'bad',
  unknown: 'none',
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
    <section class="stack" aria-label={text.cached}>
      <h2>{text.cached}</h2>
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      {list.length === 0 ? (
        <EmptyState icon="models" title={text.noneCached}>
          <p>{text.noneCachedHint}</p>
        </EmptyState>
      ) : (
        <ListTable label={text.cached} heads={text.cachedColumns}>
          {list.map(
            ({ reference, size_bytes: size, required_bytes: required, modified, served_as: servedAs, fits }) => (
              <tr key={reference}>
                <td class="name">
                  {visibleText(reference)}
                  {servedAs !== null && <div class="small soft">{text.servedAs(visibleText(servedAs))}</div>}
                </td>
                <td class="end num">{formatBytes(size)}</td>
                <td class="end num">{formatBytes(required ?? Number.NaN)}</td>
                <td>
                  <Moment ms={modified * 1000} />
                </td>
                <td>
                  <Badge tone={TONES[fits]}>{text.fits[fits]}</Badge>
                </td>
                <td class="end">
                  {canChange && servedAs === null && (
                    <Button
                      isSmall
                      label={text.loadModel(visibleText(reference))}
                      isDisabled={busyWith.value !== '' || fits === 'no'}
                      onClick={() => void act(reference, () => models.load(reference)).then(onChanged)}
                    >
                      {busyWith.value === reference ? text.loadingModel : text.load}
                    </Button>
                  )}
                </td>
              </tr>
            ),
          )}
        </ListTable>
      )}
    </section>
  );
}
