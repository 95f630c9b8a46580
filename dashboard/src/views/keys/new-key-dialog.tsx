import { useSignal } from '@preact/signals';
import type { KeyScope } from '../../api/types.ts';
import { api, identity, signIn } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.keys;
const SCOPES: readonly KeyScope[] = ['read-only', 'inference', 'download', 'admin'];

/** Creates an API key and shows its secret, once. */
export function NewKeyDialog({ onCreated, onClose }: { onCreated: () => void; onClose: () => void }) {
  const name = useSignal('');
  // The first key closes an open server: without the admin scope it would lock everyone out.
  const wasOpen = identity.value?.is_open === true;
  // And with another tenant, the data collected so far would seem to be lost.
  const openTenant = wasOpen ? identity.value!.tenant : '';
  const tenant = useSignal(openTenant);
  const scopes = useSignal<readonly KeyScope[]>(wasOpen ? ['inference', 'admin'] : ['inference']);
  const failure = useSignal<unknown>(null);
  const token = useSignal<string | null>(null);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    try {
      const keyName = name.value.trim();
      const keyTenant = tenant.value.trim();
      const key = await api.createKey({
        name: keyName,
        scopes: scopes.value,
        ...(keyTenant === '' ? {} : { tenant: keyTenant }),
      });
      token.value = key.token;
      // From now on this page requires a key too.
      if (wasOpen) await signIn(key.token);
      onCreated();
    } catch (error) {
      failure.value = error;
    }
  }

  if (token.value !== null) {
    return (
      <Dialog title={text.newKey} onClose={onClose}>
        <div class="stack">
          <Notice tone="warn">{text.copyNow}</Notice>
          <div class="row">
            <code class="token">{visibleText(token.value)}</code>
            <CopyButton text={token.value} label={text.copyKey} />
          </div>
          {wasOpen && <p class="soft">{text.signedIn}</p>}
          <div class="row end">
            <Button kind="primary" onClick={onClose}>
              {text.done}
            </Button>
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={text.createTitle} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        {wasOpen && <Notice tone="warn">{text.openServer}</Notice>}
        <Field label={text.name} hint={text.nameHint}>
          {(id) => (
            <input
              id={id}
              autofocus
              class="input"
              maxLength={256}
              value={name}
              onInput={(event) => (name.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label={text.tenant} hint={wasOpen ? text.openTenantHint(visibleText(openTenant)) : text.tenantHint}>
          {(id) => (
            <input
              id={id}
              class="input"
              maxLength={256}
              value={tenant}
              onInput={(event) => (tenant.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <fieldset class="scopes">
          <legend>{text.scopesLegend}</legend>
          {SCOPES.map((scope) => (
            <label class="check" key={scope}>
              <input
                type="checkbox"
                checked={scopes.value.includes(scope)}
                onChange={({ currentTarget: { checked } }) =>
                  (scopes.value = checked ? [...scopes.value, scope] : scopes.value.filter((other) => other !== scope))
                }
              />
              <span>
                {text.scopes[scope].title} <code class="small soft">{scope}</code>
                <br />
                <span class="small soft">{text.scopes[scope].description}</span>
              </span>
            </label>
          ))}
        </fieldset>
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button kind="primary" type="submit" isDisabled={name.value.trim() === '' || scopes.value.length === 0}>
            {text.createSubmit}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
