import { useSignal } from '@preact/signals';
import { Button } from './button.tsx';

const SHOWN_MS = 1500;

/** Puts a text on the clipboard and says so. */
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
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
    isDone.value = true;
    setTimeout(() => (isDone.value = false), SHOWN_MS);
  }
  return (
    <Button
      kind="plain"
      isSmall={isSmall}
      icon={isDone.value ? 'check' : 'copy'}
      label={isDone.value ? 'Copied' : label}
      onClick={() => void copy().catch(() => {})}
    />
  );
}
