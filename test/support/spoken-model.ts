import { createChatTemplate } from '../../src/chat/chat-template.ts';
import { DEFAULT_SAMPLING } from '../../src/sampling/generate-params.ts';
import { serializeError } from '../../src/core/errors.ts';
import type { GenerateRequest } from '../../src/engine/protocol.ts';
import type { AdapterInfo } from '../../src/runtime/adapters.ts';
import type { EngineClient } from '../../src/runtime/engine-client.ts';
import type { RequestMemory } from '../../src/runtime/memory/request-memory.ts';
import { createModel, type Model } from '../../src/runtime/model.ts';
import type { ModelInfo } from '../../src/runtime/model-info.ts';
import { createSessionTable } from '../../src/runtime/sessions/session-table.ts';
import { createByteTokenizer } from './byte-tokenizer.ts';

/** Qwen's format of tools and calls, shortened. */
export const HERMES_TEMPLATE = `{%- if tools %}<|im_start|>system
# Tools{% for tool in tools %}
{{ tool | tojson }}{% endfor %}<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% if message.tool_calls %}{% for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

/** The same for a family with reasoning that can be disabled. */
export const THINKING_TEMPLATE = HERMES_TEMPLATE.replace(
  '{{ message.content }}',
  '{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content }}',
).replace(
  '<|im_start|>assistant\n{% endif %}',
  '<|im_start|>assistant\n{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}',
);

export interface SpokenModel {
  readonly model: Model;
  /** The requests and prompts that reached the engine. */
  readonly requests: (Omit<GenerateRequest, 'id'> & { readonly prompt: string })[];
}

export interface SpokenModelOptions {
  /** Default `medium`. */
  readonly size?: ModelInfo['size'];
  template?: string;
  maxContext?: number;
  /** Thrown instead of an answer to a request with a grammar. */
  refusal?: Error;
  /** Records the calls. */
  memory?: RequestMemory | null;
  /** Names of adapters for all tenants; they change nothing. */
  adapters?: readonly string[];
}

/** A runtime whose model answers with these texts in order, one byte per token; repeats the last one. */
export function createSpokenModel(answers: readonly string[], options: SpokenModelOptions = {}): SpokenModel {
  const {
    template = HERMES_TEMPLATE,
    maxContext = 8192,
    refusal,
    memory: memoryRequests = null,
    adapters = [],
    size = 'medium',
  } = options;
  const tokenizer = createByteTokenizer();
  const never = (): never => {
    throw new Error('no adapters here');
  };
  const requests: SpokenModel['requests'] = [];
  let numAnswers = 0;
  const client: Partial<EngineClient> = {
    isAlive: true,
    onLost() {},
    sendVocabulary() {},
    sendTokenTable() {},
    generate(request, onEvent) {
      let isAborted = false;
      const prompt = tokenizer.decode(request.promptIds, { skipSpecial: false });
      requests.push({ ...request, prompt });
      const at = { cachedTokens: 0, queuedMs: 0, elapsedMs: 1, acceptedDraftTokens: 0, rejectedDraftTokens: 0 };
      const fails = refusal !== undefined && request.grammar !== null;
      const ids = fails ? [] : tokenizer.encodeTemplate(answers[Math.min(numAnswers++, answers.length - 1)]!);
      void (async () => {
        await Promise.resolve();
        if (fails) return onEvent({ type: 'failed', id: 0, error: serializeError(refusal) });
        for (const tokenId of ids.slice(0, request.maxTokens)) {
          await Promise.resolve();
          if (isAborted) return;
          onEvent({ type: 'token', id: 0, token: { tokenId, logprob: -1, top: [] }, ...at });
        }
        if (isAborted) return;
        const reason = ids.length > request.maxTokens ? 'length' : 'stop';
        onEvent({ type: 'finished', id: 0, reason, stopId: null, ...at });
      })();
      return { abort: () => void (isAborted = true) };
    },
    report: null,
    stats: async () => ({}) as never,
    dispose: async () => {},
  };
  const model = createModel({
    requests: memoryRequests,
    name: 'toy',
    onDispose: () => {},
    context: {
      vision: null,
      prepareLearned: null,
      client: client as EngineClient,
      adapters: {
        load: never,
        stage: never,
        unload: () => false,
        list: () => adapters.map((name) => ({ name, tenant: null }) as AdapterInfo),
        resolve: () => [],
        learned: () => [],
        loadLearned: () => Promise.reject(new Error('nothing is learned here')),
      },
      tokenizer,
      chatTemplate: createChatTemplate({
        source: template,
        architecture: null,
        bosToken: '',
        eosToken: tokenizer.piece(tokenizer.eosId!),
        specialSpellings: tokenizer.specialSpellings,
      }),
      maxContext,
      sampling: DEFAULT_SAMPLING,
      vocabSize: tokenizer.vocabSize,
      endIds: [tokenizer.eosId!],
      prepareGrammar: null,
      textThread: null,
      tableThread: null,
      now: () => 0,
      createSeed: () => 1,
    },
    info: {
      maxContext,
      kernels: 'scalar',
      memory: { totalBytes: 0 },
      path: 'spoken',
      size,
      sampling: { ...DEFAULT_SAMPLING, source: 'default' },
    } as ModelInfo,
    head: null,
    sessions: createSessionTable({
      maxSessions: 3,
      vocabSize: tokenizer.vocabSize,
      records: null,
      wallClock: () => 0,
    }),
  });
  return { model, requests };
}
