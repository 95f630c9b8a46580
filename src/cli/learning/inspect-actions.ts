import { RuvLLMError } from '../../core/errors.ts';
import type { Actions } from '../actions.ts';
import { defineFlags } from '../flags.ts';
import { clientAction } from '../memory/action.ts';
import { exportLines } from '../memory/transfer.ts';
import { ifForbidden } from '../servers/ask-server.ts';
import { columnsOf, dateOf, oneLine, roundTo } from '../memory/show.ts';
import { LEARN_CLIENT, learnAction } from './client.ts';
import { lineInput, modelInput, OF_ROW } from './model-input.ts';
import { escapeLine } from '../safe-text.ts';

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
  /** Absent from older servers. */
  readonly numCorrections?: number;
  readonly outcomes?: readonly { readonly requestId: string; readonly state: string; readonly reason: string }[];
  readonly models: readonly {
    readonly model: string;
    readonly isLoaded: boolean;
    readonly serves: Version | null;
    readonly numSingleAnswers: number;
    readonly newestVersion: number;
    readonly isBackgroundDue: boolean;
    readonly isDeepDue: boolean;
    /** Absent from older servers. */
    readonly lastRun?: { readonly loop: string; readonly elapsedMs: number; readonly reason: string } | null;
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
    readonly verdict: string;
    readonly support: number;
    readonly confidence: number;
    readonly similarity: number;
    readonly recommendedModel: string | null;
    /** Null: only peers have it, and share no texts. */
    readonly text: string | null;
    /** Nodes that have it, too; absent: no peer has patterns. */
    readonly peers?: readonly { readonly peer: string; readonly support: number }[];
  }[];
}

const dueOf = ({ isBackgroundDue, isDeepDue }: Status['models'][number]): string =>
  isDeepDue ? 'deep' : isBackgroundDue ? 'background' : 'none';

const activeOf = ({ serves, numSingleAnswers }: Status['models'][number]): string =>
  (serves === null ? 'model file' : `version ${serves.version}`) +
  (numSingleAnswers === 0 ? '' : ` + ${numSingleAnswers} instant updates`);

function unknownModel(model: string, models: Status['models']): RuvLLMError {
  const names = models.map((row) => row.model).join(', ') || 'none';
  return new RuvLLMError('not_found', `model ${model} not found; models with learning: ${names}`);
}

/** Read-only actions of `ruvllm learn`. */
export const INSPECT_ACTIONS: Actions = {
  status: learnAction<Status>('learn.status', {
    description: 'show rated requests, active versions, due loops and runs',
    async extend(client, context, { models }) {
      const { model } = modelInput(client, context);
      const matches = models.filter((row) => model === undefined || row.model === model);
      if (model !== undefined && matches.length === 0) throw unknownModel(model, models);
      return { models: matches, health: await client.call<object>('learn.health', {}).catch(ifForbidden) };
    },
    show(
      { tenant, numRequests, numPatterns, numCorrections = 0, outcomes = [], models, others = [], runs },
      { output, io },
    ) {
      const verdicts = Object.entries(numRequests).map(([verdict, count]): [string, string] => [
        `  ${verdict}`,
        String(count),
      ]);
      output.details([
        ['tenant', tenant],
        ['requests', ''],
        ...verdicts,
        ['patterns', String(numPatterns)],
        ['corrections', `${numCorrections} recalled`],
      ]);
      if (models.length > 0) {
        const rows = models.map((row) => [row.model, activeOf(row), dueOf(row), row.serves?.reason ?? '–']);
        output.table(['MODEL', 'ACTIVE', 'DUE', 'REASON'], rows);
      }
      for (const { model, lastRun } of models) {
        if (lastRun == null) continue;
        const { loop, elapsedMs, reason } = lastRun;
        output.lines(oneLine(`${model}: last ${loop} run took ${(elapsedMs / 1000).toFixed(1)} s, ${reason}`, columnsOf(io))); // prettier-ignore
      }
      for (const { model, ewc } of models) {
        const since = ewc?.boundariesMs.at(-1);
        if (since !== undefined) output.lines(`${model}: ${ewc!.numTasks} finished tasks, λ ${Math.round(ewc!.lambda)}, current task since ${dateOf(since)}`); // prettier-ignore
      }
      for (const { line, serves, newestVersion } of others) {
        const state = serves === null ? `none of ${newestVersion} versions is active` : `version ${serves.version} is active, ${serves.reason}`; // prettier-ignore
        output.lines(oneLine(`${line}: ${state}`, columnsOf(io)));
      }
      if (outcomes.length > 0) {
        const rows = outcomes.map(({ requestId, state, reason }) => [requestId, state, reason]);
        output.table(['FEEDBACK ON', 'OUTCOME', 'REASON'], rows);
      }
      for (const { model, loop, state, reason } of runs) {
        const details = reason === null ? '' : `, ${reason}`;
        output.lines(oneLine(`${loop} loop of ${model}: ${state}${details}`, columnsOf(io)));
      }
    },
  }),
  history: learnAction<{ serves: number; versions: readonly Version[] }>('learn.history', {
    description:
      'list the versions of a model or of --of, newest first, with the reason for accepting or refusing each',
    flags: { ...OF_ROW, '--limit limit': 'maximum number of versions' },
    input: lineInput,
    show({ serves, versions }, { output }) {
      if (versions.length === 0) return output.note('no versions yet; ruvllm learn run starts a learning loop');
      const rows = versions.map(({ version, createdMs, loop, isAccepted, numLearnedFrom, reason }) => [
        `${version}${version === serves ? ' *' : ''}`,
        dateOf(createdMs),
        loop,
        isAccepted ? 'accepted' : 'refused',
        String(numLearnedFrom),
        reason,
      ]);
      output.table(['VERSION', 'WHEN', 'LOOP', 'GATE', 'REQUESTS', 'REASON'], rows);
    },
  }),
  diff: learnAction<Diff>('learn.diff', {
    args: '<from> <to>',
    keys: ['from', 'to'],
    description: 'compare two versions: metrics, training requests and weights',
    flags: OF_ROW,
    input: lineInput,
    show({ metrics, requests, weights }, { output }, { from, to }) {
      const rows = Object.entries(metrics).map(([name, value]) => [name, roundTo(value.from, 4), roundTo(value.to, 4)]);
      output.table(['METRIC', `VERSION ${String(from)}`, `VERSION ${String(to)}`], rows);
      output.lines(`training requests: ${requests.numAdded} added, ${requests.numRemoved} removed`);
      const norms = weights === null ? null : [weights.normOfChange, weights.normFrom, weights.normTo].map((norm) => norm.toFixed(4)); // prettier-ignore
      output.lines(norms === null ? 'weights: not available' : `weights: norm of the change ${norms[0]}, norms ${norms[1]} and ${norms[2]}`); // prettier-ignore
    },
  }),
  patterns: learnAction<PatternResult>('learn.patterns', {
    args: '<query>',
    keys: ['text'],
    description: 'search patterns of rated requests by similarity',
    flags: { '--k k': 'number of results' },
    needsVectors: true,
    show({ patterns }, { output }) {
      if (patterns.length === 0) return output.note('no patterns yet; the deep loop derives them from rated requests');
      const rows = patterns.map(({ similarity, verdict, support, confidence, recommendedModel, text, peers = [] }) => [
        similarity.toFixed(3),
        verdict,
        String(support),
        confidence.toFixed(2),
        recommendedModel ?? '–',
        escapeLine(peers.map(({ peer, support: count }) => `${peer} (${count})`).join(', ') || '–'),
        escapeLine(text ?? '–'),
      ]);
      output.table(['SIMILARITY', 'VERDICT', 'REQUESTS', 'CONFIDENCE', 'MODEL', 'PEERS', 'TEXT'], rows);
    },
  }),
  data: clientAction(LEARN_CLIENT, {
    description: 'write rated requests as JSON lines, a data set for ruvllm train',
    flags: defineFlags({ '--output <file>': 'data: file to write; default stdout' }),
    run: (client, context) => exportLines(client, context, 'learn.data', 'lines', modelInput(client, context)),
  }),
};
