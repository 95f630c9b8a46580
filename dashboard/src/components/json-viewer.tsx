import { useSignal } from '@preact/signals';
import { visibleText } from '../format/visible-text.ts';
import { Button } from './button.tsx';
import { messages } from '../messages/index.ts';

/** Longer lists and texts start truncated, because each entry is a DOM element. */
const INITIAL_ENTRIES = 100;
const INITIAL_CHARS = 2000;

/** Shows a JSON value as a collapsible tree; collapsed nodes are not rendered. */
export function JsonViewer({ value, openDepth = 1 }: { value: unknown; openDepth?: number }) {
  return (
    <div class="json">
      <Node value={value} openDepth={openDepth} />
    </div>
  );
}

function Node({ name, value, openDepth }: { name?: string; value: unknown; openDepth: number }) {
  const isOpen = useSignal(openDepth > 0);
  const label = name === undefined ? null : <span class="key">{visibleText(name)}: </span>;
  if (value === null || typeof value !== 'object') {
    return (
      <div>
        {label}
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const [openBracket, closeBracket] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return <div>{[label, openBracket, closeBracket]}</div>;
  return (
    <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        {label}
        {openBracket} <span class="soft">{entries.length}</span> {closeBracket}
      </summary>
      {isOpen.value && <Entries entries={entries} openDepth={openDepth - 1} />}
    </details>
  );
}

function Entries({ entries, openDepth }: { entries: readonly (readonly [string, unknown])[]; openDepth: number }) {
  const numVisible = useSignal(INITIAL_ENTRIES);
  return (
    <div>
      {entries.slice(0, numVisible.value).map(([name, value]) => (
        <Node key={name} name={name} value={value} openDepth={openDepth} />
      ))}
      {entries.length > numVisible.value && (
        <Button isSmall onClick={() => (numVisible.value += INITIAL_ENTRIES * 10)}>
          {messages.components.more(entries.length - numVisible.value)}
        </Button>
      )}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  const isExpanded = useSignal(false);
  if (typeof value === 'number') return <span class="number">{String(value)}</span>;
  if (typeof value !== 'string') return <span class="word">{String(value)}</span>;
  const text = isExpanded.value ? value : value.slice(0, INITIAL_CHARS);
  return (
    <span class="string">
      "{visibleText(text)}"
      {text.length < value.length && (
        <Button isSmall onClick={() => (isExpanded.value = true)}>
          {messages.components.moreCharacters(value.length - text.length)}
        </Button>
      )}
    </span>
  );
}
