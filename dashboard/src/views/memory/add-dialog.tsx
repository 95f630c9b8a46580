import { useSignal } from '@preact/signals';
import { memoryOf } from '../../api/memory.ts';
import { client } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { messages } from '../../messages/index.ts';

const text = messages.memory;

/** Adds a text to the memory. */
export function AddDialog({ onClose, onAdded }: { onClose: () => void; onAdded: () => void }) {
  const draft = useSignal('');
  const error = useSignal<unknown>(null);
  const isSending = useSignal(false);

  async function send(): Promise<void> {
    isSending.value = true;
    try {
      await memoryOf(client).add(draft.value);
      showToast(text.textAdded);
      onAdded();
      onClose();
    } catch (failure) {
      error.value = failure;
    } finally {
      isSending.value = false;
    }
  }

  return (
    <Dialog title={text.addText} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Field label={text.text}>
          {(id) => (
            <textarea
              id={id}
              autofocus
              class="input"
              rows={8}
              required
              maxLength={1 << 20}
              value={draft.value}
              onInput={(event) => (draft.value = event.currentTarget.value)}
            />
          )}
        </Field>
        {error.value !== null && <ErrorNotice error={error.value} />}
        <div class="row end">
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button kind="primary" type="submit" isDisabled={isSending.value || draft.value.trim() === ''}>
            {text.add}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
