import { useSignal } from '@preact/signals';
import { modelEndpoints, type ServedModel } from '../../api/models.ts';
import { client } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { formatBytes, formatCount } from '../../format/numbers.ts';
import { modelLabel } from '../../format/model-label.ts';
import { visibleText } from '../../format/visible-text.ts';
import { ModelDetails } from './model-details.tsx';
import { ModelState } from './model-state.tsx';
import { useAction } from './use-action.ts';

const models = modelEndpoints(client);

export interface ServedModelsProps {
  readonly list: readonly ServedModel[];
  readonly canChange: boolean;
  readonly onChanged: () => void;
}

/** The served models, with their load state and memory use. */
export function ServedModels({ list, canChange, onChanged }: ServedModelsProps) {
  const { failure, busyWith, act } = useAction();
  const modelToUnload = useSignal<ServedModel | null>(null);
  const detailsId = useSignal<string | null>(null);
  const change = (name: string, work: () => Promise<unknown>): void => void act(name, work).then(onChanged);

  return (
    <section class="stack" aria-label="Served models">
      <h2>Served models</h2>
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      <ListTable label="Served models" heads={['Name', 'State', 'Memory:', 'Active requests:']}>
        {list.map((model) => (
          <tr key={model.id}>
            <td class="name">
              <button
                type="button"
                class="link"
                title={visibleText(model.id)}
                onClick={() => (detailsId.value = model.id)}
              >
                {visibleText(modelLabel(model, list))}
              </button>
              <div class="small soft">served as {visibleText([model.id, ...model.aliases].join(', '))}</div>
              {model.is_pinned && <div class="small soft">pinned: stays loaded</div>}
              {model.error !== null && <div class="small bad">{visibleText(model.error)}</div>}
            </td>
            <td>
              <ModelState state={model.state} />
            </td>
            <td class="end num">{memoryOf(model)}</td>
            <td class="end num">{formatCount(model.num_users)}</td>
            <td class="end">
              {canChange && (
                <span class="row end">
                  {model.state === 'loaded' ? (
                    <Button
                      isSmall
                      label={`Unload ${visibleText(model.id)}`}
                      onClick={() => (modelToUnload.value = model)}
                    >
                      Unload
                    </Button>
                  ) : (
                    <Button
                      isSmall
                      label={`Load ${visibleText(model.id)}`}
                      isDisabled={busyWith.value !== '' || model.state === 'loading'}
                      onClick={() => change(model.id, () => models.load(model.id))}
                    >
                      Load
                    </Button>
                  )}
                  {model.is_added && (
                    <Button
                      isSmall
                      kind="danger"
                      label={`Remove ${visibleText(model.id)}`}
                      onClick={() => change(model.id, () => models.remove(model.id))}
                    >
                      Remove
                    </Button>
                  )}
                </span>
              )}
            </td>
          </tr>
        ))}
      </ListTable>
      {modelToUnload.value !== null && (
        <ConfirmUnload model={modelToUnload.value} onDone={onChanged} onClose={() => (modelToUnload.value = null)} />
      )}
      {detailsId.value !== null && <ModelDetails id={detailsId.value} onClose={() => (detailsId.value = null)} />}
    </section>
  );
}

function memoryOf({ held_bytes: usedBytes, size_bytes: requiredBytes }: ServedModel): string {
  if (usedBytes > 0) return formatBytes(usedBytes);
  return requiredBytes === null ? '–' : `requires ${formatBytes(requiredBytes)}`;
}

function ConfirmUnload({ model, onDone, onClose }: { model: ServedModel; onDone: () => void; onClose: () => void }) {
  const isForced = model.num_users > 0;
  async function unload(): Promise<void> {
    await models.unload(model.id, isForced);
    onDone();
  }
  return (
    <Confirm title="Unload this model?" action="Unload" onConfirm={unload} onClose={onClose}>
      <p>
        <strong>{visibleText(model.id)}</strong> is removed from memory; the next request for it loads it again.
        {isForced && ` Active requests: ${formatCount(model.num_users)}. They have 10 s to finish before they fail.`}
      </p>
    </Confirm>
  );
}
