import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { messages } from '../messages/index.ts';

/** A native modal dialog: the browser traps the focus, closes on Escape and restores the focus. */
export function Dialog({
  title,
  isWide = false,
  onClose,
  children,
}: {
  title: string;
  isWide?: boolean;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog class={isWide ? 'dialog wide' : 'dialog'} ref={element} aria-labelledby={id} onClose={onClose}>
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button kind="plain" icon="close" label={messages.components.close} onClick={onClose} />
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
