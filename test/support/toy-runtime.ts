import type { ModelSpec } from '../../src/engine/protocol.ts';
import { DEFAULT_SAMPLING } from '../../src/sampling/generate-params.ts';
import type { ClassifierHead } from '../../src/models/classifier-head.ts';
import { createAdapterNames } from '../../src/runtime/adapters.ts';
import { createEngineClient } from '../../src/runtime/engine-client.ts';
import { createModel } from '../../src/runtime/model.ts';
import { createModelInfo } from '../../src/runtime/model-info.ts';
import { createSessionTable, type SessionTableOptions } from '../../src/runtime/sessions/session-table.ts';
import type { TextThread } from '../../src/runtime/text/text-thread.ts';
import type { Sampler, SamplingParams } from '../../src/sampling/types.ts';
import { createInProcessTransport } from './in-process-transport.ts';
import { createToyModel, TOY_VOCAB, type ToyModelOptions } from './toy-model.ts';
import { opened, TOY_SPEC } from './toy-spec.ts';
import { createToyTemplate, createToyTokenizer } from './toy-tokenizer.ts';

export interface ToyRuntimeOptions extends ToyModelOptions {
  createSampler?: (params: SamplingParams) => Sampler;
  spec?: Partial<ModelSpec>;
  sessions?: Partial<SessionTableOptions>;
  textThread?: TextThread;
  /** Makes it a cross-encoder. */
  head?: ClassifierHead;
}

const noAdapters = (): never => {
  throw new Error('the toy model has no matrices');
};

/** The toy model behind everything except a thread and a file; its clock advances by one per reading. */
export async function createToyRuntime(options: ToyRuntimeOptions = {}) {
  const { createSampler, spec, sessions, textThread = null, head = null, ...toyOptions } = options;
  const toy = createToyModel(toyOptions);
  const transport = createInProcessTransport({
    openModel: async () => opened(toy),
    ...(createSampler === undefined ? {} : { createSampler }),
  });
  const client = createEngineClient(transport);
  const report = await client.load({ ...TOY_SPEC, ...spec }, {});
  const tokenizer = createToyTokenizer();
  let clock = 0;
  let wallClock = 1000;
  const table = createSessionTable({
    maxSessions: 3,
    vocabSize: TOY_VOCAB,
    records: null,
    wallClock: () => wallClock++,
    ...sessions,
  });
  const model = createModel({
    requests: null,
    name: 'toy',
    onDispose: () => {},
    context: {
      vision: null,
      prepareLearned: null,
      client,
      adapters: createAdapterNames({ client, base: report.shape, readAdapter: noAdapters }),
      tokenizer,
      chatTemplate: createToyTemplate(),
      maxContext: report.maxContext,
      sampling: DEFAULT_SAMPLING,
      vocabSize: report.shape.vocabSize,
      endIds: [1],
      now: () => clock++,
      createSeed: () => 4711,
      prepareGrammar: null,
      textThread,
      tableThread: null,
    },
    info: createModelInfo(
      {
        name: 'toy',
        numParameters: 2e9,
        quantization: 'Q8_0',
        fileBytes: 10,
        pooling: 'mean',
        sampling: { ...DEFAULT_SAMPLING, source: 'default' },
      },
      report,
      {
        path: 'toy.gguf',
        chatTemplate: 'toy',
        canRerank: head !== null,
        canSeeImages: false,
        loadMs: 5,
      },
    ),
    head,
    sessions: table,
  });
  return { model, toy, transport, tokenizer, table };
}

/** A sampler that returns these ids in order. */
export const saying = (ids: readonly number[]) => (): Sampler => {
  let index = 0;
  return { sample: () => ({ tokenId: ids[index++]!, logprob: -1, top: [] }) };
};
