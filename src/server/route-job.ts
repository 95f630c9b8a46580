import type { ChatMessage } from '../chat/types.ts';
import { turnsOfMessages } from '../learning/router-training/rated-routes.ts';
import { isChat } from '../runtime/prompt.ts';
import type { RouteChoice, RouteQuestion, Routing } from '../runtime/routing/types.ts';
import { type Answerer, type AnswererContext, openCandidate } from './answerer.ts';
import { describeFailure } from './errors.ts';
import type { GenerateJob, JobEvent } from './generate-job.ts';
import type { ModelHost } from './model-host.ts';
import type { RememberedJob } from './remember-job.ts';
import { isLocalOnly } from './remote/remote-body.ts';
import type { JobCaller } from './run-job.ts';

/** A job with somebody who answers it. */
export interface RoutedJob {
  readonly answerer: Answerer;
  readonly choice: RouteChoice;
  readonly events: AsyncGenerator<JobEvent, void, undefined>;
}

export interface RouteJobContext extends Omit<AnswererContext, 'config'> {
  readonly routing: Routing;
}

/** What is known of a job before anybody answers it. */
export function questionOf(
  job: GenerateJob,
  { embedded, similarities, near = null }: Pick<RememberedJob, 'embedded' | 'similarities'> & Partial<Pick<RememberedJob, 'near'>>, // prettier-ignore
  load: number,
): RouteQuestion {
  return { turns: turnsOf(job), embedded, near, similarities, isLocalOnly: isLocalOnly(job), load };
}

/** What was said, as far as it is text. */
export function turnsOf({ prompts: [prompt] }: GenerateJob): readonly string[] {
  if (typeof prompt === 'string') return [prompt];
  return isChat(prompt!) ? turnsOfMessages(prompt as readonly ChatMessage[]) : [];
}

/** How busy this machine is, from 0 to 1: of the requests it admits. */
export function loadOf(models: ModelHost, maxRequests: number): number {
  return Math.min(1, models.list().reduce((sum, { numUsers }) => sum + numUsers, 0) / maxRequests);
}

/**
 * Chooses who answers and waits for an engine elsewhere to say its first word: one that is down is not the end of the request, the safe
 * default answers in its place. `asked` is the job as its client sent it, without what was recalled for it.
 */
export async function routeJob(
  context: RouteJobContext,
  asked: GenerateJob,
  remembered: RememberedJob,
  caller: JobCaller,
): Promise<RoutedJob> {
  const { routing, clock, limits, models } = context;
  const question = questionOf(asked, remembered, loadOf(models, limits.maxRequests));
  let choice = await routing.decide(caller.tenant, question);
  for (;;) {
    const { candidate } = choice;
    const answerer = await openCandidate({ ...context, config: routing.config }, candidate, caller.signal);
    const startMs = clock.now();
    const { temperature = 0.7, topP = 0.9 } = asked.options;
    remembered.serve({ model: answerer.id, choice, temperature, topP });
    const events = answerer.run(remembered.job, caller);
    const note = (ttftMs: number | null): void => routing.note(candidate.id, ttftMs);
    if (candidate.kind !== 'remote') return { answerer, choice, events: noting(events, clock.now, startMs, note) };
    try {
      const first = await events.next();
      note(clock.now() - startMs);
      return { answerer, choice, events: withFirst(first, events) };
    } catch (error) {
      answerer.release();
      const { code, message, status } = describeFailure(error);
      if (status === 499) throw error;
      // What is wrong with this request says nothing about the next.
      if (status !== 400) note(null);
      const next = routing.fallBack(choice, question, `${code}: ${message}`);
      if (next === null) throw error;
      choice = next;
    }
  }
}

async function* withFirst<T>(
  first: IteratorResult<T, void>,
  rest: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  try {
    if (first.done === true) return;
    yield first.value;
    yield* rest;
  } finally {
    await rest.return();
  }
}

/** Tells how long the first event took. */
async function* noting<T>(
  events: AsyncGenerator<T, void, undefined>,
  now: () => number,
  startMs: number,
  note: (ttftMs: number) => void,
): AsyncGenerator<T, void, undefined> {
  let isFirst = true;
  for await (const event of events) {
    if (isFirst) note(now() - startMs);
    isFirst = false;
    yield event;
  }
}
