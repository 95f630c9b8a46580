import { Buffer } from 'node:buffer';
import { RuvLLMError } from '../../core/errors.ts';
import { createFileSink } from '../../platform/node/file-sink.ts';
import type { LearningRun, PartReport } from '../../runtime/learning/operations/index.ts';
import type { CommandContext } from '../command.ts';
import { formatBytes } from '../format.ts';
import { type Actions, pick } from '../memory/action.ts';
import type { MemoryClient } from '../memory/client.ts';
import { escapeLine } from '../safe-text.ts';
import { checkOutputName } from '../save-adapter.ts';
import { usageError } from '../usage-error.ts';
import { isOfModel, lineInput, modelInput, OF_FLAG } from './model-input.ts';
import { readVersion } from './look-actions.ts';

interface Forgotten {
  readonly numTrajectories: number;
  readonly relearned: readonly { readonly model: string; readonly reason: string }[];
}

const local = ({ values }: CommandContext): boolean => values['--url'] === undefined;
/** Between two looks whether a run has ended. */
const LOOK_MS = 5000;

/** Ends with the signal, whatever the work does. */
async function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new RuvLLMError('aborted', 'cancelled; what was reached is kept'));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([work, aborted]);
}

/** Waits for the end of a run, however long: asking for the same one again joins it. */
async function runToEnd(client: MemoryClient, context: CommandContext, input: object): Promise<LearningRun> {
  const { io, output } = context;
  const progress = output.progress();
  const startMs = io.now();
  try {
    for (;;) {
      const run = await orAborted(io.signal, client.call<LearningRun>('learn.run', { ...input, waitMs: LOOK_MS }));
      if (run.state !== 'running') return run;
      const seconds = Math.round((io.now() - startMs) / 1000);
      progress.update({ label: `${run.loop} loop of ${run.model}: ${seconds} s`, doneBytes: 0, totalBytes: null });
    }
  } finally {
    progress.finish();
  }
}

/** What a run is of: everything, unless a part is named. */
function runInput(client: MemoryClient, context: CommandContext): { readonly model?: string; readonly of?: string } {
  const of = context.values['--of'] as string | undefined;
  return of === 'model' ? { ...modelInput(client, context), of } : lineInput(client, context);
}

const PART_WORDS: Readonly<Record<PartReport['state'], (version: number | null) => string>> = {
  trained: (version) => (version === null ? 'learned' : `version ${version} serves`),
  refused: (version) => `version ${version ?? ''} was refused`,
  kept: () => 'as it was',
  absent: () => 'not trained',
  failed: () => 'failed',
  cancelled: () => 'cancelled',
};

/** What `ruvllm learn` changes. */
export const CHANGE_ACTIONS: Actions = {
  run: {
    args: '',
    description:
      'run a loop now, and wait for it: the model, the order of what is recalled and, with --url, who answers, or one of them by --of; Ctrl-C stops one on this machine, which can go on later',
    flags: [OF_FLAG, { name: '--loop', value: 'background|deep', description: 'which; default background' }],
    needsModel: (context) => local(context) && isOfModel(context),
    async run(client, context) {
      const { output, values } = context;
      const loop = values['--loop'] === undefined ? {} : { loop: values['--loop'] };
      const run = await runToEnd(client, context, { ...runInput(client, context), ...loop });
      // Of an older server: it has no parts, and the reason is that of the model.
      const { parts = [] } = run as { parts?: LearningRun['parts'] };
      const lines = parts.map(({ part, state, version, reason }) => escapeLine(`${part}: ${PART_WORDS[state](version)}; ${reason}`)); // prettier-ignore
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
    description: 'stop a run of a server at its next step',
    flags: [OF_FLAG],
    async run(client, context) {
      if (local(context)) throw usageError('a run on this machine ends with Ctrl-C; --url names a server', '--url');
      const run = await client.call<LearningRun>('learn.cancel', runInput(client, context));
      context.output.document(run);
      context.output.lines(`the ${run.loop} loop of ${run.model} ends at its next step`);
    },
  },
  rollback: {
    args: '<version>',
    description: 'let an older version serve, 0 for the model as it is in its file, or the order by similarity',
    flags: [OF_FLAG],
    needsModel: (context) => local(context) && isOfModel(context),
    async run(client, context, [version]) {
      const toVersion = readVersion(version!, 'the version');
      const found = await client.call<{ model: string; serves: { version: number } | null }>('learn.rollback', {
        ...lineInput(client, context),
        toVersion,
      });
      context.output.document(found);
      const none = isOfModel(context) ? 'serves as in its file' : 'serves no version';
      context.output.lines(`${found.model} ${found.serves === null ? none : `serves version ${found.serves.version}`}`);
    },
  },
  reset: {
    args: '',
    description: 'the model as it is in its file again; requests and history stay',
    flags: [],
    needsModel: local,
    async run(client, context) {
      const found = await client.call<{ model: string }>('learn.reset', modelInput(client, context));
      context.output.document(found);
      context.output.lines(`${found.model} serves as in its file`);
    },
  },
  forget: {
    args: '',
    description: 'forget requests and all that was learned from them: --request, --session or --user',
    flags: [
      { name: '--request', value: 'id', description: 'one request' },
      { name: '--session', value: 'id', description: 'those of a conversation' },
      { name: '--user', value: 'id', description: 'those of a user' },
    ],
    needsModel: (context) => local(context) && context.values['--model'] !== undefined,
    async run(client, context) {
      const { output } = context;
      const input = pick(context, { '--request': 'requestId', '--session': 'sessionId', '--user': 'userId' });
      const forgotten = await client.call<Forgotten>('learn.forget', input);
      if (forgotten.numTrajectories === 0 && forgotten.relearned.length === 0)
        throw new RuvLLMError('not_found', 'there is no such request to forget');
      output.document(forgotten);
      output.lines(`${forgotten.numTrajectories} requests forgotten`);
      for (const { model, reason } of forgotten.relearned) output.lines(`${model}: ${reason}`);
    },
  },
  export: {
    args: '<out.gguf>',
    description: 'write the version that serves as a LoRA that llama.cpp reads, too',
    flags: [
      { name: '--version-number', value: 'n', read: readVersion, description: 'another version' },
      { name: '--type', value: 'F32|F16', description: 'how the file keeps numbers; default F32' },
    ],
    needsModel: local,
    async run(client, context, [out]) {
      const { output } = context;
      checkOutputName(out!);
      const { gguf, ...about } = await client.call<{ gguf: string; version: number }>('learn.export', {
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
      output.document({ path: out, ...about });
      output.lines(`${escapeLine(out!)}: version ${about.version}, ${formatBytes(sink.sizeBytes)}`);
    },
  },
};
