import { adapterWishOption } from '../runtime/adapters.ts';
import { createCallRecorder, LEFT } from '../runtime/memory/call-recorder.ts';
import { memoryWishOption } from '../runtime/memory/memory-wish.ts';
import { noMemory } from '../runtime/memory/remember-chunks.ts';
import type { OpenCall, RememberedCall, RequestMemory, ServedCall } from '../runtime/memory/request-memory.ts';
import type { GenerateJob, JobEvent } from './generate-job.ts';

/** A job that the memory knows of. */
export interface RememberedJob {
  /** With what was recalled in its prompt. */
  readonly job: GenerateJob;
  readonly sources: OpenCall['sources'];
  readonly embedded: OpenCall['embedded'];
  readonly similarities: OpenCall['similarities'];
  readonly near: OpenCall['near'];
  /** Who answers where nobody was named, from now on. */
  serve(served: ServedCall): void;
  /** Nobody could answer. */
  fail(error: unknown): void;
  /** Passes the events through, and writes the request down when they end. */
  record(events: AsyncGenerator<JobEvent, void, undefined>): AsyncGenerator<JobEvent, void, undefined>;
}

export interface JobIdentity {
  readonly tenant: string;
  readonly requestId: string;
  readonly modelId: string;
  /** Named behind a colon of the model's name; one in the options wins. Default null. */
  readonly adapter?: string | null;
  /** Whether somebody will choose who answers. Default false. */
  readonly isRouted?: boolean;
  /** What they want to know of what is near. Default: nothing. */
  readonly near?: RememberedCall['near'];
}

const UNHEARD = { embedded: null, similarities: [], near: null, serve() {}, fail() {} };

/** One request is one entry, however many answers it has: what is kept of them is the first. */
export async function rememberJob(
  requests: RequestMemory | null,
  given: GenerateJob,
  { tenant, requestId, modelId, adapter = null, isRouted = false, near = null }: JobIdentity,
  now: () => number,
): Promise<RememberedJob> {
  const { memory, user, ...options } = given.options;
  const job = { ...given, options };
  const wish = memory === undefined ? null : memoryWishOption(memory, 'memory');
  if (requests === null) {
    if (wish !== null) throw noMemory();
    return { job, sources: [], ...UNHEARD, record: (events) => events };
  }
  const prompt = job.prompts[0]!;
  const session = options.session ?? null;
  const named = adapterWishOption(options.adapter, 'adapter')?.[0]?.name;
  const whose = { tenant, requestId, model: modelId, session, user: user ?? null, adapter: named ?? adapter };
  const open = await requests.begin({ ...whose, prompt, wish, isRouted, near });
  const recorder = createCallRecorder(open, now);
  return {
    job: { ...job, prompts: job.prompts.with(0, open.prompt) },
    sources: open.sources,
    embedded: open.embedded,
    similarities: open.similarities,
    near: open.near,
    serve: recorder.serve,
    fail: recorder.end,
    async *record(events) {
      let numOpen = job.prompts.length * job.numChoices;
      try {
        for await (const event of events) {
          if (event.type === 'finished') {
            recorder.addUsage(event.usage);
            recorder.addTimings(event.timings);
            if (--numOpen === 0) recorder.end(null); // whoever has read this may not come back for the rest
          } else if (event.choice === 0) recorder.addText(textOf(event));
          yield event;
        }
      } catch (error) {
        recorder.end(error);
        throw error;
      } finally {
        recorder.end(LEFT);
      }
    },
  };
}

/** What is said, and calls of tools as name and arguments. */
function textOf(event: Exclude<JobEvent, { type: 'finished' }>): string {
  if (event.type === 'tool_call') return `${event.name ?? ''}${event.arguments}`;
  return event.type === 'text' ? event.text : '';
}
