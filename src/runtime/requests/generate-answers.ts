import { RuvLLMError } from '../../core/errors.ts';
import type { ChatMessage } from '../../chat/types.ts';
import type { ToolDefinition } from '../chat-options.ts';
import type { EncodeOptions, GenerateOptions } from '../generate-options.ts';
import type { GenerateChunk, TokenProgress } from '../generation-types.ts';
import type { Model } from '../model.ts';
import { lengthOfFillIn } from '../fill-in.ts';
import { isChat, type Prompt } from '../prompt.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import type { TraceContext } from './caller.ts';
import { inFieldNames } from './field-names.ts';
import { type GenerationRequest, toGrammar, type ToolSpec } from './generation-request.ts';
import type { RequestLimits } from './limits.ts';
import { linkAbort } from '../../core/abort.ts';

/** Who calls: added to every sequence of a request. */
export interface GenerationCaller {
  readonly tenant: string;
  readonly signal: AbortSignal;
  /** Where the trace goes on in other engines. Default: there is none. */
  readonly trace?: TraceContext | null;
  /** Default: that of the request's options. */
  readonly priority?: number;
  /** Hears how many tokens the first prompt has, as soon as that is known. */
  readonly onPrompt?: (numTokens: number) => void;
  /** Hears of each token of each answer. */
  readonly onToken?: (choice: number, progress: TokenProgress) => void;
}

type AnswerLimits = Pick<RequestLimits, 'maxTokens' | 'maxCharsPerToken'>;

/** Runs every sequence of a request, side by side; leaving early ends all of them. */
export async function* generateAnswers(
  model: Model,
  request: GenerationRequest,
  caller: GenerationCaller,
  limits: AnswerLimits,
): AsyncGenerator<AnswerChunk, void, undefined> {
  // One alone has no siblings to end; a signal of its own would cost more than all the rest of this.
  const own = request.prompts.length * request.numChoices === 1 ? null : linkAbort(caller.signal);
  const call = {
    tenant: caller.tenant,
    signal: own?.signal ?? caller.signal,
    ...(caller.priority === undefined ? {} : { priority: caller.priority }),
  };
  try {
    const streams = request.prompts.flatMap((prompt, promptIndex) => {
      const options = {
        ...fitOptions(model, prompt, request, limits),
        ...toolOptions(request),
        ...constrained(request),
        ...(promptIndex === 0 ? heard(caller) : {}),
      };
      return Array.from({ length: request.numChoices }, (_, index) => {
        const choice = promptIndex * request.numChoices + index;
        const chunks = model.generateStream(prompt, { ...seeded(options, index), ...call, ...counted(caller, choice) });
        return withChoice(chunks, choice);
      });
    });
    if (streams.length === 1) yield* streams[0]!;
    else yield* merge(streams);
  } catch (error) {
    throw inFieldNames(error, request);
  } finally {
    own?.unlink();
    own?.abort(); // a sequence whose sibling failed would go on to its next token before it noticed
  }
}

const heard = ({ onPrompt }: GenerationCaller): Pick<GenerateOptions, 'onPrompt'> =>
  onPrompt === undefined ? {} : { onPrompt };

const counted = ({ onToken }: GenerationCaller, choice: number): Pick<GenerateOptions, 'onToken'> =>
  onToken === undefined ? {} : { onToken: (progress) => onToken(choice, progress) };

const constrained = ({ constraint }: GenerationRequest): Pick<GenerateOptions, 'grammar'> =>
  constraint === null ? {} : { grammar: toGrammar(constraint) };

function toolOptions(request: GenerationRequest): Pick<GenerateOptions, 'tools' | 'toolChoice' | 'parallelToolCalls'> {
  const { tools, toolChoice, canCallInParallel } = request;
  return {
    ...(tools.length === 0 ? {} : { tools: tools.map(toDefinition), parallelToolCalls: canCallInParallel }),
    ...(toolChoice === 'auto' || toolChoice === 'none' ? {} : { toolChoice }),
  };
}

/** A tool as the runtime takes it. */
export function toDefinition({ name, description, parameters, isStrict: strict }: ToolSpec): ToolDefinition {
  const described = description === null ? {} : { description };
  const typed = parameters === null ? {} : { parameters: parameters as Readonly<Record<string, unknown>> };
  return { type: 'function', function: { name, ...described, ...typed, strict } };
}

/** Those of a request's options that change what the model reads. */
export function promptOptions(request: GenerationRequest): EncodeOptions {
  const { parseSpecial, fill, reasoning, templateVariables, continueFinalMessage } = request.options;
  return {
    ...(fill === undefined ? {} : { fill }),
    ...(parseSpecial === undefined ? {} : { parseSpecial }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(templateVariables === undefined ? {} : { templateVariables }),
    ...(continueFinalMessage === undefined ? {} : { continueFinalMessage }),
    ...toolOptions(request),
  };
}

/** The same seed for several answers would give the same answer several times. */
function seeded(options: GenerateOptions, index: number): GenerateOptions {
  const { seed } = options;
  return typeof seed === 'number' ? { ...options, seed: (seed + index) % Number.MAX_SAFE_INTEGER } : options;
}

/** An answer without a limit of its own may fill the context: that is what clients of this API expect. */
function fitOptions(model: Model, prompt: Prompt, request: GenerationRequest, limits: AnswerLimits): GenerateOptions {
  const { maxContext } = model.modelInfo();
  checkLength(prompt, request, Math.floor(maxContext * limits.maxCharsPerToken), maxContext);
  const { maxTokens } = request.options;
  if (maxTokens !== undefined) {
    if (maxTokens <= limits.maxTokens) return request.options;
    if (request.options.clampMaxTokens === true) return { ...request.options, maxTokens: limits.maxTokens };
    throw new RuvLLMError(
      'limit_exceeded',
      `option "maxTokens" is ${maxTokens}, at most ${limits.maxTokens} are allowed`,
      {
        data: { option: 'maxTokens', maxTokens, limit: limits.maxTokens },
      },
    );
  }
  return { ...request.options, maxTokens: limits.maxTokens, clampMaxTokens: true };
}

/** The tokens of the first prompt of a request; refuses what generating would refuse. */
export async function countPromptTokens(
  model: Model,
  request: GenerationRequest,
  limits: AnswerLimits,
  { signal, tenant }: Pick<GenerationCaller, 'signal' | 'tenant'>,
): Promise<number> {
  const prompt = request.prompts[0]!;
  const { maxContext } = model.modelInfo();
  checkLength(prompt, request, Math.floor(maxContext * limits.maxCharsPerToken), maxContext);
  return (await model.aside.encodePrompt(prompt, { ...promptOptions(request), signal, tenant })).length;
}

/** Tokenizing takes time: what can never fit is refused by its length. */
function checkLength(prompt: Prompt, request: GenerationRequest, maxChars: number, maxContext: number): void {
  const { tools, options } = request;
  let length = prompt.length + (tools.length === 0 ? 0 : JSON.stringify(tools).length);
  if (options.fill !== undefined) length += lengthOfFillIn(options.fill);
  if (isChat(prompt)) for (const message of prompt) length += lengthOf(message as ChatMessage);
  if (length <= maxChars) return;
  throw new RuvLLMError(
    'context_overflow',
    `the prompt has ${length} characters; for the context of ${maxContext} tokens at most ${maxChars} are read`,
    { data: { length, maxChars, maxContext } },
  );
}

function lengthOf({ content, reasoning = '', toolCalls = [] }: ChatMessage): number {
  return toolCalls.reduce(
    (length, call) => length + call.name.length + call.arguments.length,
    content.length + reasoning.length,
  );
}

async function* withChoice(
  chunks: AsyncGenerator<GenerateChunk, void, undefined>,
  choice: number,
): AsyncGenerator<AnswerChunk, void, undefined> {
  for await (const chunk of chunks) yield { ...chunk, choice };
}

/** Whatever comes first, from any of them; one that fails ends all. */
async function* merge<T>(streams: readonly AsyncGenerator<T, void, undefined>[]): AsyncGenerator<T, void, undefined> {
  const pending = new Map(streams.map((stream) => [stream, readNext(stream)]));
  try {
    while (pending.size > 0) {
      const { stream, result } = await Promise.race(pending.values());
      if (result.done === true) {
        pending.delete(stream);
        continue;
      }
      pending.set(stream, readNext(stream));
      yield result.value;
    }
  } finally {
    for (const stream of pending.keys()) stream.return().catch(() => {}); // their failures follow from the first one
  }
}

/** Handles a rejection from the start: a stream may fail before it is read, and an unhandled rejection ends the process. */
function readNext<T>(stream: AsyncGenerator<T, void, undefined>) {
  const next = stream.next().then((result) => ({ stream, result }));
  next.catch(() => {});
  return next;
}
