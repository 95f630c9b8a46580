import { useSignal } from '@preact/signals';
import { modelEndpoints } from '../../api/models.ts';
import { client } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { pullsChanged } from '../../components/pulls.tsx';
import { useAction } from '../../components/use-action.ts';
import { messages } from '../../messages/index.ts';

const text = messages.models;

/** Asks for a model to download to the server's machine. */
export function PullDialog({ onClose }: { onClose: () => void }) {
  const reference = useSignal('');
  const { failure, busyWith, act } = useAction();
  async function pull(): Promise<void> {
    await modelEndpoints(client).pull(reference.value.trim());
    pullsChanged.value++;
    onClose();
  }
  return (
    <Dialog title={text.pullModel} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void act('pull', pull);
        }}
      >
        <Field label={text.model} hint={text.referenceHint}>
          {(id) => (
            <input
              id={id}
              autofocus
              class="input mono"
              maxLength={512}
              spellcheck={false}
              value={reference}
              onInput={(event) => (reference.value = event.currentTarget.value)}
            />
          )}
        </Field>
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button kind="primary" type="submit" isDisabled={reference.value.trim() === '' || busyWith.value !== ''}>
            {text.pull}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
