import type { ModelEntry } from '../../api/types.ts';
import { ListTable } from '../../components/list-table.tsx';
import { Badge } from '../../components/badge.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { ModelState } from './model-state.tsx';
import { messages } from '../../messages/index.ts';

const text = messages.models;

/** A read-only list of models. */
export function PlainList({ list }: { list: readonly ModelEntry[] }) {
  return (
    <ListTable label={text.title} heads={text.plainColumns} hasActions={false}>
      {list.map(({ id, aliases = [], state, candidates }) => (
        <tr key={id}>
          <td class="name">
            <strong>{visibleText(id)}</strong>
          </td>
          <td class="name">{visibleText((candidates ?? aliases).join(', '))}</td>
          <td>{state === undefined ? <Badge tone="accent">{text.router}</Badge> : <ModelState state={state} />}</td>
        </tr>
      ))}
    </ListTable>
  );
}
