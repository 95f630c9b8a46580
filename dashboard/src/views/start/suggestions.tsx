import { useSignal } from '@preact/signals';
import { modelEndpoints, type Pull, type SuggestedModel } from '../../api/models.ts';
import { client, refreshIdentity } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { Pulls, pullsChanged } from '../../components/pulls.tsx';
import { useAction } from '../../components/use-action.ts';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatNumber } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.start;
const models = modelEndpoints(client);

/** Models that fit this machine; a pulled one is loaded at once. */
export function Suggestions({ canPull }: { canPull: boolean }) {
  const suggestions = useResource(models.suggestions);
  const chosen = useSignal<string | null>(null);
  const { failure, busyWith, act } = useAction();
  const data = suggestions.data.value;

  async function use(name: string): Promise<void> {
    try {
      await models.load(name);
    } catch (error) {
      // Otherwise the server would no longer count as empty, and the chat would open with a model that cannot be loaded.
      await models.remove(name).catch(() => {});
      throw error;
    }
    await refreshIdentity(); // the chat opens in the place of this view
  }
  async function pull(name: string): Promise<void> {
    chosen.value = name;
    await models.pull(name);
    pullsChanged.value++;
  }
  function onEnded(pulls: readonly Pull[]): void {
    const pulled = pulls.find(({ reference, state }) => state === 'done' && reference === chosen.value);
    if (pulled !== undefined) void act(pulled.reference, () => use(pulled.reference));
    suggestions.reload();
  }

  if (suggestions.error.value !== null)
    return <ErrorNotice error={suggestions.error.value} onRetry={suggestions.reload} />;
  if (data === null) return <Loading label={text.measuring} />;
  const fitting = data.data.filter(({ fits }) => fits !== 'no');
  const numTooLarge = data.data.length - fitting.length;
  return (
    <>
      <Pulls canChange={canPull} onEnded={onEnded} />
      <section class="stack" aria-label={text.models}>
        <h2>{text.models}</h2>
        {!data.is_hub_reachable && (
          <Notice tone="warn">
            <p>{text.unreachable}</p>
            <p>
              {text.localFile} <code>{'ruvllm serve FILE.gguf'}</code>
            </p>
            <Button isSmall icon="refresh" isDisabled={suggestions.isLoading.value} onClick={suggestions.reload}>
              {messages.components.tryAgain}
            </Button>
          </Notice>
        )}
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        {fitting.length > 0 && (
          <ListTable label={text.models} heads={text.columns}>
            {fitting.map((model) => (
              <tr key={model.name}>
                <td class="name">
                  <strong>{visibleText(model.name)}</strong>
                </td>
                <td class="end num">{formatBytes(model.size_bytes)}</td>
                <td class="end num">{formatBytes(model.required_bytes)}</td>
                <td class="end num">{text.speed(formatNumber(model.tokens_per_second))}</td>
                <td class="end">{canPull && <Action {...{ model, busyWith: busyWith.value, act, pull, use }} />}</td>
              </tr>
            ))}
          </ListTable>
        )}
        <p class="small soft">
          {text.estimate} {numTooLarge > 0 && text.tooLarge(numTooLarge)}
        </p>
      </section>
    </>
  );
}

function Action({
  model: { name, is_downloaded: isDownloaded },
  busyWith,
  act,
  pull,
  use,
}: {
  model: SuggestedModel;
  busyWith: string;
  act: (name: string, work: () => Promise<void>) => Promise<void>;
  pull: (name: string) => Promise<void>;
  use: (name: string) => Promise<void>;
}) {
  const label = isDownloaded ? text.useModel(visibleText(name)) : text.pullModel(visibleText(name));
  return (
    <Button
      isSmall
      kind="primary"
      icon={isDownloaded ? 'play' : 'download'}
      label={label}
      isDisabled={busyWith !== ''}
      onClick={() => void act(name, () => (isDownloaded ? use(name) : pull(name)))}
    >
      {busyWith === name && isDownloaded
        ? messages.models.loadingModel
        : isDownloaded
          ? text.use
          : messages.models.pull}
    </Button>
  );
}
