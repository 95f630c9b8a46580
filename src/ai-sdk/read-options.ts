import type { LanguageModelV3CallOptions, SharedV3Warning } from '@ai-sdk/provider';
import type { GenerateOptions } from '../runtime/generate-options.ts';

/** Name of this provider, also in `providerOptions`. */
export const PROVIDER = 'ruvllm';

type Schema = Readonly<Record<string, unknown>>;

const CHOICES = { auto: 'auto', none: 'none', required: 'required' } as const;

/** The library's options of a call. `providerOptions.ruvllm` has any other option of `generate`, such as `memory` or `session`. */
export function readOptions(options: LanguageModelV3CallOptions): {
  readonly options: GenerateOptions;
  readonly warnings: SharedV3Warning[];
} {
  const warnings: SharedV3Warning[] = [];
  const tools = (options.tools ?? []).flatMap((tool) => {
    if (tool.type === 'function') {
      const { name, description, inputSchema, strict } = tool;
      const parameters = inputSchema as Schema;
      return [
        {
          type: 'function' as const,
          function: {
            name,
            parameters,
            ...(description === undefined ? {} : { description }),
            ...(strict === undefined ? {} : { strict }),
          },
        },
      ];
    }
    warnings.push({ type: 'unsupported', feature: `tool ${tool.name}`, details: 'only functions can be called' });
    return [];
  });
  const { toolChoice: choice, responseFormat: format } = options;
  const own: GenerateOptions = {
    maxTokens: options.maxOutputTokens,
    temperature: options.temperature,
    topP: options.topP,
    topK: options.topK,
    presencePenalty: options.presencePenalty,
    frequencyPenalty: options.frequencyPenalty,
    stop: options.stopSequences,
    seed: options.seed,
    signal: options.abortSignal,
    tools: tools.length === 0 ? undefined : tools,
    toolChoice:
      tools.length === 0 || choice === undefined
        ? undefined
        : choice.type === 'tool'
          ? { name: choice.toolName }
          : CHOICES[choice.type],
    grammar:
      format?.type !== 'json'
        ? undefined
        : format.schema === undefined
          ? { type: 'json_object' }
          : { type: 'json_schema', schema: format.schema },
  } as GenerateOptions;
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  return { options: { ...Object.fromEntries(given), ...options.providerOptions?.[PROVIDER] }, warnings };
}
