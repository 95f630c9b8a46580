import { useSignal } from '@preact/signals';
import type { KeyScope } from '../../api/types.ts';
import { api, identity, signIn } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { visibleText } from '../../format/visible-text.ts';

const SCOPES: readonly { readonly scope: KeyScope; readonly title: string; readonly description: string }[] = [
  { scope: 'read-only', title: 'View', description: "View models, metrics and its tenant's data; no changes." },
  { scope: 'inference', title: 'Use', description: "Generate, send feedback and add to its tenant's memory." },
  { scope: 'admin', title: 'Administer', description: 'Full access: keys, models and all tenants.' },
];

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
      <Dialog title="New API key" onClose={onClose}>
        <div class="stack">
          <Notice tone="warn">Copy this key now. It is shown only once: the server stores only its hash.</Notice>
          <div class="row">
            <code class="token">{visibleText(token.value)}</code>
            <CopyButton text={token.value} label="Copy key" />
          </div>
          {wasOpen && <p class="soft">You are signed in with this key. Every request now requires a key.</p>}
          <div class="row end">
            <Button kind="primary" onClick={onClose}>
              Done
            </Button>
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create API key" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        {wasOpen && (
          <Notice tone="warn">
            This server is open. Once the first key exists, every request requires one, including those of this page.
          </Notice>
        )}
        <Field label="Name" hint="The user of the key: a person, a program or a machine.">
          {(id) => (
            <input
              id={id}
              class="input"
              maxLength={256}
              value={name}
              onInput={(event) => (name.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Field
          label="Tenant"
          hint={
            wasOpen
              ? `The data collected so far belongs to the tenant ${visibleText(openTenant)}. A key of another tenant cannot see it.`
              : "The owner of its sessions, memory and requests. Default: the key's name."
          }
        >
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
          <legend>Scopes</legend>
          {SCOPES.map(({ scope, title, description }) => (
            <label class="check" key={scope}>
              <input
                type="checkbox"
                checked={scopes.value.includes(scope)}
                onChange={({ currentTarget: { checked } }) =>
                  (scopes.value = checked ? [...scopes.value, scope] : scopes.value.filter((other) => other !== scope))
                }
              />
              <span>
                {title} <code class="small soft">{scope}</code>
                <br />
                <span class="small soft">{description}</span>
              </span>
            </label>
          ))}
        </fieldset>
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isDisabled={name.value.trim() === '' || scopes.value.length === 0}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
