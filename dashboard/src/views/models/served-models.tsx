import { useSignal } from '@preact/signals';
import { type Benchmark, modelEndpoints, type ServedModel } from '../../api/models.ts';
import { client } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Moment } from '../../components/moment.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { formatBytes, formatCount, formatNumber } from '../../format/numbers.ts';
import { modelLabel } from '../../format/model-label.ts';
import { visibleText } from '../../format/visible-text.ts';
import { benchmarks, keepBenchmark } from './benchmarks.ts';
import { ModelDetails } from './model-details.tsx';
import { ModelState } from './model-state.tsx';
import { useAction } from '../../components/use-action.ts';
import { messages } from '../../messages/index.ts';

const text = messages.models;

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
    <section class="stack" aria-label={text.served}>
      <h2>{text.served}</h2>
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      <ListTable label={text.served} heads={text.servedColumns}>
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
              <div class="small soft">{text.servedAs(visibleText([model.id, ...model.aliases].join(', ')))}</div>
              {model.is_pinned && <div class="small soft">{text.pinned}</div>}
              {model.error !== null && <div class="small bad">{visibleText(model.error)}</div>}
            </td>
            <td>
              <ModelState state={model.state} />
            </td>
            <td class="end num">{memoryOf(model)}</td>
            <td>
              <Speed result={benchmarks.value[model.id]} />
            </td>
            <td class="end num">{formatCount(model.num_users)}</td>
            <td>{visibleText(model.node)}</td>
            <td class="end">
              {canChange && (
                <span class="row end">
                  {model.state === 'loaded' && (
                    <Button
                      isSmall
                      label={text.measureModel(visibleText(model.id))}
                      isDisabled={busyWith.value !== ''}
                      onClick={() => change(`measure ${model.id}`, () => measure(model.id))}
                    >
                      {busyWith.value === `measure ${model.id}` ? text.measuring : text.measure}
                    </Button>
                  )}
                  {model.state === 'loaded' ? (
                    <Button
                      isSmall
                      label={text.unloadModel(visibleText(model.id))}
                      onClick={() => (modelToUnload.value = model)}
                    >
                      {text.unload}
                    </Button>
                  ) : (
                    <Button
                      isSmall
                      label={text.loadModel(visibleText(model.id))}
                      isDisabled={busyWith.value !== '' || model.state === 'loading'}
                      onClick={() => change(model.id, () => models.load(model.id))}
                    >
                      {text.load}
                    </Button>
                  )}
                  {model.is_added && (
                    <Button
                      isSmall
                      kind="danger"
                      label={text.removeModel(visibleText(model.id))}
                      onClick={() => change(model.id, () => models.remove(model.id))}
                    >
                      {text.remove}
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

async function measure(id: string): Promise<void> {
  keepBenchmark(id, await models.benchmark(id));
}

function Speed({ result }: { result: Benchmark | undefined }) {
  if (result === undefined) return <span class="soft">–</span>;
  return (
    <>
      <div class="num">{text.speed(formatNumber(result.tokens_per_second))}</div>
      <div class="small soft num">{text.promptSpeed(formatNumber(result.prompt_tokens_per_second))}</div>
      <div class="small soft">
        <Moment ms={result.measured * 1000} />
      </div>
    </>
  );
}

function memoryOf({ held_bytes: usedBytes, size_bytes: requiredBytes }: ServedModel): string {
  if (usedBytes > 0) return formatBytes(usedBytes);
  return requiredBytes === null ? '–' : text.requires(formatBytes(requiredBytes));
}

function ConfirmUnload({ model, onDone, onClose }: { model: ServedModel; onDone: () => void; onClose: () => void }) {
  const isForced = model.num_users > 0;
  async function unload(): Promise<void> {
    await models.unload(model.id, isForced);
    onDone();
  }
  return (
    <Confirm title={text.confirmUnload} action={text.unload} onConfirm={unload} onClose={onClose}>
      <p>
        {text.unloadHint(visibleText(model.id))}
        {isForced && ` ${text.unloadBusyHint(formatCount(model.num_users))}`}
      </p>
    </Confirm>
  );
}
