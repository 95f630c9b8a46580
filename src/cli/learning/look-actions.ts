import { formatTable } from '../format.ts';
import { ifForbidden } from '../commands/memory.ts';
import type { Actions } from '../memory/action.ts';
import { columnsOf, dateOf, fitTable, oneLine, roundTo } from '../memory/show.ts';
import { usageError } from '../usage-error.ts';
import { readInteger } from '../values.ts';
import { lineInput, OF_FLAG } from './model-input.ts';

interface Version {
  readonly version: number;
  readonly parent: number;
  readonly createdMs: number;
  readonly loop: string;
  readonly isAccepted: boolean;
  readonly reason: string;
  readonly numLearnedFrom: number;
}

interface Status {
  readonly tenant: string;
  readonly numRequests: Readonly<Record<string, number>>;
  readonly numPatterns: number;
  readonly models: readonly {
    readonly model: string;
    readonly isLoaded: boolean;
    readonly serves: Version | null;
    readonly newestVersion: number;
    readonly isBackgroundDue: boolean;
    readonly isDeepDue: boolean;
  }[];
  /** Not from a server of an older version. */
  readonly others?: readonly {
    readonly line: string;
    readonly serves: Version | null;
    readonly newestVersion: number;
  }[];
  readonly runs: readonly { model: string; loop: string; state: string; reason: string | null }[];
}

interface Diff {
  readonly metrics: Readonly<Record<string, { from: number | null; to: number | null }>>;
  readonly requests: { readonly numAdded: number; readonly numRemoved: number };
  readonly weights: { readonly normFrom: number; readonly normTo: number; readonly normOfChange: number } | null;
}

interface Found {
  readonly patterns: readonly {
    readonly text: string;
    readonly verdict: string;
    readonly support: number;
    readonly confidence: number;
    readonly similarity: number;
    readonly recommendedModel: string | null;
  }[];
}

const dueOf = ({ isBackgroundDue, isDeepDue }: Status['models'][number]): string =>
  isDeepDue ? 'deep' : isBackgroundDue ? 'background' : 'nothing';

/** A version as it is typed. */
export function readVersion(text: string, what: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw usageError(`${what} must be the number of a version, got ${JSON.stringify(text.slice(0, 40))}`);
}

/** What `ruvllm learn` shows. */
export const LOOK_ACTIONS: Actions = {
  status: {
    args: '',
    description: 'what there is to learn from, which versions serve, what is due and what runs',
    flags: [],
    async run(client, { output, io }) {
      const status = await client.call<Status>('learn.status', {});
      const health = await client.call<Record<string, number>>('learn.health', {}).catch(ifForbidden);
      output.document({ ...status, health });
      const rated = Object.entries(status.numRequests).map(([verdict, count]) => [`  ${verdict}`, String(count)]);
      output.lines(formatTable([['tenant', oneLine(status.tenant, 80)], ['requests', ''], ...rated, ['patterns', String(status.numPatterns)]])); // prettier-ignore
      if (status.models.length > 0) {
        const rows = status.models.map((one) => [
          one.model,
          one.serves === null ? 'as in its file' : `version ${one.serves.version}`,
          dueOf(one),
          one.serves?.reason ?? '–',
        ]);
        output.lines(fitTable(io, [['MODEL', 'SERVES', 'DUE', 'REASON'], ...rows]));
      }
      for (const { line, serves, newestVersion } of status.others ?? []) {
        const now = serves === null ? `none of ${newestVersion} versions serves` : `version ${serves.version} serves, ${serves.reason}`; // prettier-ignore
        output.lines(oneLine(`${line}: ${now}`, columnsOf(io)));
      }
      for (const { model, loop, state, reason } of status.runs) {
        output.lines(oneLine(`${loop} of ${model}: ${state}${reason === null ? '' : `, ${reason}`}`, columnsOf(io)));
      }
    },
  },
  history: {
    args: '',
    description: 'the versions of a model, or of --of, the newest first, with why each was let through or not',
    flags: [OF_FLAG, { name: '--limit', value: 'n', read: readInteger, description: 'at most so many; default 50' }],
    async run(client, context) {
      const { output, io, values } = context;
      const limit = values['--limit'] === undefined ? {} : { limit: values['--limit'] };
      const found = await client.call<{ serves: number; versions: readonly Version[] }>('learn.history', {
        ...lineInput(client, context),
        ...limit,
      });
      output.document(found);
      if (found.versions.length === 0) return output.note('nothing was learned yet; ruvllm learn run runs a loop');
      const rows = found.versions.map(({ version, createdMs, loop, isAccepted, numLearnedFrom, reason }) => [
        `${version}${version === found.serves ? ' *' : ''}`,
        dateOf(createdMs),
        loop,
        isAccepted ? 'accepted' : 'refused',
        String(numLearnedFrom),
        reason,
      ]);
      output.lines(fitTable(io, [['VERSION', 'WHEN', 'LOOP', 'GATE', 'REQUESTS', 'REASON'], ...rows]));
    },
  },
  diff: {
    args: '<from> <to>',
    description: 'what two versions differ in: figures, requests learned from, how far the weights moved',
    flags: [OF_FLAG],
    async run(client, context, [from, to]) {
      const { output } = context;
      const input = { from: readVersion(from!, 'from'), to: readVersion(to!, 'to') };
      const found = await client.call<Diff>('learn.diff', { ...lineInput(client, context), ...input });
      output.document(found);
      const { requests, weights } = found;
      const figures = Object.entries(found.metrics).map(([name, one]) => [name, roundTo(one.from, 4), roundTo(one.to, 4)]); // prettier-ignore
      output.lines(formatTable([['FIGURE', `VERSION ${from}`, `VERSION ${to}`], ...figures]));
      output.lines(`requests learned from: ${requests.numAdded} more, ${requests.numRemoved} fewer`);
      const norms = weights === null ? null : [weights.normOfChange, weights.normFrom, weights.normTo].map((one) => one.toFixed(4)); // prettier-ignore
      output.lines(norms === null ? 'weights: not there to compare' : `weights moved by ${norms[0]} (norms ${norms[1]} and ${norms[2]})`); // prettier-ignore
    },
  },
  patterns: {
    args: '<query>',
    description: 'what rated requests have in common, found by meaning',
    flags: [{ name: '--k', value: 'n', read: readInteger, description: 'how many; default 10' }],
    needsVectors: true,
    async run(client, { output, io, values }, [text]) {
      const found = await client.call<Found>('learn.patterns', { text, ...(values['--k'] === undefined ? {} : { k: values['--k'] }) }); // prettier-ignore
      output.document(found);
      if (found.patterns.length === 0) return output.note('no pattern yet: the deep loop makes them of rated requests');
      const rows = found.patterns.map((one) => [
        one.similarity.toFixed(3),
        one.verdict,
        String(one.support),
        one.confidence.toFixed(2),
        one.recommendedModel ?? '–',
        one.text,
      ]);
      output.lines(fitTable(io, [['NEAR', 'VERDICT', 'REQUESTS', 'CONFIDENCE', 'MODEL', 'TEXT'], ...rows]));
    },
  },
};
