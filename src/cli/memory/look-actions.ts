import { readInteger } from '../values.ts';
import { type Actions, pick } from './action.ts';
import { columnsOf, dateOf, oneLine } from './show.ts';

interface Policy {
  readonly policyType: string;
  readonly name: string;
  readonly policyVersion: number;
  readonly confidence: number;
  readonly source: string;
  readonly reason: string | null;
}
interface Neighbour {
  readonly id: string;
  readonly kind: string;
  readonly relation: string;
  readonly direction: 'out' | 'in';
  readonly weight: number;
  readonly updatedMs: number;
  readonly text: string;
}

const NAME_FLAG = { name: '--name', value: 'name', description: 'which of its type; default main' } as const;

const rowOf = ({ policyType, name, policyVersion, confidence, source, reason }: Policy): string[] => [
  policyType,
  name,
  String(policyVersion),
  confidence.toFixed(2),
  source,
  reason ?? '–',
];
const HEAD = ['TYPE', 'NAME', 'VERSION', 'CONFIDENCE', 'SOURCE', 'REASON'];

/** What `ruvllm memory` shows of policies and of the graph. */
export const LOOK_ACTIONS: Actions = {
  policies: {
    args: '[type]',
    description: 'what was learned and holds now, and the defaults elsewhere; near a text: search --kind policy',
    flags: [
      { name: '--limit', value: 'n', read: readInteger, description: 'at most so many' },
      { name: '--after', value: 'next', description: 'go on behind a page: its "next"' },
    ],
    async run(client, context, [policyType]) {
      const { output } = context;
      const input = { ...(policyType === undefined ? {} : { policyType }), ...pick(context, { '--limit': 'limit', '--after': 'after' }) }; // prettier-ignore
      const page = await client.call<{ policies: Policy[]; defaults: Policy[]; next: string | null }>('policies.list', input); // prettier-ignore
      output.document(page);
      const rows = [...page.policies, ...page.defaults].map(rowOf);
      if (rows.length === 0) return output.note('no policies');
      output.table(HEAD, rows);
      if (page.next !== null) output.note(`more with: --after '${page.next}'`);
    },
  },
  'policy-history': {
    args: '<type>',
    description: 'the versions of a policy that are kept, the newest first',
    flags: [NAME_FLAG],
    async run(client, context, [policyType]) {
      const { output } = context;
      const input = { policyType, ...pick(context, { '--name': 'name' }) };
      const found = await client.call<{ versions: Policy[] }>('policies.history', input);
      output.document(found);
      if (found.versions.length === 0) return output.note('nothing was learned; the default holds');
      output.table(HEAD, found.versions.map(rowOf));
    },
  },
  'policy-rollback': {
    args: '<type> <version>',
    description: 'make an older version of a policy hold again, as a new one',
    flags: [NAME_FLAG],
    async run(client, context, [policyType, version]) {
      const toVersion = readInteger(version!, '<version>');
      const input = { policyType, toVersion, ...pick(context, { '--name': 'name' }) };
      const { policy } = await client.call<{ policy: Policy }>('policies.rollback', input);
      context.output.document({ policy });
      context.output.lines(`${policy.policyType} ${oneLine(policy.name, 80)} is at version ${policy.policyVersion}`);
    },
  },
  neighbours: {
    args: '<id>',
    description: 'what a record is linked with, the strongest first',
    flags: [
      { name: '--relation', value: 'name', isList: true, description: 'cites, follows, session … (repeatable)' },
      { name: '--direction', value: 'out|in|both', description: 'default both' },
      { name: '--limit', value: 'n', read: readInteger, description: 'at most so many' },
    ],
    async run(client, context, [id]) {
      const { io, output } = context;
      const names = { '--relation': 'relations', '--direction': 'direction', '--limit': 'limit' };
      const found = await client.call<{ neighbours: Neighbour[] }>('memory.neighbours', {
        id,
        ...pick(context, names),
      });
      output.document(found);
      if (found.neighbours.length === 0) return output.note('it is linked with nothing');
      const room = columnsOf(io) - 4;
      for (const { id: other, kind, relation, direction, weight, updatedMs, text } of found.neighbours) {
        const arrow = direction === 'out' ? '->' : '<-';
        output.lines(`${weight.toFixed(3)}  ${arrow} ${relation}  ${other}  ${dateOf(updatedMs)}  ${kind}\n    ${oneLine(text, room)}`); // prettier-ignore
      }
    },
  },
};
