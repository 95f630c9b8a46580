import { useSignal } from '@preact/signals';
import type { Adapter } from '../../api/types.ts';
import { api } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { useAction } from '../../components/use-action.ts';
import { messages } from '../../messages/index.ts';

const text = messages.models;

/** The LoRA adapters of loaded models, which requests select as MODEL:NAME. */
export function Adapters() {
  const adapters = useResource((signal) => api.adapters(signal));
  const isLoading = useSignal(false);
  const adapterToUnload = useSignal<Adapter | null>(null);
  const list = adapters.data.value;
  async function unload({ id, tenant }: Adapter): Promise<void> {
    await api.unloadAdapter(id, tenant);
    adapters.reload();
  }
  return (
    <section class="stack" aria-label={text.adapters}>
      <div class="row spread">
        <h2>{text.adapters}</h2>
        <Button isSmall icon="plus" onClick={() => (isLoading.value = true)}>
          {text.loadAdapter}
        </Button>
      </div>
      {adapters.error.value !== null && <ErrorNotice error={adapters.error.value} onRetry={adapters.reload} />}
      {list?.length === 0 && <p class="soft">{text.noAdapters}</p>}
      {list !== null && list.length > 0 && (
        <AdapterTable list={list} onUnload={(adapter) => (adapterToUnload.value = adapter)} />
      )}
      {isLoading.value && <LoadAdapterDialog onLoaded={adapters.reload} onClose={() => (isLoading.value = false)} />}
      {adapterToUnload.value !== null && (
        <Confirm
          title={text.confirmUnloadAdapter}
          action={text.unload}
          onConfirm={() => unload(adapterToUnload.value!)}
          onClose={() => (adapterToUnload.value = null)}
        >
          <p>{text.unloadAdapterHint(visibleText(adapterToUnload.value.id))}</p>
        </Confirm>
      )}
    </section>
  );
}

function AdapterTable({ list, onUnload }: { list: readonly Adapter[]; onUnload: (adapter: Adapter) => void }) {
  return (
    <ListTable label={text.adapters} heads={text.adapterColumns}>
      {list.map((adapter) => (
        <tr key={`${adapter.id} ${adapter.tenant}`}>
          <td class="name">
            <strong>{visibleText(adapter.id)}</strong>
            <div class="small soft mono">{adapter.content_hash.slice(0, 16)}</div>
          </td>
          <td class="name">{adapter.tenant === null ? text.allTenants : visibleText(adapter.tenant)}</td>
          <td class="end num">{formatCount(adapter.rank)}</td>
          <td class="end num">{formatCount(adapter.num_matrices)}</td>
          <td class="end num">{formatBytes(adapter.size_bytes)}</td>
          <td class="end">
            <Button
              isSmall
              kind="danger"
              label={text.unloadModel(visibleText(adapter.id))}
              onClick={() => onUnload(adapter)}
            >
              {text.unload}
            </Button>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function LoadAdapterDialog({ onLoaded, onClose }: { onLoaded: () => void; onClose: () => void }) {
  const name = useSignal('');
  const path = useSignal('');
  const { failure, busyWith, act } = useAction();
  async function load(): Promise<void> {
    await api.loadAdapter({ name: name.value.trim(), path: path.value.trim() });
    onLoaded();
    onClose();
  }
  return (
    <Dialog title={text.loadAdapter} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void act('load', load);
        }}
      >
        <Field label={text.name} hint={text.adapterNameHint}>
          {(id) => (
            <input
              id={id}
              class="input"
              maxLength={64}
              value={name}
              onInput={(event) => (name.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label={text.path} hint={text.adapterPathHint}>
          {(id) => (
            <input
              id={id}
              class="input mono"
              maxLength={4096}
              spellcheck={false}
              value={path}
              onInput={(event) => (path.value = event.currentTarget.value)}
            />
          )}
        </Field>
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button
            kind="primary"
            type="submit"
            isDisabled={name.value.trim() === '' || path.value.trim() === '' || busyWith.value !== ''}
          >
            {text.load}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
