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
  const names = heads.map((head) => head.replace(/:$/, ''));
  // On a narrow screen each row is a card, whose style sheet repeats the headers beside the values.
  const style = Object.fromEntries(names.map((name, index) => [`--head-${index + 1}`, JSON.stringify(name)]));
  return (
    <div class="table-wrap" tabIndex={0} role="group" aria-label={label}>
      <table class={hasActions ? 'table list-table has-actions' : 'table list-table'} style={style}>
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th key={head} class={head.endsWith(':') ? 'end' : undefined}>
                {names[index]}
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
