import type { ChatMessage } from '../../../chat/types.ts';
import { samplingOf } from '../../../sampling/generate-params.ts';
import { isChat, type Prompt } from '../../prompt.ts';
import { imagesOf } from '../../prompt-images.ts';
import type { GenerationRequest, OutputConstraint } from '../generation-request.ts';
import { toDefinition } from '../generate-answers.ts';

/** Whether a request asks for what no engine elsewhere is asked for: token ids, images, grammars, log probabilities, adapters, retries. */
export function isLocalOnly({ prompts, constraint, options }: GenerationRequest): boolean {
  const [first] = prompts;
  const isText = typeof first === 'string' || isChat(first!);
  const kind = constraint?.kind;
  return (
    prompts.length > 1 ||
    !isText ||
    imagesOf(first).length > 0 ||
    kind === 'grammar' ||
    kind === 'regex' ||
    (options.topLogprobs ?? null) !== null ||
    options.logitBias !== undefined ||
    options.adapter !== undefined ||
    options.fill !== undefined ||
    (options.reflection ?? false) !== false ||
    options.grammar !== undefined
  );
}

/** A request as OpenAI's chat completions have it, always as a stream. */
export function toRemoteBody(request: GenerationRequest, model: string): object {
  const { options, tools, toolChoice, canCallInParallel, constraint, numChoices } = request;
  const sampling = samplingOf(options);
  const fields = {
    max_tokens: options.maxTokens,
    // Always sent, because the default of an engine elsewhere is unknown, and the answer names the sampling that was used.
    temperature: sampling.temperature,
    top_p: sampling.topP,
    frequency_penalty: options.frequencyPenalty,
    presence_penalty: options.presencePenalty,
    seed: options.seed ?? undefined,
    stop: options.stop,
    n: numChoices === 1 ? undefined : numChoices,
    tools: tools.length === 0 ? undefined : tools.map(toDefinition),
    tool_choice: tools.length === 0 ? undefined : toToolChoice(toolChoice),
    parallel_tool_calls: tools.length === 0 || canCallInParallel ? undefined : false,
    prediction: options.prediction === undefined ? undefined : { type: 'content', content: options.prediction },
    response_format: constraint === null ? undefined : toResponseFormat(constraint),
  };
  return { model, messages: toMessages(request.prompts[0]!), stream: true, stream_options: { include_usage: true }, ...fields }; // prettier-ignore
}

function toMessages(prompt: Prompt): object[] {
  if (typeof prompt === 'string') return [{ role: 'user', content: prompt }];
  return (prompt as readonly ChatMessage[]).map(({ role, content, name, toolCalls, toolCallId }) => ({
    role,
    content,
    name,
    tool_call_id: toolCallId,
    tool_calls: toolCalls?.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments === '' ? '{}' : call.arguments },
    })),
  }));
}

function toToolChoice(choice: GenerationRequest['toolChoice']): unknown {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } };
}

function toResponseFormat(constraint: OutputConstraint): unknown {
  if (constraint.kind !== 'json_schema') return { type: 'json_object' };
  const { name, schema, isStrict } = constraint;
  return { type: 'json_schema', json_schema: { name, schema, strict: isStrict } };
}
