import { useSignal } from '@preact/signals';
import { visibleText } from '../format/visible-text.ts';
import { Button } from './button.tsx';
import { messages } from '../messages/index.ts';

/** Longer texts start truncated, because laying them out is slow. */
const INITIAL_CHARS = 4000;

/** Untrusted text, shown verbatim with its line breaks. */
export function TextBlock({ text, label }: { text: string; label: string }) {
  const isExpanded = useSignal(false);
  const excerpt = isExpanded.value ? text : text.slice(0, INITIAL_CHARS);
  return (
    <div class="text-block">
      <pre dir="auto" tabIndex={0} role="region" aria-label={label}>
        {visibleText(excerpt)}
      </pre>
      {excerpt.length < text.length && (
        <Button isSmall onClick={() => (isExpanded.value = true)}>
          {messages.components.moreCharacters(text.length - excerpt.length)}
        </Button>
      )}
    </div>
  );
}
