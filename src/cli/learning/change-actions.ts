import { Buffer } from 'node:buffer';
import { RuvLLMError } from '../../core/errors.ts';
import { createFileSink } from '../../platform/node/files/file-sink.ts';
import type { LearningRun, PartReport } from '../../runtime/learning/operations/index.ts';
import type { CommandContext } from '../command.ts';
import { formatBytes } from '../format.ts';
import { type Actions, pick } from '../memory/action.ts';
import type { MemoryClient } from '../memory/client-types.ts';
import { escapeLine } from '../safe-text.ts';
import { checkOutputName, TYPE_DESCRIPTION } from '../save-adapter.ts';
import { usageError } from '../usage-error.ts';
import { isOfModel, lineInput, modelInput, OF_FLAG } from './model-input.ts';
import { readVersion } from './inspect-actions.ts';

interface ForgetReport {
  readonly numTrajectories: number;
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
async function runToEnd(client: MemoryClient, context: CommandContext, input: object): Promise<LearningRun> {
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

const FILE_ACTIVE = 'the unchanged model file is active';

const PART_STATES: Readonly<Record<PartReport['state'], (version: number | null) => string>> = {
  trained: (version) => (version === null ? 'learned' : `version ${version} is active`),
  refused: (version) => `version ${version ?? ''} was refused`,
  kept: () => 'unchanged',
  absent: () => 'not trained',
  failed: () => 'failed',
  cancelled: () => 'cancelled',
};

/** Actions of `ruvllm learn` that change something. */
export const CHANGE_ACTIONS: Actions = {
  run: {
    args: '',
    description:
      'run a learning loop and wait for it: for the model, reranking and, with --url, routing, or for --of only; Ctrl-C stops a local run, which can resume later',
    flags: [OF_FLAG, { name: '--loop', value: 'background|deep', description: 'learning loop; default background' }],
    needsModel: (context) => isLocal(context) && isOfModel(context),
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
  },
  cancel: {
    args: '',
    description: 'stop a run on a server at its next step',
    flags: [OF_FLAG],
    async run(client, context) {
      if (isLocal(context)) throw usageError('learn cancel requires --url; Ctrl-C stops a local run', '--url');
      const run = await client.call<LearningRun>('learn.cancel', runInput(client, context));
      context.output.document(run);
      context.output.lines(`the ${run.loop} loop of ${run.model} stops at its next step`);
    },
  },
  rollback: {
    args: '<version>',
    description: 'activate an older version; 0 is the unchanged model file, or ranking by similarity',
    flags: [OF_FLAG],
    needsModel: (context) => isLocal(context) && isOfModel(context),
    async run(client, context, [version]) {
      const toVersion = readVersion(version!, 'the version');
      const report = await client.call<{ model: string; serves: { version: number } | null }>('learn.rollback', {
        ...lineInput(client, context),
        toVersion,
      });
      context.output.document(report);
      const { model, serves } = report;
      const inactive = isOfModel(context) ? FILE_ACTIVE : 'no version is active';
      context.output.lines(`${model}: ${serves === null ? inactive : `version ${serves.version} is active`}`);
    },
  },
  reset: {
    args: '',
    description: 'return to the unchanged model file; requests and history are kept',
    flags: [],
    needsModel: isLocal,
    async run(client, context) {
      const report = await client.call<{ model: string }>('learn.reset', modelInput(client, context));
      context.output.document(report);
      context.output.lines(`${report.model}: ${FILE_ACTIVE}`);
    },
  },
  forget: {
    args: '',
    description: 'forget requests and everything learned from them: --request, --session or --user',
    flags: [
      { name: '--request', value: 'id', description: 'one request' },
      { name: '--session', value: 'id', description: 'all requests of a session' },
      { name: '--user', value: 'id', description: 'all requests of a user' },
    ],
    needsModel: (context) => isLocal(context) && context.values['--model'] !== undefined,
    async run(client, context) {
      const { output } = context;
      const input = pick(context, { '--request': 'requestId', '--session': 'sessionId', '--user': 'userId' });
      const report = await client.call<ForgetReport>('learn.forget', input);
      if (report.numTrajectories === 0 && report.relearned.length === 0)
        throw new RuvLLMError('not_found', 'no matching request found');
      output.document(report);
      output.lines(`${report.numTrajectories} requests forgotten`);
      for (const { model, reason } of report.relearned) output.lines(`${model}: ${reason}`);
    },
  },
  export: {
    args: '<out.gguf>',
    description: 'write the active version as a LoRA file, which llama.cpp reads, too',
    flags: [
      {
        name: '--version-number',
        value: 'n',
        read: readVersion,
        description: 'version to write; default: the active one',
      },
      { name: '--type', value: 'F32|F16', description: TYPE_DESCRIPTION },
    ],
    needsModel: isLocal,
    async run(client, context, [out]) {
      const { output } = context;
      checkOutputName(out!);
      const { gguf, ...summary } = await client.call<{ gguf: string; version: number }>('learn.export', {
        ...modelInput(client, context),
        ...pick(context, { '--version-number': 'version', '--type': 'type' }),
      });
      const sink = createFileSink(out!);
      try {
        sink.write(Buffer.from(gguf, 'base64'));
        sink.commit();
      } catch (error) {
        sink.abort();
        throw error;
      }
      output.document({ path: out, ...summary });
      output.lines(`wrote ${escapeLine(out!)}: version ${summary.version}, ${formatBytes(sink.sizeBytes)}`);
    },
  },
};
