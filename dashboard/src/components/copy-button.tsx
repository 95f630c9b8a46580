import { useSignal } from '@preact/signals';
import { Button } from './button.tsx';
import { messages } from '../messages/index.ts';

const CONFIRMATION_MS = 1500;

/** Copies a text to the clipboard and confirms it. */
export function CopyButton({
  text,
  label,
  isSmall = true,
}: {
  text: string | (() => string);
  label: string;
  isSmall?: boolean;
}) {
  const isDone = useSignal(false);
  // Browsers expose no clipboard to pages served over plain HTTP from another machine.
  if (navigator.clipboard === undefined) return null;
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
    isDone.value = true;
    setTimeout(() => (isDone.value = false), CONFIRMATION_MS);
  }
  return (
    <Button
      kind="plain"
      isSmall={isSmall}
      icon={isDone.value ? 'check' : 'copy'}
      label={isDone.value ? messages.components.copied : label}
      onClick={() => void copy().catch(() => {})}
    />
  );
}
