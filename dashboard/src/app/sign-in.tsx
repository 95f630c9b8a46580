import { useSignal } from '@preact/signals';
import { messageOf } from '../api/errors.ts';
import { Button } from '../components/button.tsx';
import { Field } from '../components/field.tsx';
import { ErrorNotice, Notice } from '../components/notice.tsx';
import { Brand } from './brand.tsx';
import { sessionNotice, signIn } from './session.ts';
import { messages } from '../messages/index.ts';

const text = messages.app;

/** Asks for an API key, which is sent to this server and stored in this tab only. */
export function SignIn() {
  const token = useSignal('');
  const failure = useSignal('');
  const isBusy = useSignal(false);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (token.value.trim() === '' || isBusy.value) return;
    isBusy.value = true;
    failure.value = '';
    try {
      await signIn(token.value);
    } catch (error) {
      failure.value = messageOf(error);
    } finally {
      isBusy.value = false;
    }
  }

  return (
    <main class="sign-in">
      <form class="card stack" onSubmit={(event) => void submit(event)}>
        <div>
          <Brand />
          <h1>{text.signIn}</h1>
          <p class="soft">{text.signInHint}</p>
        </div>
        {sessionNotice.value !== '' && failure.value === '' && <Notice tone="warn">{sessionNotice.value}</Notice>}
        {failure.value !== '' && <ErrorNotice error={failure.value} />}
        <Field label={text.key} hint={text.keyHint}>
          {(id) => (
            <input
              id={id}
              class="input mono"
              type="password"
              autocomplete="off"
              spellcheck={false}
              value={token}
              onInput={(event) => (token.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Button kind="primary" type="submit" isDisabled={token.value.trim() === '' || isBusy.value}>
          {isBusy.value ? text.signingIn : text.signIn}
        </Button>
        <p class="small soft">
          {text.noKeyYet} <code>{'ruvllm keys create NAME --scope admin'}</code>
        </p>
      </form>
    </main>
  );
}
