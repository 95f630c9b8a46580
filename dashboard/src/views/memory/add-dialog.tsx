import { useSignal } from '@preact/signals';
import { memoryOf } from '../../api/memory.ts';
import { client } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';

/** Adds a text to the memory. */
export function AddDialog({ onClose, onAdded }: { onClose: () => void; onAdded: () => void }) {
  const text = useSignal('');
  const error = useSignal<unknown>(null);
  const isSending = useSignal(false);

  async function send(): Promise<void> {
    isSending.value = true;
    try {
      await memoryOf(client).add(text.value);
      showToast('Text added.');
      onAdded();
      onClose();
    } catch (failure) {
      error.value = failure;
    } finally {
      isSending.value = false;
    }
  }

  return (
    <Dialog title="Add text" onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Field label="Text">
          {(id) => (
            <textarea
              id={id}
              class="input"
              rows={8}
              required
              maxLength={1 << 20}
              value={text.value}
              onInput={(event) => (text.value = event.currentTarget.value)}
            />
          )}
        </Field>
        {error.value !== null && <ErrorNotice error={error.value} />}
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isDisabled={isSending.value || text.value.trim() === ''}>
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
