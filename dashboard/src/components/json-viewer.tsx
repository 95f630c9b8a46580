import { useSignal } from '@preact/signals';
import { visibleText } from '../format/visible-text.ts';
import { Button } from './button.tsx';

/** Longer lists and texts are shown in part until more is asked for: each entry is an element of the page. */
const FIRST_ENTRIES = 100;
const FIRST_CHARS = 2000;

/** A value as a tree that can be opened; what is closed costs nothing. */
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
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return <div>{[label, open, close]}</div>;
  return (
    <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        {label}
        {open} <span class="soft">{entries.length}</span> {close}
      </summary>
      {isOpen.value && <Entries entries={entries} openDepth={openDepth - 1} />}
    </details>
  );
}

function Entries({ entries, openDepth }: { entries: readonly (readonly [string, unknown])[]; openDepth: number }) {
  const numShown = useSignal(FIRST_ENTRIES);
  return (
    <div>
      {entries.slice(0, numShown.value).map(([name, value]) => (
        <Node key={name} name={name} value={value} openDepth={openDepth} />
      ))}
      {entries.length > numShown.value && (
        <Button isSmall onClick={() => (numShown.value += FIRST_ENTRIES * 10)}>
          {entries.length - numShown.value} more
        </Button>
      )}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  const isWhole = useSignal(false);
  if (typeof value === 'number') return <span class="number">{String(value)}</span>;
  if (typeof value !== 'string') return <span class="word">{String(value)}</span>;
  const text = isWhole.value ? value : value.slice(0, FIRST_CHARS);
  return (
    <span class="string">
      "{visibleText(text)}"
      {text.length < value.length && (
        <Button isSmall onClick={() => (isWhole.value = true)}>
          {value.length - text.length} more characters
        </Button>
      )}
    </span>
  );
}
