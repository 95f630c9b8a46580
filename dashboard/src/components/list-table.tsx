import type { ComponentChildren } from 'preact';

/** A table of a few rows that scrolls by itself where it is too wide; long ones are `VirtualTable`. */
export function ListTable(props: {
  /** What the rows are, for those who do not see them. */
  readonly label: string;
  /** What the columns are; `:` at the end: numbers, which stand at the right. */
  readonly heads: readonly string[];
  /** Whether a column of buttons comes last. */
  readonly hasActions?: boolean;
  /** The rows. */
  readonly children: ComponentChildren;
}) {
  const { label, heads, hasActions = true, children } = props;
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={label}>
      <table class="table">
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} class={head.endsWith(':') ? 'end' : undefined}>
                {head.replace(/:$/, '')}
              </th>
            ))}
            {hasActions && (
              <th>
                <span class="unseen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
