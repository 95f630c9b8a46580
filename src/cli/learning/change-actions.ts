import { Buffer } from 'node:buffer';
import { RuvLLMError } from '../../core/errors.ts';
import type { LearningRun, PartReport } from '../../runtime/learning/operations/index.ts';
import type { Actions } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { collectOptions, defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { clientAction } from '../memory/action.ts';
import type { MemoryClient } from '../memory/client-types.ts';
import { escapeLine } from '../safe-text.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import { checkOutputName, TYPE_DESCRIPTION } from '../save-adapter.ts';
import { usageError } from '../usage-error.ts';
import { LEARN_CLIENT, learnAction } from './client.ts';
import { isOfModel, lineInput, modelInput, OF_ROW } from './model-input.ts';

interface ForgetReport {
  readonly numTrajectories: number;
  /** Absent from older servers. */
  readonly numCorrections?: number;
  readonly relearned: readonly { readonly model: string; readonly reason: string }[];
}

const isLocal = ({ values }: CommandContext): boolean => values['--url'] === undefined;
/** Interval at which the state of a run is polled. */
const POLL_MS = 5000;

/** Rejects on abort, even if `work` ignores the signal. */
async function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const abort = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new RuvLLMError('aborted', 'cancelled; progress so far is kept'));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([work, abort]);
}

/** Starts a run, or joins the current one, and waits until it ends. */
export async function runToEnd(client: MemoryClient, context: CommandContext, input: object): Promise<LearningRun> {
  const { io, output } = context;
  const progress = output.progress();
  const startMs = io.now();
  try {
    for (;;) {
      const run = await orAborted(io.signal, client.call<LearningRun>('learn.run', { ...input, waitMs: POLL_MS }));
      if (run.state !== 'running') return run;
      const seconds = Math.round((io.now() - startMs) / 1000);
      progress.update({ label: `${run.loop} loop of ${run.model}: ${seconds} s`, doneBytes: 0, totalBytes: null });
    }
  } finally {
    progress.finish();
  }
}

/** Input of run and cancel: all parts, unless --of names one. */
function runInput(client: MemoryClient, context: CommandContext): { readonly model?: string; readonly of?: string } {
  const of = context.values['--of'] as string | undefined;
  return of === 'model' ? { ...modelInput(client, context), of } : lineInput(client, context);
}

const EXPORT_FLAGS = defineFlags({
  '--version-number <n> version': 'version to write; default: the active one',
  '--type <F32|F16> type': TYPE_DESCRIPTION,
});
const FILE_ACTIVE = 'the unchanged model file is active';
const retiredCorrections = (count = 0): string =>
  count === 0 ? '' : `; ${count === 1 ? '1 correction is' : `${count} corrections are`} no longer recalled`;

export const PART_STATES: Readonly<Record<PartReport['state'], (version: number | null) => string>> = {
  trained: (version) => (version === null ? 'learned' : `version ${version} is active`),
  refused: (version) => `version ${version ?? ''} was refused`,
  kept: () => 'unchanged',
  absent: () => 'not trained',
  failed: () => 'failed',
  cancelled: () => 'cancelled',
};

/** Actions of `ruvllm learn` that change something. */
export const CHANGE_ACTIONS: Actions = {
  run: clientAction(LEARN_CLIENT, {
    description:
      'run a learning loop and wait for it: for the model, reranking and, with --url, routing, or for --of only; Ctrl-C stops a local run, which can resume later',
    flags: defineFlags({ ...OF_ROW, '--loop <background|deep> loop': 'learning loop; default background' }),
    needsModel: (context) => isLocal(context) && (isOfModel(context) || context.values['--of'] === 'federation'),
    async run(client, context) {
      const { output, values } = context;
      const loop = values['--loop'] === undefined ? {} : { loop: values['--loop'] };
      const run = await runToEnd(client, context, { ...runInput(client, context), ...loop });
      // Older servers report no parts.
      const { parts = [] } = run as { parts?: LearningRun['parts'] };
      const lines = parts.map(({ part, state, version, reason }) => escapeLine(`${part}: ${PART_STATES[state](version)}; ${reason}`)); // prettier-ignore
      if (run.state === 'failed') {
        for (const line of lines) output.note(line);
        throw new RuvLLMError('io', `the ${run.loop} loop failed: ${run.reason ?? ''}`);
      }
      output.document(run);
      output.lines(`the ${run.loop} loop is ${run.state}`);
      for (const line of lines) output.lines(line);
    },
  }),
  cancel: learnAction<LearningRun>('learn.cancel', {
    description: 'stop a run on a server at its next step',
    flags: OF_ROW,
    input(client, context) {
      if (isLocal(context)) throw usageError('learn cancel requires --url; Ctrl-C stops a local run', '--url');
      return runInput(client, context);
    },
    show: ({ loop, model }, { output }) => output.lines(`the ${loop} loop of ${model} stops at its next step`),
  }),
  rollback: learnAction<{ model: string; serves: { version: number } | null; numCorrections?: number }>(
    'learn.rollback',
    {
      args: '<version>',
      keys: ['toVersion'],
      description: 'activate an older version; 0 is the unchanged model file, or ranking by similarity',
      flags: OF_ROW,
      needsModel: (context) => isLocal(context) && isOfModel(context),
      input: lineInput,
      show({ model, serves, numCorrections }, context) {
        const inactive = isOfModel(context) ? FILE_ACTIVE : 'no version is active';
        const active = serves === null ? inactive : `version ${serves.version} is active`;
        context.output.lines(`${model}: ${active}${retiredCorrections(numCorrections)}`);
      },
    },
  ),
  reset: learnAction<{ model: string; numCorrections?: number }>('learn.reset', {
    description: 'return to the unchanged model file and recall no corrections; requests and history are kept',
    needsModel: isLocal,
    input: modelInput,
    show: ({ model, numCorrections }, { output }) =>
      output.lines(`${model}: ${FILE_ACTIVE}${retiredCorrections(numCorrections)}`),
  }),
  forget: learnAction<ForgetReport>('learn.forget', {
    description: 'forget requests and everything learned from them: --request, --session or --user',
    flags: {
      '--request <id> requestId': 'one request',
      '--session <id> sessionId': 'all requests of a session',
      '--user <id> userId': 'all requests of a user',
    },
    check({ values }) {
      const targets = ['--request', '--session', '--user'].filter((flag) => values[flag] !== undefined);
      if (targets.length !== 1) throw usageError('learn forget requires one of --request, --session or --user', targets[1]); // prettier-ignore
    },
    needsModel: (context) => isLocal(context) && context.values['--model'] !== undefined,
    show({ numTrajectories, numCorrections = 0, relearned }, { output }) {
      if (numTrajectories === 0 && numCorrections === 0 && relearned.length === 0)
        throw new RuvLLMError('not_found', 'no matching request found');
      output.lines(
        `${numTrajectories} requests${numCorrections === 0 ? '' : ` and ${numCorrections === 1 ? '1 correction' : `${numCorrections} corrections`}`} forgotten`,
      );
      for (const { model, reason } of relearned) output.lines(`${model}: ${reason}`);
    },
  }),
  export: clientAction(LEARN_CLIENT, {
    args: '<out.gguf>',
    description: 'write the active version as a LoRA file, which llama.cpp reads, too',
    flags: EXPORT_FLAGS,
    needsModel: isLocal,
    async run(client, context, [out]) {
      const { output, values } = context;
      checkOutputName(out!);
      const { gguf, ...summary } = await client.call<{ gguf: string; version: number }>('learn.export', {
        ...modelInput(client, context),
        ...collectOptions(EXPORT_FLAGS, values),
      });
      const sizeBytes = writeWhole(out!, (sink) => sink.write(Buffer.from(gguf, 'base64')));
      output.document({ path: out, ...summary });
      output.lines(`wrote ${escapeLine(out!)}: version ${summary.version}, ${formatBytes(sizeBytes)}`);
    },
  }),
};
