import type { ComponentChildren } from 'preact';

/** One labelled number; group tiles in a `<dl class="tiles">`. */
export function StatTile({
  label,
  value,
  note,
  tone,
}: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: 'good' | 'bad' | undefined;
}) {
  return (
    <div class="tile" data-tone={tone}>
      <dt>{label}</dt>
      <dd>{value}</dd>
      {note !== undefined && <dd class="note">{note}</dd>}
    </div>
  );
}
