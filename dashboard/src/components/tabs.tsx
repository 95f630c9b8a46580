import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

export interface Tab {
  readonly id: string;
  readonly title: string;
  readonly tooltip?: string;
}

/** Tabs with the keyboard support that ARIA specifies; `children` is the panel of the selected tab. */
export function Tabs({
  label,
  tabs,
  selectedId,
  onSelect,
  children,
}: {
  label: string;
  tabs: readonly Tab[];
  selectedId: string;
  onSelect: (id: string) => void;
  children: ComponentChildren;
}) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);

  function onKeyDown(event: KeyboardEvent): void {
    const current = tabs.findIndex(({ id }) => id === selectedId);
    const target = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const index = (target + tabs.length) % tabs.length;
    onSelect(tabs[index]!.id);
    (list.current?.children[index] as HTMLElement | undefined)?.focus();
  }

  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(({ id, title, tooltip }) => (
          <button
            key={id}
            class="tab"
            type="button"
            title={tooltip}
            role="tab"
            id={`${base}-${id}`}
            aria-controls={`${base}-panel`}
            aria-selected={id === selectedId}
            tabIndex={id === selectedId ? 0 : -1}
            onClick={() => onSelect(id)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${selectedId}`}>
        {children}
      </div>
    </div>
  );
}
