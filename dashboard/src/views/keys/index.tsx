import { useSignal } from '@preact/signals';
import type { ApiKey } from '../../api/types.ts';
import { api, identity } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { showToast } from '../../components/toast.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { NewKeyDialog } from './new-key-dialog.tsx';

const text = messages.keys;

/** The API keys of the server. */
export default function KeysView() {
  const keys = useResource((signal) => api.keys(signal));
  const isCreating = useSignal(false);
  const keyToRevoke = useSignal<ApiKey | null>(null);
  const list = keys.data.value;

  async function revoke({ id, name }: ApiKey): Promise<void> {
    await api.revokeKey(id);
    showToast(text.revokedKey(visibleText(name)));
    keys.reload();
  }

  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{text.title}</h1>
          <p>{text.subtitle}</p>
        </div>
        <Button kind="primary" icon="plus" onClick={() => (isCreating.value = true)}>
          {text.create}
        </Button>
      </div>
      {keys.error.value !== null && <ErrorNotice error={keys.error.value} onRetry={keys.reload} />}
      {list === null && keys.error.value === null && <Loading label={text.loading} />}
      {list?.length === 0 && (
        <EmptyState icon="keys" title={text.empty}>
          <p>{text.emptyHint}</p>
        </EmptyState>
      )}
      {list !== null && list.length > 0 && <KeyTable list={list} onRevoke={(key) => (keyToRevoke.value = key)} />}
      {isCreating.value && <NewKeyDialog onCreated={keys.reload} onClose={() => (isCreating.value = false)} />}
      {keyToRevoke.value !== null && (
        <Confirm
          title={text.confirmRevoke}
          action={text.revoke}
          onConfirm={() => revoke(keyToRevoke.value!)}
          onClose={() => (keyToRevoke.value = null)}
        >
          <p>
            {text.revokeHint(visibleText(keyToRevoke.value.name))}
            {keyToRevoke.value.id === identity.value?.key?.id && ` ${text.revokeOwnHint}`}
          </p>
        </Confirm>
      )}
    </div>
  );
}

function KeyTable({ list, onRevoke }: { list: readonly ApiKey[]; onRevoke: (key: ApiKey) => void }) {
  return (
    <ListTable label={text.title} heads={text.columns}>
      {list.map((key) => (
        <tr key={key.id}>
          <td class="name">
            <strong>{visibleText(key.name)}</strong>
            <br />
            <span class="small soft mono">{visibleText(key.id)}</span>
          </td>
          <td class="name">{visibleText(key.tenant)}</td>
          <td>
            <span class="row">
              {key.scopes.map((scope) => (
                <Badge key={scope} tone={scope === 'admin' ? 'warn' : 'none'}>
                  {scope}
                </Badge>
              ))}
            </span>
          </td>
          <td>
            <Moment ms={key.created * 1000} />
          </td>
          <td>
            {key.revoked === null ? (
              <Badge tone="good">{key.id === identity.value?.key?.id ? text.activeYours : text.active}</Badge>
            ) : (
              <Badge tone="bad">
                {text.revoked} <Moment ms={key.revoked * 1000} />
              </Badge>
            )}
          </td>
          <td class="end">
            {key.revoked === null && (
              <Button kind="danger" isSmall label={text.revokeKey(visibleText(key.name))} onClick={() => onRevoke(key)}>
                {text.revoke}
              </Button>
            )}
          </td>
        </tr>
      ))}
    </ListTable>
  );
}
