import type { ModelEntry } from '../../api/types.ts';
import { Badge } from '../../components/badge.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { ModelState } from './model-state.tsx';

/** The models by name, with nothing to do about them. */
export function PlainList({ list }: { list: readonly ModelEntry[] }) {
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Models">
      <table class="table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Also called</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {list.map(({ id, aliases = [], state, candidates }) => (
            <tr key={id}>
              <td class="name">
                <strong>{visibleText(id)}</strong>
              </td>
              <td class="name">{visibleText((candidates ?? aliases).join(', '))}</td>
              <td>{state === undefined ? <Badge tone="accent">chooses</Badge> : <ModelState state={state} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
