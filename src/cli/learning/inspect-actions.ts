import { type Actions, K_FLAG, limitFlag } from '../memory/action.ts';
import { ifForbidden } from '../memory/client.ts';
import { columnsOf, dateOf, oneLine, roundTo } from '../memory/show.ts';
import { usageError } from '../usage-error.ts';
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
    readonly numSingleAnswers: number;
    readonly newestVersion: number;
    readonly isBackgroundDue: boolean;
    readonly isDeepDue: boolean;
    /** Absent from older servers. */
    readonly ewc?: {
      readonly numTasks: number;
      readonly lambda: number;
      readonly boundariesMs: readonly number[];
    } | null;
  }[];
  /** Absent from older servers. */
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

interface PatternResult {
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
  isDeepDue ? 'deep' : isBackgroundDue ? 'background' : 'none';

const activeOf = ({ serves, numSingleAnswers }: Status['models'][number]): string =>
  (serves === null ? 'model file' : `version ${serves.version}`) +
  (numSingleAnswers === 0 ? '' : ` + ${numSingleAnswers} instant updates`);

export function readVersion(text: string, name: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw usageError(`${name} must be a version number, got ${JSON.stringify(text.slice(0, 40))}`);
}

/** Read-only actions of `ruvllm learn`. */
export const INSPECT_ACTIONS: Actions = {
  status: {
    args: '',
    description: 'show rated requests, active versions, due loops and runs',
    flags: [],
    async run(client, { output, io }) {
      const status = await client.call<Status>('learn.status', {});
      const health = await client.call<Record<string, number>>('learn.health', {}).catch(ifForbidden);
      output.document({ ...status, health });
      const verdicts = Object.entries(status.numRequests).map(([verdict, count]): [string, string] => [
        `  ${verdict}`,
        String(count),
      ]);
      output.details([['tenant', status.tenant], ['requests', ''], ...verdicts, ['patterns', String(status.numPatterns)]]); // prettier-ignore
      if (status.models.length > 0) {
        const rows = status.models.map((row) => [row.model, activeOf(row), dueOf(row), row.serves?.reason ?? '–']);
        output.table(['MODEL', 'ACTIVE', 'DUE', 'REASON'], rows);
      }
      for (const { model, ewc } of status.models) {
        const since = ewc?.boundariesMs.at(-1);
        if (since !== undefined) output.lines(`${model}: ${ewc!.numTasks} finished tasks, λ ${Math.round(ewc!.lambda)}, current task since ${dateOf(since)}`); // prettier-ignore
      }
      for (const { line, serves, newestVersion } of status.others ?? []) {
        const state = serves === null ? `none of ${newestVersion} versions is active` : `version ${serves.version} is active, ${serves.reason}`; // prettier-ignore
        output.lines(oneLine(`${line}: ${state}`, columnsOf(io)));
      }
      for (const { model, loop, state, reason } of status.runs) {
        const details = reason === null ? '' : `, ${reason}`;
        output.lines(oneLine(`${loop} loop of ${model}: ${state}${details}`, columnsOf(io)));
      }
    },
  },
  history: {
    args: '',
    description:
      'list the versions of a model or of --of, newest first, with the reason for accepting or refusing each',
    flags: [OF_FLAG, limitFlag('versions', 50)],
    async run(client, context) {
      const { output, values } = context;
      const limit = values['--limit'] === undefined ? {} : { limit: values['--limit'] };
      const history = await client.call<{ serves: number; versions: readonly Version[] }>('learn.history', {
        ...lineInput(client, context),
        ...limit,
      });
      output.document(history);
      if (history.versions.length === 0) return output.note('no versions yet; ruvllm learn run starts a learning loop');
      const rows = history.versions.map(({ version, createdMs, loop, isAccepted, numLearnedFrom, reason }) => [
        `${version}${version === history.serves ? ' *' : ''}`,
        dateOf(createdMs),
        loop,
        isAccepted ? 'accepted' : 'refused',
        String(numLearnedFrom),
        reason,
      ]);
      output.table(['VERSION', 'WHEN', 'LOOP', 'GATE', 'REQUESTS', 'REASON'], rows);
    },
  },
  diff: {
    args: '<from> <to>',
    description: 'compare two versions: metrics, training requests and weights',
    flags: [OF_FLAG],
    async run(client, context, [from, to]) {
      const { output } = context;
      const input = { from: readVersion(from!, 'from'), to: readVersion(to!, 'to') };
      const diff = await client.call<Diff>('learn.diff', { ...lineInput(client, context), ...input });
      output.document(diff);
      const { metrics, requests, weights } = diff;
      const rows = Object.entries(metrics).map(([name, value]) => [name, roundTo(value.from, 4), roundTo(value.to, 4)]);
      output.table(['METRIC', `VERSION ${from}`, `VERSION ${to}`], rows);
      output.lines(`training requests: ${requests.numAdded} added, ${requests.numRemoved} removed`);
      const norms = weights === null ? null : [weights.normOfChange, weights.normFrom, weights.normTo].map((norm) => norm.toFixed(4)); // prettier-ignore
      output.lines(norms === null ? 'weights: not available' : `weights: norm of the change ${norms[0]}, norms ${norms[1]} and ${norms[2]}`); // prettier-ignore
    },
  },
  patterns: {
    args: '<query>',
    description: 'search patterns of rated requests by similarity',
    flags: [K_FLAG],
    needsVectors: true,
    async run(client, { output, values }, [text]) {
      const result = await client.call<PatternResult>('learn.patterns', { text, ...(values['--k'] === undefined ? {} : { k: values['--k'] }) }); // prettier-ignore
      output.document(result);
      if (result.patterns.length === 0) return output.note('no patterns yet; the deep loop derives them from rated requests'); // prettier-ignore
      const rows = result.patterns.map((pattern) => [
        pattern.similarity.toFixed(3),
        pattern.verdict,
        String(pattern.support),
        pattern.confidence.toFixed(2),
        pattern.recommendedModel ?? '–',
        pattern.text,
      ]);
      output.table(['SIMILARITY', 'VERDICT', 'REQUESTS', 'CONFIDENCE', 'MODEL', 'TEXT'], rows);
    },
  },
};
