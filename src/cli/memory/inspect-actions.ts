import type { PolicyEntry } from '../../memory/schemas/policy.ts';
import type { Actions } from '../actions.ts';
import { AFTER_ROW, memoryAction, noteNextPage } from './action.ts';
import { columnsOf, dateOf, oneLine } from './show.ts';

interface Neighbour {
  readonly id: string;
  readonly kind: string;
  readonly relation: string;
  readonly direction: 'out' | 'in';
  readonly weight: number;
  readonly updatedMs: number;
  readonly text: string;
}

const NAME_ROW = { '--name name': 'name of the policy' };
const LIMIT_ROW = { '--limit <n> limit': 'maximum number of results' };
const HEAD = ['TYPE', 'NAME', 'VERSION', 'CONFIDENCE', 'SOURCE', 'REASON'];

const rowOf = ({ policyType, name, policyVersion, confidence, source, reason }: PolicyEntry): string[] => [
  policyType,
  name,
  String(policyVersion),
  confidence.toFixed(2),
  source,
  reason ?? '–',
];

/** Actions of `ruvllm memory` for policies and the graph. */
export const INSPECT_ACTIONS: Actions = {
  policies: memoryAction<{ policies: PolicyEntry[]; defaults: PolicyEntry[]; next: string | null }>('policies.list', {
    args: '[type]',
    keys: ['policyType'],
    description: 'list learned policies and defaults; to search them by similarity: search --kind policy',
    flags: { ...LIMIT_ROW, ...AFTER_ROW },
    show({ policies, defaults, next }, { output }) {
      const rows = [...policies, ...defaults].map(rowOf);
      if (rows.length === 0) return output.note('no policies');
      output.table(HEAD, rows);
      noteNextPage(output, next);
    },
  }),
  'policy-history': memoryAction<{ versions: PolicyEntry[] }>('policies.history', {
    args: '<type>',
    keys: ['policyType'],
    description: 'list the stored versions of a policy, newest first',
    flags: NAME_ROW,
    show({ versions }, { output }) {
      if (versions.length === 0) return output.note('no learned versions; the default is active');
      output.table(HEAD, versions.map(rowOf));
    },
  }),
  'policy-rollback': memoryAction<{ policy: PolicyEntry }>('policies.rollback', {
    args: '<type> <version>',
    keys: ['policyType', 'toVersion'],
    description: 'activate an older version of a policy again, as a new version',
    flags: NAME_ROW,
    show({ policy: { policyType, name, policyVersion } }, { output }) {
      output.lines(`${policyType} ${oneLine(name, 80)} is now at version ${policyVersion}`);
    },
  }),
  neighbours: memoryAction<{ neighbours: Neighbour[] }>('memory.neighbours', {
    args: '<id>',
    keys: ['id'],
    description: 'list the records linked with a record, strongest link first',
    flags: {
      '--relation <name>... relations': 'relation, such as cites, follows or session (repeatable)',
      '--direction direction': 'direction of links',
      ...LIMIT_ROW,
    },
    show({ neighbours }, { io, output }) {
      if (neighbours.length === 0) return output.note('no linked records');
      const width = columnsOf(io) - 4;
      for (const { id, kind, relation, direction, weight, updatedMs, text } of neighbours) {
        const arrow = direction === 'out' ? '->' : '<-';
        output.lines(`${weight.toFixed(3)}  ${arrow} ${relation}  ${id}  ${dateOf(updatedMs)}  ${kind}\n    ${oneLine(text, width)}`); // prettier-ignore
      }
    },
  }),
};
