import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { ErrorNotice } from './notice.tsx';
import { messages } from '../messages/index.ts';

const text = messages.components;

/** Asks for confirmation before an action; stays open and shows the error when it fails. */
export function Confirm({
  title,
  action,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  /** Label of the confirm button. */
  action: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const failure = useSignal<unknown>(null);
  const isBusy = useSignal(false);
  async function confirm(): Promise<void> {
    isBusy.value = true;
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      failure.value = error;
      isBusy.value = false;
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">
        <div>{children}</div>
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button kind="danger" isDisabled={isBusy.value} onClick={() => void confirm()}>
            {action}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
