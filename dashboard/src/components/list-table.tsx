import type { ComponentChildren } from 'preact';
import { messages } from '../messages/index.ts';

/** A short table that scrolls horizontally when too wide; for long tables use `VirtualTable`. */
export function ListTable(props: {
  /** Accessible name of the table. */
  readonly label: string;
  /** Column headers; a trailing `:` marks a right-aligned numeric column. */
  readonly heads: readonly string[];
  /** Whether the last column holds buttons; default: true. */
  readonly hasActions?: boolean;
  /** The table rows. */
  readonly children: ComponentChildren;
}) {
  const { label, heads, hasActions = true, children } = props;
  return (
    <div class="table-wrap" tabIndex={0} role="group" aria-label={label}>
      <table class={hasActions ? 'table has-actions' : 'table'}>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} class={head.endsWith(':') ? 'end' : undefined}>
                {head.replace(/:$/, '')}
              </th>
            ))}
            {hasActions && (
              <th>
                <span class="unseen">{messages.components.actions}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
