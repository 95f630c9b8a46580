import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

/** A label with its control and an optional hint. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: ComponentChildren;
  children: (id: string) => ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint !== undefined && <span class="hint">{hint}</span>}
    </div>
  );
}
