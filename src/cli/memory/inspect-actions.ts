import { readInteger } from '../values.ts';
import { type Actions, AFTER_FLAG, limitFlag, noteNextPage, pick } from './action.ts';
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

const NAME_FLAG = { name: '--name', value: 'name', description: 'name of the policy; default main' } as const;

const rowOf = ({ policyType, name, policyVersion, confidence, source, reason }: Policy): string[] => [
  policyType,
  name,
  String(policyVersion),
  confidence.toFixed(2),
  source,
  reason ?? '–',
];
const HEAD = ['TYPE', 'NAME', 'VERSION', 'CONFIDENCE', 'SOURCE', 'REASON'];

/** Actions of `ruvllm memory` for policies and the graph. */
export const INSPECT_ACTIONS: Actions = {
  policies: {
    args: '[type]',
    description: 'list learned policies and defaults; to search them by similarity: search --kind policy',
    flags: [limitFlag('results', null), AFTER_FLAG],
    async run(client, context, [policyType]) {
      const { output } = context;
      const input = { ...(policyType === undefined ? {} : { policyType }), ...pick(context, { '--limit': 'limit', '--after': 'after' }) }; // prettier-ignore
      const page = await client.call<{ policies: Policy[]; defaults: Policy[]; next: string | null }>('policies.list', input); // prettier-ignore
      output.document(page);
      const rows = [...page.policies, ...page.defaults].map(rowOf);
      if (rows.length === 0) return output.note('no policies');
      output.table(HEAD, rows);
      noteNextPage(output, page.next);
    },
  },
  'policy-history': {
    args: '<type>',
    description: 'list the stored versions of a policy, newest first',
    flags: [NAME_FLAG],
    async run(client, context, [policyType]) {
      const { output } = context;
      const input = { policyType, ...pick(context, { '--name': 'name' }) };
      const history = await client.call<{ versions: Policy[] }>('policies.history', input);
      output.document(history);
      if (history.versions.length === 0) return output.note('no learned versions; the default is active');
      output.table(HEAD, history.versions.map(rowOf));
    },
  },
  'policy-rollback': {
    args: '<type> <version>',
    description: 'activate an older version of a policy again, as a new version',
    flags: [NAME_FLAG],
    async run(client, context, [policyType, version]) {
      const toVersion = readInteger(version!, '<version>');
      const input = { policyType, toVersion, ...pick(context, { '--name': 'name' }) };
      const { policy } = await client.call<{ policy: Policy }>('policies.rollback', input);
      context.output.document({ policy });
      context.output.lines(
        `${policy.policyType} ${oneLine(policy.name, 80)} is now at version ${policy.policyVersion}`,
      );
    },
  },
  neighbours: {
    args: '<id>',
    description: 'list the records linked with a record, strongest link first',
    flags: [
      {
        name: '--relation',
        value: 'name',
        isList: true,
        description: 'relation, such as cites, follows or session (repeatable)',
      },
      { name: '--direction', value: 'out|in|both', description: 'direction of links; default both' },
      limitFlag('results', null),
    ],
    async run(client, context, [id]) {
      const { io, output } = context;
      const names = { '--relation': 'relations', '--direction': 'direction', '--limit': 'limit' };
      const result = await client.call<{ neighbours: Neighbour[] }>('memory.neighbours', {
        id,
        ...pick(context, names),
      });
      output.document(result);
      if (result.neighbours.length === 0) return output.note('no linked records');
      const width = columnsOf(io) - 4;
      for (const { id: neighbourId, kind, relation, direction, weight, updatedMs, text } of result.neighbours) {
        const arrow = direction === 'out' ? '->' : '<-';
        output.lines(`${weight.toFixed(3)}  ${arrow} ${relation}  ${neighbourId}  ${dateOf(updatedMs)}  ${kind}\n    ${oneLine(text, width)}`); // prettier-ignore
      }
    },
  },
};
