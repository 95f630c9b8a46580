import { assert, deserializeError, RuvLLMError } from '../../core/errors.ts';
import type { SampledToken } from '../../sampling/types.ts';
import type { TokenTableData, VocabularyData } from '../constraints.ts';
import type { SamplerAnswer, SamplerTask, SamplerThread, SlowText, SpawnSamplerThread } from './types.ts';

/** A text in the sampler thread. */
export interface RemoteText {
  /** One call at a time. */
  sample(logits: Float32Array): Promise<SampledToken>;
  close(): void;
}

/** The engine's side of the sampler thread, which starts with the first text. */
export interface SamplerClient {
  setVocabulary(vocabulary: VocabularyData): void;
  setTable(table: TokenTableData): void;
  open(text: SlowText): RemoteText;
  dispose(): Promise<void>;
}

interface Waiting {
  resolve(token: SampledToken): void;
  reject(error: Error): void;
}

export function createSamplerClient(spawn: SpawnSamplerThread): SamplerClient {
  let vocabulary: SamplerTask | null = null;
  let thread: SamplerThread | null = null;
  let nextId = 0;
  const waiting = new Map<number, Waiting>();

  function start(): SamplerThread {
    assert(vocabulary !== null, 'a grammar arrived before the vocabulary');
    const started = spawn({
      onAnswer: settle,
      onLoss(error) {
        if (thread === started) lose(error);
      },
    });
    started.post(vocabulary);
    return started;
  }

  function settle(answer: SamplerAnswer): void {
    const call = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ('token' in answer) call?.resolve(answer.token);
    else call?.reject(deserializeError(answer.error));
  }

  function lose(cause: Error): void {
    thread = null;
    const error =
      cause instanceof RuvLLMError
        ? cause
        : new RuvLLMError('internal', `the sampler thread failed: ${cause.message}`, { cause });
    for (const call of waiting.values()) call.reject(error);
    waiting.clear();
  }

  return {
    setVocabulary(data) {
      vocabulary = { type: 'vocabulary', vocabulary: data };
    },
    setTable(table) {
      vocabulary = { type: 'tokenTable', table };
    },
    open(text) {
      const id = nextId++;
      const own = (thread ??= start());
      own.post({ type: 'open', id, text });
      return {
        sample(logits) {
          return new Promise((resolve, reject) => {
            if (thread !== own)
              return reject(new RuvLLMError('internal', 'the sampler thread was lost with this text'));
            waiting.set(id, { resolve, reject });
            own.post({ type: 'sample', id, logits: Float32Array.from(logits) });
          });
        },
        close() {
          waiting.delete(id);
          if (thread === own) own.post({ type: 'close', id });
        },
      };
    },
    async dispose() {
      const ended = thread;
      lose(new RuvLLMError('not_loaded', 'the sampler thread was closed with its model'));
      await ended?.dispose();
    },
  };
}
