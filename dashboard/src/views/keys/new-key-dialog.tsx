import { useSignal } from '@preact/signals';
import type { KeyScope } from '../../api/types.ts';
import { api, signIn, who } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { visibleText } from '../../format/visible-text.ts';

const SCOPES: readonly { readonly scope: KeyScope; readonly title: string; readonly meaning: string }[] = [
  { scope: 'read-only', title: 'Look', meaning: 'Sees models, numbers and what its tenant has; changes nothing.' },
  { scope: 'inference', title: 'Use', meaning: 'Generates, judges answers, adds to the memory of its tenant.' },
  { scope: 'admin', title: 'Administer', meaning: 'Everything: keys, models, all tenants.' },
];

/** Makes a key, and shows its secret the one time it can be seen. */
export function NewKeyDialog({ onCreated, onClose }: { onCreated: () => void; onClose: () => void }) {
  const name = useSignal('');
  const tenant = useSignal('');
  // The first key closes an open server: one that cannot make others would lock everyone out.
  const wasOpen = who.value?.is_open === true;
  const scopes = useSignal<readonly KeyScope[]>(wasOpen ? ['inference', 'admin'] : ['inference']);
  const failure = useSignal<unknown>(null);
  const token = useSignal<string | null>(null);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    try {
      const named = name.value.trim();
      const own = tenant.value.trim();
      const made = await api.createKey({ name: named, scopes: scopes.value, ...(own === '' ? {} : { tenant: own }) });
      token.value = made.token;
      // From now on this page needs a key as well.
      if (wasOpen) await signIn(made.token);
      onCreated();
    } catch (error) {
      failure.value = error;
    }
  }

  if (token.value !== null) {
    return (
      <Dialog title="The new key" onClose={onClose}>
        <div class="stack">
          <Notice tone="warn">This is the only time it is shown. Only a hash of it is kept.</Notice>
          <div class="row">
            <code class="token">{visibleText(token.value)}</code>
            <CopyButton text={token.value} label="Copy the key" />
          </div>
          {wasOpen && <p class="soft">You are signed in with it; from now on every request needs a key.</p>}
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
    <Dialog title="Create a key" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        {wasOpen && (
          <Notice tone="warn">This server is open. With its first key everyone needs one, this page included.</Notice>
        )}
        <Field label="Name" hint="What it is for: a person, a program, a machine.">
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
        <Field label="Tenant" hint="Whose sessions, memory and requests it stands for. Empty: its name.">
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
          <legend>Allows</legend>
          {SCOPES.map(({ scope, title, meaning }) => (
            <label class="check" key={scope}>
              <input
                type="checkbox"
                checked={scopes.value.includes(scope)}
                onChange={({ currentTarget: { checked } }) =>
                  (scopes.value = checked ? [...scopes.value, scope] : scopes.value.filter((one) => one !== scope))
                }
              />
              <span>
                {title} <code class="small soft">{scope}</code>
                <br />
                <span class="small soft">{meaning}</span>
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
