import { useSignal } from '@preact/signals';
import { formatCount } from '../format/numbers.ts';
import { visibleText } from '../format/visible-text.ts';
import { Button } from './button.tsx';

/** More than this is laid out only when it is asked for. */
const FIRST_CHARS = 4000;

/** Words of others as they were written: line breaks stay, nothing acts. */
export function TextBlock({ text, label }: { text: string; label: string }) {
  const isWhole = useSignal(false);
  const shown = isWhole.value ? text : text.slice(0, FIRST_CHARS);
  return (
    <div class="text-block">
      <pre dir="auto" tabIndex={0} role="region" aria-label={label}>
        {visibleText(shown)}
      </pre>
      {shown.length < text.length && (
        <Button isSmall onClick={() => (isWhole.value = true)}>
          Show {formatCount(text.length - shown.length)} more characters
        </Button>
      )}
    </div>
  );
}
