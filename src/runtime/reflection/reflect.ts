import { RuvLLMError } from '../../core/errors.ts';
import type { ChatMessage, ToolCall } from '../../chat/types.ts';
import type { ResolvedGenerateOptions } from '../generate-options.ts';
import type { GenerateChunk, GenerateSummary, Usage } from '../generation-types.ts';
import { isChat, type Prompt } from '../prompt.ts';
import { confidenceOf } from '../quality/confidence.ts';
import type { AttemptedAnswer } from './check-answer.ts';
import { withErrors, withPatterns } from './retry-prompt.ts';
import type { Attempt, Problem, ReflectionEnding, ReflectionReport } from './types.ts';

type Chunks = AsyncGenerator<GenerateChunk, void, undefined>;

export interface ReflectContext {
  now(): number;
  /** How the model writes calls, where the runtime told it; null: its chat template did. */
  callForm(): string | null;
  /** Whether the model is large enough to learn from an error in its prompt. */
  readonly understandsErrors: boolean;
  generate(prompt: Prompt, options: ResolvedGenerateOptions): Chunks;
}

/** An attempt with everything that was generated. */
interface Tried {
  readonly chunks: readonly GenerateChunk[];
  readonly summary: GenerateSummary;
  readonly answer: AttemptedAnswer;
  readonly problems: readonly Problem[];
  readonly confidence: number | null;
  readonly error: string | null;
  /** 0 to 1; below 0.5 it cannot be used. */
  readonly score: number;
  /** From the call to the start of this attempt. */
  readonly offsetMs: number;
}

/** Retries in a row without a gain that end the retries. */
const MAX_FLAT = 2;
const DOUBT = 'it may be wrong: check it';
const ENDINGS: Readonly<Record<string, ReflectionEnding>> = {
  context_overflow: 'no-room',
  deadline_exceeded: 'timeout',
};

/** More problems, and problems of an earlier stage, are further from an answer. */
function scoreOf(problems: readonly Problem[], confidence: number | null): number {
  if (problems.length === 0) return 0.5 + 0.5 * (confidence ?? 1);
  return 0.1 * Math.min(...problems.map(({ stage }) => stage)) + 0.1 / (1 + problems.length);
}

function answerOf(chunks: readonly GenerateChunk[]): AttemptedAnswer {
  const toolCalls: ToolCall[] = [];
  const outcomes: AttemptedAnswer['outcomes'][number][] = [];
  let text = '';
  for (const chunk of chunks) {
    text += chunk.text;
    for (const { index, id, name, arguments: more, outcome } of chunk.toolCalls) {
      (toolCalls[index] ??= { id, name, arguments: '' }).arguments += more;
      outcomes[index] = outcome;
    }
  }
  return { text, toolCalls, outcomes, finishReason: (chunks.at(-1) as GenerateSummary).finishReason };
}

/** Options of one attempt: its own seed, and the rest of the time. */
function optionsOf(
  options: ResolvedGenerateOptions,
  { seed, offsetMs, isFirst, needsLogprobs }: { seed: number | null; offsetMs: number; isFirst: boolean; needsLogprobs: boolean }, // prettier-ignore
): ResolvedGenerateOptions {
  const { params, timeoutMs, onPrompt, onToken } = options;
  return {
    ...options,
    reflection: null,
    params: { ...params, seed, topLogprobs: params.topLogprobs ?? (needsLogprobs ? 0 : null) },
    timeoutMs: timeoutMs === null ? null : Math.max(1, timeoutMs - offsetMs),
    onPrompt: isFirst ? onPrompt : null,
    // Times count from the call, or the time between two tokens would be negative.
    onToken: onToken && ((progress) => onToken({ ...progress, elapsedMs: progress.elapsedMs + offsetMs })),
  };
}

const USAGE_SUMS = ['promptTokens', 'cachedTokens', 'completionTokens', 'totalTokens', 'reasoningTokens', 'acceptedDraftTokens', 'rejectedDraftTokens'] as const; // prettier-ignore

/** The tokens of all attempts, because all were computed. */
function usageOf(tried: readonly Tried[], chosen: number): Usage {
  const sums = USAGE_SUMS.map((key) => [key, tried.reduce((sum, { summary }) => sum + summary.usage[key], 0)] as const);
  const discarded = tried.filter((_, i) => i !== chosen).reduce((sum, { summary }) => sum + summary.usage.completionTokens, 0); // prettier-ignore
  return { ...(Object.fromEntries(sums) as unknown as Usage), discardedTokens: discarded };
}

const toAttempt = ({ error, confidence, summary: { usage } }: Tried): Attempt => ({
  error,
  confidence,
  promptTokens: usage.promptTokens,
  completionTokens: usage.completionTokens,
});

function whyEnded(
  tried: readonly Tried[],
  numFlat: number,
  { maxRetries, showsErrors }: { readonly maxRetries: number; readonly showsErrors: boolean },
): ReflectionEnding | null {
  const last = tried.at(-1)!;
  if (last.error === null) return 'accepted';
  const spell = ({ answer: { text, toolCalls } }: Tried): string => JSON.stringify([text, toolCalls.map(({ name, arguments: args }) => [name, args])]); // prettier-ignore
  // A model that sees no errors repeats itself by chance; with the error in its prompt, a model that does will not stop.
  if (showsErrors && tried.slice(0, -1).some((one) => spell(one) === spell(last))) return 'cycle';
  if (numFlat >= MAX_FLAT) return 'no-gain';
  return tried.length > maxRetries ? 'exhausted' : null;
}

/** The chosen attempt's chunks; the last one has the usage of all attempts and their report. */
function* finish(tried: readonly Tried[], ending: ReflectionEnding, hidesLogprobs: boolean): Generator<GenerateChunk> {
  const best = Math.max(...tried.map(({ score }) => score));
  const chosen = tried.findIndex(({ score }) => score === best);
  const { chunks, error, offsetMs } = tried[chosen]!;
  const reflection: ReflectionReport = { ending, chosen, error, attempts: tried.map(toAttempt) };
  for (const whole of chunks) {
    const chunk = hidesLogprobs ? { ...whole, logprobs: null, textLogprobs: null } : whole;
    if (chunk.finishReason === null) {
      yield chunk;
      continue;
    }
    const timings = { ...chunk.timings, firstTokenMs: chunk.timings.firstTokenMs + offsetMs };
    yield { ...chunk, usage: usageOf(tried, chosen), timings, seed: tried[0]!.summary.seed, reflection };
  }
}

/** Generates until an answer passes its checks, and streams that one alone; the best attempt if none does. */
export async function* reflectChunks(
  context: ReflectContext,
  prompt: Prompt,
  options: ResolvedGenerateOptions,
): Chunks {
  const reflection = options.reflection!;
  if (!isChat(prompt) || options.continueFinalMessage) {
    throw new RuvLLMError('invalid_option', 'option "reflection" requires messages whose answer is a new turn', {
      data: { option: 'reflection' },
    });
  }
  const { tenant, params } = options;
  const { patterns, minConfidence, minGain } = reflection;
  const showsErrors = reflection.showsErrors ?? (context.understandsErrors || params.temperature === 0);
  const { createAnswerChecks } = await import('./check-answer.ts');
  const checks = createAnswerChecks({ ...options, check: reflection.check, callForm: context.callForm() });
  const known = (await patterns?.frequent(tenant, checks.subjects)) ?? [];
  const messages = withPatterns(prompt as readonly ChatMessage[], known);
  const needsLogprobs = minConfidence > 0;
  const startMs = context.now();
  const tried: Tried[] = [];
  let numFlat = 0;

  async function attempt(asked: readonly ChatMessage[]): Promise<Tried> {
    const offsetMs = context.now() - startMs;
    const firstSeed = tried[0]?.summary.seed ?? null;
    const seed = firstSeed === null ? params.seed : (firstSeed + tried.length) % Number.MAX_SAFE_INTEGER;
    const chunks: GenerateChunk[] = [];
    const call = optionsOf(options, { seed, offsetMs, isFirst: tried.length === 0, needsLogprobs });
    for await (const chunk of context.generate(asked, call)) chunks.push(chunk);
    const summary = chunks.at(-1) as GenerateSummary;
    const answer = answerOf(chunks);
    const problems = await checks.problemsOf(answer);
    const confidence = summary.meanLogprob === undefined ? null : confidenceOf(summary.meanLogprob);
    const isDoubted = confidence !== null && confidence < minConfidence;
    const error =
      problems.length > 0
        ? problems.map(({ message }) => message).join('; ')
        : isDoubted
          ? `confidence ${confidence.toFixed(2)} is below ${minConfidence}`
          : null;
    return { chunks, summary, answer, problems, confidence, error, score: scoreOf(problems, confidence), offsetMs };
  }

  let asked = messages;
  let ending: ReflectionEnding | null = null;
  while (ending === null) {
    try {
      const best = Math.max(0, ...tried.map(({ score }) => score));
      const last = await attempt(asked);
      tried.push(last);
      numFlat = tried.length === 1 || minGain === 0 || last.score - best >= minGain ? 0 : numFlat + 1;
      const errors = last.problems.length > 0 ? last.problems.map(({ message }) => message) : [DOUBT];
      asked = showsErrors ? withErrors(messages, last.answer, errors) : messages;
      ending = whyEnded(tried, numFlat, { maxRetries: reflection.maxRetries, showsErrors });
    } catch (error) {
      // A retry that does not fit must not cost the answer that there is.
      const code = error instanceof RuvLLMError ? error.code : '';
      if (tried.length === 0 || ENDINGS[code] === undefined) throw error;
      ending = ENDINGS[code];
    }
  }
  void patterns?.note(
    tenant,
    tried.flatMap(({ problems }) => problems),
  );
  yield* finish(tried, ending, needsLogprobs && params.topLogprobs === null);
}
